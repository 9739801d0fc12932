"""Find what is missing from the archive for a run, with the numbers of the published slices next to it."""

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from recapture.archive.definitions import InputDefinition
from recapture.archive.holes import Hole, Kind, Partition, find_holes
from recapture.archive.listing import FAR
from recapture.archive.manifest import Manifest
from recapture.archive.number_chain import SliceNumbers
from recapture.archive.pauses import Pause, missing_blobs, pauses
from recapture.archive.pinning import PlannedInput
from recapture.definition.digest import run_definition
from recapture.definition.pipeline import Pipeline
from recapture.formats.sequence_partition import ROUND
from recapture.run_files.planned import PlannedRun
from recapture.table.publications import InputRead, Publication, Publications, shown_entries
from recapture.time_model import ticks
from recapture.time_model.partition_metrics import ArrivedNumbers, PartitionMetrics
from recapture.time_model.slices import Slice

_READ_TOGETHER = 8
"""Number of entries that are read at once while looking for the last known numbers."""
_MAX_NEIGHBOURS = 7 * 24
"""Largest number of published slices in which the last numbers before a run, or the first after it, are looked for."""

_MOST_SEVERE_FIRST = ("critical", "warning", "info")

Rows = Sequence[PartitionMetrics]
"""The metrics of a run: a row for each slice and partition of an input."""


