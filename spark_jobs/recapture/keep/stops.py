"""Runs that ended without publishing anything, for the slices of which nothing was published since."""

from functools import cache

from recapture.keep.archived import ArchivedSlice
from recapture.keep.due import Stop
from recapture.keep.sources import Sources
from recapture.run.slice_state import Standing
from recapture.run_files.files import range_of_run
from recapture.run_files.marks import STOPPED_RUNS, Unpublished
from recapture.run_files.work import Failure
from recapture.time_model import ticks

SHORTEST_PAUSE = ticks.from_seconds(900)
LONGEST_PAUSE = ticks.from_seconds(86_400)


class Stops:
    """The last run that ended without publishing anything, for each slice."""

    def __init__(self, sources: Sources, standing: Standing) -> None:
        self._sources, self._standing = sources, standing
        self._stopped_of = cache(self._read_stopped)

    @property
    def starts(self) -> list[str]:
        """Return the starts of the slices that have one."""
        return sorted({*self._standing.blocked, *self._standing.failures})

    def stop(self, start: int, archived: ArchivedSlice | None) -> Stop | None:
        """Return the last such run of a slice, if possible one that would end the same.

        A slice that its audit stopped alone waits for a person, also if a later run failed by another error.
        `archived` is what the archive has for the slice now; None if it is not listed.
        """
        slice_start = ticks.to_text(start)
        run, failure = self._standing.blocked.get(slice_start), self._standing.failures.get(slice_start)
        stops = []
        if failure is not None:
            stops.append((ticks.to_text(failure.last), self._stop_of_error(slice_start, failure, archived)))
        if run is not None:
            stopped = self._stopped_of(run)
            stops.append(("" if stopped is None else stopped.at, self._stop_of_audit(slice_start, run, archived)))
        return max(stops, key=_precedence)[1] if stops else None

    def is_released(self, slice_start: str, archived: ArchivedSlice) -> bool:
        """Return whether the archive has other blobs for a slice than the run that its audit stopped had read."""
        run = self._standing.blocked.get(slice_start)
        stopped = None if run is None else self._stopped_of(run)
        return stopped is not None and stopped.read.get(slice_start) != archived.read

    def _stop_of_audit(self, slice_start: str, run: str, archived: ArchivedSlice | None) -> Stop:
        bounds, stopped = range_of_run(run), self._stopped_of(run)
        assert bounds is not None  # `Marks.runs` leaves out other names
        if archived is None or stopped is None:
            noticed = self._standing.changes.released.get(slice_start, "")
            has_changed = bool(noticed) and (stopped is None or noticed > stopped.at)
        else:
            has_changed = self.is_released(slice_start, archived)
        same_definition = stopped is None or stopped.parts == self._sources.parts
        slices = (bounds[1] - bounds[0]) // self._sources.length
        return Stop(run, bounds[0], slices, repeats=same_definition and not has_changed)

    def _stop_of_error(self, slice_start: str, failure: Failure, archived: ArchivedSlice | None) -> Stop:
        read = failure.read.get(slice_start)
        has_changed = read is not None and archived is not None and read != archived.read
        pause = min(max(failure.last - failure.first, SHORTEST_PAUSE), LONGEST_PAUSE)
        return Stop(
            f"{ticks.to_compact_text(failure.start)}-{ticks.to_compact_text(failure.end)}",
            failure.start,
            (failure.end - failure.start) // self._sources.length,
            repeats=failure.parts == self._sources.parts and not has_changed,
            error=failure.error,
            retry=failure.last + pause,
        )

    def _read_stopped(self, run: str) -> Unpublished | None:
        return STOPPED_RUNS.read(self._sources.run_files, run)


def _precedence(timed: tuple[str, Stop]) -> tuple[bool, bool, str, bool]:
    """Return the sort key of a stop with its time, ISO 8601."""
    time, stop = timed
    is_by_audit = stop.error is None
    return stop.repeats, stop.is_alone and is_by_audit, time, is_by_audit
