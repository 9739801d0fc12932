"""Plan a run: pin the blobs that a range of slices needs, or take them from a manifest."""

import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from recapture.archive import changes
from recapture.archive import manifest as manifests
from recapture.archive.manifest import Manifest
from recapture.archive.pinning import PlannedInput
from recapture.archive.references import PlannedReference
from recapture.definition.digest import run_definition
from recapture.definition.pipeline import Pipeline
from recapture.errors import DefinitionError, RunError, SetupError
from recapture.pages import page as pages
from recapture.process.wording import counted
from recapture.quality import checkpoint, suites
from recapture.run.progress import storage_time
from recapture.run.run_length import beginning, is_too_long
from recapture.run.slices import require_whole_slices, slice_length, slices_of
from recapture.run.suites import NONE_GIVEN, Parameters, load_suites
from recapture.run.tables import tables_of
from recapture.run_files.planned import (
    PlannedRun,
    files_of,
    planned_inputs,
    planned_references,
    require_same_definition,
)
from recapture.storage import open_container
from recapture.time_model import ticks
from recapture.time_model.slices import Slice

_LOG = logging.getLogger(__name__)


def preview(pipeline: Pipeline, start: datetime, end: datetime, *, take_over: bool = False) -> Manifest:
    """Return the manifest of a range and write nothing.

    Raise DefinitionError if the range or pipeline cannot run, and SetupError if blobs are in the archive tier.
    """
    manifest = pinned(pipeline, _runnable_slices(pipeline, start, end, take_over))
    _require_online(manifest)
    return manifest


