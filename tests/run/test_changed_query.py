"""A query that gains, loses or changes a column: its table, and everything that reads it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from recapture.commands import suite_init
from recapture.definition.pipeline import Pipeline
from recapture.errors import DefinitionError, RunError
from recapture.execute.processes.compute import compute
from recapture.execute.processes.workers import workers
from recapture.run.plan import plan_run, preview
from recapture.run.rollback import rollback
from recapture.run.slice_state import State
from recapture.run.status import status
from recapture.run_files.computed import read_computed
from recapture.run_files.contents import AUDIT
from recapture.run_files.planned import PlannedRun
from recapture.tools.reports.document import document
from recapture.tools.reports.sources import of_range, of_run
from tests.stages import audit, publish
from tests.worlds import HOUR, TEN, World, published, steady

QUERY = (
    "SELECT System.Timestamp() AS windowEnd, {columns} INTO aggregates "
    "FROM telemetry TIMESTAMP BY eventTime GROUP BY deviceId, PartitionId, TumblingWindow(minute, 5)"
)
BEFORE = "deviceId, COUNT(*) AS events, MIN(temperature) AS low"
AFTER = "deviceId, PartitionId, COUNT(*) AS events, MAX(temperature) AS peak"
Backfill = Callable[..., PlannedRun]


@pytest.fixture(scope="module")
def backfill(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backfill]:
    """Run every stage of an hour."""
    with workers(1) as processes:

        def call(pipeline: Pipeline, hour: int) -> PlannedRun:
            start = TEN + HOUR * hour
            run = plan_run(pipeline, start, start + HOUR)
            compute(processes, run, tmp_path_factory.mktemp("scratch"))
            audit(run)
            publish(run)
            return run

        yield call


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return steady(tmp_path_factory.mktemp("changed"), hours=5, partitions=1)


@pytest.fixture
def define(world: World, tmp_path: Path) -> Callable[..., Pipeline]:
    """Return the pipeline of a test with a query of these columns."""
    return lambda columns, **more: world.define(
        QUERY.format(columns=columns), outputs=[{"alias": "aggregates", "table": str(tmp_path / "table"), **more}]
    )


def columns_of(pipeline: Pipeline) -> dict[int, set[str]]:
    """Return the columns in which the rows of each hour have values."""
    held: dict[int, set[str]] = {}
    for row in published(Path(pipeline.outputs[0].table.removeprefix("file://")), "slice_start, windowEnd"):
        names = {name for name, value in row.items() if value is not None and name in ("events", "low", "peak")}
        assert held.setdefault(row["slice_start"].hour, names) == names
    return held


def test_a_changed_query_is_published_and_everything_that_shows_the_table_works(
    define: Callable[..., Pipeline], backfill: Backfill
) -> None:
    before, old, new = define(BEFORE), {"events", "low"}, {"events", "peak"}
    for hour in range(3):
        backfill(before, hour)
    after = define(AFTER)
    for hour in (3, 2):
        run = backfill(after, hour)
        report = document(of_run(run, read_computed(run.files), run.files.read(AUDIT), ()))
        assert report["verdict"]["level"] != "bad", report["verdict"]
    assert columns_of(after) == {10: old, 11: old, 12: new, 13: new}
    report = document(of_range(after, None, None))
    assert (
        "2 slices were computed or judged with another query than the pipeline has now" in report["verdict"]["sentence"]
    )
    (earlier,) = report["earlier_definitions"]
    assert (earlier["slices"], len(earlier["changes"])) == (2, 1)
    assert earlier["changes"][0].startswith("the query (then …")
    (attention,) = report["slices"]["attention"]
    assert (attention["quality"], attention["differing"], attention["slices"]) == ("outdated", "other query", 2)
    for pipeline, outdated in ((after, [True, True, False, False]), (before, [False, False, True, True])):
        result = status(pipeline)
        assert result["problems"] == []
        assert [slice_["state"] is State.OUTDATED for slice_ in result["slices"]] == outdated
        assert [slice_["differing"] == ["query"] for slice_ in result["slices"]] == outdated
    rollback(after, TEN + 2 * HOUR, TEN + 3 * HOUR)
    assert columns_of(after) == {10: old, 11: old, 12: old, 13: new}
    assert status(after)["problems"] == []


def test_a_column_of_another_type_is_refused_before_the_archive_is_read_and_the_rest_works(
    define: Callable[..., Pipeline], backfill: Backfill, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = define(BEFORE)
    backfill(before, 0)
    backfill(define(AFTER), 0)
    changed = define("AVG(temperature) AS events")
    monkeypatch.setattr("recapture.archive.manifest.pin_blobs", lambda *arguments: pytest.fail("the archive is read"))
    with pytest.raises(DefinitionError, match="events is long in the table and double in the rows"):
        preview(changed, TEN, TEN + HOUR)
    (problem,) = status(changed)["problems"]
    assert "events is long in the table and double in the rows" in problem["problem"]
    assert "1 slice was computed or judged with" in document(of_range(changed, None, None))["verdict"]["sentence"]
    longer = before.model_copy(update={"slice_hours": 2})
    with pytest.raises(DefinitionError, match="has slices of 1 h, but slice_hours is 2"):
        preview(longer, TEN, TEN + 2 * HOUR)
    rollback(changed, TEN, TEN + HOUR)
    assert columns_of(before) == {10: {"events", "low"}}


def test_a_suite_is_proposed_from_the_slices_that_have_the_columns_of_the_query(
    define: Callable[..., Pipeline], backfill: Backfill, capsys: pytest.CaptureFixture[str]
) -> None:
    backfill(define(BEFORE), 0)
    after = define(AFTER)
    with pytest.raises(RunError, match=r"all slices of .* lack columns of the query: backfill some first"):
        propose(after)
    backfill(after, 1)
    result = propose(after)
    assert (result["slices"], result["left_out"]) == (1, 1)
    assert {"events", "peak"} <= {
        expectation["kwargs"].get("column") for expectation in result["suite"]["expectations"]
    }
    assert "from 36 rows of 1 slice" in capsys.readouterr().err


def propose(pipeline: Pipeline) -> dict[str, Any]:
    console = Console(stderr=True, width=400)
    return suite_init.run(console, file=pipeline.file, start=None, end=None, alias=None, out=None, json=False)
