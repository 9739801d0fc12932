"""Find the windows whose rows depend on events that the archive lacks, by the holes that publications record."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from recapture.archive.definitions import InputDefinition
from recapture.archive.holes import MAX_HOLES, Hole, Kind
from recapture.archive.listing import FAR
from recapture.definition.digest import run_definition
from recapture.definition.pipeline import Pipeline
from recapture.run.tables import tables_of
from recapture.table.publications import Publication, Publications
from recapture.time_model import ticks
from recapture.time_model.slices import Slice, slices_between


def incomplete_ends(pipeline: Pipeline, slices: Sequence[Slice], late_seconds: int | None) -> list[Slice]:
    """Return the ranges of window ends whose rows may lack events, as far as they lie in successive slices.

    A hole lacks arrivals; section 3 of docs/time-model.md says which rows depend on them. `late_seconds` is the late
    tolerance of the live job if it is not the pipeline's: the larger one counts.
    """
    inputs = [_with_late(definition, late_seconds) for definition in run_definition(pipeline).inputs]
    length = slices[0].end - slices[0].start
    around = slices_between(
        min(definition.first_needed(slices[0]) for definition in inputs) // length * length,
        -(-max(definition.last_needed(slices[-1]) for definition in inputs) // length) * length,
        length,
    )
    by_start = {ticks.to_text(slice_.start): slice_ for slice_ in around}
    entries = Publications(tables_of(pipeline).publications).entries(list(by_start))
    dependent = (
        _dependent(definition, arrivals)
        for start, entry in entries.items()
        if entry.current is not None
        for definition in inputs
        for arrivals in _lacking(definition, by_start[start], entry.current)
    )
    bounds = ((max(ends.start, slices[0].start), min(ends.end, slices[-1].end)) for ends in dependent)
    return [Slice(start, end) for start, end in bounds if start < end]


def _with_late(definition: InputDefinition, late_seconds: int | None) -> InputDefinition:
    """Return an input with the larger of its late tolerance and another one, in seconds; -1 is no limit."""
    policies = definition.policies
    if policies is None or policies.late_tolerance is None or late_seconds is None:
        return definition
    late = None if late_seconds < 0 else max(policies.late_tolerance, ticks.from_seconds(late_seconds))
    return replace(definition, policies=replace(policies, late_tolerance=late))


def _lacking(definition: InputDefinition, slice_: Slice, current: Publication) -> Iterator[Slice]:
    """Yield the ranges of arrivals that an input lacks, as the publication of a slice says.

    A publication lists only some holes, and a hole of several slices is listed by one: if blobs are missing beyond
    those listed, the whole slice counts.
    """
    for hole in current.holes:
        if hole.input == definition.alias and hole.events != 0:
            start = slice_.start if hole.start is None else hole.start
            yield Slice(start, _last_arrival(definition, slice_, hole))
    listed = sum(hole.blobs for hole in current.holes if hole.kind is not Kind.DISPLACED and hole.severity != "info")
    if len(current.holes) == MAX_HOLES or current.missing_blobs > listed:
        yield slice_


def _last_arrival(definition: InputDefinition, slice_: Slice, hole: Hole) -> int:
    """Return the latest usual arrival of what a hole lacks, in ticks."""
    if hole.end is None:
        return slice_.end
    last = max(definition.last_arrival(hole.end), hole.written or 0)
    return last if definition.by_enqueued_time else last + FAR


def _dependent(definition: InputDefinition, arrivals: Slice) -> Slice:
    """Return the range of window ends whose rows depend on a range of arrivals."""
    zero = Slice(0, 0)
    is_unlimited = definition.policies is not None and definition.policies.late_tolerance is None
    start = 0 if is_unlimited else arrivals.start - definition.last_needed(zero)
    return Slice(start, arrivals.end - definition.first_needed(zero))
