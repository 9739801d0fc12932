"""`recapture diff`: what differs between what is published and other rows."""

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from recapture.definition.pipeline import Pipeline, load
from recapture.execute.processes.compute import compute
from recapture.execute.processes.workers import Workers
from recapture.run.slices import slices_of
from recapture.run_files.computed import Computed
from recapture.run_files.planned import PlannedRun
from recapture.tools.diff.document import difference, document, published_entries, sampled, staged_by
from recapture.tools.diff.page import page
from recapture.tools.diff.tried import Tried, tried_pipeline, try_slices
from tests import stages
from tests.commands import FIRST_HOUR, Command
from tests.tools.diff.naive import naive_difference
from tests.worlds import COUNTS, TELEMETRY, TEN, World, at, backfill, body, contents, published, staged, steady

RANGE = ("--from", "2024-03-01T10:00:00Z", "--to", "2024-03-01T12:00:00Z")
KINDS = {"windowEnd": str, "deviceId": str, "events": int, "avgTemperature": float}
KEY = ("windowEnd", "deviceId")
OTHER_QUERIES = {
    "a predicate": COUNTS.replace("GROUP BY", "WHERE temperature > 20.25 GROUP BY"),
    "a predicate on groups": COUNTS + " HAVING COUNT(*) > 5",
    "a constant": COUNTS.replace("AVG(temperature)", "AVG(temperature) + 0.5"),
    "a column": COUNTS.replace("AVG(temperature)", "MAX(temperature)"),
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, processes: Workers) -> World:
    """Two published hours of two partitions."""
    world = steady(tmp_path_factory.mktemp("world"))
    backfill(processes, world.define(), TEN, at(120))
    return world


def computing(processes: Workers, scratch: Path) -> Callable[[PlannedRun], Computed]:
    return partial(compute, processes, scratch=scratch)


def tried(world: World, processes: Workers, folder: Path, changes: Tried) -> dict[str, Any]:
    """Return the document of what is tried in both hours."""
    pipeline = load(world.file)
    slices = slices_of(pipeline, TEN, at(120))
    entries = published_entries(pipeline, slices)
    other = try_slices(tried_pipeline(pipeline, changes, folder / "tried"), slices, computing(processes, folder))
    return document(pipeline, slices, len(slices), changes.settings, difference(pipeline, entries, other), [])


def rows_of(world: World, processes: Workers, home: Path, **settings: Any) -> list[dict[str, Any]]:
    """Return the rows that a pipeline with these settings computes from the same archive."""
    other: Pipeline = World(home).define(inputs=[TELEMETRY | {"container": str(world.capture)}], **settings)
    rows: list[dict[str, Any]] = stages.staged_rows(
        staged(processes, other, TEN, at(120)), other.outputs[0]
    ).to_pylist()
    return rows


def by_slice(rows: list[dict[str, Any]]) -> dict[Any, list[dict[str, Any]]]:
    slices: dict[Any, list[dict[str, Any]]] = {}
    for row in rows:
        values = {name: value for name, value in row.items() if name != "slice_start"}
        slices.setdefault(row["slice_start"], []).append(values)
    return slices


def require_equal(output: dict[str, Any], before: list[dict[str, Any]], after: list[dict[str, Any]]) -> None:
    """Require that the document of an output says what a comparison of the rows one by one says."""
    counts = ("changed", "only_before", "only_after")
    old, new = by_slice(before), by_slice(after)
    expected = {
        start: naive_difference(old.get(start, []), new.get(start, []), KINDS, KEY) for start in sorted({*old, *new})
    }
    differing = {start: found for start, found in expected.items() if any(found[name] for name in counts)}
    assert [[row[name] for name in counts] for row in output["by_slice"]] == [
        [found[name] for name in counts] for found in differing.values()
    ]
    for name in counts:
        assert output["rows"][name] == sum(found[name] for found in expected.values())
    assert (output["rows"]["before"], output["rows"]["after"]) == (len(before), len(after))
    for number, column in enumerate(output["columns"]):
        parts = [found["columns"][number] for found in differing.values()]
        assert column["name"] == parts[0]["name"]
        assert column["changed"] == sum(part["changed"] for part in parts)
        largest = max((part["largest_difference"] or 0 for part in parts), default=0)
        assert (column["largest_difference"] or 0) == pytest.approx(largest)
        for side in ("sum_before", "sum_after"):
            assert column[side] == pytest.approx(sum(part[side] for part in parts))
        weighted = sum((part["mean_difference"] or 0) * part["changed"] for part in parts)
        assert (column["mean_difference"] or 0) * column["changed"] == pytest.approx(weighted)


@pytest.mark.parametrize("change", OTHER_QUERIES)
def test_another_query_differs_as_a_comparison_of_the_rows_one_by_one(
    world: World, processes: Workers, tmp_path: Path, change: str
) -> None:
    query = tmp_path / "query.asaql"
    query.write_text(OTHER_QUERIES[change])
    files = contents(world.table)
    result = tried(world, processes, tmp_path, Tried(query))
    (output,) = result["outputs"]
    require_equal(output, published(world.table), rows_of(world, processes, tmp_path, query=OTHER_QUERIES[change]))
    assert (result["equal"], output["key"]) == (False, [*KEY])
    assert contents(world.table) == files, "nothing is published"


