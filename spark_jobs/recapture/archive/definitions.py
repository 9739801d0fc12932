"""The parts of a pipeline that decide which blobs a run reads and what becomes of their events."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

from recapture.archive.blob_names import BlobNames
from recapture.archive.listing import FAR, NewestBlob, Search
from recapture.process.versions import MANIFEST_FORMAT
from recapture.storage import Blob
from recapture.time_model import ticks
from recapture.time_model.policies import EARLY_SECONDS, Policies
from recapture.time_model.slices import Arrivals, Slice

MAX_CLOCK_SKEW = ticks.from_seconds(300)
"""Largest difference between the hub's clock, which stamps events, and the clocks of the writer and the storage; ticks.

The clocks of one service differ by seconds. If an event was enqueued before or after its blob's enqueued range by more
than this, the run that reads the blob stops (docs/time-model.md, section 1.2).
"""

SEARCH_HOURS = 168
"""Default of `input.search_hours`: the longest time that a hub keeps events, except in the premium tiers.

Capture cannot lag further than that.
"""


class ArrivalTime(StrEnum):
    """The time that is an event's arrival (docs/time-model.md, section 1)."""

    BLOB_LAST_MODIFIED = "BlobLastModified"
    EVENT_ENQUEUED = "EventEnqueuedUtcTime"


