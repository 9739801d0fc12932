"""What a slice read or would read: the manifest of the run that is published for it, or else a plan of now."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property

from recapture.archive.manifest import Manifest
from recapture.archive.pinning import PlannedInput, pin_input
from recapture.archive.references import PlannedReference, pin_reference
from recapture.definition.digest import run_definition
from recapture.definition.pipeline import Pipeline
from recapture.errors import DefinitionError
from recapture.ordering.task import Task, split
from recapture.run.tables import tables_of
from recapture.run_files.planned import readable_manifest
from recapture.storage import open_container
from recapture.table.delta import OpenTable
from recapture.table.publications import NOTHING_SHOWN, ShownEntry, shown_entries
from recapture.time_model import ticks
from recapture.time_model.slices import Slice


@dataclass(frozen=True)
class SlicePlan:
    """What one slice reads of an input."""

    slice: Slice
    planned: PlannedInput
    published_by: str | None
    """Run that is published for the slice, and whose manifest this is; None for a plan of now."""
    note: str | None
    """Why this is a plan of now although a run is published for the slice."""
    run: str | None = None
    """Run that was asked for, and whose manifest this is; None if none was."""

    @property
    def tasks(self) -> list[Task]:
        """Tasks that order the slice, one for each partition."""
        (planned_slice,) = (planned for planned in self.planned.slices if planned.slice == self.slice)
        tasks = split([planned_slice], self.planned.blobs, 1 << 62)
        return [task for task in tasks if task.blobs]


@dataclass
class Plans:
    """The plans of the slices of a pipeline; each is made once."""

    pipeline: Pipeline
    now: datetime
    run: str | None = None
    """Run whose manifest is read, published or not; None for that of the run that is published for a slice."""
    _plans: dict[tuple[str, Slice], SlicePlan] = field(default_factory=dict)
    _manifests: dict[str, Manifest | None] = field(default_factory=dict)

    @cached_property
    def shown(self) -> Mapping[str, ShownEntry]:
        """What is published, by slice_start."""
        return shown_entries(OpenTable(tables_of(self.pipeline).publications))

    def of(self, alias: str, slices: Sequence[Slice]) -> list[SlicePlan]:
        """Return what each slice reads of an input. Errors are those of `pin_input`."""
        missing = [slice_ for slice_ in slices if (alias, slice_) not in self._plans]
        unread: dict[Slice, str | None] = {}
        for slice_ in missing:
            manifest, note = self._manifest_of(slice_)
            if manifest is None:
                unread[slice_] = note
            else:
                published = self._published_by(slice_)
                shown = None if self.run is not None and self.run != published else published
                self._plans[alias, slice_] = SlicePlan(slice_, manifest.input(alias), shown, None, self.run)
        if unread:
            inputs = run_definition(self.pipeline).inputs
            definition = next(definition for definition in inputs if definition.alias == alias)
            container = open_container(self.pipeline.section(alias).container)
            planned = pin_input(definition, container, list(unread), self.now)
            self._plans |= {(alias, slice_): SlicePlan(slice_, planned, None, note) for slice_, note in unread.items()}
        return [self._plans[alias, slice_] for slice_ in slices]

    def reference(self, alias: str, slice_: Slice) -> PlannedReference:
        """Return the versions of reference data that a slice reads. Errors are those of `pin_reference`."""
        manifest, _ = self._manifest_of(slice_)
        if manifest is not None:
            planned = manifest.reference(alias)
            return replace(planned, versions=tuple(planned.needed(slice_, slice_)))
        definition = run_definition(self.pipeline)
        container = open_container(self.pipeline.reference(alias).container)
        look_back = max(read.look_back for read in definition.inputs)
        reference = next(reference for reference in definition.references if reference.alias == alias)
        return pin_reference(reference, container, [slice_], look_back)

    def _published_by(self, slice_: Slice) -> str | None:
        return self.shown.get(ticks.to_text(slice_.start), NOTHING_SHOWN).run

    def _manifest_of(self, slice_: Slice) -> tuple[Manifest | None, str | None]:
        """Return the manifest that says what a slice reads, or why a published one does not; neither for a plan of now.

        Raise DefinitionError if the run that was asked for cannot say it.
        """
        run = self.run or self._published_by(slice_)
        if run is None:
            return None, None
        manifest, because = self._manifest(run)
        if self.run is None:
            return manifest, because and f"run {run}, which is published, {because}"
        if manifest is None:
            raise DefinitionError(f"--run: run {run} {because}")
        if slice_ not in [planned.slice for planned in manifest.slices]:
            raise DefinitionError(f"--run: run {run} has no slice that starts at {ticks.to_text(slice_.start)}")
        return manifest, None

    def _manifest(self, run: str) -> tuple[Manifest | None, str | None]:
        """Return the manifest of a run if it was planned with the pipeline's present definition, or else why not."""
        if run not in self._manifests:
            self._manifests[run] = readable_manifest(self.pipeline, run)
        manifest = self._manifests[run]
        if manifest is None:
            return None, "has lost its manifest, or it cannot be read"
        if manifest.definition_digest != run_definition(self.pipeline).digest:
            return None, "was computed with another definition"
        return manifest, None
