"""Every case of this folder publishes the rows that it expects, from an archive of its events to staged files."""

import json
import re
from collections import defaultdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from recapture.execute.processes import compute as local
from recapture.execute.processes.workers import Workers
from recapture.run.plan import plan_run
from recapture.run_files.computed import read_computed
from recapture.run_files.planned import PlannedRun
from recapture.tools.sample import SampleEvent, capture_file
from tests.blobs import write_blob
from tests.cases.case import ARRIVAL, HOUR, PARTITION, Case, Row, arrival, body, hour, parse
from tests.paths import ROOT
from tests.worlds import TELEMETRY, World, blob_name

INTERVAL = timedelta(minutes=5)
[EXAMPLE] = re.findall(r"^```\n(# .*?)^```", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)
TEXTS = {file.stem: file.read_text("utf-8") for file in sorted(Path(__file__).parent.glob("*.txt"))}
CASES = {name: parse(text) for name, text in (TEXTS | {"CONTRIBUTING": EXAMPLE}).items()}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[input Input]\na | b\n1 | 2\n3\n", "a row has 1 cells, its header has 2: 3"),
        ("# A title.\nSELECT 1\n", "line 2: before the first section, a line starts with #"),
    ],
)
def test_a_mistake_in_a_case_is_named(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        parse(text)


@pytest.mark.parametrize("name", CASES)
def test_a_case(processes: Workers, tmp_path: Path, name: str) -> None:
    run = planned(World(tmp_path), CASES[name])
    local.compute(processes, run, tmp_path)
    require_rows(run, CASES[name])


def planned(world: World, case: Case) -> PlannedRun:
    """Write the archive and the pipeline file, and plan the hours from the first event to an hour after the last."""
    start, end = case.span
    sections: list[dict[str, Any]] = []
    for alias, rows in case.inputs.items():
        sections.append(TELEMETRY | {"alias": alias, "event_hub": alias, "arrival_time": ARRIVAL})
        write_blobs(world.capture, alias, rows, end)
    for alias, rows in case.references.items():
        path = world.home / "reference" / f"{alias}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(map(json.dumps, rows)))
        section = {"type": "Reference", "format": "Json", "container": "reference", "path": path.name}
        sections.append(section | {"alias": alias})
    tables = [{"alias": output, "table": f"tables/{output}"} for output in case.outputs]
    return plan_run(world.define(case.query, inputs=sections, outputs=tables), start, end)


def write_blobs(capture: Path, alias: str, rows: list[Row], end: datetime) -> None:
    """Write a blob for each interval with events, and an empty one after the range, which shows that it is complete."""
    blobs: dict[tuple[str, datetime], list[SampleEvent]] = defaultdict(list)
    for number, row in enumerate(rows):
        time, partition = arrival(row), str(row.get(PARTITION, 0))
        opened = hour(time) + (time - hour(time)) // INTERVAL * INTERVAL
        blobs[partition, opened].append(SampleEvent(number, str(number), time, body(row)))
        blobs[partition, end + HOUR] = []
    for (partition, opened), events in blobs.items():
        write_blob(capture / blob_name(partition, opened, alias), capture_file(events), opened + INTERVAL)


def require_rows(run: PlannedRun, case: Case) -> None:
    """Fail unless the staged rows are the expected ones. The message has them as a case writes them."""
    computed = read_computed(run.files)
    for output in run.pipeline.outputs:
        home = Path(output.table.removeprefix("file://"))
        files = [home / file.path for file in computed.staged_of(output.alias)]
        rows = [row for file in files for row in pq.read_table(file).to_pylist()]
        if difference := case.difference(output.alias, run.pipeline.compiled(output).columns, rows):
            pytest.fail(difference, pytrace=False)
