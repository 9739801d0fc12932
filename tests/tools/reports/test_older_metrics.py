"""Reports of slices that a version of Recapture ran which did not have one of the metrics."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recapture import cli
from recapture.definition.pipeline import load
from recapture.errors import RunError
from recapture.process.versions import FORMAT
from recapture.quality.metrics import PARTITION_METRICS, by_slice, combine
from recapture.run_files.computed import METRICS
from recapture.storage import Container
from recapture.table.files import read_slice_table
from recapture.time_model.metrics import COUNTS, WATERMARK, WATERMARK_DELAY, total
from recapture.tools.reports import sources
from recapture.tools.reports.document import document
from recapture.tools.reports.page import page
from tests.commands import FIRST_HOUR
from tests.draws import examples
from tests.worlds import COUNTS as QUERY
from tests.worlds import World, at, body


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """An hour that is published, with an event of nearly every verdict and a fraction of a second in its watermark."""
    world = World(tmp_path_factory.mktemp("older"))
    world.put("0", at(12), [body("a", at(9.1239)), body("a", at(2)), body("b", None), b"no JSON", body("a", at(30))])
    world.put("0", at(13), [body("b", at(8))], 20)
    world.put("0", at(90), [], 21)
    world.define(QUERY, eventsOutOfOrderMaxDelayInSeconds=1)
    assert cli.main(["backfill", str(world.file), *FIRST_HOUR, "--json"]) == 0
    return world


@pytest.fixture(scope="module")
def totals(world: World) -> dict[str, int | None]:
    """The totals of the report."""
    return dict(document(sources.of_range(load(world.file), None, None))["ledger"]["totals"])


def copied(world: World, home: Path) -> World:
    """Return a copy of the world, whose tables are its own."""
    copy = World(home / "copy")
    shutil.copytree(world.home, copy.home)
    return copy


Forget = Callable[[World, pytest.MonkeyPatch, str], None]


def metrics_file(world: World) -> Path:
    """Return the only file with the metrics of a run."""
    [path] = world.table.glob(f"_recapture/*/{METRICS.name}")
    return path


def forget_in_run_files(world: World, patch: pytest.MonkeyPatch, metric: str) -> None:
    """Leave the metric out of the run's metrics, as a version without it would have done."""
    path = metrics_file(world)
    written = json.loads(path.read_bytes())
    for row in written["content"]:
        row.pop(metric, None)
    path.write_text(json.dumps(written))


def forget_in_table(world: World, patch: pytest.MonkeyPatch, metric: str) -> None:
    """Leave the metric out of what the metrics table holds. Its files are as they were: their names tell a change."""

    def without_metric(container: Container, path: str) -> pa.Table:
        table = read_slice_table(container, path)
        assert table is not None
        return table.filter(pc.not_equal(table["metric"], metric))

    shutil.rmtree(world.table / "_recapture")
    patch.setattr(sources, "read_slice_table", without_metric)


@pytest.mark.parametrize("forget", [forget_in_run_files, forget_in_table])
@pytest.mark.parametrize("metric", PARTITION_METRICS)
def test_a_metric_that_a_version_did_not_count_is_unknown_in_the_report_and_not_0(
    world: World,
    totals: dict[str, int | None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    metric: str,
    forget: Forget,
) -> None:
    older = copied(world, tmp_path)
    forget(older, monkeypatch, metric)
    content = document(sources.of_range(load(older.file), None, None))
    assert content["ledger"]["totals"] == totals | ({metric: None} if metric in totals else {})
    html = page(content).decode()
    assert ("An en dash stands for what was not counted" in html) == (metric in COUNTS and metric in totals)


def test_counts_of_a_slice_whose_metrics_are_lost_are_unknown_and_not_0(world: World, tmp_path: Path) -> None:
    copy = copied(world, tmp_path)
    shutil.rmtree(copy.table / "_recapture")
    for path in copy.table.with_name("table_metrics").rglob("*.parquet"):
        path.unlink()
    content = document(sources.of_range(load(copy.file), None, None))
    assert content["ledger"]["totals"]["InputEvents"] is None
    assert content["ledger"]["groups"][0]["InputEvents"] is None
    assert content["verdict"]["events"] == "The events that arrived were not counted."


def test_a_total_of_counts_of_which_one_is_unknown_is_unknown() -> None:
    assert total([1, 2]) == 3
    assert total([]) == 0
    assert total([1, None]) is None


def test_slices_and_partitions_without_a_metric_are_combined(world: World) -> None:
    document = json.loads(metrics_file(world).read_bytes())
    for row in document["content"]:
        del row["DuplicateEvents"], row[WATERMARK]
    rows = METRICS.decode(json.dumps(document).encode(), "the metrics")
    assert combine(row.values for row in rows)["DuplicateEvents"] is None
    [slice_metrics] = by_slice(rows).values()
    assert slice_metrics.totals.values["DuplicateEvents"] is None
    assert slice_metrics.totals.count("InputEvents") == 6
    with pytest.raises(RunError, match="the run's metrics lack DuplicateEvents; run the slices again"):
        slice_metrics.totals.count("DuplicateEvents")


ROW = st.fixed_dictionaries(
    {"slice_start": st.just("2024-03-01T10:00:00Z"), "input": st.just("telemetry"), "partition": st.just("0")},
    optional={
        **dict.fromkeys(COUNTS, st.integers(0, 2**53)),
        **dict.fromkeys([WATERMARK, WATERMARK_DELAY], st.none() | st.floats(-1e9, 1e9)),
        "whole": st.booleans(),
        "complete": st.booleans(),
        "furthest_ahead": st.none() | st.just({"seconds": 1.5, "place": 3, "blob": "0.avro"}),
        "gaps": st.just({"missing": 2, "ranges": [[1, 2]]}),
        "numbers": st.just([{"sequence_partition": None, "ranges": [[1, 2, -1, -1]]}]),
        "keys": st.none(),
        "without_block": st.just(["0.avro"]),
        "a metric of a later version": st.integers(),
    },
)


@settings(max_examples=examples(200))
@given(ROW)
def test_metrics_of_another_version_are_read_whatever_it_wrote(row: dict[str, Any]) -> None:
    """Fields that are not known are left out; metrics that are not there are unknown, and the rest is as written."""
    document = {"format": FORMAT, "content": [row]}
    [metrics] = METRICS.decode(json.dumps(document).encode(), "the metrics")
    assert metrics.values == {name: row.get(name) for name in PARTITION_METRICS}
    assert all(type(metrics.values[name]) is int for name in COUNTS if name in row)
    [written] = METRICS.json_types((metrics,))
    assert {name: written.get(name) for name in row if name in written} == {
        name: value for name, value in row.items() if name in written
    }
    assert set(row) - set(written) <= {"a metric of a later version"}


def test_times_of_the_metrics_table_keep_their_fractions(world: World, tmp_path: Path) -> None:
    copy = copied(world, tmp_path)
    pipeline = load(copy.file)
    [from_run_files] = sources.of_range(pipeline, None, None).metrics
    shutil.rmtree(copy.table / "_recapture")
    [from_table] = sources.of_range(pipeline, None, None).metrics
    watermark = from_run_files.values[WATERMARK]
    assert watermark is not None
    assert watermark % 1 != 0
    assert {name: from_table.values[name] for name in (WATERMARK, WATERMARK_DELAY)} == {
        name: from_run_files.values[name] for name in (WATERMARK, WATERMARK_DELAY)
    }
