"""Several SELECT … INTO: one reading of the events, a table for each output, published together or not at all."""

import uuid
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from embedded.azurite import Azurite
from recapture.definition.pipeline import Pipeline
from recapture.errors import AuditError, InterruptedRunError
from recapture.execute.processes.workers import Workers, workers
from recapture.run.plan import plan_run
from recapture.run.rollback import rollback
from recapture.storage import delta_storage_options, delta_table_uri
from recapture.table.delta import OpenTable
from tests.commands import FIRST_HOUR, Command
from tests.stages import audit, publish, summary
from tests.worlds import (
    HOUR,
    TEN,
    World,
    at,
    backfill,
    body,
    files,
    not_warmer_than,
    one_event,
    published,
    staged,
    steady,
    version,
)

COUNTS = (
    "SELECT System.Timestamp() AS windowEnd, deviceId, COUNT(*) AS events INTO counts "
    "FROM telemetry TIMESTAMP BY eventTime GROUP BY deviceId, TumblingWindow(minute, 5)"
)
PEAKS = (
    "SELECT System.Timestamp() AS windowEnd, MAX(temperature) AS hottest INTO peaks "
    "FROM telemetry TIMESTAMP BY eventTime GROUP BY HoppingWindow(minute, 40, 20)"
)
NAMES = ("counts", "counts_metrics", "peaks", "peaks_metrics")


def both(world: World, table: str = "{}", **own: dict[str, Any]) -> Pipeline:
    """Return a pipeline with both outputs, `counts` first; `own` adds to an output's section."""
    outputs = [{"alias": alias, "table": table.format(alias), **own.get(alias, {})} for alias in ("counts", "peaks")]
    return world.define(f"{COUNTS}\n\n{PEAKS}", outputs=outputs)


def versions(world: World) -> dict[str, int | None]:
    return {name: version(world.home / name) for name in NAMES}


