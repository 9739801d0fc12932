"""Blobs, partitions and gaps of a report: what the archive had, and how far Capture had got."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from recapture.archive.pinning import PlannedInput
from recapture.archive.progress import far_blobs
from recapture.run.progress import capture_progress, storage_time
from recapture.time_model import ticks
from recapture.time_model.metrics import total
from recapture.tools.reports.sources import Source

MAX_GAPS = 20


def capture(source: Source) -> dict[str, Any]:
    """Return the blobs of each partition, how far Capture had got when the newest run was planned, and the gaps."""
    manifest = next((run.manifest for run in source.runs.values() if run.manifest is not None), None)
    inputs = []
    if manifest is not None:
        now = storage_time(source.pipeline, datetime.now(UTC))
        progress = capture_progress(source.pipeline, manifest, now)
        for planned in manifest.inputs:
            reached = {reached_in.partition: reached_in.to_dict() for reached_in in progress[planned.alias]}
            inputs.append(
                {
                    "alias": planned.alias,
                    "container": planned.container,
                    "run": manifest.run,
                    "far_blobs": far_blobs(planned),
                    "partitions": list(_partitions(planned, reached)),
                }
            )
    gaps = [
        {"input": row.input, "partition": row.partition, "slice_start": row.slice_start, "first": first, "last": last}
        for row in source.metrics
        for first, last in row.gaps.ranges
    ]
    return {
        "inputs": inputs,
        "gaps": gaps[:MAX_GAPS],
        "gap_count": total(row.find_count("SequenceGaps") for row in source.metrics),
        "missing": sum(row.gaps.missing for row in source.metrics),
        "damaged": total(row.find_count("DamagedBlobs") for row in source.metrics),
    }


def _partitions(planned: PlannedInput, reached: Mapping[str, Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    blobs: dict[str, list[int]] = {name: [] for name in planned.partitions}
    for pinned in planned.blobs:
        blobs[pinned.partition].append(pinned.blob.size)
    for name in planned.partitions:
        incomplete = [
            ticks.to_text(planned_slice.slice.start)
            for planned_slice in planned.slices
            if name in planned_slice.incomplete_partitions
        ]
        yield {
            **reached[name],
            "partition": name,
            "blobs": len(blobs[name]),
            "bytes": sum(blobs[name]),
            "silent": name in planned.silent,
            "incomplete": len(incomplete),
            "first_incomplete": incomplete[0] if incomplete else None,
        }
