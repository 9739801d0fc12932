"""An example of a consumer: it keeps a table of daily sums of the sample pipeline's table.

The pipeline's updates emit an event of the asset with a partition for each slice that is new, revised or rolled back.
Airflow maps these to days, and starts one run of this DAG for each day that has to be computed again. Late blobs
therefore reach the daily table without anybody's doing.

The DAG exists only where the sample pipeline does, and is paused when it is new. It needs Airflow 3.3 or newer, whose
events have partitions. Copy the file to write your own.
"""

import os
from datetime import date, timedelta
from typing import Any

from airflow.sdk import DAG, Asset, PartitionedAssetTimetable, StartOfDayMapper, task

from recapture_airflow.backfill_tasks import prepare

HOURLY = os.environ.get("RECAPTURE_TABLE")
"""Table of the sample pipeline."""
DAY, SLICE = "%Y-%m-%d", "%Y-%m-%dT%H:%M:%SZ"
"""Formats of the partition keys: a day here, the start of a slice in the events of the pipeline."""


@task
def roll_up(hourly: str, *, dag_run: Any = None) -> int:
    """Replace a day of the daily table by the sums of the hourly table; return the number of its rows."""
    from deltalake import DeltaTable, QueryBuilder, write_deltalake

    from recapture.storage.delta import delta_storage_options, delta_table_uri

    day, options = dag_run.partition_key, delta_storage_options(hourly)
    next_day = date.fromisoformat(day) + timedelta(days=1)
    published = DeltaTable(delta_table_uri(hourly), storage_options=options)
    rows = (
        QueryBuilder()
        .register("hourly", published)
        .execute(
            f"""SELECT '{day}' AS day, "deviceId", SUM(events) AS events FROM hourly
            WHERE slice_start >= '{day}T00:00:00Z' AND slice_start < '{next_day}T00:00:00Z'
            GROUP BY "deviceId" ORDER BY "deviceId" """
        )
        .read_all()
    )
    write_deltalake(
        delta_table_uri(f"{hourly}_daily"),
        rows,
        mode="overwrite",
        partition_by=["day"],
        predicate=f"day = '{day}'",
        storage_options=options,
    )
    return int(rows.num_rows)


if HOURLY:
    with DAG(
        "telemetry.daily",
        schedule=PartitionedAssetTimetable(
            assets=Asset(name="telemetry", uri=HOURLY),
            default_partition_mapper=StartOfDayMapper(input_format=SLICE, output_format=DAY),
        ),
        catchup=False,
        max_active_runs=1,
        default_args={"owner": "recapture", "retries": 2, "retry_delay": timedelta(minutes=1), "pre_execute": prepare},
        tags=["recapture", "example"],
        doc_md=__doc__,
    ):
        roll_up(HOURLY)
