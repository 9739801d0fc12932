"""What is counted in one slice and partition of an input (docs/time-model.md, section 5)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recapture.errors import RunError

Value = int | float | None
"""Value of a metric; None if it is not known, such as in what a version without the metric wrote."""


@dataclass(frozen=True)
class NumberGaps:
    """Sequence numbers that never arrived."""

    missing: int = 0
    """Number of them."""
    ranges: tuple[tuple[int, int], ...] = ()
    """First and last number of each range; at most MAX_GAPS ranges."""


@dataclass(frozen=True, slots=True)
class ArrivedNumbers:
    """Sequence numbers of the events of one partition that arrived in one slice."""

    ranges: tuple[tuple[int, int, int, int], ...]
    """First and last number of each range, and its earliest and latest enqueued time in ticks, or -1."""
    sequence_partition: int | None = None
    """Partition that gave the numbers, if several share the blobs."""


@dataclass(frozen=True)
class EventAhead:
    """The processed event whose System.Timestamp is furthest ahead of its arrival."""

    seconds: float
    """System.Timestamp minus arrival."""
    blob: str
    """Name of the event's blob."""
    sequence_number: int | None = None
    place: int | None = None
    """Index of the event in its blob, from 0, if it has no sequence number."""

    def to_dict(self) -> dict[str, Any]:
        """Return the event in JSON types."""
        number = {"place": self.place} if self.sequence_number is None else {"sequence_number": self.sequence_number}
        return {"seconds": self.seconds, **number, "blob": self.blob}


@dataclass(frozen=True)
class KeyEvents:
    """Events of one key that arrived in a slice."""

    key: str | None
    """None if the events lack the key."""
    counts: Mapping[str, int]
    """Number of these events (`events`), of those that were processed, and of each of `verdicts.TROUBLES`."""


@dataclass(frozen=True)
class KeyMetrics:
    """What became of the events of the keys with the most trouble."""

    columns: tuple[str, ...]
    """Names of the columns of the key."""
    keys: int
    """Number of keys."""
    most: Mapping[str, tuple[KeyEvents, ...]]
    """Keys with the most events in each of `verdicts.TROUBLES`, largest first."""
    unreached: tuple[KeyEvents, ...]
    """Keys without a processed event, those with the most events first."""
    unreached_count: int
    """Number of keys without a processed event."""


@dataclass(frozen=True)
class PartitionMetrics:
    """The metrics of one slice and partition of an input, and details that no expectation judges."""

    slice_start: str
    input: str
    """Alias of the input."""
    partition: str
    values: Mapping[str, Value]
    """Value of each metric of `metrics.COMBINED`, by name."""
    whole: bool | None = None
    """Whether none of the blobs that are read for the slice is damaged; None if it is not known."""
    complete: bool | None = None
    """Whether Capture had written the partition up to the end of the slice; None if it is not known."""
    furthest_ahead: EventAhead | None = None
    """None if no event was processed."""
    gaps: NumberGaps = NumberGaps()
    numbers: tuple[ArrivedNumbers, ...] = ()
    """Ranges of sequence numbers that arrived (see `recapture.archive.holes`)."""
    keys: KeyMetrics | None = None
    """None if the events have no key."""
    without_block: tuple[str, ...] = ()
    """Names of the blobs that are Avro files with a header and no block."""

    def count(self, name: str) -> int:
        """Return a count. Raise RunError if it is not known."""
        return known_count(self.values, name)

    def find_count(self, name: str) -> int | None:
        """Return a count; None if it is not known."""
        return None if self.values[name] is None else self.count(name)


def known_count(values: Mapping[str, Value], name: str) -> int:
    """Return a count. Raise RunError if it is not known."""
    value = values[name]
    if value is None:
        raise RunError(f"the run's metrics lack {name}; run the slices again")
    return int(value)
