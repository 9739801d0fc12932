"""Which engine computes the rows of a query, and on how many cores of this machine."""

import os
import re
from enum import StrEnum
from pathlib import Path

DEFAULT_MASTER = "local[*]"
"""Spark master of `recapture backfill`: every core of this machine."""
_QUOTA = Path("/sys/fs/cgroup/cpu.max")
"""File in which Linux keeps the limit of a container: microseconds of CPU and of time, or `max`."""


class Engine(StrEnum):
    """What computes the rows of a run."""

    PROCESSES = "processes"
    """Processes of this machine, without Spark."""
    SPARK = "spark"


def engine_of(named: str | None, master: str) -> Engine:
    """Return the engine of a backfill: Spark if the pipeline file names it, or if the master is not on this machine."""
    return Engine.SPARK if named == Engine.SPARK or cores_of(master) is None else Engine.PROCESSES


def unattended_engine(named: str | None) -> Engine:
    """Return the engine of a run that a scheduler starts: the one that the pipeline file names, or else Spark."""
    return Engine(named or Engine.SPARK)


def cores_of(master: str) -> int | None:
    """Return the number of cores that a Spark master stands for; None if it is not on this machine: local[4] => 4"""
    local = re.fullmatch(r"local(?:\[(\*|[1-9]\d*)(?:,\d+)?\])?", master)
    if local is None:
        return None
    return available_cores() if local[1] == "*" else int(local[1] or 1)


def available_cores() -> int:
    """Return the number of cores that this process may use, which a container may limit."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = _QUOTA.read_text().split()
        return min(cores, max(1, round(int(quota) / int(period))))
    except (OSError, ValueError):  # without a limit, or not on Linux
        return cores
