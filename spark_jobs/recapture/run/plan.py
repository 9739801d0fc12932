"""Plan a run: pin the blobs that a range of slices needs, or take them from a manifest."""

import logging
from datetime import UTC, datetime
from pathlib import Path

from recapture.archive import changes, manifest
from recapture.archive.manifest import Manifest
from recapture.definition.digest import row_definition
from recapture.definition.pipeline import Pipeline
from recapture.errors import DefinitionError, RunError
from recapture.run.planned import PlannedRun, files_of, require_same_definition
from recapture.run.slices import require_whole_slices, slice_length, slices_of
from recapture.run.suites import load_suites
from recapture.run.tables import tables_of
from recapture.storage import open_container

_LOG = logging.getLogger(__name__)


def preview(pipeline: Pipeline, start: datetime, end: datetime) -> Manifest:
    """Return the manifest of a range and write nothing. Raise DefinitionError if the range or pipeline cannot run."""
    require_whole_slices(pipeline, start, end)
    _require_publishable(pipeline)
    container = open_container(pipeline.input.container)
    slices = slices_of(pipeline, start, end)
    return manifest.pin_blobs(row_definition(pipeline), container, slices, datetime.now(UTC))


def plan_run(pipeline: Pipeline, start: datetime, end: datetime) -> PlannedRun:
    """Plan a range and write its manifest. Errors are those of `preview`.

    The run's id follows from what the run reads and computes: planning the same again gives the same run.
    """
    return _written(pipeline, preview(pipeline, start, end))


def resume_run(pipeline: Pipeline, planned: Manifest) -> PlannedRun:
    """Return the run of a manifest; it is the same run as before."""
    _require_publishable(pipeline)
    return _written(pipeline, planned)


def load_manifest(pipeline: Pipeline, name: str) -> Manifest:
    """Return the manifest in a file, or that of a run of this pipeline.

    Raise RunError if there is none or if it was changed, and DefinitionError if it belongs to another definition.
    """
    file, files = Path(name), files_of(pipeline, name)
    if not file.is_file() and (not name or "/" in name):
        raise RunError(f"{name or 'an empty text'} is not a file: give the file of a manifest, or the name of a run")
    try:
        content = file.read_bytes() if file.is_file() else files.table.read_current(files.name("manifest.json"))
    except OSError as error:
        raise RunError(f"{file}: the manifest cannot be read ({error.strerror})") from error
    if content is None:
        raise RunError(f"{name} is not a file, and no run with a manifest under {files.table.url}")
    planned = manifest.from_json(content)
    require_same_definition(pipeline, planned)
    if planned.container != open_container(pipeline.input.container).url:
        raise DefinitionError(
            f"run {planned.run} reads {planned.container}, which is not this pipeline's input.container"
        )
    if {slice_.slice.end - slice_.slice.start for slice_ in planned.slices} != {slice_length(pipeline)}:
        raise DefinitionError(f"the slices of run {planned.run} are not of {pipeline.slice_hours} h: plan again")
    return planned


def changed_since(pipeline: Pipeline, planned: Manifest) -> list[changes.Change]:
    """Return the blobs of a manifest that were modified or deleted since it was written."""
    return changes.since(planned, pipeline.input.names, open_container(pipeline.input.container))


def _require_publishable(pipeline: Pipeline) -> None:
    """Raise DefinitionError for a mistake in a suite, or for a table that has other columns than the query."""
    load_suites(pipeline)
    tables_of(pipeline).require_columns()


def _written(pipeline: Pipeline, planned: Manifest) -> PlannedRun:
    run = PlannedRun(pipeline, planned, files_of(pipeline, planned.run))
    run.files.write_manifest(planned)
    _LOG.info(
        "run %s: planned %d slices of %s, input %s, %d blobs (%d bytes) of %d partitions",
        *(run.id, len(planned.slices), pipeline.name, pipeline.input.alias),
        *(len(planned.blobs), planned.size, len(planned.partitions)),
    )
    return run
