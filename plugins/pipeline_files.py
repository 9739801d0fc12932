"""The pipeline files in the DAG folder. One that cannot be loaded, or not soon, leaves the others alone."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from recapture.definition.pipeline import Pipeline, load
from recapture.errors import DefinitionError

SECONDS = 5.0
"""How long a file may take; Airflow allows 30 s for all of them."""


class _TooSlowError(BaseException):
    """Not an Exception, so that nothing on the way handles it."""


def load_all(folder: Path) -> tuple[list[Pipeline], list[str]]:
    """Return the pipelines, in the order of their files, and a line for each file that cannot be loaded."""
    pipelines: dict[str, Pipeline] = {}
    errors = []
    for file in sorted(folder.glob("*.yaml")):
        try:
            with _time_limit(SECONDS):
                pipeline = load(file)
        except DefinitionError as error:
            errors.append(str(error))
        except _TooSlowError:
            errors.append(f"{file}: the pipeline file was not loaded within {SECONDS:.0f} s: simplify its query")
        else:
            name, first = pipeline.name, pipelines.setdefault(pipeline.name, pipeline)
            if first is not pipeline:
                errors.append(f"{file.name}: the pipeline in {first.file.name} is named {name} too: rename one")
    return list(pipelines.values()), errors


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Raise _TooSlowError after this time. Outside the main thread, where no signal arrives, there is no limit."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def too_slow(number: int, frame: FrameType | None) -> None:
        raise _TooSlowError

    began = time.monotonic()
    handler = signal.signal(signal.SIGALRM, too_slow)
    left, _ = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        if left:
            signal.setitimer(signal.ITIMER_REAL, max(left - (time.monotonic() - began), 0.001))
