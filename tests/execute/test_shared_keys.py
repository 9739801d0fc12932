"""Which columns of the inputs all steps of a query share: rows that differ there never meet."""

import pytest

from recapture.execute.shared_keys import SharedKeys, keys_of_column, pane_columns, shared_keys
from recapture.formats.event_hubs import CaptureInput
from recapture.query.compile import compile_query
from recapture.query.model import CompiledQuery

DECLARED = "".join(
    f"CREATE TABLE {alias} (k nvarchar(max), j nvarchar(max), n bigint, x float, t datetime, list array);\n"
    for alias in ("a", "b")
)
HISTORY = "LIMIT DURATION(minute, 1)"
MATCHED = "MEASURES Last(A.k) AS k, Max(A.x) AS x AFTER MATCH SKIP TO NEXT ROW PATTERN (A+) DEFINE A AS A.n > 1) AS m"
NEAR = "DATEDIFF(second, {0}, {1}) BETWEEN 0 AND 5"


def keys(text: str, references: tuple[str, ...] = (), in_tasks: bool = True) -> SharedKeys | None:
    return shared_keys(compiled(text, references, in_tasks))


def compiled(text: str, references: tuple[str, ...] = (), in_tasks: bool = True) -> CompiledQuery:
    inputs = {alias: CaptureInput.metadata for alias in ("a", "b") if f" {alias}" in text} | dict.fromkeys(references)
    declared = "\n".join(line for line in DECLARED.splitlines() if line.split()[2] in inputs)
    return compile_query(f"{declared}\n{text}", inputs=inputs, output_aliases=["out"], in_tasks=in_tasks)


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("SELECT x INTO out FROM a WHERE n > 1", ()),
        ("SELECT k, COUNT(*) AS c INTO out FROM a GROUP BY k, Tumbling(minute, 1)", ("k",)),
        ("SELECT k, COUNT(*) AS c INTO out FROM a GROUP BY k, j, Sliding(minute, 1)", ("j", "k")),
        (
            "SELECT PartitionId, COUNT(*) AS c INTO out FROM a GROUP BY PartitionId, Tumbling(minute, 1)",
            ("@PartitionId",),
        ),
        ("SELECT COUNT(*) AS c INTO out FROM a GROUP BY Tumbling(minute, 1)", None),
        ("SELECT COUNT(*) AS c INTO out FROM a GROUP BY UPPER(k), Tumbling(minute, 1)", None),
        ("SELECT COUNT(*) AS c INTO out FROM a GROUP BY k, System.Timestamp()", ("k",)),
        (f"SELECT LAG(x) OVER (PARTITION BY k {HISTORY}) AS p INTO out FROM a", ("k",)),
        (f"SELECT LAG(x) OVER ({HISTORY}) AS p INTO out FROM a", None),
        (f"SELECT * INTO out FROM a MATCH_RECOGNIZE ({HISTORY} {MATCHED}", None),
        (f"SELECT * INTO out FROM a MATCH_RECOGNIZE ({HISTORY} PARTITION BY k, j {MATCHED}", ("j", "k")),
        (
            f"SELECT k, COUNT(*) AS c INTO out FROM a MATCH_RECOGNIZE ({HISTORY} PARTITION BY k, j {MATCHED} "
            "GROUP BY k, Tumbling(minute, 1)",
            ("k",),
        ),
        (
            f"SELECT x, COUNT(*) AS c INTO out FROM a MATCH_RECOGNIZE ({HISTORY} PARTITION BY k {MATCHED} "
            "GROUP BY x, Tumbling(minute, 1)",
            None,
        ),
        (
            f"SELECT LAG(x) OVER (PARTITION BY k, j {HISTORY}) AS p, LAG(n) OVER (PARTITION BY k {HISTORY}) AS q "
            "INTO out FROM a",
            ("k",),
        ),
        (
            f"SELECT LAG(x) OVER (PARTITION BY k {HISTORY}) AS p, LAG(n) OVER (PARTITION BY j {HISTORY}) AS q "
            "INTO out FROM a",
            None,
        ),
        (
            "SELECT k, COUNT(*) AS c INTO out FROM a GROUP BY k, SessionWindow(second, 5, 60) OVER (PARTITION BY k)",
            ("k",),
        ),
        ("SELECT k, COUNT(*) AS c INTO out FROM a GROUP BY k, SessionWindow(second, 5, 60)", None),
        (
            "SELECT k, COUNT(*) AS c INTO out FROM a GROUP BY k, j, Windows(Window('t', TumblingWindow(minute, 1)), "
            "Window('s', SessionWindow(second, 5, 60) OVER (PARTITION BY j)))",
            ("j",),
        ),
        (
            "SELECT k, e.ArrayValue AS v INTO out FROM a CROSS APPLY GetArrayElements(list) AS e",
            (),
        ),
    ],
)
def test_rows_meet_in_groups_and_in_analytic_functions(text: str, columns: tuple[str, ...] | None) -> None:
    assert keys(text) == (None if columns is None else {"input a": columns})


