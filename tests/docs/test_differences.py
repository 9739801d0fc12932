"""docs/differences.md: what Recapture publishes of fields whose values have several types."""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from recapture.run.plan import plan_run
from tests.paths import ROOT
from tests.worlds import TELEMETRY, TEN, World, at

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = (ROOT / "docs" / "differences.md").read_text(encoding="utf-8")
SECTION = PAGE.split("## Because a published column has one type\n")[1].split("\n## ")[0]
EXAMPLES = re.findall(r"^\| `(.*?)` \| (.*?) \| .*? \| `(.*?)`[^|]*\|$", SECTION, re.MULTILINE)


def test_every_row_is_an_example() -> None:
    assert len(EXAMPLES) == SECTION.count("\n| `") == 3


@pytest.mark.parametrize(("query", "given", "rows"), EXAMPLES)
def test_an_example_of_several_types_gives_these_rows(
    spark: "SparkSession", tmp_path: Path, query: str, given: str, rows: str
) -> None:
    from recapture.execute.spark.compute import compute

    world = World(tmp_path)
    bodies, _, devices = given.partition(", and ")
    world.put("0", at(5), [body.encode() for body in re.findall(r"`(.*?)`", bodies)])
    world.put("0", at(90))
    inputs = [TELEMETRY]
    if devices:
        (tmp_path / "devices.json").write_text(devices.split("`")[1])
        path = {"container": ".", "path": "devices.json"}
        inputs.append({"alias": "devices", "type": "Reference", "format": "Json", **path})
    pipeline = world.define(query, inputs=inputs, outputs=[{"alias": "out", "table": "table"}])
    run = plan_run(pipeline, TEN, at(60))
    computed = compute(spark, run)
    staged = [row for file in computed.staged for row in pq.read_table(world.table / file.path).to_pylist()]
    got = [{name: value for name, value in row.items() if name != "slice_start"} for row in staged]
    assert sorted(got, key=str) == json.loads(rows)
