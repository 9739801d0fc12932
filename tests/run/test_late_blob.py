"""A late blob of one hour: the hours whose rows are unchanged keep their files, and the feed tells only the new row."""

import io
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable
from rich.console import Console

from recapture.execute.processes.compute import compute
from recapture.execute.processes.workers import workers
from recapture.printing import print_run
from recapture.run.plan import plan_run
from recapture.run.rollback import rollback
from recapture.run.status import status
from recapture.run_files.computed import read_computed
from recapture.run_files.contents import AUDIT
from recapture.run_files.planned import PlannedRun
from recapture.tools.reports.changes import changes
from recapture.tools.reports.sources import of_run
from tests.stages import audit, publish, summary
from tests.table.publishing import metadata_of
from tests.worlds import TEN, at, body, steady

FIRST, SECOND = "2024-03-01T10:00:00Z", "2024-03-01T11:00:00Z"


def test_a_late_blob_replaces_only_the_slices_whose_rows_differ(tmp_path: Path) -> None:
    world = steady(tmp_path, hours=2, partitions=1)
    pipeline = world.define(outputs=[{"alias": "aggregates", "table": "table", "change_feed": True}])
    with workers(1) as processes:

        def backfill() -> PlannedRun:
            run = plan_run(pipeline, TEN, at(120))
            compute(processes, run, tmp_path / "scratch")
            audit(run)
            publish(run)
            return run

        (tmp_path / "scratch").mkdir()
        first = backfill()
        world.put("0", at(20), [body("late", at(18))], 96, opened=at(14))
        second = backfill()

    assert metadata_of(world.table.as_uri(), 1)[0]["slices"] == [FIRST]
    (output,) = summary(second)["outputs"]
    assert (output["changed"], output["unchanged_slices"], output["version"]) == (True, 1, 2)
    out = io.StringIO()
    print_run(Console(file=out, width=1000), summary(second) | {"report": "report.html"})
    line = f"run {second.id} published as version 2 of {world.table.as_uri()}, 1 of 2 slices unchanged"
    assert line in out.getvalue().splitlines()
    source = of_run(second, read_computed(second.files), second.files.read(AUDIT), ())
    (change,) = changes(source)["outputs"]
    assert (change["slices"]["different"], change["slices"]["equal"]) == (1, 1)
    assert (change["rows"]["only_after"], change["rows"]["only_before"], change["rows"]["changed"]) == (1, 0, 0)

    feed = pa.table(DeltaTable(str(world.table)).load_cdf(starting_version=2).read_all())
    assert feed.select(["deviceId", "_change_type"]).to_pylist() == [{"deviceId": "late", "_change_type": "insert"}]

    shown = status(pipeline)
    assert shown["problems"] == []
    assert {slice_["run"] for slice_ in shown["slices"]} == {second.id}
    result = rollback(pipeline, TEN, at(120))
    assert result["slices"] == [FIRST], "the other slice keeps its file"
    assert {(slice_["run"], slice_["changed"]) for slice_ in result["rolled_back"]} == {(first.id, True)}
    assert status(pipeline)["problems"] == []