@pytest.mark.parametrize(
    ("step", "then", "columns"),
    [
        ("SELECT k AS d, x FROM a", "d", ("k",)),
        ("SELECT UPPER(k) AS d, x FROM a", "d", None),
        ("SELECT * FROM a", "k", ("k",)),
        ("SELECT k AS d, AVG(x) AS x FROM a GROUP BY k, j, Tumbling(minute, 1)", "d", ("k",)),
        ("SELECT MAX(CAST(k AS nvarchar(max))) AS d, AVG(x) AS x FROM a GROUP BY k, Tumbling(minute, 1)", "d", None),
        ("SELECT k AS d, AVG(x) AS x FROM a GROUP BY k, Tumbling(minute, 1)", "x", None),
        ("SELECT k AS d, x FROM a UNION SELECT k AS d, n * 2.0 AS x FROM a", "d", ("k",)),
        ("SELECT k AS d, x FROM a UNION SELECT j AS d, x FROM a", "d", None),
    ],
)
def test_keys_pass_through_steps_that_only_rename_them(step: str, then: str, columns: tuple[str, ...] | None) -> None:
    text = f"WITH s AS ({step}) SELECT {then}, COUNT(*) AS c INTO out FROM s GROUP BY {then}, Hopping(minute, 2, 1)"
    assert keys(text) == (None if columns is None else {"input a": columns})


def test_a_union_of_two_inputs_has_a_column_of_each() -> None:
    step = "SELECT k AS d FROM a UNION SELECT j AS d FROM b"
    text = f"WITH s AS ({step}) SELECT d, COUNT(*) AS c INTO out FROM s GROUP BY d, Tumbling(minute, 1)"
    assert keys(text) == {"input a": ("k",), "input b": ("j",)}


def test_a_join_connects_the_columns_that_on_sets_equal() -> None:
    on = f"a.k = b.j AND a.j = b.k AND a.n = b.n AND a.x = b.n AND {NEAR.format('a', 'b')}"
    assert keys(f"SELECT a.x INTO out FROM a JOIN b ON {on}") == {
        "input a": ("j", "k", "n"),
        "input b": ("k", "j", "n"),
    }


@pytest.mark.parametrize(
    ("on", "columns"),
    [
        ("c.k = d.k", ("k",)),
        ("c.k = d.j", None),
        ("c.k = UPPER(d.k)", None),
        ("c.x < d.x", None),
        ("c.k = d.k OR c.n = 1", None),
    ],
)
def test_an_input_joined_with_itself_needs_the_same_column(on: str, columns: tuple[str, ...] | None) -> None:
    text = f"SELECT c.x INTO out FROM a c JOIN a d ON ({on}) AND {NEAR.format('c', 'd')}"
    assert keys(text) == (None if columns is None else {"input a": columns})


@pytest.mark.parametrize(
    ("join", "key", "shares"),
    [("JOIN", "a.k", True), ("JOIN", "b.j", True), ("LEFT JOIN", "a.k", True), ("LEFT JOIN", "b.j", False)],
)
def test_only_an_inner_join_gives_the_key_to_both_sides(join: str, key: str, shares: bool) -> None:
    step = f"SELECT {key} AS d FROM a {join} b ON a.k = b.j AND {NEAR.format('a', 'b')}"
    text = f"WITH s AS ({step}) SELECT d, COUNT(*) AS c INTO out FROM s GROUP BY d, Tumbling(minute, 1)"
    assert keys(text) == ({"input a": ("k",), "input b": ("j",)} if shares else None)


def test_a_group_after_a_join_needs_a_column_of_both_sides() -> None:
    step = f"SELECT a.k AS d, a.n AS m FROM a JOIN b ON a.k = b.j AND {NEAR.format('a', 'b')}"
    text = f"WITH s AS ({step}) SELECT m, COUNT(*) AS c INTO out FROM s GROUP BY m, Tumbling(minute, 1)"
    assert keys(text) is None