@dataclass(frozen=True, kw_only=True)
class InputDefinition:
    """The parts of an input, and of the query on it, that decide its blobs and what becomes of their events."""

    alias: str
    names: BlobNames
    policies: Policies | None
    """Policies of the job; None without TIMESTAMP BY."""
    look_back: int
    """Time before a slice for which the query's windows need events, in ticks."""
    interval_seconds: int
    """Longest time from the time in a blob's name to its last event, in seconds; 0 if names have no time."""
    reading: Mapping[str, Any]
    """Keys of the input section that decide how blobs are read, as JSON."""
    arrival_time: ArrivalTime = ArrivalTime.BLOB_LAST_MODIFIED
    search_hours: int = SEARCH_HOURS
    partitions: int | None = None
    """Number of partitions of the hub; None if it is not known."""
    empty_blobs: bool = False
    """Whether a blob is written for an interval without events."""

    @property
    def longest_write_delay(self) -> int:
        """Longest time from the time in a blob's name to its LastModified; ticks."""
        return ticks.from_seconds(self.interval_seconds + 3600 * self.search_hours)

    @property
    def by_enqueued_time(self) -> bool:
        """Whether events arrive when they are enqueued, so that the times in the names decide which blobs are read."""
        return self.arrival_time is ArrivalTime.EVENT_ENQUEUED

    @property
    def time_until_written(self) -> timedelta:
        """Time after an event's arrival by which its blob must have been written.

        If events arrive at their blob's LastModified and blobs are not written on a schedule, a blob exists as soon as
        its events arrive. The time is then only MAX_CLOCK_SKEW.
        """
        waits = self.names.on_schedule or self.by_enqueued_time
        return timedelta(seconds=self.interval_seconds if waits else MAX_CLOCK_SKEW // ticks.TICKS_PER_SECOND)

    @property
    def interval(self) -> int:
        """Longest time from the time in a blob's name to its last event, in ticks."""
        return ticks.from_seconds(self.interval_seconds)

    @property
    def has_blob_in_each_interval(self) -> bool:
        """Whether every interval of every partition has a blob, even if no event arrived in it."""
        return self.empty_blobs and self.names.on_schedule

    def last_arrival(self, interval_end: int) -> int:
        """Return the arrival of the last event of an interval, in ticks; with LastModified, it is after the end."""
        return interval_end - 1 if self.by_enqueued_time else interval_end + 1

    def archived_until(self, newest: NewestBlob) -> int:
        """Return the arrival, in ticks, up to which a partition is archived according to its newest blob."""
        return newest.name_time if self.by_enqueued_time else newest.written

    def last_needed(self, slice_: Slice) -> int:
        """Return the last arrival that must have been written before a slice is complete, in ticks.

        With enqueued times, MAX_CLOCK_SKEW is added. Without a late limit, later arrivals can still change the slice.
        """
        return slice_.end + self._latest_arrival

    @property
    def _latest_arrival(self) -> int:
        """Time after the end of a slice until which arrivals may belong to it, in ticks."""
        late = 0 if self.policies is None else self.policies.late_tolerance or 0
        return late + (MAX_CLOCK_SKEW if self.by_enqueued_time else 0)

    def first_needed(self, slice_: Slice) -> int:
        """Return the first arrival that can reach the rows of a slice, in ticks."""
        if self.policies is None:
            return slice_.start - self.look_back
        early = self.policies.early_window
        return slice_.start - self.look_back - (ticks.from_seconds(EARLY_SECONDS) if early is None else early)

    def search_for(self, needed: Sequence[Arrivals]) -> Search:
        """Return the search for all of these arrivals."""
        by_enqueued_time = self.by_enqueued_time
        ends = [arrivals.last for arrivals in needed if arrivals.last is not None]
        return Search(
            Arrivals(min(arrivals.first for arrivals in needed), max(ends) if len(ends) == len(needed) else None),
            by_enqueued_time,
            self.interval,
            max(ticks.from_seconds(3600 * self.search_hours), FAR),
            MAX_CLOCK_SKEW if by_enqueued_time else 0,
        )

    @property
    def digest_content(self) -> dict[str, Any]:
        """Settings that decide the rows, besides the query and the blobs, as JSON."""
        return {
            "policies": None if self.policies is None else asdict(self.policies),
            "arrival_time": self.arrival_time,
            "input": self.reading,
        }


@dataclass(frozen=True, kw_only=True)
class ReferenceDefinition:
    """The parts of reference data that decide its blobs and its rows."""

    alias: str
    names: BlobNames
    reading: Mapping[str, Any]
    """Keys of the section that decide how blobs are read, as JSON."""


@dataclass(frozen=True, kw_only=True)
class RunDefinition:
    """The parts of a pipeline that decide the rows of its runs, besides the blobs."""

    name: str
    engine: str
    canonical_query: str
    inputs: Sequence[InputDefinition]
    """Inputs that the query reads, in any order."""
    references: Sequence[ReferenceDefinition] = ()
    """Reference data that the query reads, in any order."""
    functions: Sequence[Mapping[str, Any]] = ()
    """JavaScript functions that the query calls, with their scripts, as JSON."""

    @property
    def digest_content(self) -> dict[str, Any]:
        """What decides the rows besides the blobs: version of Recapture, query, functions, policies, inputs; JSON."""
        return {
            "format": MANIFEST_FORMAT,
            "engine": self.engine,
            "query": self.canonical_query,
            "functions": list(self.functions),
            "inputs": {definition.alias: definition.digest_content for definition in self.inputs},
            "references": {definition.alias: definition.reading for definition in self.references},
        }

    @property
    def digest(self) -> str:
        """SHA-256 of `digest_content`."""
        return digest_of(self.digest_content)

    @property
    def parts(self) -> dict[str, str]:
        """Parts of the definition by their names: the version of Recapture, and digests of the others."""
        content = self.digest_content
        policies = {alias: section.pop("policies") for alias, section in content["inputs"].items()}
        return {
            "engine": self.engine,
            "query": digest_of(content["query"]),
            "functions": digest_of(content["functions"]),
            "policies": digest_of(policies),
            "inputs": digest_of([content["inputs"], content["references"]]),
        }


def version_of(blob: Blob) -> list[object]:
    """Return what a digest covers of a blob, as JSON: its name and its version."""
    return [blob.name, blob.etag, blob.size, blob.last_modified.isoformat()]


def digest_of(value: object) -> str:
    """Return the SHA-256 of a value's canonical JSON: sorted keys, no white space."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