def test_other_tolerances_differ_as_a_comparison_of_the_rows_one_by_one(
    world: World, processes: Workers, tmp_path: Path
) -> None:
    (output,) = tried(world, processes, tmp_path, Tried(late_seconds=60, policy="Drop"))["outputs"]
    settings = {"eventsLateArrivalMaxDelayInSeconds": 60, "eventsOutOfOrderPolicy": "Drop"}
    require_equal(output, published(world.table), rows_of(world, processes, tmp_path, **settings))
    assert output["rows"]["changed"] > 0


def test_a_new_column_is_a_difference_though_no_row_differs(world: World, processes: Workers, tmp_path: Path) -> None:
    query = tmp_path / "query.asaql"
    query.write_text(COUNTS.replace("AVG(temperature)", "COUNT(*) * 1.0 AS share, AVG(temperature)"))
    result = tried(world, processes, tmp_path, Tried(query))
    (output,) = result["outputs"]
    assert output["types"] == [{"name": "share", "before": None, "after": "float", "compared": False, "slices": 2}]
    assert (output["rows"]["changed"], output["rows"]["only_after"], result["exit_code"]) == (0, 0, 4)


def test_a_staged_run_is_compared_before_it_is_published(tmp_path: Path, processes: Workers) -> None:
    world = steady(tmp_path, hours=2, partitions=1)
    pipeline = world.define()
    backfill(processes, pipeline, TEN, at(60))
    before = published(world.table)
    world.put("0", at(20), [body("late", at(18))], 1000, opened=at(14))
    run = staged(processes, pipeline, TEN, at(120))
    slices = slices_of(pipeline, TEN, at(180))
    outputs = difference(pipeline, published_entries(pipeline, slices), staged_by(pipeline, run.id))
    (output,) = outputs
    assert output["slices"] == {"equal": 0, "different": 1, "new": 1, "absent": 1, "missing": 0, "unreadable": 0}
    (row,) = output["examples"]
    assert (row["before"], dict(zip(output["example_columns"], row["after"], strict=True))["deviceId"]) == (
        None,
        "late",
    )
    assert published(world.table) == before


def test_the_command_tries_a_query_and_leaves_nothing_behind(
    world: World, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    files, html = contents(world.home), tmp_path / "difference.html"
    query = tmp_path / "query.asaql"
    query.write_text(OTHER_QUERIES["a constant"])
    options = ("--query", query, "--master", "local[1]", "--sample", 1, "--out", html)
    result = command.json("diff", world.file, *RANGE, *options, code=4)
    assert (result["slices"], result["of_slices"], result["after"]) == (1, 2, {"query": str(query)})
    assert contents(world.home) == files
    assert [path.name for path in temporary.iterdir() if path.name.startswith("recapture-diff")] == []
    assert "a sample of 1 of 2 slices" in html.read_text()


def test_equal_rows_give_exit_code_0(world: World, command: Command) -> None:
    run = published_run(world)
    printed = command.text("diff", world.file, "--against", run)
    assert "Nothing differs in 2 slices." in printed


def published_run(world: World) -> str:
    pipeline = load(world.file)
    (run,) = {entry.run for entry in published_entries(pipeline, slices_of(pipeline, TEN, at(120))).values()}
    assert run is not None
    return run


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "say what to compare with: a run (--against), another query (--query), or other tolerances"),
        (("--late", "60", "--against", "x"), "--against compares with a run: leave out --query"),
        (("--late", "-2"), "eventsLateArrivalMaxDelayInSeconds: Input should be greater than or equal to -1"),
        (("--against", "x"), "'x' is not the id of a run: give one such as 20260301T100000Z-"),
        (("--query", "/nowhere.asaql"), "/nowhere.asaql cannot be read (No such file or directory)"),
        (("--late", "60", "--sample", "0"), "--sample 0: compare at least one slice"),
        (("--late", "60", "--master", "spark://host:7077"), "what is tried is computed on this machine: use local[N]"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    world: World, command: Command, options: tuple[str, ...], message: str
) -> None:
    assert message in command.error("diff", world.file, *FIRST_HOUR, *options)


def test_a_query_that_does_not_compile_names_its_file(world: World, command: Command, tmp_path: Path) -> None:
    query = tmp_path / "query.asaql"
    query.write_text(COUNTS.replace("COUNT(*)", "CONT(*)"))
    _, err = command.run("diff", world.file, *FIRST_HOUR, "--query", query, code=2)
    assert f"recapture: {query}: query, line 1" in err


def test_a_range_without_publications_is_refused(world: World, command: Command) -> None:
    options = ("--from", "2024-03-02T10:00:00Z", "--to", "2024-03-02T12:00:00Z", "--late", "60")
    assert "nothing is published from 2024-03-02T10:00:00Z" in command.error("diff", world.file, *options, code=1)


def test_a_sample_has_a_slice_of_each_part_of_the_range_and_other_hours_of_the_day(world: World) -> None:
    slices = slices_of(load(world.file), TEN, at(60 * 24 * 30))
    sample = sampled(slices, 30)
    places = [slices.index(slice_) for slice_ in sample]
    assert all(24 * number <= place < 24 * (number + 1) for number, place in enumerate(places))
    assert len({place % 24 for place in places}) > 12
    assert sampled(slices, 1000) == slices


def test_names_on_the_page_are_escaped(world: World, processes: Workers, tmp_path: Path) -> None:
    query = tmp_path / "<query>.asaql"
    query.write_text(OTHER_QUERIES["a constant"])
    html = page(tried(world, processes, tmp_path, Tried(query))).decode()
    assert "&lt;query&gt;.asaql" in html
    assert "<query>" not in html
