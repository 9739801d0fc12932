"""Set environment variables temporarily."""

import contextlib
import os
from collections.abc import Iterator


@contextlib.contextmanager
def environment(**variables: str) -> Iterator[None]:
    """Let this process, and processes that start in this context, have these variables."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
