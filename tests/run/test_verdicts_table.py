"""The table of verdicts: each event that is not on time, published, replaced and rolled back with the rows."""

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given

from recapture.definition.pipeline import Pipeline, load
from recapture.errors import DefinitionError, PermanentError
from recapture.execute.processes.workers import Workers
from recapture.quality.metrics import NOT_ON_TIME
from recapture.run.rollback import rollback
from recapture.run.status import status
from recapture.time_model.ticks import TICKS_PER_MICROSECOND, to_datetime
from tests.draws import slow
from tests.run.made_worlds import Made, made, put
from tests.stages import audit, publish
from tests.tools.events.test_find import expected
from tests.worlds import TEN, World, at, backfill, body, lenient, published, run_file, staged, version


def with_verdicts(world: World) -> Pipeline:
    """Return the world's pipeline with a table of verdicts."""
    world.amend(verdicts="table")
    return load(world.file)


def verdicts(world: World) -> list[dict[str, Any]]:
    return published(world.home / "table_verdicts", 'slice_start, "partition", sequence_number')


@slow(6)
@given(made=made().filter(lambda made: bool(made.events)))
def test_the_rows_of_any_world_are_the_oracles_verdicts_and_as_many_as_the_metrics_count(
    processes: Workers, tmp_path_factory: pytest.TempPathFactory, made: Made
) -> None:
    home = tmp_path_factory.mktemp("made")
    world = put(home, made)
    world.define(made.query, quality=lenient(world), **made.job)
    report = backfill(processes, with_verdicts(world), TEN, at(60 * made.hours))
    rows = verdicts(world)
    found = {(row["partition"], row["sequence_number"]): (row["verdict"], row["system_timestamp"]) for row in rows}
    assert len(found) == len(rows)
    assert found == {
        event: (verdict, None if time is None else to_datetime(time - time % TICKS_PER_MICROSECOND))
        for event, (verdict, time) in expected(made).items()
        if verdict != "on_time"
    }
    counted = Counter((row["slice_start"], row["verdict"]) for row in rows)
    metrics = run_file(world.table, report["run"], "metrics.json")
    assert counted.total() == sum(row[verdict] for row in metrics for verdict in NOT_ON_TIME)
    for hour in range(made.hours):
        for verdict in NOT_ON_TIME:
            slice_metrics = [row for row in metrics if row["slice_start"] == f"{at(60 * hour):%Y-%m-%dT%H:%M:%SZ}"]
            assert counted[at(60 * hour), verdict] == sum(row[verdict] for row in slice_metrics)
    shutil.rmtree(home)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """An hour with an event of each verdict, and one hour without events."""
    world = World(tmp_path)
    bodies = [
        body("a", at(10)),
        body("a", at(4)),
        body("a", at(-1)),
        body("a", at(18)),
        body("a", None),
        b"{",
        body("b", at(-1)),
    ]
    world.put("0", at(12), bodies)
    world.put("0", at(130))
    world.define(quality=lenient(world), eventsOutOfOrderMaxDelayInSeconds=30)
    return world


