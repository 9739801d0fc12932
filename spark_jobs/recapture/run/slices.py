"""The slices of a range."""

from datetime import UTC, datetime, timedelta

from recapture.definition.pipeline import Pipeline
from recapture.errors import DefinitionError
from recapture.time_model import ticks
from recapture.time_model.slices import Slice, slices_between


def require_whole_slices(pipeline: Pipeline, start: datetime, end: datetime) -> None:
    """Raise DefinitionError unless a range is one or more whole slices that have ended."""
    for name, instant in (("from", start), ("to", end)):
        if instant.utcoffset() is None:
            raise DefinitionError(f"{name} {instant.isoformat()} has no zone: write it as 2026-03-01T10:00:00Z")
        if ticks.from_datetime(instant) % slice_length(pipeline):
            raise DefinitionError(
                f"{name} {ticks.text_of(instant)} is not on a slice border: {pipeline.name} has slices of "
                f"{pipeline.slice_hours} h, counted from midnight UTC"
            )
    if start >= end:
        raise DefinitionError(f"the range is empty: from {ticks.text_of(start)} is not before to {ticks.text_of(end)}")
    if end > datetime.now(UTC):
        raise DefinitionError(f"to {ticks.text_of(end)} lies in the future: choose an end at which a slice has ended")


def slices_of(pipeline: Pipeline, start: datetime, end: datetime) -> list[Slice]:
    """Return the slices of a range."""
    return list(slices_between(ticks.from_datetime(start), ticks.from_datetime(end), slice_length(pipeline)))


def slice_length(pipeline: Pipeline) -> int:
    """Return the length of the pipeline's slices in ticks."""
    return timedelta(hours=pipeline.slice_hours) // timedelta(microseconds=1) * ticks.TICKS_PER_MICROSECOND
