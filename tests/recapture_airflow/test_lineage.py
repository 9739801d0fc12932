"""What tasks tell OpenLineage, with the client and the provider of Airflow themselves."""

import importlib
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from recapture import cli
from recapture.definition.pipeline import Pipeline, load
from recapture.run.plan import plan_run
from tests.recapture_airflow.conftest import LoadPlugin
from tests.worlds import HOUR, TELEMETRY, TEN, World, one_event

QUERY = """
    SELECT System.Timestamp() AS windowEnd, t.deviceId, d.site, AVG(t.temperature) AS mean, COUNT(*) AS events
    INTO aggregates
    FROM telemetry t TIMESTAMP BY eventTime JOIN devices d ON t.deviceId = d.id
    GROUP BY t.deviceId, d.site, TumblingWindow(minute, 5)
"""


@pytest.fixture(scope="module")
def lineage(load_plugin: LoadPlugin) -> ModuleType:
    return load_plugin("lineage")


@pytest.fixture(scope="module")
def facets(load_plugin: LoadPlugin) -> ModuleType:
    return load_plugin("openlineage_facets")


@pytest.fixture
def world(tmp_path: Path) -> World:
    """An hour with one event, and reference data."""
    world = one_event(tmp_path)
    (tmp_path / "reference").mkdir()
    (tmp_path / "reference" / "devices.json").write_text(json.dumps([{"id": "a", "site": "roof"}]))
    devices = {"type": "Reference", "alias": "devices", "format": "Json", "container": "reference"}
    world.define(QUERY, inputs=[TELEMETRY, devices | {"path": "devices.json"}])
    return world


def as_json(datasets: Any) -> list[dict[str, Any]]:
    """Return datasets as the client writes them into an event, without the addresses of schemas and producers."""
    from openlineage.client.serde import Serde

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(item) for key, item in value.items() if not key.startswith("_")}
        return [plain(item) for item in value] if isinstance(value, list) else value

    written: list[dict[str, Any]] = [plain(json.loads(Serde.to_json(dataset))) for dataset in datasets]
    return written


def backfill(world: World, *arguments: str) -> tuple[Pipeline, str, int]:
    """Run the hour. Return the pipeline, the run and the exit code."""
    bounds = ["--from", TEN.isoformat(), "--to", (TEN + HOUR).isoformat()]
    code = cli.main(["backfill", str(world.file), *bounds, *arguments])
    pipeline = load(world.file)
    return pipeline, plan_run(pipeline, TEN, TEN + HOUR).id, code


def dags_of(world: World) -> dict[str, Any]:
    """Return the DAGs of the world's pipeline, whose rows Spark computes."""
    dags: dict[str, Any] = importlib.import_module("recapture_airflow.dags").RecaptureDags(world.file)
    return dags


def test_each_task_that_reads_or_writes_a_dataset_names_it_when_it_starts(facets: ModuleType, world: World) -> None:
    named = {
        dag.dag_id: {
            task.task_id: (len(datasets.inputs), len(datasets.outputs))
            for task in dag.tasks
            if hasattr(task, "get_openlineage_facets_on_start")
            and (datasets := task.get_openlineage_facets_on_start()) is not None
        }
        for dag in dags_of(world).values()
    }
    run = {"plan": (2, 0), "order_and_aggregate": (2, 0), "audit": (1, 0), "publish": (2, 1), "report": (1, 0)}
    assert named == {
        "telemetry": run,
        "telemetry.update": run,
        "telemetry.rollback": {"rollback": (0, 1)},
        "telemetry.check": {"check": (2, 0)},
    }


@pytest.mark.parametrize(
    ("address", "folder", "name"),
    [
        ("https://acc.blob.core.windows.net/capture", "a/b", ("abfss://capture@acc.dfs.core.windows.net", "a/b")),
        ("https://acc.dfs.core.windows.net/capture/raw/", "a", ("abfss://capture@acc.dfs.core.windows.net", "raw/a")),
        ("abfss://capture@acc.dfs.core.windows.net/raw", "", ("abfss://capture@acc.dfs.core.windows.net", "raw")),
        ("https://acc.blob.core.chinacloudapi.cn/capture", "", ("abfss://capture@acc.dfs.core.chinacloudapi.cn", "/")),
        (
            "http://127.0.0.1:10000/devstoreaccount1/capture/raw",
            "",
            ("abfss://capture@127.0.0.1:10000/devstoreaccount1", "raw"),
        ),
        ("file:///archive/capture", "a", ("file", "/archive/capture/a")),
    ],
)
def test_a_dataset_has_the_name_that_other_programs_give_it(
    facets: ModuleType, address: str, folder: str, name: tuple[str, str]
) -> None:
    assert facets.dataset_name(address, folder) == name


