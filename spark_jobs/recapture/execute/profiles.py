"""The profiles of all slices and partitions of a run, in one run file for the report."""

import io
from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from recapture.errors import PermanentError
from recapture.ordering.counters import Counters
from recapture.ordering.profile import PROFILE_SCHEMA
from recapture.ordering.task import Task
from recapture.process.versions import PROFILE_FORMAT, require_format
from recapture.run_files.files import PROFILE, RunFiles
from recapture.storage import in_parallel
from recapture.table.files import parquet, read_parquet
from recapture.time_model import ticks
from recapture.time_model.metrics import VERDICTS
from recapture.time_model.partition_metrics import PartitionMetrics
from recapture.time_model.slices import Slice
from recapture.time_model.verdicts import Verdict

MAX_SAMPLES = 256
"""Largest number of slices and partitions whose samples a run keeps: those with the most events not on time."""
_FORMAT = b"recapture.format"


def write(files: RunFiles, task: Task, counters: Mapping[Slice, Counters]) -> None:
    """Write the profiles of a task's slices. A retry overwrites the same file."""
    rows = [slice_counters.profile.table(task.input, task.partition) for slice_counters in counters.values()]
    files.container.write(_name(files, task), parquet(pa.concat_tables(rows)))


def collect(files: RunFiles, tasks: Sequence[Task], metrics: Iterable[PartitionMetrics]) -> None:
    """Write the profile of a run from the profiles of its tasks. The run's metrics decide which samples it keeps.

    The bytes do not depend on how the slices were divided among the tasks.
    """
    kept = {(row.input, row.partition, row.slice_start) for row in _worst(metrics)}

    def read(task: Task) -> pa.Table:
        content = files.container.read_current(_name(files, task))
        if content is None:
            raise PermanentError(f"run {files.id} has lost {_name(files, task)}: start the run again from its plan")
        table = pq.read_table(io.BytesIO(content), schema=PROFILE_SCHEMA)
        starts = map(ticks.to_text, table["slice_start"].to_pylist())
        stays = [(task.input, task.partition, start) in kept for start in starts]
        sample = pc.if_else(pa.array(stays), table["sample"].combine_chunks(), pa.scalar([], table["sample"].type))
        return table.set_column(table.schema.get_field_index("sample"), table.schema.field("sample"), sample)

    rows = pa.concat_tables([PROFILE_SCHEMA.empty_table(), *in_parallel(read, tasks)])
    order = [(name, "ascending") for name in ("slice_start", "input", "partition")]
    rows = rows.take(pc.sort_indices(rows, order)).replace_schema_metadata({_FORMAT: str(PROFILE_FORMAT)})
    files.container.write(files.name(PROFILE), parquet(rows))


def read(files: RunFiles) -> pa.Table | None:
    """Return the profile of a run, with PROFILE_SCHEMA; None if the run has none. Raise RunError for another format."""
    content = files.container.read_current(files.name(PROFILE))
    if content is None:
        return None
    rows = read_parquet(content)
    number = (rows.schema.metadata or {}).get(_FORMAT, b"0")
    require_format(int(number), PROFILE_FORMAT, f"{PROFILE} of run {files.id}")
    return rows


def _name(files: RunFiles, task: Task) -> str:
    return files.profile_name(task.input, task.partition, task.slices[0].slice)


def _worst(metrics: Iterable[PartitionMetrics]) -> list[PartitionMetrics]:
    """Return the rows of the slices and partitions whose samples are kept."""
    not_on_time = [verdict for verdict in VERDICTS if verdict != Verdict.ON_TIME.label]
    arrived = [row for row in metrics if row.count("InputEvents")]
    arrived.sort(key=lambda row: -sum(row.count(verdict) for verdict in not_on_time))
    return arrived[:MAX_SAMPLES]
