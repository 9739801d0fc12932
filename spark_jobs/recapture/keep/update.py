"""Carry out an update: finish what was interrupted, then compute each range that is due as one run."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from itertools import groupby
from typing import Generic, TypeVar
from uuid import uuid4

from recapture.errors import AuditError, RecaptureError, RunError, UnfinishedError
from recapture.keep.claims import Known, Result, claim, is_claimed, is_taken, record, release
from recapture.keep.due import DueRange, Tick
from recapture.keep.sources import Sources
from recapture.keep.state import Reading, read_standing_of
from recapture.run.slice_state import Standing
from recapture.run_files.work import WORK, Work
from recapture.time_model import ticks

Run = TypeVar("Run")


@dataclass(frozen=True)
class Skipped:
    """Slices that an update does not compute although they were due when it read the state."""

    range: DueRange
    reason: str


@dataclass(frozen=True, kw_only=True)
class Update(Generic[Run]):
    """An update, which several may carry out at the same time: no two compute the same slice."""

    sources: Sources
    reading: Reading
    tick: Tick
    compute: Callable[[DueRange], Run]
    """Computes and publishes a range in one run, and returns its summary."""
    id_of: Callable[[Run], str]
    """Returns the id of a run from its summary."""
    bring_in_line: Callable[[Sequence[str]], object]
    """Makes the tables hold what is published for slices, given by slice_start."""
    clock: Callable[[], int]
    """Returns the present, in ticks."""
    renewing: Callable[[str], AbstractContextManager[object]] = nullcontext
    """Renews the leases of the update with this id, as long as its range is computed."""
    id: str = field(default_factory=lambda: uuid4().hex)

    def carry_out(self) -> Iterator[Run | Skipped | RecaptureError]:
        """Yield what becomes of each range: its run, why it was skipped, or the error that ended its run.

        A failure does not keep the other ranges from being computed. After a mistake in the definition or an
        interrupt, which would end the other runs as well, the error is the last value.
        """
        if self.tick.unfinished:
            try:
                self.bring_in_line(list(map(ticks.to_text, self.tick.unfinished)))
            except RunError as error:
                yield error
        for range_ in self.tick.ranges:
            try:
                yield from self._carry_out(range_)
            except RecaptureError as error:
                with suppress(RunError):  # otherwise the lease ends by itself
                    self._change(lambda work: release(work, self.id))
                yield error
                if not isinstance(error, RunError):
                    return

    def _carry_out(self, range_: DueRange) -> Iterator[Run | Skipped | RecaptureError]:
        """Compute those slices of a range that no other run computes."""
        now = self.clock()
        work = self._change(lambda work: claim(work, self.id, range_, now))
        if is_claimed(work, self.id, range_):
            yield from self._carry_out_claimed(range_, work)
            return
        grouped = groupby(range_.slices, lambda slice_: is_taken(work, slice_.start, slice_.start + range_.length, now))
        parts = [(taken, DueRange(tuple(slices), range_.length)) for taken, slices in grouped]
        if len(parts) == 1:
            yield Skipped(range_, "another run computes it, or its request was cancelled or fulfilled")
            return
        for taken, part in parts:
            if taken:
                yield Skipped(part, "another run computes it")
            else:
                yield from self._carry_out(part)

    def _carry_out_claimed(self, range_: DueRange, work: Work) -> Iterator[Run | Skipped | RecaptureError]:
        """Compute those slices of a range for which nothing happened since the state was read."""
        self.sources.publications.refresh()
        standing = read_standing_of(self.sources)
        with self.renewing(self.id):
            for is_same, part in self._parts(range_, standing, work):
                if is_same:
                    yield from self._compute(part)
                else:
                    yield Skipped(part, "it was computed or rolled back in the meantime")
        self._change(lambda work: release(work, self.id))

    def _parts(self, range_: DueRange, standing: Standing, work: Work) -> Iterator[tuple[bool, DueRange]]:
        """Yield the contiguous parts of a range, in order of time, with whether nothing happened to their slices."""
        before = self.reading

        def is_same(start: int) -> bool:
            slice_start = ticks.to_text(start)
            return (
                standing.entries.get(slice_start) == before.standing.entries.get(slice_start)
                and standing.blocked.get(slice_start) == before.standing.blocked.get(slice_start)
                and _failures(work, start) == _failures(before.standing.work, start)
            )

        for same, slices in groupby(range_.slices, lambda slice_: is_same(slice_.start)):
            yield same, DueRange(tuple(slices), range_.length)

    def _compute(self, range_: DueRange) -> Iterator[Run | RecaptureError]:
        """Compute a range, yield what became of it, and write it down. If that fails, the run is not lost."""
        outcome: Run | RecaptureError
        try:
            outcome = self.compute(range_)
            result = Result(range_, self.clock(), run=self.id_of(outcome))
        except (AuditError, RunError) as error:
            outcome, may_be_published = error, isinstance(error, UnfinishedError)
            is_tried_again = isinstance(error, RunError) and not may_be_published
            result = Result(range_, self.clock(), None, str(error), is_tried_again, may_be_published)
        yield outcome
        known, length = known_of(self.sources, self.reading, range_), self.sources.length
        self._change(lambda work: record(work, result, known, length))

    def _change(self, change: Callable[[Work], Work]) -> Work:
        return WORK.change(self.sources.run_files, change)


def known_of(sources: Sources, reading: Reading, range_: DueRange) -> Known:
    """Return what is known of the slices of a range before they are computed."""
    facts, entries = reading.state.slices, reading.standing.entries
    starts = {ticks.to_text(slice_.start): slice_.start for slice_ in range_.slices}
    read = {slice_start: facts[start].read for slice_start, start in starts.items() if start in facts}
    runs = {slice_start: entries[slice_start].run for slice_start in starts if slice_start in entries}
    return Known(sources.parts, _present(read), _present(runs))


def _present(values: Mapping[str, str | None]) -> dict[str, str]:
    return {key: value for key, value in values.items() if value is not None}


def _failures(work: Work, start: int) -> list[int]:
    """Return the times at which runs of a slice failed last."""
    return [failure.last for failure in work.failures if start in failure.slices]
