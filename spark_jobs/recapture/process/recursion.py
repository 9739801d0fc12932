"""Room for code that recurses over expressions, however deep its caller is."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def room_for(frames: int) -> Iterator[None]:
    """Let the code of a `with` statement call `frames` functions within each other.

    So whether an expression is too deep does not depend on the caller.
    """
    before, depth = sys.getrecursionlimit(), 0
    frame = sys._getframe()
    while frame.f_back is not None:
        frame, depth = frame.f_back, depth + 1
    sys.setrecursionlimit(depth + frames)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
