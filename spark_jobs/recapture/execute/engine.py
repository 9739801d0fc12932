"""Which engine computes the rows of a query, and on how many cores of this machine."""

import os
import re
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from recapture.errors import DefinitionError

if TYPE_CHECKING:
    from recapture.definition.pipeline import Pipeline

DEFAULT_MASTER = "local[*]"
"""Spark master of `recapture backfill`: every core of this machine."""
_QUOTA = Path("/sys/fs/cgroup/cpu.max")
"""File in which Linux keeps the limit of a container: microseconds of CPU and of time, or `max`."""


class Engine(StrEnum):
    """What computes the rows of a run."""

    PROCESSES = "processes"
    """Processes of this machine, without Spark."""
    SPARK = "spark"


def engine_of(named: str | None, query_needs_spark: bool, master: str) -> Engine:
    """Return Spark if the pipeline file names it, if the query needs it, or if the master is not on this machine."""
    uses_spark = named == Engine.SPARK or query_needs_spark or cores_of(master) is None
    return Engine.SPARK if uses_spark else Engine.PROCESSES


def chosen_engine(pipeline: "Pipeline", master: str) -> Engine:
    """Return the engine of a backfill. Raise DefinitionError if the pipeline file names one that cannot compute it."""
    from recapture.evaluate.check import not_evaluated_because

    because = None if pipeline.engine == "spark" else not_evaluated_because(pipeline.query)
    if pipeline.engine == "processes" and because is not None:
        raise DefinitionError(
            f"{pipeline.file}: engine: the query needs Spark ({because}): remove the key, or change the query"
        )
    return engine_of(pipeline.engine, because is not None, master)


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