@pytest.fixture(scope="module")
def hours(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Two hours that no test changes."""
    return steady(tmp_path_factory.mktemp("outputs"), hours=2)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return one_event(tmp_path, hours=2)


@pytest.fixture(scope="module")
def together(spark: SparkSession, hours: World) -> dict[str, Any]:
    """Publish both outputs of the two hours, computed by Spark, and return the report."""
    return backfill(spark, both(hours, "together/{}"), TEN, at(120))


def test_each_output_publishes_what_its_select_alone_would(
    processes: Workers, hours: World, together: dict[str, Any]
) -> None:
    for alias, query in (("counts", COUNTS), ("peaks", PEAKS)):
        pipeline = hours.define(query, outputs=[{"alias": alias, "table": f"alone/{alias}"}])
        backfill(processes, pipeline, TEN, at(120))
    for output in together["outputs"]:
        rows = published(hours.home / "together" / output["alias"])
        assert rows == published(hours.home / "alone" / output["alias"])
        assert output["metrics"]["OutputEvents"] == len(rows) > 0
    numbers = [output["metrics"]["OutputEvents"] for output in together["outputs"]]
    assert together["metrics"]["OutputEvents"] == sum(numbers)
    assert together["metrics"]["InputEvents"] == 2 * 24 * 6


@pytest.mark.usefixtures("together")
def test_hours_run_apart_publish_the_bytes_of_one_range_in_every_table(processes: Workers, hours: World) -> None:
    """The hours are run without Spark."""
    for hour in (1, 0):
        backfill(processes, both(hours, "apart/{}"), TEN + hour * HOUR, TEN + (hour + 1) * HOUR)
    for name in NAMES:
        assert files(hours.home / "apart" / name) == files(hours.home / "together" / name)


def test_an_unchanged_rerun_changes_no_table(processes: Workers, world: World) -> None:
    first = backfill(processes, both(world), TEN, at(120))
    before = versions(world), {name: files(world.home / name) for name in NAMES}
    again = backfill(processes, both(world), TEN, at(120))
    assert again["run"] == first["run"]
    assert (first["changed"], again["changed"]) == (True, False)
    assert [(output["version"], output["metrics_version"]) for output in again["outputs"]] == [(1, 1), (1, 1)]
    assert (versions(world), {name: files(world.home / name) for name in NAMES}) == before


def test_nothing_of_any_output_is_published_unless_all_pass(processes: Workers, world: World) -> None:
    low = not_warmer_than(19, description="the peaks are low", kwargs={"column": "hottest", "max_value": 19})
    pipeline = both(world, peaks={"quality": {"suite": world.write_suite(low)}})
    with pytest.raises(AuditError, match="nothing was published: rooms: not met: the peaks are low"):
        backfill(processes, pipeline, TEN, at(120))
    assert set(versions(world).values()) == {None}
    run = plan_run(pipeline, TEN, at(120))
    with pytest.raises(AuditError):
        publish(run)
    blocked = summary(run)
    assert [(output["version"], output["changed"]) for output in blocked["outputs"]] == [(None, False), (None, False)]


@pytest.mark.parametrize("committed", [1, 2, 3])
def test_a_publication_that_was_killed_between_two_commits_is_finished_by_the_next(
    processes: Workers, world: World, monkeypatch: pytest.MonkeyPatch, committed: int
) -> None:
    pipeline = both(world)
    run = staged(processes, pipeline, TEN, at(120))
    audit(run)
    commit, left = OpenTable.commit, [None] * (1 + committed)

    def killed(*arguments: Any) -> bool:
        if not left:
            raise KeyboardInterrupt
        left.pop()
        return commit(*arguments)

    monkeypatch.setattr(OpenTable, "commit", killed)
    with pytest.raises(InterruptedRunError, match=r"/peaks_metrics not updated yet; run the same command again"):
        publish(run)
    monkeypatch.undo()
    half = dict.fromkeys(NAMES[:committed], 1)
    assert {name: number for name, number in versions(world).items() if number} == half
    finished = publish(run)
    assert set(versions(world).values()) == {1}
    assert [output.changed for output in finished.outputs] == [False, committed < 3]
    (warning,) = finished.warnings
    assert warning.startswith(
        "restored what is published in 2 slices, the first 2024-03-01T10:00:00Z: a table held something else, because"
    )


def test_rollback_and_status_cover_all_outputs(processes: Workers, world: World, command: Command) -> None:
    backfill(processes, both(world), TEN, at(120))
    before = {name: published(world.home / name) for name in NAMES}
    world.put("0", at(20), [body("b", at(18), 30)], 1)
    world.put("0", at(72), [body("a", at(70))], 2)
    backfill(processes, both(world), TEN, at(120))
    assert all(published(world.home / name) != rows for name, rows in before.items())
    printed = command.json("rollback", world.file, *FIRST_HOUR)
    slices = ["2024-03-01T10:00:00Z"]
    assert [(output["alias"], output["slices"]) for output in printed["outputs"]] == [
        ("counts", slices),
        ("peaks", slices),
    ]
    assert {name: published(world.home / name) for name in NAMES} == before
    printed = command.json("status", world.file)
    assert [(output["alias"], [slice_["quality"] for slice_ in output["slices"]]) for output in printed["outputs"]] == [
        ("counts", ["passed", "passed"]),
        ("peaks", ["passed", "passed"]),
    ]
    text = command.text("status", world.file)
    assert "counts: slices" in text
    assert "peaks: slices" in text


def test_sessions_cut_at_even_multiples_are_counted_reported_and_published(spark: SparkSession, world: World) -> None:
    """From seven to eleven there is one event in each maxDuration. Then there are none."""
    for minutes in range(-185, 60, 10):
        world.put("0", at(minutes + 1), [body("sparse", at(minutes))], 1000 + minutes)
    sessions = (
        "SELECT System.Timestamp() AS windowEnd, COUNT(*) AS events INTO counts "
        "FROM telemetry TIMESTAMP BY eventTime WHERE deviceId = 'sparse' GROUP BY SessionWindow(minute, 10, 10)"
    )
    outputs = [{"alias": alias, "table": alias} for alias in ("counts", "peaks")]
    report = backfill(spark, world.define(f"{sessions}\n\n{PEAKS}", outputs=outputs), TEN, at(120))
    rows = published(world.home / "counts")
    assert set(rows[0]) == {"windowEnd", "events", "slice_start"}
    ten = sum(row["slice_start"] == TEN for row in rows)
    assert ten > 1
    assert [slice_["UnanchoredSessions"] for slice_ in report["slices"]] == [ten, 0]
    assert [output["metrics"]["UnanchoredSessions"] for output in report["outputs"]] == [ten, 0]
    assert report["metrics"]["UnanchoredSessions"] == ten
    (warning,) = (line for line in report["warnings"] if "sessions" in line)
    assert warning.startswith(f"counts: {ten} rows are sessions cut at even multiples of maxDuration")


def test_two_tables_and_their_metrics_are_published_to_azure_and_rolled_back(
    azurite: Azurite, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    from azure.storage.blob import ContainerClient

    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", azurite.connection_string)
    world.put("0", at(80), [b"no JSON"], 2)
    container = f"test-{uuid.uuid4().hex}"
    ContainerClient.from_connection_string(azurite.connection_string, container).create_container()
    pipeline = both(world, f"{azurite.url}/{container}/curated/{{}}")
    with workers(1) as processes:  # which have the connection string
        report = backfill(processes, pipeline, TEN, at(120))
    assert [(output["version"], output["metrics_version"]) for output in report["outputs"]] == [(1, 1), (1, 1)]
    tables = [url for output in report["outputs"] for url in (output["table"], output["metrics_table"])]
    assert [slices(url) for url in tables] == [["2024-03-01T10:00:00Z", "2024-03-01T11:00:00Z"]] * 4
    quarantine = report["quarantine"]
    assert (quarantine["version"], slices(quarantine["table"])) == (1, ["2024-03-01T11:00:00Z"])
    rollback(pipeline, TEN, at(60))
    assert [slices(url) for url in tables] == [["2024-03-01T11:00:00Z"]] * 4


def slices(url: str) -> list[str]:
    """Return the slices that hold a file in a table."""
    opened = DeltaTable(delta_table_uri(url), storage_options=delta_storage_options(url))
    return sorted(f"{part['slice_start']}".replace(" ", "T") + "Z" for part in opened.partitions())
