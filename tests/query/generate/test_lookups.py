"""JOIN with reference data: each row of the stream gets the rows that are in force at its time."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from recapture.archive.references import PinnedVersion, PlannedReference
from recapture.errors import DefinitionError, RunError
from recapture.execute.spark.references import create_view
from recapture.execute.spark.references import rows as reference_rows
from recapture.formats.event_hubs import CaptureInput
from recapture.formats.json_lines import JsonReader
from recapture.query.compile import compile_query
from recapture.query.model import CompiledQuery
from recapture.storage import open_container
from recapture.time_model.ticks import TICKS_PER_SECOND
from tests.query.small_stream import START, Row, at, published

pytestmark = pytest.mark.spark


def compiled(text: str) -> CompiledQuery:
    inputs = {"telemetry": CaptureInput.metadata, "devices": None}
    return compile_query(text, inputs=inputs, output_aliases=["out"])


def pinned(folder: Path, versions: Mapping[int, Iterable[Row]]) -> PlannedReference:
    """Write versions of `devices` that are in force from so many seconds after ten."""
    for seconds, rows in versions.items():
        folder.joinpath(f"{seconds}.json").write_text(json.dumps([*rows]))
    container = open_container(folder.as_uri())
    blobs = {blob.name: blob for blob in container.list()}
    found = [
        PinnedVersion(START + seconds * TICKS_PER_SECOND, blobs[f"{seconds}.json"]) for seconds in sorted(versions)
    ]
    return PlannedReference("devices", container.url, 0, tuple(found))


@pytest.fixture
def joined(spark: SparkSession, tmp_path: Path) -> Any:
    def run(text: str, events: Iterable[Row], versions: Mapping[int, Iterable[Row]]) -> list[Row]:
        query = compiled(text)
        reference = pinned(tmp_path, versions)
        create_view(spark, reference, query.references[0], JsonReader(), open_container(reference.container))
        [output] = published(spark, query, events)
        return output

    return run


EVENTS = [at(1, id="a", x=1), at(2, id="b", x=2), at(3, id="c", x=3), at(4, id=None, x=4)]
DEVICES = [{"id": "a", "site": "roof"}, {"id": "b", "site": "cellar"}, {"id": None, "site": "nowhere"}]
SELECT = "SELECT t.x, d.site, System.Timestamp() AS at INTO out FROM telemetry t TIMESTAMP BY at"


def test_each_event_gets_the_row_that_on_finds(joined: Any) -> None:
    assert joined(f"{SELECT} JOIN devices d ON t.id = d.id", EVENTS, {0: DEVICES}) == [
        {"x": "1", "site": "roof", "at": 1},
        {"x": "2", "site": "cellar", "at": 2},
    ]


def test_left_join_keeps_events_without_a_match(joined: Any) -> None:
    found = joined(f"{SELECT} LEFT OUTER JOIN devices AS d ON t.id = d.id", EVENTS, {0: DEVICES})
    assert [(row["x"], row["site"], row["at"]) for row in found] == [
        ("1", "roof", 1),
        ("2", "cellar", 2),
        ("3", None, 3),
        ("4", None, 4),
    ]


def test_an_event_has_one_row_for_each_match(joined: Any) -> None:
    devices = [{"id": "a", "site": site} for site in ("x", "y")]
    found = joined(f"{SELECT} JOIN devices d ON t.id = d.id AND d.site <> 'z'", EVENTS, {0: devices})
    assert [(row["x"], row["site"]) for row in found] == [("1", "x"), ("1", "y")]


def test_on_one_equals_one_gives_every_event_every_row(joined: Any) -> None:
    found = joined(f"{SELECT} JOIN devices d ON 1 = 1", EVENTS, {0: DEVICES})
    assert len(found) == 12


def test_on_takes_any_condition(joined: Any) -> None:
    rules = [{"rule": "high", "low": 2, "high": 3}, {"rule": "any", "low": 0, "high": 99}]
    text = """
        SELECT t.x, d.rule INTO out FROM telemetry t TIMESTAMP BY at
        JOIN devices d ON t.x BETWEEN d.low AND d.high
    """
    found = joined(text, EVENTS, {0: rules})
    assert [(row["x"], row["rule"]) for row in found if row["rule"] == "high"] == [("2", "high"), ("3", "high")]
    assert len(found) == 6


def test_the_version_in_force_at_the_time_of_the_event_counts(joined: Any) -> None:
    versions = {seconds: [{"id": "a", "site": f"from {seconds}"}] for seconds in (-3600, 2, 3)}
    events = [at(second, id="a", x=second) for second in (1, 2, 2.5, 3)]
    found = joined(f"{SELECT} JOIN devices d ON t.id = d.id", events, versions)
    assert [row["site"] for row in found] == ["from -3600", "from 2", "from 2", "from 3"]


def test_a_text_is_no_match_for_a_number(joined: Any) -> None:
    events = [at(1, id=1, x=1), at(2, id="1", x=2)]
    found = joined(f"{SELECT} JOIN devices d ON t.id = d.id", events, {0: [{"id": "1", "site": "text"}]})
    assert [row["x"] for row in found] == ["2"]


def test_a_window_counts_what_the_join_found(joined: Any) -> None:
    text = """
        SELECT d.site, COUNT(*) AS n, SUM(t.x) AS total INTO out FROM telemetry t TIMESTAMP BY at
        JOIN devices d ON t.id = d.id GROUP BY d.site, Tumbling(minute, 1)
    """
    devices = [{"id": "a", "site": "roof"}, {"id": "b", "site": "roof"}, {"id": "c", "site": "yard"}]
    assert joined(text, EVENTS, {0: devices}) == [
        {"site": "roof", "n": 2, "total": 3.0},
        {"site": "yard", "n": 1, "total": 3.0},
    ]


def test_the_order_of_events_with_one_time_survives_the_join(joined: Any) -> None:
    text = """
        WITH s AS (SELECT t.x, d.site FROM telemetry t TIMESTAMP BY at JOIN devices d ON t.id = d.id)
        SELECT x, LAG(x) OVER (LIMIT DURATION(hour, 1)) AS before INTO out FROM s
    """
    events = [at(1, id="a", x=x, _arrival=0) for x in (7, 3, 5)]
    found = joined(text, events, {0: DEVICES})
    assert {row["x"]: row["before"] for row in found} == {"7": None, "3": "7", "5": "3"}


def test_a_step_with_an_analytic_function_is_looked_up_in_its_order(joined: Any) -> None:
    text = """
        WITH changes AS (SELECT id, x - LAG(x) OVER (LIMIT DURATION(hour, 1)) AS change FROM telemetry TIMESTAMP BY at),
        placed AS (SELECT c.id, c.change, d.site FROM changes c JOIN devices d ON c.id = d.id)
        SELECT site, change, LAG(id) OVER (LIMIT DURATION(hour, 1)) AS previous INTO out FROM placed
    """
    events = [at(1, id="b", x=1.0), at(1, id="a", x=4.0), at(1, id="b", x=9.0), at(1, id="c", x=16.0)]
    found = joined(text, events, {0: DEVICES})
    assert sorted((row["change"] or 0, row["site"], row["previous"]) for row in found) == [
        (0, "cellar", None),
        (3.0, "roof", "b"),
        (5.0, "cellar", "a"),
    ]


def test_an_analytic_function_sees_the_events_before_the_join(joined: Any) -> None:
    """The event `c` has no match, and two rows match `b`; the look-up changes nothing about the history."""
    over = "OVER (LIMIT DURATION(second, 2))"
    text = f"""
        SELECT t.x, d.site, LAG(t.x) {over} AS before, COUNT(*) {over} AS n, LAST(id, 'none') {over} AS last,
            ISFIRST(second, 10) AS first, LAG(*) OVER (LIMIT DURATION(second, 1)) AS event
        INTO out FROM telemetry t TIMESTAMP BY at JOIN devices d ON t.id = d.key
    """
    events = [at(1, id="a", x=1), at(2, id="c", x=2), at(3, id="b", x=3), at(5, id="a", x=4), at(5.5, id="a", x=5)]
    devices = [{"key": "a", "site": "x"}, {"key": "b", "site": "y"}, {"key": "b", "site": "z"}]
    text = f"CREATE TABLE devices (key nvarchar(max), site nvarchar(max))\n{text}"
    found = joined(text, events, {0: devices})
    assert [tuple(row.values()) for row in sorted(found, key=lambda row: (row["x"], row["site"]))] == [
        ("1", "x", None, 1, "a", 1, None),
        ("3", "y", "2", 2, "b", 0, None),
        ("3", "z", "2", 2, "b", 0, None),
        ("4", "x", None, 1, "a", 0, None),
        ("5", "x", "4", 2, "a", 0, {"id": "a", "x": 4}),
    ]


@pytest.mark.parametrize(
    ("clauses", "expected"),
    [
        ("WHERE LAG(t.id) OVER (LIMIT DURATION(hour, 1)) IS NULL", [("a", "roof")]),
        ("AND LAG(t.id) OVER (LIMIT DURATION(hour, 1)) = 'a'", [("b", "cellar")]),
        ("AND LAG(t.id) OVER (LIMIT DURATION(hour, 1)) = t.id", []),
    ],
)
def test_an_analytic_function_may_be_in_where_and_in_on(
    joined: Any, clauses: str, expected: list[tuple[str, str]]
) -> None:
    text = f"SELECT t.id, d.site INTO out FROM telemetry t TIMESTAMP BY at JOIN devices d ON t.id = d.id {clauses}"
    assert [(row["id"], row["site"]) for row in joined(text, EVENTS, {0: DEVICES})] == expected


def test_a_window_of_looked_up_rows_takes_an_analytic_function(joined: Any) -> None:
    text = """
        SELECT d.site, SUM(t.x - LAG(t.x, 1, 0) OVER (LIMIT DURATION(hour, 1))) AS s INTO out
        FROM telemetry t TIMESTAMP BY at LEFT JOIN devices d ON t.id = d.id GROUP BY d.site, Tumbling(minute, 1)
    """
    events = [at(1, id="a", x=1), at(2, id="b", x=5), at(3, id="a", x=7)]
    assert joined(text, events, {0: DEVICES}) == [{"site": "cellar", "s": 4.0}, {"site": "roof", "s": 3.0}]


@pytest.mark.parametrize(
    ("step", "joins"),
    [
        ("SELECT x, id, LAG(x) OVER (LIMIT DURATION(hour, 1)) AS before FROM telemetry TIMESTAMP BY at", "s.before"),
        ("SELECT x, id FROM telemetry TIMESTAMP BY at", "LAG(s.x) OVER (LIMIT DURATION(hour, 1))"),
    ],
)
def test_the_order_of_events_survives_an_analytic_function_and_a_join(joined: Any, step: str, joins: str) -> None:
    text = f"""
        WITH s AS ({step}), j AS (SELECT s.x, {joins} AS before FROM s JOIN devices d ON s.id = d.id)
        SELECT x, before, LAG(before) OVER (LIMIT DURATION(hour, 1)) AS twice INTO out FROM j
    """
    events = [at(1, id="a", x=x, _arrival=0) for x in (7, 3, 5, 4)]
    found = joined(text, events, {0: DEVICES})
    assert {row["x"]: (row["before"], row["twice"]) for row in found} == {
        "7": (None, None),
        "3": ("7", None),
        "5": ("3", "7"),
        "4": ("5", "3"),
    }


def test_an_analytic_function_next_to_a_look_up_looks_back_by_its_length() -> None:
    lag = "LAG(t.x) OVER (LIMIT DURATION(minute, 5))"
    look_up = f"SELECT {lag} AS v INTO out FROM telemetry t JOIN devices d ON t.id = d.id"
    assert compiled(look_up).inputs[0].look_back == 300 * TICKS_PER_SECOND
    window = f"SELECT SUM({lag}) AS v INTO out FROM telemetry t JOIN devices d ON t.id = d.id GROUP BY Sliding(hour, 1)"
    assert compiled(window).inputs[0].look_back == 3900 * TICKS_PER_SECOND


def test_streams_and_reference_data_join_in_any_number(joined: Any) -> None:
    text = """
        SELECT a.x, b.x AS later, d.site, e.site AS other INTO out FROM telemetry a TIMESTAMP BY at
        JOIN devices d ON a.id = d.id
        JOIN telemetry b TIMESTAMP BY at ON DATEDIFF(second, a, b) = 1
        LEFT JOIN devices e ON b.id = e.id
    """
    assert joined(text, EVENTS, {0: DEVICES}) == [
        {"x": "1", "later": "2", "site": "roof", "other": "cellar"},
        {"x": "2", "later": "3", "site": "cellar", "other": None},
    ]


def test_declared_types_decide_how_values_are_computed(joined: Any) -> None:
    text = f"""
        CREATE TABLE devices (id nvarchar(max), limit float)
        {SELECT.replace("d.site", "d.limit / 2 AS half")} JOIN devices d ON t.id = d.id
    """
    assert joined(text, EVENTS[:1], {0: [{"ID": "a", "Limit": 5}]}) == [{"x": "1", "half": 2.5, "at": 1}]


def test_all_columns_of_the_stream_can_be_selected_by_name(joined: Any) -> None:
    text = """
        CREATE TABLE telemetry (id nvarchar(max), x bigint)
        CREATE TABLE devices (id nvarchar(max), site nvarchar(max))
        SELECT t.x, d.* INTO out FROM telemetry t TIMESTAMP BY EventEnqueuedUtcTime JOIN devices d ON t.id = d.id
    """
    assert joined(text, EVENTS[:1], {0: DEVICES}) == [{"x": 1, "id": "a", "site": "roof"}]


def test_a_damaged_version_stops_the_run(tmp_path: Path) -> None:
    query = compiled(f"{SELECT} JOIN devices d ON t.id = d.id")
    reference = pinned(tmp_path, {0: []})
    tmp_path.joinpath("0.json").write_bytes(b"")
    [blob] = open_container(tmp_path.as_uri()).list()
    reference = replace(reference, versions=(PinnedVersion(0, blob),))
    with pytest.raises(RunError, match=r"reference data devices: 0\.json cannot be read: it has no bytes; restore it"):
        reference_rows(reference, query.references[0], JsonReader(), open_container(reference.container))


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"id": "1", "site": "y"}, r"id is not a bigint but nvarchar\(max\)"),
        ({"ID": 1, "Site": 5}, r"site is not an nvarchar\(max\) but bigint"),
        ({"id": 1}, "site is missing"),
    ],
)
def test_a_malformed_row_stops_the_run(tmp_path: Path, row: dict[str, Any], reason: str) -> None:
    query = compiled(f"CREATE TABLE devices (id bigint, site nvarchar(max)) {SELECT} JOIN devices d ON t.id = d.id")
    reference = pinned(tmp_path, {0: [{"id": 1, "site": "x"}, row]})
    message = rf"reference data devices: 1 row of 0.json cannot be used; the first is row 2: {reason}; correct"
    with pytest.raises(RunError, match=message):
        reference_rows(reference, query.references[0], JsonReader(), open_container(reference.container))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT id INTO out FROM devices", "`devices` is reference data: write FROM with an input, then JOIN devices"),
        (
            "SELECT t.x INTO out FROM telemetry t JOIN devices d TIMESTAMP BY at ON t.id = d.id",
            "`devices` is reference data, which has no TIMESTAMP BY: leave it out",
        ),
        (
            "SELECT t.x INTO out FROM telemetry t JOIN devices d ON t.id = d.id AND DATEDIFF(minute, t, d) = 0",
            "`d` is reference data, which has no time: in ON, DATEDIFF takes sides with events",
        ),
        (
            "SELECT GetMetadataPropertyValue(d, '[User].[a]') AS x INTO out FROM telemetry t JOIN devices d ON 1 = 1",
            "reference data has no metadata: name the input whose events have it",
        ),
        (
            "SELECT LAG(d.x) OVER (LIMIT DURATION(hour, 1)) AS x INTO out FROM telemetry t JOIN devices d ON t.y = d.y",
            "an analytic function sees the rows before JOIN, without `d`: call it in a step",
        ),
        (
            "CREATE TABLE telemetry (y float) "
            "SELECT LAG(x) OVER (LIMIT DURATION(hour, 1)) AS x INTO out FROM telemetry t JOIN devices d ON t.y = d.y",
            "an analytic function sees the rows before JOIN, without `d`: call it in a step",
        ),
        (
            "SELECT LAG(x) OVER (LIMIT DURATION(hour, 1)) AS x INTO out FROM telemetry t JOIN devices d ON t.y = d.y",
            "`x` may be a column of several sides of the JOIN: write t.x or d.x",
        ),
        (
            "SELECT LAG(e.ArrayValue) OVER (LIMIT DURATION(hour, 1)) AS x INTO out "
            "FROM telemetry t JOIN devices d ON t.y = d.y CROSS APPLY GetArrayElements(t.list) AS e",
            "an analytic function sees the rows before APPLY, without `e`: APPLY in a step",
        ),
        (
            "SELECT LAG(t.x) OVER (LIMIT DURATION(hour, 1)) AS x INTO out FROM telemetry t JOIN devices d ON t.y = d.y "
            "JOIN telemetry u ON DATEDIFF(minute, t, u) = 0",
            "an analytic function next to a JOIN of streams is not supported: call it in a step",
        ),
        ("SELECT x INTO out FROM telemetry", "no SELECT reads `devices`, which is an input of the pipeline"),
        ("SELECT t.x INTO out FROM telemetry t RIGHT JOIN devices d ON 1 = 1", "ASA has no RIGHT JOIN"),
        ("SELECT t.x INTO out FROM telemetry t JOIN devices d", "FROM takes one name"),
    ],
)
def test_what_reference_data_cannot_do_is_refused(text: str, reason: str) -> None:
    with pytest.raises(DefinitionError) as error:
        compiled(text)
    assert reason in str(error.value)


IDS = st.sampled_from(["a", "b", None])


@settings(max_examples=6)
@given(
    events=st.lists(st.tuples(st.integers(1, 20), IDS), max_size=8),
    versions=st.dictionaries(st.integers(-5, 18), st.lists(IDS, max_size=3), max_size=3),
    outer=st.booleans(),
)
def test_rows_are_those_of_a_nested_loop(
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    events: list[tuple[int, str | None]],
    versions: dict[int, list[str | None]],
    outer: bool,
) -> None:
    versions = {-10: ["a"], **versions}
    tables = {time: [{"id": id_, "n": n} for n, id_ in enumerate(ids)] for time, ids in versions.items()}
    query = compiled(
        f"SELECT t.id, d.n, System.Timestamp() AS at INTO out FROM telemetry t TIMESTAMP BY at "
        f"{'LEFT ' if outer else ''}JOIN devices d ON t.id = d.id"
    )
    reference = pinned(tmp_path_factory.mktemp("reference"), tables)
    create_view(spark, reference, query.references[0], JsonReader(), open_container(reference.container))
    [found] = published(spark, query, [at(second, id=id_) for second, id_ in events])
    expected: list[tuple[str | None, str | None, int]] = []
    for second, id_ in events:
        in_force = tables[max(time for time in versions if time <= second)]
        matches = [row["n"] for row in in_force if id_ is not None and row["id"] == id_]
        expected += [(id_, str(n), second) for n in matches] or ([(id_, None, second)] if outer else [])
    assert sorted([(row["id"], row["n"], row["at"]) for row in found], key=str) == sorted(expected, key=str)


def test_a_place_finds_its_fence(joined: Any) -> None:
    text = """
        SELECT t.x, d.site INTO out FROM telemetry t TIMESTAMP BY at
        JOIN devices d ON ST_WITHIN(t.place, d.fence) = 1
    """
    places = [(1, 1), (6, 1), (5, 1), (20, 20)]
    events = [
        at(number, x=number, place={"type": "Point", "coordinates": place}) for number, place in enumerate(places, 1)
    ]
    fences = [
        {"site": "west", "fence": "POLYGON((0 0,5 0,5 5,0 5,0 0))"},
        {"site": "east", "fence": "POLYGON((5 0,10 0,10 5,5 5,5 0))"},
    ]
    assert joined(text, events, {0: fences}) == [{"x": "1", "site": "west"}, {"x": "2", "site": "east"}]
