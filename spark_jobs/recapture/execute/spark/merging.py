"""The second step of a GROUP BY on Spark: panes are sorted by slice and group, and the workers merge them.

Spark distributes the panes and spills them. Only whole groups are merged at once, so a worker needs little memory.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial, reduce

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from recapture.execute.merging import GROUP_HASH, merge_to_groups, merge_to_rows, rows_schema
from recapture.ordering import panes
from recapture.query.lower.spark_text import quoted_name
from recapture.query.merges import GroupsView, MergedGroups, MergedWindow
from recapture.query.model import CompiledOutput

Inputs = Mapping[str, DataFrame]
"""What the tasks of each input give, by the view of the input."""
MERGED_BYTES = 256 * 1024 * 1024
"""Bytes of blobs for each partition of panes. A partition costs a tenth of a second, and needs little memory."""
MergeWindow = Callable[[MergedWindow, Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True)
class Division:
    """How panes are divided among partitions of Spark: by slice, and by bucket of their groups."""

    partitions: int
    buckets: int
    """Number of buckets of each slice."""


def divide(size: int, slices: int, most: int) -> Division:
    """Return the division of the panes of blobs with `size` bytes among at most `most` partitions."""
    partitions = max(1, min(most, -(-size // MERGED_BYTES)))
    return Division(partitions, buckets=-(-partitions // slices))


def rows(output: CompiledOutput, inputs: Inputs, division: Division) -> DataFrame:
    """Return the published rows of an output that has `selects`, with `slice_start`, from the panes of its inputs."""
    frames = (
        _merged(select.groups, partial(merge_to_rows, select), rows_schema(select), inputs, division)
        for select in output.selects
    )
    return reduce(DataFrame.unionAll, frames)


def create_groups_view(view: GroupsView, inputs: Inputs, division: Division) -> None:
    """Create the view in which Spark SQL reads groups."""
    groups = view.groups
    _merged(groups, partial(merge_to_groups, groups), groups.view_schema, inputs, division).createOrReplaceTempView(
        quoted_name(view.name)
    )


def _merged(
    groups: MergedGroups, merge: MergeWindow, schema: pa.Schema, inputs: Inputs, division: Division
) -> DataFrame:
    """Return what `merge` makes of the panes of each window."""
    columns = from_arrow_schema(schema)
    frames = (
        _sorted_panes(inputs[window.view], window, division).mapInArrow(partial(merge, window), columns)
        for window in groups.windows
    )
    return reduce(DataFrame.unionAll, frames)


def _sorted_panes(frame: DataFrame, window: MergedWindow, division: Division) -> DataFrame:
    """Return the panes of a window, sorted by slice and group."""
    struct = quoted_name(panes.column_name(window.number))
    keys = [quoted_name(key.name) for key in window.aggregation.keys]
    group_hash = f.xxhash64(*keys) if keys else f.lit(0).cast("bigint")
    rows = frame.where(f"{struct} IS NOT NULL").select(f"{struct}.*").withColumn(GROUP_HASH, group_hash)
    bucket = f.pmod(f.col(GROUP_HASH), f.lit(division.buckets))
    return rows.repartition(division.partitions, "_slice_start", bucket).sortWithinPartitions(
        "_slice_start", GROUP_HASH
    )
