"""What reports are made from, without a run: events of the samples that a profile keeps, and whole sources."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from recapture.archive.pinning import PlannedSlice
from recapture.ordering.counters import Counters
from recapture.ordering.key_counts import KeyCounts
from recapture.ordering.profile import DISORDER_BOUNDS, LATENESS_BOUNDS, PROFILE_SCHEMA
from recapture.quality.audit import Audit, Result
from recapture.run.slice_state import Standing
from recapture.run_files.changes import Changes
from recapture.run_files.contents import Audited
from recapture.run_files.files import RunFiles
from recapture.storage import open_container
from recapture.table.publications import Entry
from recapture.time_model import ticks
from recapture.time_model.metrics import VERDICTS
from recapture.time_model.partition_metrics import NumberGaps, PartitionMetrics
from recapture.time_model.slices import Arrivals, slices_between
from recapture.time_model.ticks import from_datetime, from_seconds
from recapture.tools.reports.sources import RunSource, Source
from tests.worlds import HOUR, World

START = datetime(2026, 3, 1, tzinfo=UTC)


def sampled(arrival: int, time: int | None, verdict: str, number: int, **more: Any) -> dict[str, Any]:
    """Return a sampled event whose time was not adjusted and is the largest so far, unless `more` says otherwise."""
    instants = {"arrival": arrival, "time": time, "system_timestamp": time, "largest_time": time}
    return {
        **instants,
        "verdict": verdict,
        "key": None,
        "blob": "blob",
        "sequence_number": number,
        "place": None,
        **more,
    }


def made_source(home: Path, hours: int, partitions: int, results: Sequence[Result] = ()) -> Source:
    """Return what hours are reported from, without a run: everything goes wrong in every slice and partition.

    `results` are those of the audit; without any, the audit is lost.
    """
    pipeline = World(home).define()
    start, end = map(from_datetime, (START, START + hours * HOUR))
    slices = list(slices_between(start, end, from_seconds(3600)))
    run = f"{ticks.to_compact_text(slices[0].start)}-{ticks.to_compact_text(slices[-1].end)}-{'0' * 12}"
    random = np.random.default_rng(1)
    rows: list[PartitionMetrics] = []
    empty = Counters("telemetry", "0", PlannedSlice(slices[0], Arrivals(0, None), "", ()), KeyCounts(())).metrics(None)
    profiles: list[dict[str, Any]] = []

    def drawn(lowest: int, length: int) -> Iterator[list[int]]:
        """Return as many random counts for each slice and partition."""
        return iter(random.integers(lowest, 10**6, (hours * partitions, length)).tolist())

    verdicts, lateness, disorder = (
        drawn(1, len(VERDICTS)),
        drawn(0, len(LATENESS_BOUNDS) + 1),
        drawn(0, len(DISORDER_BOUNDS) + 1),
    )
    for slice_ in slices:
        slice_start = ticks.to_text(slice_.start)
        for number in range(partitions):
            counts = dict(zip(VERDICTS, next(verdicts), strict=True))
            values = {**empty.values, **counts, "InputEvents": sum(counts.values()), "SequenceGaps": 1}
            gaps = NumberGaps(5, ((1, 5),))
            rows.append(
                replace(empty, slice_start=slice_start, partition=str(number), values=values, gaps=gaps, complete=True)
            )
            sample = [] if len(profiles) >= 256 else _sample(slice_.start, random)
            profiles.append(
                {
                    "input": "telemetry",
                    "partition": str(number),
                    "slice_start": slice_.start,
                    "lateness": next(lateness),
                    "disorder": next(disorder),
                    "sample": sample,
                }
            )
    files = RunFiles(open_container(pipeline.outputs[0].table), run)
    profile = pa.Table.from_pylist(profiles, PROFILE_SCHEMA)
    audit = Audited("failed", "", "", Audit("failed", tuple(results))) if results else None
    source = RunSource(files, None, tuple(rows), audit, profile)
    starts = [ticks.to_text(slice_.start) for slice_ in slices]
    return Source(
        pipeline=pipeline,
        slices=tuple(slices),
        runs={run: source},
        run_of_slice=dict.fromkeys(starts, run),
        entries=dict.fromkeys(starts, Entry(None)),
        metrics=tuple(rows),
        rows={("aggregates", start): 10**6 for start in starts},
        single=None,
        standing=Standing({}, {}, Changes(), {}),
    )


def _sample(start: int, random: np.random.Generator) -> list[dict[str, Any]]:
    """Return the largest sample that a slice and partition may have."""
    events = []
    for number in range(64 + 8 * 24 + 60 + 16):
        arrival = start + int(random.integers(1, from_seconds(3600)))
        time = arrival - int(random.integers(-from_seconds(300), from_seconds(900)))
        blob = f"contoso/telemetry/0/2026/03/01/00/00/{number}.avro"
        body = b'{"deviceId":"x"}' * 15 if number < 4 else None
        verdict, key = VERDICTS[number % len(VERDICTS)], f"device-{number % 3}"
        events.append(sampled(arrival, time, verdict, number, largest_time=arrival, key=key, blob=blob, body=body))
    return events