def preview_run(pipeline: Pipeline, start: datetime, end: datetime, *, take_over: bool = False) -> Manifest:
    """Return the manifest of a range or, if it is too long for one run, of its beginning; see `preview`."""
    slices = beginning(pipeline, _runnable_slices(pipeline, start, end, take_over))
    while is_too_long(manifest := pinned(pipeline, slices)):
        slices = slices[: len(slices) // 2]
    _require_online(manifest)
    return manifest


def _runnable_slices(pipeline: Pipeline, start: datetime, end: datetime, take_over: bool) -> Sequence[Slice]:
    require_whole_slices(pipeline, start, end)
    require_publishable(pipeline, take_over=take_over)
    return slices_of(pipeline, start, end)


def _require_online(manifest: Manifest) -> None:
    """Raise SetupError if blobs that a run reads are in the archive tier of Azure, before it reads any."""
    for planned in manifest.inputs:
        archived = [pinned.blob.name for pinned in planned.blobs if pinned.blob.archived]
        if archived:
            count = f"{len(archived):,} of {counted(len(planned.blobs), 'blob')} of the input {planned.alias}"
            raise SetupError(
                f"{count} are in the archive tier, such as {archived[0]}: move them to the tier Hot or Cool, wait "
                "until they are there, which can take 15 hours, then run the same command again"
            )


def end_of(manifest: Manifest) -> datetime:
    """Return the end of the last slice of a manifest."""
    return ticks.to_datetime(manifest.slices[-1].slice.end)


def pinned(pipeline: Pipeline, slices: Sequence[Slice]) -> Manifest:
    """Return the manifest of slices, each of which begins at the end of the one before it; write nothing."""
    containers = {section.alias: open_container(section.container) for section in pipeline.all_inputs}
    now = storage_time(pipeline, datetime.now(UTC))
    return manifests.pin_blobs(run_definition(pipeline), containers, slices, now)


def plan_run(pipeline: Pipeline, start: datetime, end: datetime, parameters: Parameters = NONE_GIVEN) -> PlannedRun:
    """Plan a range and write its manifest. Errors are those of `preview` and of `require_auditable`.

    The run's id follows from what the run reads and computes: planning the same again gives the same run.
    """
    require_auditable(pipeline, parameters)
    return begin_run(pipeline, preview(pipeline, start, end))


def require_one_run(pipeline: Pipeline, start: datetime, end: datetime) -> None:
    """Raise DefinitionError if a range is too long for one run, judging by the partitions of its inputs."""
    slices = slices_of(pipeline, start, end)
    one_run = beginning(pipeline, slices)
    if len(one_run) < len(slices):
        raise DefinitionError(
            f"the range has {len(slices):,} slices, which is too long for one run: choose a `to` up to "
            f"{ticks.to_text(one_run[-1].end)}, or give `at`, so that updates compute the range in several runs"
        )


def require_packages() -> None:
    """Raise DefinitionError unless what audits runs and what makes reports is installed. It loads nothing."""
    pages.require_installed()
    suites.require_installed()


def require_auditable(pipeline: Pipeline, parameters: Parameters = NONE_GIVEN) -> None:
    """Raise DefinitionError if Great Expectations or what makes reports is not installed, or a suite has a mistake."""
    require_packages()
    checkpoint.require_valid_arguments(load_suites(pipeline, parameters).values())


def load_manifest(pipeline: Pipeline, name: str) -> Manifest:
    """Return the manifest in a file, or that of a run of this pipeline.

    Raise RunError if there is none or if it was changed, and DefinitionError if it belongs to another definition.
    """
    file, files = Path(name), files_of(pipeline, name)
    if not file.is_file() and (not name or "/" in name):
        raise RunError(f"{name or 'an empty string'} is not a file: give the file of a manifest, or the name of a run")
    try:
        manifest = manifests.from_json(file.read_bytes()) if file.is_file() else files.find_manifest()
    except OSError as error:
        raise RunError(f"{file}: the manifest cannot be read ({error.strerror})") from error
    if manifest is None:
        raise RunError(f"{name} is neither a file nor a run with a manifest under {files.container.url}")
    require_same_definition(pipeline, manifest)
    sections = {section.alias: section for section in pipeline.all_inputs}
    read: list[PlannedInput | PlannedReference] = [*manifest.inputs, *manifest.references]
    for planned in read:
        if planned.container != open_container(sections[planned.alias].container).url:
            raise DefinitionError(
                f"run {manifest.run} reads {planned.container}, which is not the input.container of {planned.alias}"
            )
    lengths = {run_slice.slice.end - run_slice.slice.start for run_slice in manifest.slices}
    if lengths != {slice_length(pipeline)}:
        raise DefinitionError(
            f"slice_hours is {pipeline.slice_hours}, but run {manifest.run} has slices of another length: plan again"
        )
    return manifest


def changed_since(pipeline: Pipeline, manifest: Manifest) -> list[changes.Change]:
    """Return the blobs of a manifest that were modified or deleted since it was written."""
    several = len(pipeline.all_inputs) > 1
    input_changes = (
        changes.in_input(planned, section.names, open_container(section.container), name_input=several)
        for section, planned in planned_inputs(pipeline, manifest)
    )
    reference_changes = (
        changes.in_reference(reference, section.names, open_container(section.container))
        for section, reference in planned_references(pipeline, manifest)
    )
    return [change for found in (*input_changes, *reference_changes) for change in found]


def require_publishable(pipeline: Pipeline, *, take_over: bool = False) -> None:
    """Raise DefinitionError if a suite or a script has a mistake, or a table cannot be published to.

    A table cannot be published to if it cannot hold the columns of the query, belongs to another pipeline (unless
    `take_over`), or takes no commit that replaces a slice.
    """
    require_runnable_scripts(pipeline)
    load_suites(pipeline)
    tables_of(pipeline).require_publishable(take_over)


def require_runnable_scripts(pipeline: Pipeline) -> None:
    """Raise DefinitionError if a script cannot run. V8 is loaded only if the query calls one."""
    if pipeline.query.functions:
        from recapture.javascript.engine import engine

        for function in pipeline.query.functions:
            engine(function)


def begin_run(pipeline: Pipeline, manifest: Manifest) -> PlannedRun:
    """Write a manifest to the run files, and return its run."""
    run = PlannedRun(pipeline, manifest, files_of(pipeline, manifest.run))
    run.files.write_manifest(manifest)
    _LOG.info(
        "run %s: planned %s of %s, %s",
        *(run.id, counted(len(manifest.slices), "slice"), pipeline.name),
        "; ".join([*map(_description, manifest.inputs), *map(_versions, manifest.references)]),
    )
    return run


def _versions(reference: PlannedReference) -> str:
    return f"reference data {reference.alias}, {counted(len(reference.versions), 'version')} ({reference.size} bytes)"


def _description(planned: PlannedInput) -> str:
    blobs = f"{counted(len(planned.blobs), 'blob')} ({planned.size} bytes)"
    return f"input {planned.alias}, {blobs} of {counted(len(planned.partitions), 'partition')}"
