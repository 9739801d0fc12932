"""An update in several processes: one takes a range, others compute it, and the last one writes down what became of it.

Such an update computes only its newest range, so that the newest slice waits for one run at most.
"""

from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError

from recapture.archive.manifest import Manifest
from recapture.errors import FormatError
from recapture.keep.claims import Known, Result, claim, is_claimed, record, release
from recapture.keep.due import DueRange, DueSlice, Tick
from recapture.keep.sources import Sources
from recapture.keep.state import Reading, read_standing_of
from recapture.keep.update import known_of
from recapture.run_files.work import WORK
from recapture.time_model import ticks


@dataclass(frozen=True)
class Job:
    """The range that an update computes."""

    update: str
    """Id of the update, which claims the range."""
    range: DueRange
    known: Known
    next: int | None
    """Start of the newest slice that the next update may compute at once, in ticks; None if there is none.

    If the run of several slices fails, these are its halves.
    """

    def to_json(self) -> dict[str, Any]:
        """Return the job in JSON types."""
        job: dict[str, Any] = _JOB.dump_python(self, mode="json")
        return job


_JOB = TypeAdapter(Job)


def from_json(job: Any) -> Job:
    """Return the job that `Job.to_json` returned. Raise FormatError if another version of Recapture returned it."""
    try:
        return _JOB.validate_python(job)
    except ValidationError:
        raise FormatError(
            "another version of Recapture took the range of this update: clear the DAG run's task due, so that it "
            "takes a range again"
        ) from None


def newest_job(reading: Reading, tick: Tick, sources: Sources, update: str) -> Job | None:
    """Return the job that an update would do: the newest range; None if nothing is due."""
    if not tick.ranges:
        return None
    newest, *others = tick.ranges
    left = [slice_.start for range_ in others for slice_ in range_.slices] + [slice_.start for slice_ in tick.left]
    own = [slice_.start for slice_ in newest.slices[-1:] if len(newest.slices) > 1]
    return Job(update, newest, known_of(sources, reading, newest), max([*left, *own], default=None))


def take(sources: Sources, job: Job, now: int) -> bool:
    """Claim the range of a job, `now` in ticks. Return False if another run computes it, or if nobody wants it."""
    work = WORK.change(sources.run_files, lambda work: claim(work, job.update, job.range, now))
    return is_claimed(work, job.update, job.range)


def give_back(sources: Sources, update: str) -> None:
    """End the claim of an update that is repeated from the beginning."""
    WORK.change(sources.run_files, lambda work: release(work, update))


def finish(sources: Sources, job: Job, at: int, run: str | None, error: str | None, *, is_stopped: bool) -> None:
    """Write down what became of a job, and end its claim.

    `run` is the run that was published; if it is None, `error` says why nothing was, and `is_stopped` whether the audit
    stopped the run, so that computing the same again is of no use.
    """
    result = Result(job.range, at, run, error, is_tried_again=run is None and not is_stopped)
    length = sources.length
    WORK.change(sources.run_files, lambda work: release(record(work, result, job.known, length), job.update))


def record_error(sources: Sources, manifest: Manifest, at: int, error: str) -> None:
    """Write down that a run ended with an error `at` a time, in ticks, so that its halves are computed next."""
    starts = [run_slice.slice.start for run_slice in manifest.slices]
    reads = dict(zip(map(ticks.to_text, starts), manifest.reads, strict=True))
    entries = read_standing_of(sources).entries
    runs = {text: run for text in reads if text in entries and (run := entries[text].run) is not None}
    length, slices = sources.length, tuple(DueSlice(start, (), None) for start in starts)
    result = Result(DueRange(slices, length), at, None, error, is_tried_again=True)
    WORK.change(sources.run_files, lambda work: record(work, result, Known(sources.parts, reads, runs), length))
