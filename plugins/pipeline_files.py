"""Load the pipeline files of the DAG folder. A file that fails or is too slow does not affect the others."""

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
"""Seconds that one file may take to load. Airflow allows 30 s for all files."""


class _TooSlowError(BaseException):
    """Time limit exceeded. It is not an Exception, so that no handler in the loader catches it."""


def load_all(folder: Path) -> tuple[list[Pipeline], list[str]]:
    """Return the pipelines in the order of their files, and one message for each file that cannot be loaded."""
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
    """Raise _TooSlowError after this time. There is no limit outside the main thread, which alone handles signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def too_slow(number: int, frame: FrameType | None) -> None:
        raise _TooSlowError

    began = time.monotonic()
    handler = signal.signal(signal.SIGALRM, too_slow)
    remaining, _ = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        if remaining:
            signal.setitimer(signal.ITIMER_REAL, max(remaining - (time.monotonic() - began), 0.001))
