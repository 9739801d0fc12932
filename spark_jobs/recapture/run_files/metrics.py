"""The metrics of a run: what its tasks counted, together with the rows that it wrote."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from recapture.archive.manifest import Manifest
from recapture.archive.pinning import PlannedInput, PlannedSlice
from recapture.ordering.counters import Counters
from recapture.ordering.key_counts import KeyCounts
from recapture.quality import metrics
from recapture.run_files.files import MetricRow, RunFiles
from recapture.run_files.staged import StagedSlice
from recapture.storage import in_parallel


def metric_rows(files: RunFiles, manifest: Manifest) -> Iterator[MetricRow]:
    """Yield what the tasks of a run counted: a row for each slice and partition of an input, even if nothing arrived.

    The rows are in order of their inputs.
    """
    for planned in manifest.inputs:
        yield from _rows_of_input(files, planned)


def _rows_of_input(files: RunFiles, planned: PlannedInput) -> Iterator[MetricRow]:
    read = {pinned.partition for pinned in planned.blobs}

    def counts_of(slice_and_partition: tuple[PlannedSlice, str]) -> MetricRow:
        planned_slice, partition = slice_and_partition
        if partition not in read:
            return Counters(planned.alias, partition, planned_slice, KeyCounts(())).row(None)
        return files.read(files.counters_file(planned.alias, partition, planned_slice.slice))

    pairs = [(planned_slice, partition) for planned_slice in planned.slices for partition in planned.partitions]
    for (planned_slice, partition), counts in zip(pairs, in_parallel(counts_of, pairs), strict=True):
        yield counts | {"complete": partition not in planned_slice.incomplete_partitions}


def metrics_with_outputs(rows: Iterable[Mapping[str, Any]], staged: Iterable[StagedSlice]) -> dict[str, dict[str, Any]]:
    """Return the metrics of each slice by slice_start: those of `metric_rows`, and those of the staged rows."""
    slices = metrics.by_slice(rows)
    for of_slice in slices.values():
        of_slice.update(dict.fromkeys(metrics.OUTPUT_METRICS, 0))
    for file in staged:
        slices[file.slice_start]["OutputEvents"] += file.rows
        slices[file.slice_start]["UnanchoredSessions"] += file.unanchored
    return slices
