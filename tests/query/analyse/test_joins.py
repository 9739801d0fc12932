"""What FROM, ON and names next to a JOIN mean, and what is refused."""

import pytest

from recapture.errors import DefinitionError
from recapture.evaluate.conditions import parts_of
from recapture.query.plan.joins import JoinedTable
from recapture.time_model.ticks import TICKS_PER_SECOND
from recapture.time_model.windows import HoppingWindow, JoinedSide, Reach
from tests.query.small_stream import compiled

SECOND = TICKS_PER_SECOND
A, B, C = (f"telemetry {name} TIMESTAMP BY t" for name in "abc")
NEAR = "DATEDIFF(second, a, b) BETWEEN 0 AND 5"


def query(joins: str, items: str = "a.id", rest: str = "", before: str = "") -> str:
    return f"{before} SELECT {items} INTO out FROM {A} {joins} {rest}"


def refused(text: str) -> str:
    with pytest.raises(DefinitionError) as error:
        compiled(text)
    return str(error.value).split("\n")[0].partition(": ")[2]


def look_backs(text: str) -> list[float]:
    """Return how far back each side is read, in seconds."""
    return [reach.look_back / SECOND for reach in compiled(text).inputs[0].reaches]


@pytest.mark.parametrize(
    ("on", "bounds"),
    [
        ("DATEDIFF(second, a, b) BETWEEN 0 AND 5", (0, 5 * SECOND)),
        ("DATEDIFF(second, A, [b]) >= -1 AND (DATEDIFF(ms, a, b) <= 2000)", (-SECOND, 2 * SECOND)),
        ("5 > DATEDIFF(second, a, b) AND 0 < DATEDIFF(second, a, b)", (1, 5 * SECOND - 1)),
        ("DATEDIFF(mi, a, b) = -(1)", (-60 * SECOND, -60 * SECOND)),
        ("DATEDIFF(wk, a, b) BETWEEN 0 AND 1", (0, 7 * 24 * 3600 * SECOND)),
        ("DATEDIFF(hour, a, b) BETWEEN 0 AND 5 AND DATEDIFF(ss, a, b) BETWEEN -5 AND 7", (0, 7 * SECOND)),
    ],
)
def test_the_same_bounds_can_be_written_in_several_ways(on: str, bounds: tuple[int, int]) -> None:
    plan = compiled(query(f"JOIN {B} ON {on}")).outputs[0].plan
    [table] = plan.steps
    assert isinstance(table, JoinedTable)
    limits = parts_of(table.joins[0].condition, 1).bounds
    lows = [limit.low for limit in limits if limit.low is not None]
    highs = [limit.high for limit in limits if limit.high is not None]
    assert (max(lows), min(highs)) == bounds


@pytest.mark.parametrize(
    "tables",
    [
        f"({A} JOIN {B} ON {NEAR} LEFT JOIN {C} ON DATEDIFF(second, b, c) = 0)",
        f"(({A} JOIN {B} ON {NEAR}) LEFT JOIN {C} ON DATEDIFF(second, b, c) = 0)",
        f"({A} JOIN {B} ON {NEAR}) LEFT JOIN {C} ON DATEDIFF(second, b, c) = 0",
    ],
)
def test_joins_from_left_to_right_may_be_in_parentheses(tables: str) -> None:
    plain = query(f"JOIN {B} ON {NEAR} LEFT JOIN {C} ON DATEDIFF(second, b, c) = 0", "a.id, c.x")
    assert compiled(f" SELECT a.id, c.x INTO out FROM {tables} ").outputs == compiled(plain).outputs


@pytest.mark.parametrize(
    ("tables", "reason"),
    [
        (f"{A} JOIN ({B} JOIN {C} ON {NEAR}) ON {NEAR}", "write ON after each JOIN: a JOIN b ON … JOIN c ON …"),
        (f"({A} JOIN {B} ON {NEAR}) AS d", "FROM takes a name, such as `telemetry`, or (SELECT …) AS name"),
        (f"(telemetry a JOIN {B} ON {NEAR}) TIMESTAMP BY t", "FROM takes a name, such as `telemetry`"),
    ],
)
def test_other_parentheses_around_joins_are_refused(tables: str, reason: str) -> None:
    assert reason in refused(f"SELECT a.id INTO out FROM {tables}")


