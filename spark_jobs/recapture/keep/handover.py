"""Where a live job, or another consumer, continues after the published slices without hole or overlap."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby

from recapture.archive.definitions import InputDefinition
from recapture.definition.pipeline import Pipeline
from recapture.errors import RunError
from recapture.keep.due import SliceFacts, State, tick
from recapture.keep.job_start import first_read, not_guaranteed, start_time
from recapture.keep.positions import PlacedEvent, Position, arrived_in, find_event, positions
from recapture.keep.sources import sources_of
from recapture.keep.state import read_state
from recapture.model import Metadata
from recapture.run.tables import tables_of
from recapture.run_files.planned import readable_manifest
from recapture.storage import in_parallel, open_container
from recapture.table.publications import Publications
from recapture.time_model import ticks
from recapture.time_model.slices import Slice

NO_POSITIONS = "this input format has no positions from which a consumer can continue"


@dataclass(frozen=True)
class PartitionEnd:
    """Where the published slices end in a partition."""

    position: Position
    event: PlacedEvent | None
    """Event at the position; None if none is known, or if it cannot be read."""
    problem: str | None
    """Why the event cannot be read; None if it could be, or if there is none."""


@dataclass(frozen=True)
class InputEnd:
    """Where the published slices end in an input."""

    alias: str
    first_read: int
    """First arrival that the live job reads, in ticks: the hub must still hold it."""
    looked_at_from: int | None
    """Start of the first slice in which the positions were looked for, in ticks; None if there are no positions."""
    partitions: tuple[PartitionEnd, ...]
    problem: str | None
    """Why there are no positions; None if there are."""


@dataclass(frozen=True)
class Problem:
    """Slices that do not hold what one run over the archive would give."""

    start: int
    """Start of the first slice, in ticks."""
    end: int
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Handover:
    """Where the published slices of a pipeline end, and what does not let a live job follow them exactly."""

    since: int
    """Start of the first slice that is kept, in ticks; earlier ones were not looked at."""
    end: int
    """End of the newest published slice, in ticks."""
    start_time: int
    """Custom start time of the live job, in ticks."""
    inputs: tuple[InputEnd, ...]
    problems: tuple[Problem, ...]
    not_guaranteed: tuple[str, ...]


def handover(pipeline: Pipeline, now: datetime) -> Handover:
    """Return where the published slices of a pipeline end, and compare them with the archive as an update does.

    Nothing is written. Raise RunError if nothing is published, or if the state cannot be read.
    """
    sources = sources_of(pipeline)
    reading = read_state(pipeline, sources, now)
    state = reading.state
    starts = sorted(start for start, facts in state.slices.items() if facts.run is not None)
    if not starts:
        raise RunError(f"nothing of {pipeline.name} is published: backfill a range, or run recapture update")
    published = [Slice(start, start + state.length) for start in starts]
    end, windows = published[-1].end, pipeline.query.windows
    unknown = {ticks.from_text(text) for text in reading.changes.unknown}
    publications = Publications(tables_of(pipeline).publications)
    return Handover(
        since=state.since,
        end=end,
        start_time=start_time(windows, end),
        inputs=tuple(
            _input_end(pipeline, definition, publications, published) for definition in sources.definition.inputs
        ),
        problems=tuple(problems(state, end, unknown)),
        not_guaranteed=tuple(not_guaranteed(windows, sources.definition.inputs)),
    )


def problems(state: State, end: int, unknown: Collection[int] = ()) -> Iterator[Problem]:
    """Yield the slices up to `end` that do not hold what one run over the archive would give, with the reasons.

    `unknown` are the starts of published slices that could not be compared with the archive.
    """
    plan = tick(replace(state, end=end, until=min(end, state.until), requests=()))
    due = [slice_ for range_ in plan.ranges for slice_ in range_.slices]
    reasons: dict[int, list[str]] = {slice_.start: list(slice_.reasons) for slice_ in (*due, *plan.left)}
    for slice_ in plan.waiting:
        reasons[slice_.start] = [*slice_.reasons, *(f"waits for {what}" for what in slice_.waits_for)]
    for start in range(state.since, end, state.length):
        facts = state.slices.get(start, SliceFacts())
        others = [f"incomplete: {what}" for what in facts.waits_for] if facts.run is not None else []
        others += ["unfinished: a table does not hold what is published"] if facts.is_unfinished else []
        others += ["unknown: the manifest of its run cannot be read"] if start in unknown else []
        if others:
            reasons.setdefault(start, []).extend(others)
    numbered = enumerate(sorted(reasons))
    for _, group in groupby(numbered, lambda item: (item[1] - item[0] * state.length, reasons[item[1]])):
        starts = [start for _, start in group]
        yield Problem(starts[0], starts[-1] + state.length, tuple(reasons[starts[0]]))


def _input_end(
    pipeline: Pipeline,
    definition: InputDefinition,
    publications: Publications,
    published: Sequence[Slice],
) -> InputEnd:
    section, first = pipeline.section(definition.alias), first_read(definition, published[-1].end)
    if Metadata.OFFSET not in section.metadata.known:
        return InputEnd(definition.alias, first, None, (), NO_POSITIONS)
    arrived = arrived_in(publications, published, definition.alias, section.source)
    if not arrived:
        reason = "the newest slice does not record its sequence numbers, or read another hub: backfill it again"
        return InputEnd(definition.alias, first, None, (), reason)
    container, reader = open_container(section.container), section.reader(())
    located = list(positions(arrived))
    slices = sorted({ticks.to_text(position.slice.start) for position in located if position.slice is not None})
    runs = {start: str(entry.run) for start, entry in publications.entries(slices).items()}
    manifests = {run: readable_manifest(pipeline, run) for run in sorted(set(runs.values()))}

    def partition_end(position: Position) -> PartitionEnd:
        if position.slice is None:
            return PartitionEnd(position, None, None)
        manifest = manifests[runs[ticks.to_text(position.slice.start)]]
        event = find_event(position, manifest, definition.alias, container, reader)
        return PartitionEnd(position, None, event) if isinstance(event, str) else PartitionEnd(position, event, None)

    partitions = tuple(in_parallel(partition_end, located))
    return InputEnd(definition.alias, first, arrived[0][0].start, partitions, None)
