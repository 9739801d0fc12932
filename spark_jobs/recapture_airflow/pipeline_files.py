"""Load pipeline files. A file that fails or is too slow does not affect the others."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from recapture.definition.pipeline import Pipeline, load
from recapture.errors import DefinitionError
from recapture_airflow.remote_definitions import is_remote, require_addresses, stored_definitions

SECONDS = 5.0
"""Seconds that one file may take to load. Airflow allows 30 s for all files."""


class _TooSlowError(BaseException):
    """Time limit exceeded. It is not an Exception, so that no handler in the loader catches it."""


def files_of(source: Path | str, folder: Path) -> dict[Path, str]:
    """Return the pipeline files of a source, and for each what messages call it. Raise DefinitionError if it has none.

    A source is a folder or file, relative to `folder`; or `variable://NAME` or the address of definitions.
    """
    if isinstance(source, str) and is_remote(source):
        return stored_definitions(source)
    path = folder / source
    files = sorted(path.glob("*.yaml")) if path.is_dir() else [path]
    if not files:
        raise DefinitionError(f"{path} has no pipeline file: write NAME.yaml there, or name another folder")
    return {file: str(file) for file in files}


def load_all(source: Path | str, folder: Path = Path()) -> tuple[list[Pipeline], dict[Path, str]]:
    """Return the pipelines of a source, in the order of their files, and a message for each file that fails."""
    pipelines: dict[str, Pipeline] = {}
    errors: dict[Path, str] = {}
    for file, shown in files_of(source, folder).items():
        try:
            with _time_limit(SECONDS):
                pipeline = load(file)
            if shown != str(file):
                require_addresses(pipeline, shown)
        except DefinitionError as error:
            errors[file] = str(error).replace(str(file), shown)
        except _TooSlowError:
            errors[file] = f"{shown}: the pipeline file was not loaded within {SECONDS:.0f} s: simplify its query"
        else:
            name, first = pipeline.name, pipelines.setdefault(pipeline.name, pipeline)
            if first is not pipeline:
                errors[file] = f"{shown}: the pipeline in {first.file.name} is named {name} too: rename one"
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
