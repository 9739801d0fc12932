"""What the stages of a run took: time, CPU, and what they asked of the storage. Each stage measures itself."""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from recapture.archive.manifest import Manifest
from recapture.errors import RunError
from recapture.run_files.files import RunFiles
from recapture.run_files.json_file import JsonFile
from recapture.run_files.planned import PlannedRun
from recapture.storage.took import Took, measured
from recapture.storage.use import Use, used
from recapture.table.files import folder_of
from recapture.table.stored import prefixes_of

_LOG = logging.getLogger(__name__)
P = ParamSpec("P")
R = TypeVar("R")
Stage = Callable[Concatenate[PlannedRun, P], R]
"""Function that carries out a stage of a run."""


@dataclass(frozen=True)
class Cost:
    """What a run had to do, and what each of its stages took."""

    engine: str
    """Engine that computed the rows: `processes` or `spark`."""
    cores: int
    """Number of cores that computed the rows at the same time."""
    definition: str
    """Digest of the definition, as in the manifest."""
    slices: int
    blobs: int
    bytes: int
    """Size of the blobs in bytes, each counted once."""
    stages: Mapping[str, Took]
    """What the stages took that have ended, by their names."""
    prefixes: int = 1
    """Number of prefixes under which a table has the files of the slices: each is listed."""

    @property
    def total(self) -> Took:
        """What all stages took."""
        took = list(self.stages.values())
        cpu = [stage.cpu_seconds for stage in took if stage.cpu_seconds is not None]
        use = [stage.use for stage in took if stage.use is not None]
        return Took(
            sum(stage.seconds for stage in took),
            sum(cpu) if len(cpu) == len(took) else None,
            sum(use, Use()) if len(use) == len(took) else None,
        )


COST = JsonFile("cost.json", Cost)


@contextmanager
def computation(
    run: PlannedRun, stage: str, engine: str, cores: Callable[[], int], parts: Iterable[Took] | None
) -> Iterator[None]:
    """Measure the stage that computes the rows of a run, and write what it took to the run files.

    `cores` is called when the stage ends, because a cluster may add executors to a run. `parts` has what other
    processes took for it, as soon as it ends; None if that is not known.
    """
    seconds, cpu, use = time.perf_counter(), time.process_time(), used()
    yield
    took = Took(time.perf_counter() - seconds, None, None)
    if parts is not None:
        others = list(parts)
        took = Took(
            took.seconds,
            time.process_time() - cpu + sum(part.cpu_seconds or 0 for part in others),
            sum((part.use for part in others if part.use is not None), used() - use),
        )
    manifest = run.manifest
    _write(
        run.files,
        Cost(
            engine,
            cores(),
            manifest.definition_digest,
            len(manifest.slices),
            manifest.blob_count,
            manifest.size,
            {stage: took},
            prefixes_of_slices(manifest),
        ),
    )


def prefixes_of_slices(manifest: Manifest) -> int:
    """Return the number of prefixes under which a table has the files of the slices of a run."""
    return len(prefixes_of({folder_of(run_slice.slice.start) for run_slice in manifest.slices}))


def recorded(stage: str) -> Callable[[Stage[P, R]], Stage[P, R]]:
    """Return a decorator for the function of a stage after the computation: what it took is added to the run files."""

    def decorate(call: Stage[P, R]) -> Stage[P, R]:
        @wraps(call)
        def recording(run: PlannedRun, /, *args: P.args, **kwargs: P.kwargs) -> R:
            result, took = measured(call, run, *args, **kwargs)
            cost = read_cost(run.files)
            if cost is not None:
                _write(run.files, replace(cost, stages={**cost.stages, stage: took}))
            return result

        return recording

    return decorate


def read_cost(files: RunFiles) -> Cost | None:
    """Return what a run took; None if that was not written, or cannot be read: nothing depends on it."""
    try:
        return files.find(COST)
    except RunError as error:
        _LOG.warning("what run %s took cannot be read: %s", files.id, error)
        return None


def _write(files: RunFiles, cost: Cost) -> None:
    try:
        files.write(COST, cost)
    except RunError as error:
        _LOG.warning("what run %s took could not be written: %s", files.id, error)