def test_a_row_has_the_times_the_limits_and_what_pushed_the_watermark(processes: Workers, world: World) -> None:
    backfill(processes, with_verdicts(world), TEN, at(60))
    blob = "contoso/telemetry/0/2024/03/01/10/07/00.avro"
    nothing = dict.fromkeys(("watermark", "pushed_by_number", "pushed_by_place", "pushed_by_blob"))
    disorder = {"watermark": at(9.5), "pushed_by_number": 0, "pushed_by_place": None, "pushed_by_blob": blob}
    out_of_order = {"verdict": "out_of_order_adjusted", "system_timestamp": at(9.5)} | disorder
    late, behind = "beyond the late tolerance of 600 s", "beyond the out-of-order tolerance of 30 s"
    unusable = {"time": None, "system_timestamp": None, "late_seconds": None, "behind_seconds": None} | nothing
    rows = verdicts(world)
    common = {"input": "telemetry", "partition": "0", "place": None, "blob": blob, "arrival": at(12)}
    assert rows == [
        common | {"sequence_number": number, "slice_start": TEN} | row
        for number, row in (
            (1, out_of_order | {"time": at(4), "reason": behind, "late_seconds": 480, "behind_seconds": 360}),
            (
                2,
                out_of_order
                | {"time": at(-1), "reason": f"{late}; {behind}", "late_seconds": 780, "behind_seconds": 480},
            ),
            (
                3,
                nothing
                | {"verdict": "early_dropped", "time": at(18), "system_timestamp": None, "late_seconds": -360}
                | {"behind_seconds": None, "reason": "beyond the early window of 300 s"},
            ),
            (4, unusable | {"verdict": "invalid_timestamp", "reason": "eventTime is missing or null"}),
            (5, unusable | {"verdict": "malformed", "reason": "not JSON"}),
            (
                6,
                nothing
                | {"verdict": "late_adjusted", "time": at(-1), "system_timestamp": at(2), "late_seconds": 780}
                | {"behind_seconds": 0, "reason": late},
            ),
        )
    ]


def test_without_the_key_there_is_no_table_and_the_next_publication_adds_it(processes: Workers, world: World) -> None:
    """A slice that was published before has no rows, and nothing is wrong with it."""
    table = world.home / "table_verdicts"
    backfill(processes, load(world.file), TEN, at(60))
    assert not table.exists()
    pipeline = with_verdicts(world)
    assert status(pipeline)["problems"] == []
    backfill(processes, pipeline, TEN, at(120))
    assert {row["slice_start"] for row in verdicts(world)} == {TEN}
    assert status(pipeline)["problems"] == []


def test_a_slice_is_replaced_and_rolled_back_with_its_rows(processes: Workers, world: World) -> None:
    pipeline = with_verdicts(world)
    backfill(processes, pipeline, TEN, at(60))
    before = verdicts(world)
    world.put("0", at(13), [body("a", at(1))], first=7)
    backfill(processes, pipeline, TEN, at(60))
    assert len(verdicts(world)) == len(before) + 1
    rollback(pipeline, TEN, at(60))
    assert verdicts(world) == before


def test_a_run_whose_verdicts_are_lost_is_not_published(processes: Workers, world: World) -> None:
    run = staged(processes, with_verdicts(world), TEN, at(60))
    audit(run)
    (file,) = (world.table / "_recapture" / run.id / "verdicts").rglob("*.parquet")
    file.unlink()
    with pytest.raises(PermanentError, match="start the run again from its plan"):
        publish(run)
    assert version(world.table) is None


def test_the_audit_finds_that_a_run_noted_other_verdicts_than_it_counted(processes: Workers, world: World) -> None:
    run = staged(processes, with_verdicts(world), TEN, at(60))
    (file,) = (world.table / "_recapture" / run.id / "verdicts").rglob("*.parquet")
    pq.write_table(pq.read_table(file).slice(1), file)
    (result,) = (result for result in audit(run).audit.results if result.expectation == "verdicts_equal_the_metrics")
    assert not result.success
    assert "the table of verdicts differs from the metrics" in result.sentence


def test_the_key_takes_the_value_table_only(world: World) -> None:
    world.amend(verdicts="all")
    with pytest.raises(DefinitionError, match="verdicts"):
        load(world.file)
    world.amend(verdicts=None)
    with pytest.raises(DefinitionError, match="write table, or remove the key"):
        load(world.file)


def test_no_output_may_have_the_folder_of_the_verdicts(world: World) -> None:
    sections = world.sections()
    query = sections["job"]["query"]
    job = sections["job"] | {"query": query + "\n" + query.replace("aggregates", "others")}
    outputs = [{"alias": "aggregates", "table": "table"}, {"alias": "others", "table": "table_verdicts"}]
    world.amend(job=job, output=outputs, quality=None)
    world.file.write_text(world.file.read_text().replace(', "quality": null', ""))
    load(world.file)
    with pytest.raises(DefinitionError, match="it shares a folder with the table of aggregates"):
        with_verdicts(world)