@pytest.mark.parametrize(
    ("joins", "expected"),
    [
        (f"JOIN {B} ON {NEAR}", [5, 0]),
        (f"LEFT JOIN {B} ON {NEAR}", [5]),
        (f"LEFT JOIN {B} ON DATEDIFF(second, a, b) BETWEEN -2 AND 5", [5, 7]),
        (f"JOIN {B} ON {NEAR} JOIN {C} ON DATEDIFF(second, b, c) BETWEEN 0 AND 2", [7, 2, 0]),
    ],
)
def test_each_side_is_read_as_far_back_as_the_bounds_say(joins: str, expected: list[float]) -> None:
    """Sides with equal look-backs share a reach."""
    assert look_backs(query(joins)) == expected


def test_the_look_back_of_a_window_adds_to_that_of_a_join() -> None:
    text = query(f"JOIN {B} ON {NEAR}", "COUNT(*) AS n", "GROUP BY a.id, Hopping(second, 60, 10)")
    window = HoppingWindow(60 * SECOND, 10 * SECOND)
    assert compiled(text).inputs[0].reaches == (
        Reach(JoinedSide(5 * SECOND), window.look_back),
        Reach(JoinedSide(0), window.look_back),
    )


def test_the_look_back_of_a_join_adds_to_that_of_a_step() -> None:
    step = f"WITH s AS (SELECT id, COUNT(*) AS n FROM {A} GROUP BY id, Tumbling(minute, 1))"
    text = f"{step} SELECT a.id INTO out FROM {A} JOIN s b ON {NEAR} AND a.id = b.id"
    assert sorted(look_backs(text)) == [5, 60]
    text = f"{step} SELECT a.id INTO out FROM s a LEFT JOIN s b ON {NEAR} AND a.id = b.id"
    assert look_backs(text) == [65]


def test_a_slice_may_have_no_joined_rows() -> None:
    assert not compiled(query(f"JOIN {B} ON {NEAR}")).ends_windows_every(3600 * SECOND)


STEP = f"WITH s AS (SELECT id, x AS total FROM {A})"


@pytest.mark.parametrize(
    "text",
    [
        query(f"INNER JOIN {B} ON {NEAR}", "System.Timestamp() AS time, b.site.floor AS floor"),
        query(f"JOIN {B} ON {NEAR}", "a.id", "WHERE a.id <> b.id"),
        query(f"JOIN {B} ON {NEAR} AND a.id = b.parent"),
        f"WITH s AS (SELECT a.id, b.x FROM {A} JOIN {B} ON {NEAR})"
        " SELECT LAG(x) OVER (PARTITION BY id LIMIT DURATION(hour, 1)) AS before INTO out FROM s",
        query("JOIN s ON DATEDIFF(second, a, s) = 0", "a.id, site, s.total", before=STEP),
        query(f"JOIN {B} ON {NEAR}", "a.PartitionId, GetMetadataPropertyValue(b, '[EventHub].[Offset]') AS o"),
        query(f"JOIN {B} ON {NEAR} CROSS APPLY GetArrayElements(b.list) AS e", "e.ArrayIndex, a.id"),
        query("JOIN (SELECT id FROM telemetry TIMESTAMP BY t) AS b ON DATEDIFF(second, a, b) = 0"),
        "SELECT a.id INTO out FROM telemetry a TIMESTAMP BY t OVER id JOIN telemetry b TIMESTAMP BY t OVER b.id"
        f" ON {NEAR} AND b.ID = a.id",
        f"WITH j AS (SELECT a.*, b.x AS y FROM {A} JOIN {B} ON {NEAR}) SELECT id, y, site.floor INTO out FROM j",
        f"WITH j AS (SELECT a.id, a.* FROM {A} JOIN {B} ON {NEAR}) SELECT id, x INTO out FROM j",
        f"WITH j AS (SELECT b.* FROM {A} JOIN {B} ON {NEAR})"
        " SELECT Collect() AS rows INTO out FROM j GROUP BY Tumbling(s, 1)",
    ],
)
def test_names_and_clauses_next_to_a_join(text: str) -> None:
    assert compiled(text).outputs


def test_a_star_of_a_side_has_the_declared_columns() -> None:
    create = "CREATE TABLE telemetry (t datetime, id bigint, x float)"
    output = compiled(query(f"JOIN {B} ON {NEAR}", "b.x AS later, a.*", before=create)).outputs[0]
    assert [column.name for column in output.columns][:4] == ["later", "t", "id", "x"]
    output = compiled(query(f"JOIN {B} ON {NEAR}", "b.x, a.*", before=create)).outputs[0]
    assert [column.name for column in output.columns][:3] == ["x", "t", "id"]