def test_a_published_run_has_its_archive_its_tables_and_the_lineage_of_their_columns(
    lineage: ModuleType, facets: ModuleType, world: World
) -> None:
    pipeline, run, code = backfill(world)
    assert code == 0
    lineage_facets = facets.facets(lineage.Lineage.PUBLISHES, pipeline, run)
    archive, devices = as_json(lineage_facets.inputs)
    assert (archive["namespace"], archive["name"]) == ("file", f"{world.capture}/contoso/telemetry")
    assert (devices["namespace"], devices["name"]) == ("file", f"{world.home}/reference/devices.json")
    assert [field["name"] for field in archive["facets"]["schema"]["fields"]] == [
        "deviceId",
        "eventTime",
        "temperature",
    ]
    assert devices["inputFacets"] == {}
    (read,) = world.capture.rglob("10/07/00.avro")
    assert archive["inputFacets"]["inputStatistics"] == {"fileCount": 1, "size": read.stat().st_size}
    (table,) = as_json(lineage_facets.outputs)
    assert (table["namespace"], table["name"]) == ("file", str(world.table))
    assert table["facets"]["version"] == {"datasetVersion": "1"}
    (file,) = world.table.glob("slice_start=*/*.parquet")
    assert table["outputFacets"]["outputStatistics"] == {"rowCount": 1, "size": file.stat().st_size, "fileCount": 1}
    sources = {
        column: [(Path(field["name"]).name, field["field"]) for field in fields["inputFields"]]
        for column, fields in table["facets"]["columnLineage"]["fields"].items()
    }
    assert sources == {
        "windowEnd": [("telemetry", "eventTime")],
        "deviceId": [("telemetry", "deviceId")],
        "site": [("devices.json", "site")],
        "mean": [("telemetry", "temperature")],
    }
    assert {field["name"]: field["type"] for field in table["facets"]["schema"]["fields"]} == {
        "windowEnd": "datetime",
        "deviceId": "nvarchar(max)",
        "site": "nvarchar(max)",
        "mean": "float",
        "events": "bigint",
        "slice_start": "datetime",
    }

    spark = dags_of(world)["telemetry"].get_task("order_and_aggregate")
    spark.application_args[0] = run
    assert as_json(spark.get_openlineage_facets_on_complete(None).inputs) == [archive, devices]

    pipeline, run, _ = backfill(world)
    (unchanged,) = as_json(facets.facets(lineage.Lineage.PUBLISHES, pipeline, run).outputs)
    assert unchanged == {name: table[name] for name in ("namespace", "name", "facets")} | {"outputFacets": {}}


def test_an_audit_has_an_assertion_for_each_check_and_no_value_of_a_row(
    lineage: ModuleType, facets: ModuleType, world: World
) -> None:
    expectation = {"type": "expect_column_values_to_be_in_set", "description": "known devices"}
    suite = world.write_suite(expectation | {"kwargs": {"column": "deviceId", "value_set": ["z"]}}, name="devices")
    world.amend(quality={"suite": suite})
    pipeline, run, code = backfill(world)
    assert code == 1, "the audit stops the run"
    (table,) = as_json(facets.facets(lineage.Lineage.AUDITS, pipeline, run).inputs)
    assertions = {one["assertion"]: one for one in table["inputFacets"]["dataQualityAssertions"]["assertions"]}
    failed = assertions["expect_column_values_to_be_in_set"]
    assert (failed["success"], failed["severity"], failed["name"]) == (
        False,
        "error",
        "devices.expect_column_values_to_be_in_set",
    )
    assert assertions["archive_has_no_holes"]["success"]
    assert '"a"' not in json.dumps(table), "the device is not named"


def test_a_task_that_failed_before_it_wrote_its_file_has_the_datasets_of_the_pipeline_file(
    lineage: ModuleType, world: World
) -> None:
    task = lineage.WithLineage()
    task.lineage, task.file = lineage.Lineage.PUBLISHES, str(world.file)
    task.run = plan_run(load(world.file), TEN, TEN + HOUR).id
    (table,) = as_json(task.get_openlineage_facets_on_complete(None).outputs)
    (started,) = as_json(task.get_openlineage_facets_on_start().outputs)
    assert set(started["facets"]) == {"schema", "columnLineage"}
    assert table == started
