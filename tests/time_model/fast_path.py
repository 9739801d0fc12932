"""The fast path with the interface of the oracle: the stream of a partition goes through `judge` in random chunks.

The chunks stand for blobs. Some are empty, as heartbeats are, and all are slices of longer arrays, so that an offset in
an Arrow buffer or a NumPy view is part of the test.
"""

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

from recapture.time_model.judging import LargestTimes, judge
from recapture.time_model.policies import Policies
from recapture.time_model.ticks import LARGEST
from recapture.time_model.verdicts import PROCESSED, Verdict
from tests.oracle import Event, Policy

Judgement = tuple[str, int | None, bool, bool]
"""Verdict, System.Timestamp, late, out of order."""


def judge_in_chunks(
    events: Sequence[Event], policy: Policy, random: Random | None = None, adjust_early: bool = False
) -> list[Judgement]:
    """Judge the events in arrival order, a partition at a time; the n-th judgement belongs to the n-th event."""
    random = random or Random(len(events))
    judgements: list[Judgement] = [("malformed", None, False, False)] * len(events)
    for partition in sorted({event.partition for event in events}):
        positions = sorted(
            (n for n, event in enumerate(events) if event.partition == partition and not event.malformed),
            key=lambda n: (events[n].arrival, events[n].sequence),
        )
        partition_judgements = _judge_partition([events[n] for n in positions], policy, random, adjust_early)
        for n, judgement in zip(positions, partition_judgements, strict=True):
            judgements[n] = judgement
    return judgements


def fast_path(events: Sequence[Event], policy: Policy) -> list[tuple[str, int | None]]:
    """Return verdict and System.Timestamp of each event."""
    return [(verdict, time) for verdict, time, _, _ in judge_in_chunks(events, policy)]


def _judge_partition(events: list[Event], policy: Policy, random: Random, adjust_early: bool) -> Iterator[Judgement]:
    policies = Policies(policy.out_of_order, policy.late, policy.early, policy.action == "Adjust", adjust_early)
    largest_times = LargestTimes()
    # A missing time is any number: the engine must not read it.
    time = np.array([random.choice((0, LARGEST)) if e.time is None else e.time for e in events], dtype=np.int64)
    valid = np.array([event.time is not None for event in events], dtype=np.bool_)
    arrival = np.array([event.arrival for event in events], dtype=np.int64)
    scope = _scope([event.over for event in events])
    for start, stop in _chunks(len(events), random):
        judged = judge(
            policies,
            largest_times,
            time[start:stop],
            valid[start:stop],
            arrival[start:stop],
            None if scope is None else scope.slice(start, stop - start),
        )
        for n in range(stop - start):
            verdict = Verdict(judged.verdict[n])
            yield (
                verdict.name.lower(),
                int(judged.system_timestamp[n]) if verdict in PROCESSED else None,
                bool(judged.late[n]),
                bool(judged.out_of_order[n]),
            )


def _scope(keys: list[tuple[Any, ...] | None]) -> pa.Array | None:
    present = [key for key in keys if key is not None]
    if not present:
        return None
    assert len(present) == len(keys), "a query has OVER or has it not"
    columns = [pa.array([key[column] for key in present], pa.string()) for column in range(len(present[0]))]
    if len(columns) == 1:
        return columns[0]
    return pa.StructArray.from_arrays(columns, names=[f"key{column}" for column in range(len(columns))])


def _chunks(length: int, random: Random) -> list[tuple[int, int]]:
    cuts = sorted(random.randint(0, length) for _ in range(random.randint(0, 8)))
    return list(zip([0, *cuts], [*cuts, length], strict=True))
