"""What the computation of a run leaves: its staged rows, and what its tasks counted."""

from dataclasses import dataclass
from functools import cached_property

from recapture.quality.metrics import SliceTotals, by_slice
from recapture.run_files.files import RunFiles
from recapture.run_files.json_file import JsonFile
from recapture.run_files.metric_row import MetricRow
from recapture.time_model.partition_metrics import PartitionMetrics


@dataclass(frozen=True)
class StagedSlice:
    """The rows of one slice of one output, in a Parquet file that no commit names yet."""

    output: str
    slice_start: str
    path: str
    """Path relative to the output's table."""
    size: int
    """Size of the file in bytes."""
    rows: int
    unanchored: int
    """Number of rows that are sessions cut by the rule for sparse streams."""


STAGED = JsonFile("staged.json", tuple[StagedSlice, ...])
METRICS = JsonFile("metrics.json", tuple[MetricRow, ...])


@dataclass(frozen=True)
class Computed:
    """The staged rows and the metrics of a run."""

    staged: tuple[StagedSlice, ...]
    """Files of every slice and output."""
    metrics: tuple[PartitionMetrics, ...]
    """What was counted in each slice and partition of an input, in order of the inputs."""

    @cached_property
    def slices(self) -> dict[str, SliceTotals]:
        """The metrics of each slice over all inputs, by slice_start."""
        return by_slice(self.metrics)

    def staged_of(self, alias: str) -> list[StagedSlice]:
        """Return the files that were staged for one output."""
        return [file for file in self.staged if file.output == alias]


def read_computed(files: RunFiles) -> Computed:
    """Return what the computation of a run left. Raise PermanentError if it has not ended."""
    return Computed(files.read(STAGED), files.read(METRICS))


def write_computed(files: RunFiles, computed: Computed) -> None:
    """Write what the computation of a run left."""
    files.write(STAGED, computed.staged)
    files.write(METRICS, computed.metrics)
