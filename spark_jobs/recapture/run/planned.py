"""A planned run: the value that every stage after planning works on."""

from dataclasses import dataclass

from recapture.archive.manifest import Manifest, PlannedSlice
from recapture.definition.digest import definition_of
from recapture.definition.pipeline import Pipeline
from recapture.errors import RunError
from recapture.run.files import RunFiles
from recapture.storage import open_container
from recapture.time_model import ticks


@dataclass(frozen=True)
class PlannedRun:
    """A run whose manifest is written."""

    pipeline: Pipeline
    manifest: Manifest
    files: RunFiles

    @property
    def id(self) -> str:
        return self.manifest.run

    @property
    def slices(self) -> dict[str, PlannedSlice]:
        """The run's slices by slice_start, in order of time."""
        return {ticks.to_text(planned.slice.start): planned for planned in self.manifest.slices}


def load_run(pipeline: Pipeline, run_id: str) -> PlannedRun:
    """Return a run that was planned earlier.

    Raise RunError if it has no manifest, if somebody changed that, or if the pipeline has changed since.
    """
    files = files_of(pipeline, run_id)
    manifest = files.manifest()
    if manifest.definition_digest != definition_of(pipeline).digest:
        raise RunError(f"{pipeline.file} changed since run {run_id} was planned: plan again")
    return PlannedRun(pipeline, manifest, files)


def files_of(pipeline: Pipeline, run_id: str) -> RunFiles:
    """Return the run files of a run, planned or not."""
    return RunFiles(open_container(pipeline.outputs[0].table), run_id)
