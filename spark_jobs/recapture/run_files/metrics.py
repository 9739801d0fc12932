"""The metrics of a run: what its tasks counted, together with the rows that it wrote."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from recapture.archive.manifest import Manifest
from recapture.archive.pinning import PlannedInput, PlannedSlice
from recapture.ordering.counters import Counters
from recapture.ordering.key_counts import KeyCounts
from recapture.quality import metrics
from recapture.run_files.computed import StagedSlice
from recapture.run_files.files import RunFiles
from recapture.storage import in_parallel
from recapture.time_model.partition_metrics import PartitionMetrics


def metric_rows(files: RunFiles, manifest: Manifest) -> Iterator[PartitionMetrics]:
    """Yield what the tasks of a run counted, in order of the inputs: a row for each slice and partition."""
    for planned in manifest.inputs:
        yield from _rows_of_input(files, planned)


def _rows_of_input(files: RunFiles, planned: PlannedInput) -> Iterator[PartitionMetrics]:
    read = {pinned.partition for pinned in planned.blobs}

    def counts_of(slice_and_partition: tuple[PlannedSlice, str]) -> PartitionMetrics:
        planned_slice, partition = slice_and_partition
        if partition not in read:
            return Counters(planned.alias, partition, planned_slice, KeyCounts(())).metrics(None)
        return files.read(files.counters_file(planned.alias, partition, planned_slice.slice))

    pairs = [(planned_slice, partition) for planned_slice in planned.slices for partition in planned.partitions]
    for (planned_slice, partition), counts in zip(pairs, in_parallel(counts_of, pairs), strict=True):
        yield replace(counts, complete=partition not in planned_slice.incomplete_partitions)


def output_metrics(staged: Iterable[StagedSlice]) -> dict[str, dict[str, int]]:
    """Return the metrics of staged rows by slice_start: those of `metrics.OUTPUT_METRICS`."""
    slices: dict[str, dict[str, int]] = {}
    for file in staged:
        values = slices.setdefault(file.slice_start, dict.fromkeys(metrics.OUTPUT_METRICS, 0))
        values["OutputEvents"] += file.rows
        values["UnanchoredSessions"] += file.unanchored
    return slices