def test_a_third_side_is_connected_through_the_second() -> None:
    on = f"c.k = d.k AND {NEAR.format('c', 'd')} JOIN b ON {{}} AND {NEAR.format('d', 'b')}"
    for third in ("c.k = b.j", "d.k = b.j"):
        text = f"SELECT c.x INTO out FROM a c JOIN a d ON {on.format(third)}"
        assert keys(text) == {"input a": ("k",), "input b": ("j",)}


def test_reference_data_is_not_divided() -> None:
    text = "SELECT a.x INTO out FROM a JOIN rooms r ON a.k = r.id"
    assert keys(text, ("rooms",)) == {"input a": ()}


def test_inputs_that_never_meet_have_keys_of_their_own_types() -> None:
    text = (
        "SELECT k AS k, COUNT(*) AS c INTO out FROM a GROUP BY k, Tumbling(minute, 1) "
        "UNION SELECT j AS k, SUM(n) AS c FROM b GROUP BY n, j, Tumbling(minute, 1)"
    )
    assert keys(text) == {"input a": ("k", "k"), "input b": ("j", "n")}


def test_all_outputs_share_the_keys() -> None:
    text = (
        "SELECT k, COUNT(*) AS c INTO one FROM a GROUP BY k, j, Tumbling(minute, 1) "
        "SELECT j, COUNT(*) AS c INTO two FROM a GROUP BY j, Tumbling(minute, 1)"
    )
    declared = DECLARED.splitlines()[0]
    query = compile_query(declared + text, inputs={"a": CaptureInput.metadata}, output_aliases=["one", "two"])
    assert shared_keys(query) == {"input a": ("j",)}
    assert [pane_columns(aggregation, ("j",)) for aggregation in query.inputs[0].aggregations] == [("_k0",), ("_k1",)]


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("SELECT k AS c INTO out FROM a", {"input a": "k"}),
        ("SELECT UPPER(k) AS c INTO out FROM a", None),
        ("SELECT k AS c, COUNT(*) AS n INTO out FROM a GROUP BY k, j, Tumbling(minute, 1)", {"input a": "k"}),
        ("SELECT MAX(n) AS c INTO out FROM a GROUP BY k, n, Tumbling(minute, 1)", None),
        ("SELECT k AS c, COUNT(*) AS n INTO out FROM a GROUP BY k, SessionWindow(second, 5, 60)", None),
        (f"SELECT k AS c, LAG(x) OVER (PARTITION BY k {HISTORY}) AS p INTO out FROM a", {"input a": "k"}),
        (f"SELECT j AS c, LAG(x) OVER (PARTITION BY k {HISTORY}) AS p INTO out FROM a", None),
        (f"SELECT k AS c, LAG(x) OVER ({HISTORY}) AS p INTO out FROM a", None),
        (
            f"SELECT a.k AS c INTO out FROM a JOIN b ON a.k = b.j AND {NEAR.format('a', 'b')}",
            {"input a": "k", "input b": "j"},
        ),
        (
            f"SELECT b.j AS c INTO out FROM a JOIN b ON a.k = b.j AND {NEAR.format('a', 'b')}",
            {"input a": "k", "input b": "j"},
        ),
        (f"SELECT b.j AS c INTO out FROM a LEFT JOIN b ON a.k = b.j AND {NEAR.format('a', 'b')}", None),
        (f"SELECT a.j AS c INTO out FROM a JOIN b ON a.k = b.j AND {NEAR.format('a', 'b')}", None),
        ("SELECT k AS c INTO out FROM a UNION SELECT j AS c FROM b", {"input a": "k", "input b": "j"}),
        ("SELECT k AS c INTO out FROM a UNION SELECT j AS c FROM a", None),
        ("SELECT k AS c INTO out FROM a UNION SELECT 'x' AS c FROM b", None),
        (
            "WITH s AS (SELECT k AS d, COUNT(*) AS n FROM a GROUP BY k, j, Tumbling(second, 5)) "
            "SELECT d AS c, MAX(n) AS m INTO out FROM s GROUP BY d, Tumbling(minute, 1)",
            {"input a": "k"},
        ),
    ],
)
def test_a_published_column_may_be_a_key_of_all_steps(text: str, columns: dict[str, str] | None) -> None:
    query = compiled(text, in_tasks=False)
    assert keys_of_column(query, query.outputs[0], "c") == columns


def test_the_string_of_a_token_is_a_key_as_the_token_is() -> None:
    text = "SELECT k AS c, COUNT(*) AS n INTO out FROM a GROUP BY k, Tumbling(minute, 1)"
    query = compile_query(text, inputs={"a": CaptureInput.metadata}, output_aliases=["out"], in_tasks=False)
    assert keys_of_column(query, query.outputs[0], "c") == {"input a": "k"}