def inputs_read(pipeline: Pipeline, rows: Rows) -> dict[str, dict[str, InputRead]]:
    """Return what each slice read of each input, by slice_start and alias."""
    by_slice: dict[str, dict[str, list[PartitionMetrics]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        by_slice[row.slice_start][row.input].append(row)
    return {
        start: {
            alias: InputRead(
                pipeline.section(alias).source,
                {row.partition: row.count("InputEvents") - row.count("DuplicateEvents") for row in input_rows},
                {row.partition: row.numbers for row in input_rows},
            )
            for alias, input_rows in inputs.items()
        }
        for start, inputs in by_slice.items()
    }


def holes_of(run: PlannedRun, rows: Rows, publications: Publications, *, provisional: bool = False) -> list[Hole]:
    """Return what is missing from the archive for a run, or may be: the most severe first, by input.

    If slices may be `provisional`, a blob is not missing that Capture may still write after the last one.
    """
    slices = [run_slice.slice for run_slice in run.manifest.slices]
    neighbours = _Neighbours(publications, slices[0], slices[-1])
    arrived: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
    for row in rows:
        arrived[row.input][row.slice_start, row.partition] += row.count("InputEventsSourcesTotal")
    holes = [
        hole
        for definition in run_definition(run.pipeline).inputs
        for hole in (
            *_displaced(run.manifest.input(definition.alias), arrived[definition.alias]),
            *find_holes(definition, list(_partitions(definition, run, rows, neighbours, provisional))),
        )
    ]
    return sorted(holes, key=lambda hole: _MOST_SEVERE_FIRST.index(hole.severity))


def holes_of_plan(pipeline: Pipeline, manifest: Manifest) -> list[Hole]:
    """Return what the names of the blobs show to be missing, by input; sequence numbers are not known yet."""
    holes: list[Hole] = []
    for definition in run_definition(pipeline).inputs:
        planned = manifest.input(definition.alias)
        slices = [SliceNumbers(planned_slice.slice, ()) for planned_slice in planned.slices]
        partitions = [
            Partition(name, slices, pauses=[pause for pause in planned.pauses if pause.partition == name])
            for name in planned.partitions
        ]
        arrived = Counter(
            (ticks.to_text(planned_slice.slice.start), pinned.partition)
            for planned_slice, blobs in zip(planned.slices, planned.blobs_by_slice(), strict=True)
            for pinned in blobs
            if planned_slice.slice.start < pinned.arrival <= planned_slice.slice.end
        )
        holes += [*_displaced(planned, arrived), *find_holes(definition, partitions)]
    return holes


def _displaced(planned: PlannedInput, arrived: Counter[tuple[str, str]]) -> Iterator[Hole]:
    """Yield the displaced blobs of an input. `arrived` counts the blobs that arrived, by slice_start and partition."""
    for planned_slice in planned.slices:
        for displaced in planned_slice.displaced:
            start = planned_slice.slice.start
            yield Hole(
                Kind.DISPLACED,
                planned.alias,
                displaced.partition,
                start,
                blobs=displaced.blobs,
                start=displaced.start,
                end=displaced.end,
                written=displaced.written,
                is_whole=not arrived[ticks.to_text(start), displaced.partition],
            )


def _partitions(
    definition: InputDefinition, run: PlannedRun, rows: Rows, neighbours: "_Neighbours", provisional: bool
) -> Iterator[Partition]:
    """Yield what is known about each partition of an input, and about each of the partitions that share its blobs."""
    slices = {ticks.to_text(run_slice.slice.start): run_slice.slice for run_slice in run.manifest.slices}
    planned = run.manifest.input(definition.alias)
    unwritten = {name for slice_ in planned.slices for name in slice_.incomplete_partitions} if provisional else set()
    source = run.pipeline.section(definition.alias).source
    with_blobs = {
        row.slice_start for row in rows if row.input == definition.alias and row.count("InputEventsSourcesTotal")
    }
    silent = [
        planned_slice.slice
        for planned_slice in planned.slices
        if ticks.to_text(planned_slice.slice.start) not in with_blobs
        and not planned_slice.displaced
        and not any(missing_blobs(definition, pause, planned_slice.slice) for pause in planned.pauses)
    ]
    for name in planned.partitions:
        partition_rows = [row for row in rows if (row.input, row.partition) == (definition.alias, name)]
        arrived = [(slices[row.slice_start], row.numbers) for row in partition_rows]
        place = _Place(definition, source, name)
        near = [numbers for numbers in neighbours.nearest(place) if numbers]
        givers = {
            numbers.sequence_partition
            for slice_numbers in (*(of for _, of in arrived), *near)
            for numbers in slice_numbers
        }
        for giver in sorted(givers, key=str) or [None]:
            yield Partition(
                name,
                [_of_giver(giver, slice_, numbers) for slice_, numbers in arrived],
                before=neighbours.numbers(place, giver, step=-1),
                after=neighbours.numbers(place, giver, step=1),
                pauses=[
                    pause
                    for pause in planned.pauses
                    if pause.partition == name and not (pause.after is None and name in unwritten)
                ],
                silent=silent,
                quiet=[
                    slices[row.slice_start]
                    for row in partition_rows
                    if row.slice_start in with_blobs
                    and not definition.has_blob_in_each_interval
                    and not row.count("InputEventsSourcesTotal")
                    and not row.count("InputEvents")
                ],
                gaps={bounds for row in partition_rows for bounds in row.gaps.ranges},
                more_gaps_in=[
                    slices[row.slice_start]
                    for row in partition_rows
                    if row.count("SequenceGaps") > len(row.gaps.ranges)
                ],
                sequence_partition=giver,
                modulus=None if giver is None else ROUND,
            )
    for name in neighbours.partitions(definition.alias, source) - set(planned.partitions):
        yield _gone(definition, name, list(slices.values()))


def _gone(definition: InputDefinition, name: str, slices: Sequence[Slice]) -> Partition:
    """Return a partition of the published slices next to the run that has no blob left."""
    first, last = definition.first_needed(slices[0]), definition.last_needed(slices[-1])
    return Partition(
        name,
        [SliceNumbers(slice_, ()) for slice_ in slices],
        pauses=list(pauses(definition, [name], {}, first, last)),
        silent=() if definition.has_blob_in_each_interval else slices,
    )


def _of_giver(giver: int | None, slice_: Slice, arrived: Iterable[ArrivedNumbers]) -> SliceNumbers:
    """Return the numbers of a slice that one partition gave."""
    own = [SliceNumbers.of(slice_, numbers) for numbers in arrived if numbers.sequence_partition == giver]
    return own[0] if own else SliceNumbers(slice_, ())


@dataclass(frozen=True)
class _Place:
    """A partition of an input."""

    definition: InputDefinition
    source: str
    partition: str

    def is_recent(self, slice_numbers: SliceNumbers) -> bool:
        """Return whether a slice has events that were enqueued shortly before they arrived, if that is known."""
        delay = self.definition.interval + FAR
        return any(
            numbers.enqueued_until is None or numbers.enqueued_until >= slice_numbers.slice.start - delay
            for numbers in slice_numbers.numbers
        )


class _Neighbours:
    """Reads the published slices before and after a run, nearest first, as long as they follow each other."""

    def __init__(self, publications: Publications, first: Slice, last: Slice) -> None:
        self._publications = publications
        self._edges = {-1: first, 1: last}
        self._published = {start for start, entry in shown_entries(publications.table).items() if entry.run is not None}
        self._read: dict[str, Publication | None] = {}

    def partitions(self, alias: str, source: str) -> set[str]:
        """Return the partitions of an input in the published slices right before and right after the run."""
        near = (
            self._publication(edge.start + step * (edge.end - edge.start), step * (edge.end - edge.start))
            for step, edge in self._edges.items()
        )
        reads = [(publication.inputs or {}).get(alias) for publication in near if publication is not None]
        return {name for read in reads if read is not None and read.source == source for name in read.numbers}

    def nearest(self, place: _Place) -> list[tuple[ArrivedNumbers, ...]]:
        """Return the numbers of the published slices right before and right after the run."""
        return [numbers for step in (-1, 1) for _, numbers in itertools.islice(self._arrived(place, step), 1)]

    def numbers(self, place: _Place, giver: int | None, step: int) -> list[SliceNumbers]:
        """Return the numbers of the slices before (`step` -1) or after (1) the run, in order of time.

        They reach as far as the nearest slice with recent events.
        """
        slices: list[SliceNumbers] = []
        for slice_, arrived in self._arrived(place, step):
            slices.append(_of_giver(giver, slice_, arrived))
            if place.is_recent(slices[-1]):
                break
        return slices[::step]

    def _arrived(self, place: _Place, step: int) -> Iterator[tuple[Slice, tuple[ArrivedNumbers, ...]]]:
        length = self._edges[step].end - self._edges[step].start
        for distance in range(1, _MAX_NEIGHBOURS + 1):
            start = self._edges[step].start + step * length * distance
            publication = self._publication(start, step * length)
            read = None if publication is None else (publication.inputs or {}).get(place.definition.alias)
            if publication is None or read is None or read.source != place.source or publication.provisional:
                return
            yield Slice(start, start + length), read.numbers.get(place.partition, ())

    def _publication(self, start: int, step: int) -> Publication | None:
        text = ticks.to_text(start)
        if text not in self._published:
            return None
        if text not in self._read:
            ahead = [ticks.to_text(start + step * number) for number in range(_READ_TOGETHER)]
            entries = self._publications.entries(
                [ahead_start for ahead_start in ahead if ahead_start in self._published]
            )
            self._read |= {read: entry.current for read, entry in entries.items()}
        return self._read[text]


def missing_blobs_by_slice(run: PlannedRun, holes: Iterable[Hole]) -> dict[str, int]:
    """Return how many blobs each slice lacks, by slice_start; those without which no event is missing do not count."""
    definitions = {definition.alias: definition for definition in run_definition(run.pipeline).inputs}
    counts = dict.fromkeys(run.slices, 0)
    for hole in holes:
        is_missing = hole.kind is not Kind.DISPLACED and hole.severity != "info"
        if hole.blobs and is_missing and hole.start is not None and hole.end is not None:
            pause = Pause(hole.partition, hole.start, hole.end, hole.blobs, None, None)
            for start, run_slice in run.slices.items():
                counts[start] += missing_blobs(definitions[hole.input], pause, run_slice.slice)
    return counts
