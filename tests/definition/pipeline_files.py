"""The pipeline file of these tests, and what is read of others like it."""

import re
from pathlib import Path

import pytest

from recapture.definition.pipeline import load
from recapture.errors import DefinitionError

EXAMPLE = """\
name: telemetry                         # [a-z][a-z0-9_]*; names the DAG, the suite, the table
input:
  alias: telemetry                      # the name after FROM
  container: https://ACCOUNT.blob.core.windows.net/capture      # or file:///absolute/folder
  path: "{Namespace}/{EventHub}/{PartitionId}/{Year}/{Month}/{Day}/{Hour}/{Minute}/{Second}"
  namespace: contoso
  event_hub: telemetry
  capture_interval_seconds: 300
  arrival_time: BlobLastModified        # or EventEnqueuedUtcTime
job:                                    # names and meaning as in ASA's own job definition
  eventsOutOfOrderPolicy: Adjust
  eventsOutOfOrderMaxDelayInSeconds: 0
  eventsLateArrivalMaxDelayInSeconds: 600
  outputErrorPolicy: Drop
  query: |
    SELECT System.Timestamp() AS windowEnd, deviceId, COUNT(*) AS events, AVG(temperature) AS avgTemperature
    INTO aggregates
    FROM telemetry TIMESTAMP BY eventTime OVER deviceId
    GROUP BY deviceId, TumblingWindow(minute, 5)
output:
  alias: aggregates                     # the name after INTO
  table: https://ACCOUNT.blob.core.windows.net/curated/telemetry # or file:///absolute/folder; a Delta table
quality:
  suite: telemetry                      # expectations/telemetry.json, or a path beside this file
"""


def change(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


def complaint(file: Path) -> tuple[int | None, str]:
    """Return the line and the message of the only error, without the file that it starts with."""
    with pytest.raises(DefinitionError) as caught:
        load(file)
    message, *shown = str(caught.value).split("\n")
    if shown:
        assert ": job.query: query, line " in message, "only a query is shown, with a caret under the mistake"
        assert [line.strip() for line in shown[1:]] == ["^"]
    match = re.fullmatch(rf"{re.escape(str(file))}(?::(\d+))?: (.+)", message)
    assert match, message
    return (int(match[1]) if match[1] else None), match[2]


def line_of(text: str) -> int:
    return next(n for n, line in enumerate(EXAMPLE.splitlines(), 1) if text in line)


def suite_path(file: Path) -> Path | None:
    pipeline = load(file)
    return pipeline.suite_path(pipeline.outputs[0])
