"""Compare what slices read with what the archive has now."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import cached_property, lru_cache
from json import loads

from recapture.archive.manifest import DamagedManifestError, Manifest, arrivals_read, versions_read
from recapture.archive.references import PlannedReference
from recapture.errors import FormatError
from recapture.keep.archived import ArchivedSlice, all_references, archived_slices
from recapture.keep.due import Difference
from recapture.keep.sources import Sources
from recapture.run.slice_state import Standing
from recapture.run_files.changes import Changes
from recapture.run_files.files import RunFiles
from recapture.table.publications import NOTHING_SHOWN, ShownEntry
from recapture.time_model import ticks
from recapture.time_model.slices import Arrivals, Slice

_CHANGES_NO_READING = {"engine", "suite"}
"""Parts of the definition that do not decide which reference data a slice needs."""


class Comparison:
    """The archive and the publications of a pipeline at a time."""

    def __init__(self, sources: Sources, standing: Standing, now: datetime) -> None:
        self._sources, self._standing, self._now = sources, standing, now
        self._manifest_of = lru_cache(maxsize=8)(self._read_manifest)  # neighbours often have one run

    def entry(self, slice_start: str) -> ShownEntry:
        """Return what is published for a slice, given by slice_start."""
        return self._standing.entries.get(slice_start, NOTHING_SHOWN)

    def archived(self, starts: Iterable[int]) -> Iterator[ArchivedSlice]:
        """Yield what the archive has for slices, given by their starts in ticks and in order of time."""
        slices = (Slice(start, start + self._sources.length) for start in starts)
        definition, containers = self._sources.definition, self._sources.containers
        return archived_slices(definition, containers, slices, self._now, self._arrivals_read, self._references)

    def difference(self, slice_start: str, archived: ArchivedSlice) -> tuple[Difference | None, bool]:
        """Return how the archive differs from what the published slice read, and whether that is known.

        A slice that read another container does not differ: it is outdated.
        """
        entry = self.entry(slice_start)
        is_elsewhere = "containers" in self._outdated(slice_start)
        if entry.run is None or is_elsewhere or entry.read == archived.read_before:
            return None, True
        manifest = self._manifest_of(entry.run)
        if entry.read is None and manifest is None:
            return None, False
        noticed = ticks.from_text(self._noticed(slice_start))
        same_references = not self._outdated(slice_start) - _CHANGES_NO_READING
        return archived.difference_from(manifest, noticed, same_definition=same_references), True

    def recorded_difference(self, slice_start: str) -> Difference | None:
        """Return the difference of a slice whose blobs are not listed, by the record of what was found before."""
        if not self._is_recorded(slice_start) or "containers" in self._outdated(slice_start):
            return None
        changes = self._standing.changes
        last_change = changes.last_changes.get(slice_start, changes.noticed.get(slice_start))
        return Difference(last_change=0 if last_change is None else ticks.from_text(last_change))

    def record(self, last_changes: Mapping[str, int]) -> Changes:
        """Return what is recorded of changed slices; `last_changes` has the times of their last changes, in ticks."""
        entries = {slice_start: self.entry(slice_start) for slice_start in last_changes}
        return Changes(
            slices={slice_start: entry.run for slice_start, entry in entries.items() if entry.run is not None},
            published={
                slice_start: entry.published for slice_start, entry in entries.items() if entry.published is not None
            },
            noticed={slice_start: self._noticed(slice_start) for slice_start in entries},
            last_changes={slice_start: ticks.to_text(last_change) for slice_start, last_change in last_changes.items()},
        )

    def reference_differences(self, slice_starts: Iterable[str]) -> Iterator[tuple[str, Difference]]:
        """Yield the published slices whose reference data changed, without a listing of their blobs."""
        if not self._references:
            return
        digests = lru_cache(maxsize=64)(versions_read)
        for slice_start in slice_starts:
            entry = self.entry(slice_start)
            if entry.run is None or entry.read is None or self._outdated(slice_start) - _CHANGES_NO_READING:
                continue
            start = ticks.from_text(slice_start)
            slice_, then = Slice(start, start + self._sources.length), loads(entry.read)["references"]
            needed = {reference.alias: tuple(reference.needed(slice_, slice_)) for reference in self._references}
            changed = [alias for alias, versions in needed.items() if then.get(alias) != digests(versions)]
            if changed:
                written = [ticks.from_datetime(v[-1].blob.last_modified) for alias in changed if (v := needed[alias])]
                is_gone = len(written) < len(changed)
                last_change = max([*written, *([ticks.from_text(self._noticed(slice_start))] if is_gone else [])])
                yield slice_start, Difference(references=tuple(changed), last_change=last_change)

    @cached_property
    def _references(self) -> list[PlannedReference]:
        """All versions of all reference data."""
        return all_references(self._sources.definition, self._sources.containers)

    def _outdated(self, slice_start: str) -> set[str]:
        return set(self._standing.outdated.get(slice_start, ()))

    def _is_recorded(self, slice_start: str) -> bool:
        """Return whether a slice is recorded as changed since it was published."""
        entry, changes = self.entry(slice_start), self._standing.changes
        is_same_run = entry.run is not None and changes.slices.get(slice_start) == entry.run
        return is_same_run and changes.published.get(slice_start, entry.published) == entry.published

    def _noticed(self, slice_start: str) -> str:
        """Return the time at which a slice was first found changed: now, if it is not recorded as changed."""
        present = ticks.whole_seconds(self._now)
        return self._standing.changes.noticed.get(slice_start, present) if self._is_recorded(slice_start) else present

    def _arrivals_read(self, slice_: Slice) -> Mapping[str, Arrivals]:
        """Return the arrivals that a published slice read, by the alias of the input; none if that is not known."""
        entry = self.entry(ticks.to_text(slice_.start))
        if entry.read is not None:
            return arrivals_read(entry.read)
        manifest = None if entry.run is None else self._manifest_of(entry.run)
        planned = () if manifest is None else manifest.inputs
        return {read.alias: other.arrivals for read in planned for other in read.slices if other.slice == slice_}

    def _read_manifest(self, run: str) -> Manifest | None:
        """Return the manifest of a run; None if none can be read. Raise RunError if the storage refuses."""
        try:
            return RunFiles(self._sources.run_files, run).find_manifest()
        except (DamagedManifestError, FormatError):  # what was read is then unknown, or known from the publication
            return None
