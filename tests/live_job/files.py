"""A case as files: the archive, the pipeline file, and the output of the live job as it lies in a container."""

import csv
import io
import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import write_deltalake

from recapture.tools.sample import SampleEvent, capture_file
from tests.blobs import write_blob
from tests.live_job.case import Case, live_rows
from tests.live_job.windows import Row
from tests.live_job.world import Blob

Format = Literal["json", "csv", "parquet", "delta"]
ROWS_OF_A_FILE = 50
COLUMNS = ("windowEnd", "deviceId", "events", "avgTemperature", "minTemperature", "maxTemperature")
SCHEMA = pa.schema(
    [
        ("windowEnd", pa.timestamp("us", "UTC")),
        ("deviceId", pa.string()),
        ("events", pa.int64()),
        ("avgTemperature", pa.float64()),
        ("minTemperature", pa.float64()),
        ("maxTemperature", pa.float64()),
    ]
)


def write_archive(home: Path, blobs: Iterable[Blob]) -> None:
    """Write blobs as Capture lays them out, in the folder `capture`; a file's time is the blob's LastModified."""
    for blob in blobs:
        name = f"contoso/telemetry/{blob.partition}/{blob.opened:%Y/%m/%d/%H/%M/%S}.avro"
        events = [
            SampleEvent(event.sequence, str(event.sequence * 100), event.enqueued, event.body) for event in blob.events
        ]
        write_blob(home / "capture" / name, capture_file(events), blob.modified)


def write_pipeline(home: Path, case: Case, **sections: Any) -> Path:
    """Write a pipeline file that reads the archive into the folder `table`, and return its path."""
    file = home / "telemetry.yaml"
    pipeline = {
        "name": "telemetry",
        "input": {
            "alias": "telemetry",
            "container": "capture",
            "namespace": "contoso",
            "event_hub": "telemetry",
            "arrival_time": case.arrival,
            "search_hours": 24,
        },
        "job": {
            "eventsOutOfOrderPolicy": "Adjust" if case.policy.adjusts else "Drop",
            "eventsOutOfOrderMaxDelayInSeconds": case.policy.out_of_order.seconds,
            "eventsLateArrivalMaxDelayInSeconds": case.policy.late.seconds,
            "query": case.query.text,
        },
        "output": {"alias": "aggregates", "table": "table"},
    }
    file.write_text(json.dumps(pipeline | sections))
    return file


def write_case(home: Path, case: Case, form: Format = "json") -> Path:
    """Write the archive before the backfill, the pipeline file, and the live job's output in the folder `live`.

    Return the path of the pipeline file.
    """
    write_archive(home, case.archive)
    write_live(home / "live", live_rows(case), form)
    return write_pipeline(home, case)


def write_live(folder: Path, rows: Sequence[Row], form: Format) -> None:
    """Write rows in their order, as a Delta table or as files of some rows each."""
    if form == "delta":
        write_deltalake(folder, pa.Table.from_pylist([record(row) for row in rows], SCHEMA))
        return
    for start in range(0, len(rows), ROWS_OF_A_FILE):
        path = folder / f"{rows[start].end:%Y/%m/%d/%H}" / f"0_{start:08x}.{form}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(WRITERS[form]([record(row) for row in rows[start : start + ROWS_OF_A_FILE]]))


def record(row: Row) -> dict[str, Any]:
    """Return a row by the names of the query's columns."""
    values = (row.end, row.device, row.events, row.average, row.least, row.greatest)
    return dict(zip(COLUMNS, values, strict=True))


def row_of(record: dict[str, Any]) -> Row:
    """Return the row of a record, such as one of the published table."""
    return Row(*(record[column] for column in COLUMNS))


def _printed(records: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return records with their times as a job prints them, to 100 nanoseconds."""
    return [record | {"windowEnd": _time(record["windowEnd"])} for record in records]


def _time(instant: datetime) -> str:
    return f"{instant:%Y-%m-%dT%H:%M:%S.%f}0Z"


def _json_lines(records: list[dict[str, Any]]) -> bytes:
    return "\r\n".join(map(json.dumps, _printed(records))).encode()


def _csv(records: list[dict[str, Any]]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS)
    writer.writeheader()
    writer.writerows(_printed(records))
    return text.getvalue().encode()


def _parquet(records: list[dict[str, Any]]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(records, SCHEMA), sink)
    return sink.getvalue()


WRITERS = {"json": _json_lines, "csv": _csv, "parquet": _parquet}
