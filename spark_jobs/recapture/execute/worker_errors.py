"""Errors of a worker as errors that reach the user: not every error can be sent to another process."""

from collections.abc import Iterator
from contextlib import contextmanager

from recapture.errors import PermanentError, RecaptureError, RunError
from recapture.process.limits import reached_limit


@contextmanager
def one_error(less_memory: str) -> Iterator[None]:
    """Raise any error as a RunError or a PermanentError. `less_memory` says what to do if no memory is left."""
    try:
        yield
    except PermanentError as error:
        raise PermanentError(str(error)) from None
    except RecaptureError as error:
        raise RunError(str(error)) from None
    except MemoryError:
        raise RunError(f"a worker has no memory left: {less_memory}") from None
    except Exception as error:
        if limit := reached_limit(error):
            raise RunError(f"a worker failed: {limit}") from None
        message = (str(error).splitlines() or ["no message"])[0]
        raise RunError(f"a worker failed: {type(error).__name__}: {message}") from error
