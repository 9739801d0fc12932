"""The metrics of a run: what its tasks counted, together with the rows that it wrote."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from recapture.archive.manifest import Manifest
from recapture.ordering.counters import Counters
from recapture.ordering.key_counts import KeyCounts
from recapture.ordering.task import Task
from recapture.quality import metrics
from recapture.run_files.computed import StagedSlice
from recapture.run_files.files import RunFiles
from recapture.storage import in_parallel
from recapture.time_model import ticks
from recapture.time_model.partition_metrics import PartitionMetrics


def metric_rows(files: RunFiles, manifest: Manifest, tasks: Sequence[Task]) -> Iterator[PartitionMetrics]:
    """Yield what the tasks of a run counted, in order of the inputs: a row for each slice and partition."""

    def counted(task: Task) -> tuple[PartitionMetrics, ...]:
        return files.read(files.counters_file(task.input, task.partition, task.slices[0].slice))

    rows = itertools.chain.from_iterable(in_parallel(counted, tasks))
    by_place = {(row.input, row.partition, row.slice_start): row for row in rows}
    for planned in manifest.inputs:
        read = {pinned.partition for pinned in planned.blobs}
        for planned_slice, partition in itertools.product(planned.slices, planned.partitions):
            if partition in read:
                counts = by_place[planned.alias, partition, ticks.to_text(planned_slice.slice.start)]
            else:
                counts = Counters(planned.alias, partition, planned_slice, KeyCounts(())).metrics(None)
            yield replace(counts, complete=partition not in planned_slice.incomplete_partitions)


def output_metrics(staged: Iterable[StagedSlice]) -> dict[str, dict[str, int]]:
    """Return the metrics of staged rows by slice_start: those of `metrics.OUTPUT_METRICS`."""
    slices: dict[str, dict[str, int]] = {}
    for file in staged:
        values = slices.setdefault(file.slice_start, dict.fromkeys(metrics.OUTPUT_METRICS, 0))
        values["OutputEvents"] += file.rows
        values["UnanchoredSessions"] += file.unanchored
    return slices
