"""A planned run: the value that every stage after planning works on."""

from dataclasses import dataclass
from functools import cached_property

from recapture import __version__
from recapture.archive.definition_changes import definition_changes
from recapture.archive.manifest import Manifest, RunSlice
from recapture.archive.pinning import PlannedInput
from recapture.archive.references import PlannedReference
from recapture.definition.digest import run_definition
from recapture.definition.pipeline import Pipeline
from recapture.errors import DefinitionError, RunError
from recapture.formats.reference_data import Reference
from recapture.formats.sections import Input
from recapture.run_files.files import RunFiles
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

    @cached_property
    def slices(self) -> dict[str, RunSlice]:
        """The run's slices by slice_start, in order of time."""
        return {ticks.to_text(run_slice.slice.start): run_slice for run_slice in self.manifest.slices}


def load_run(pipeline: Pipeline, run_id: str) -> PlannedRun:
    """Return a run that was planned earlier.

    Raise RunError if it has no manifest or if that was edited, DefinitionError if the pipeline has changed since.
    """
    files = files_of(pipeline, run_id)
    manifest = files.manifest()
    require_same_definition(pipeline, manifest)
    return PlannedRun(pipeline, manifest, files)


def readable_manifest(pipeline: Pipeline, run_id: str) -> Manifest | None:
    """Return the manifest of a run; None if it is lost, or cannot be read by this version."""
    try:
        return files_of(pipeline, run_id).manifest()
    except RunError:
        return None


def require_same_definition(pipeline: Pipeline, manifest: Manifest) -> None:
    """Raise DefinitionError if a manifest was planned with another definition: its run would give other rows."""
    definition = run_definition(pipeline)
    if manifest.definition_digest == definition.digest:
        return
    if manifest.definition is None:
        changed = (
            f"the version of Recapture (then {manifest.engine}, now {__version__}), the query, a JavaScript function, "
            "the policies or an input has changed"
        )
    else:
        changed = "; ".join(definition_changes(manifest.definition, definition.digest_content))
    raise DefinitionError(f"{pipeline.file} is not what run {manifest.run} was planned with: {changed}; plan again")


def planned_inputs(pipeline: Pipeline, manifest: Manifest) -> list[tuple[Input, PlannedInput]]:
    """Return what a run reads of each input, with the input's section."""
    return [(pipeline.section(planned.alias), planned) for planned in manifest.inputs]


def planned_references(pipeline: Pipeline, manifest: Manifest) -> list[tuple[Reference, PlannedReference]]:
    """Return the versions of reference data that a run reads, each with its section."""
    return [(pipeline.reference(reference.alias), reference) for reference in manifest.references]


def files_of(pipeline: Pipeline, run_id: str) -> RunFiles:
    """Return the run files of a run, planned or not."""
    return RunFiles(open_container(pipeline.outputs[0].table), run_id)
