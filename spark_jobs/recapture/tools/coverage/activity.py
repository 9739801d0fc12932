"""What a scheduler does with the slices of a pipeline: its DAG runs, and the slices that it keeps up to date."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class RunState(StrEnum):
    """State of a DAG run, in Airflow's words."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCESS = "success"
    FAILED = "failed"


@dataclass(frozen=True)
class DagRun:
    """A DAG run that computes, or computed, the range (start, end] of slices."""

    dag_id: str
    id: str
    state: RunState
    start: int
    """Start of the range, in ticks."""
    end: int
    began: int
    """Time at which the run started, or was queued if it has not started, in ticks."""
    failed_tasks: tuple[str, ...] = ()
    awaits_decision: bool = False
    """Whether a person is asked whether to publish the run, which its audit stopped."""
    is_paused: bool = False
    """Whether the DAG is paused, so that a queued run does not start."""

    @property
    def is_active(self) -> bool:
        """Whether the run has not ended."""
        return self.state in (RunState.QUEUED, RunState.RUNNING)


@dataclass(frozen=True)
class Activity:
    """DAG runs of a pipeline, and what its updates keep. Without a scheduler, there are neither."""

    runs: tuple[DagRun, ...] = ()
    is_updated: bool = False
    """Whether updates are scheduled."""
    since: int | None = None
    """Start of the first slice that updates keep, in ticks; None for the first that was published."""
    is_paused: bool = False
    """Whether the updates are paused."""


def newest_runs(runs: Iterable[DagRun], first: int, last_end: int, length: int) -> dict[int, DagRun]:
    """Return the newest run of each slice, by the start of the slice; a run that has not ended comes first.

    `first` is the start of the first slice, `last_end` the end of the last one, and `length` that of a slice; in ticks.
    """
    newest: dict[int, DagRun] = {}
    for run in sorted(runs, key=lambda run: (run.is_active, run.began)):
        start = max(run.start, first + (run.start - first) % length)
        newest.update(dict.fromkeys(range(start, min(run.end, last_end), length), run))
    return newest
