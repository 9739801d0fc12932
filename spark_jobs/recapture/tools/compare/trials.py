"""Compute slices again as the live job may have computed them, and find out what it may have done differently."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from datetime import datetime
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

from recapture.archive.definitions import ArrivalTime
from recapture.definition.pipeline import Pipeline
from recapture.errors import DefinitionError
from recapture.query.model import CompiledQuery
from recapture.run_files.computed import Computed
from recapture.run_files.planned import PlannedRun
from recapture.table.publications import Entry
from recapture.time_model import ticks
from recapture.time_model.slices import Slice
from recapture.time_model.windows import SessionWindow
from recapture.tools.compare.archive_copies import ArchiveCopies, Kept, can_restart, copied_events, planned_blobs
from recapture.tools.compare.assumptions import (
    Assumption,
    Trial,
    enqueued_arrival,
    given_settings,
    other_deadlines,
)
from recapture.tools.compare.words import ARCHIVED_TWICE, CHANGED_ARCHIVE, OTHER_DEFINITION, RESTART
from recapture.tools.diff.document import of_other_definition, with_changed_blobs
from recapture.tools.diff.files import StoredFile
from recapture.tools.diff.tried import Tried, tried_pipeline, try_slices

Compute = Callable[[Pipeline], Callable[[PlannedRun], Computed]]
"""Returns the function that stages the rows of the runs of a pipeline."""
Slices = Sequence[Slice]
MAX_SHIFTS = 3
"""Largest number of shifts of the deadlines of sessions that are tried."""


class Trials:
    """The trials of a comparison; their rows and their copies of the archive are in a folder."""

    def __init__(
        self, pipeline: Pipeline, alias: str, published: tuple[Slices, Mapping[str, Entry]], tried: Tried, folder: Path
    ) -> None:
        """Raise DefinitionError if a given setting or query is wrong. `published` has slices with their entries."""
        self.pipeline, self._alias, self._given, self._folder = pipeline, alias, tried, folder
        self._slices, self._entries = published
        self._copies = ArchiveCopies(folder)
        self._made = 0
        tried_pipeline(pipeline, tried, folder / "given")

    def assumptions(self, downtimes: Sequence[tuple[datetime, datetime]], cuts: Sequence[int]) -> list[Assumption]:
        """Return what the live job may have done differently, in the order in which it is tried.

        `cuts` are the ends of sessions, in ticks, that only the live job has. This lists and reads the archive.
        """
        changes = [Assumption(CHANGED_ARCHIVE, "new_blobs", True)] if self._has_new_blobs() else []
        if of_other_definition(self.pipeline, self._entries):
            changes.append(Assumption(OTHER_DEFINITION, "definition", True))
        copied = [Assumption(ARCHIVED_TWICE, "each_event_once", True)] if self._copied_events else []
        restarts = []
        if all(map(can_restart, self.pipeline.inputs)):
            restarts = [Assumption(RESTART, "restart", end) for _, end in downtimes]
        enqueued = [enqueued_arrival()] if self._with_enqueued_time is not None else []
        deadlines = map(other_deadlines, _offsets(self.pipeline.query, cuts))
        return [*changes, *copied, *given_settings(self._given), *restarts, *enqueued, *deadlines]

    def files(self, trial: Trial, slices: Slices, compute: Compute) -> list[StoredFile]:
        """Compute slices, and return the files of their rows. Errors are those of `try_slices`."""
        files = []
        for changed, changed_slices in self.pipelines(trial, slices):
            stored = try_slices(changed, changed_slices, compute(changed)).files
            files += [file for (output, _), file in stored.items() if output == self._alias]
        return files

    def pipelines(self, trial: Trial, slices: Slices) -> Iterator[tuple[Pipeline, list[Slice]]]:
        """Yield the pipelines that compute slices in a trial, each with its slices."""
        by_enqueued_time = trial.tried.arrival_time is ArrivalTime.EVENT_ENQUEUED
        without = self._copied_events if trial.each_event_once or by_enqueued_time else {}
        for until, group in groupby(slices, lambda slice_: None if trial.new_blobs else self._published(slice_)):
            group_slices = list(group)
            self._made += 1
            tried = tried_pipeline(self.pipeline, trial.tried, self._folder / f"run-{self._made}")
            changed = self._copies.reading(tried, group_slices, Kept(until, trial.restart, without))
            offset = trial.session_offset
            changed.__dict__["query"] = with_session_offset(tried.query, offset) if offset else tried.query
            yield changed, group_slices

    def _published(self, slice_: Slice) -> datetime | None:
        current = self._entries[ticks.to_text(slice_.start)].current
        return None if current is None else current.published

    def _has_new_blobs(self) -> bool:
        """Return whether the slices would read other blobs now than when they were published."""
        if with_changed_blobs(self.pipeline, self._slices, self._entries):
            return True
        present = [self.pipeline, *([self._with_enqueued_time] if self._with_enqueued_time else [])]
        return any(
            published is not None and any(blob.blob.last_modified > published for blob in blobs)
            for pipeline in present
            for slice_ in self._slices
            for published in [self._published(slice_)]
            for blobs in planned_blobs(pipeline, [slice_]).values()
        )

    @cached_property
    def _copied_events(self) -> Mapping[tuple[str, str], Any]:
        return copied_events(self.pipeline, self._slices)

    @cached_property
    def _with_enqueued_time(self) -> Pipeline | None:
        """The pipeline with the enqueued time as arrival; None if it has that, or if a format has no such time."""
        if all(section.arrival_time is ArrivalTime.EVENT_ENQUEUED for section in self.pipeline.inputs):
            return None
        try:
            changes = Tried(arrival_time=ArrivalTime.EVENT_ENQUEUED)
            return tried_pipeline(self.pipeline, changes, self._folder / "enqueued")
        except DefinitionError:
            return None


def with_session_offset(query: CompiledQuery, offset: int) -> CompiledQuery:
    """Return a query whose sessions are cut at other times: shifted by an offset, in ticks."""
    changed: CompiledQuery = _replaced(query, offset, {})
    return changed


def _offsets(query: CompiledQuery, cuts: Sequence[int]) -> list[int]:
    """Return the shifts of deadlines that are tried; none if the query has no sessions, or of several lengths."""
    longest = {window.max_duration for window in query.windows if isinstance(window, SessionWindow)}
    if len(longest) != 1:
        return []
    (max_duration,) = longest
    return likely_offsets(max_duration, cuts)


def likely_offsets(max_duration: int, cuts: Sequence[int]) -> list[int]:
    """Return the shifts of deadlines at which the live job may have cut its sessions, the likeliest first.

    Sessions that were cut at their deadlines end at the same time after a multiple of the maximum duration; those that
    ended after a pause do not. So a shift that only one session has is tried only if no two sessions have the same.
    Which multiples are even depends on the live job, too.
    """
    sessions = Counter(cut % max_duration for cut in cuts)
    repeated = [shift for shift, count in sessions.items() if count > 1]
    likeliest = sorted(repeated or sessions, key=lambda shift: (-sessions[shift], shift))[:MAX_SHIFTS]
    return [offset for shift in likeliest for offset in (shift, shift + max_duration) if offset]


def _replaced(value: Any, offset: int, memo: dict[int, Any]) -> Any:
    """Return a value of the plan, and all that is in it, with shifted session windows; shared parts stay shared."""
    if id(value) not in memo:
        memo[id(value)] = _replaced_anew(value, offset, memo)
    return memo[id(value)]


def _replaced_anew(value: Any, offset: int, memo: dict[int, Any]) -> Any:
    if isinstance(value, SessionWindow):
        return replace(value, offset=offset)
    if type(value) is tuple:
        items = tuple(_replaced(item, offset, memo) for item in value)
        return items if any(new is not earlier for new, earlier in zip(items, value, strict=True)) else value
    if is_dataclass(value) and not isinstance(value, type):
        own = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
        changed = {name: _replaced(item, offset, memo) for name, item in own.items()}
        if any(changed[name] is not own[name] for name in own):
            return replace(value, **changed)
    return value
