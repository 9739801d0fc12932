"""Measure what a call takes in this process."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from recapture.storage.use import Use, used

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Took:
    """What a stage of a run, or a part of it, took."""

    seconds: float
    cpu_seconds: float | None
    """CPU time of all its processes; None if other programs did the work, such as Spark's."""
    use: Use | None
    """What it asked of the storage, without the requests of delta-rs; None as for `cpu_seconds`."""


def measured(call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> tuple[R, Took]:
    """Return what a call returns, and what it took in this process."""
    seconds, cpu, use = time.perf_counter(), time.process_time(), used()
    result = call(*args, **kwargs)
    return result, Took(time.perf_counter() - seconds, time.process_time() - cpu, used() - use)
