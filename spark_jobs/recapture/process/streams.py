"""The command's standard streams. A closed or full one does not end in a traceback."""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from recapture.errors import ClosedOutputError, UnfinishedError


class _Output(io.TextIOWrapper):
    """Standard output. Raise UnfinishedError if it cannot be written, as the command may have published already.

    If nobody reads it any more, that is a ClosedOutputError.
    """

    def write(self, text: str) -> int:
        with _explained():
            return super().write(text)

    def flush(self) -> None:
        with _explained():
            super().flush()


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise ClosedOutputError("standard output was closed before everything was printed") from None
    except OSError as error:
        raise UnfinishedError(f"cannot write to standard output: {error.strerror}") from None


def secure() -> None:
    """Open closed streams, so that no other file gets their numbers, and explain what standard output raises."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))
    output = sys.stdout
    assert isinstance(output, io.TextIOWrapper)
    encoding, line_buffering = output.encoding, output.line_buffering
    sys.stdout = _Output(output.detach(), encoding, line_buffering=line_buffering)


def drop_errors() -> None:
    """Send standard error to nowhere, with what it still buffers: nobody reads it any more."""
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.stderr.fileno())
