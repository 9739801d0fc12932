"""What is not supported is refused with line and column, before anything is read; nothing is silently ignored."""

import re

import pytest

from spark_jobs.errors import DefinitionError
from spark_jobs.query import compile_query

TEMPLATE = "SELECT {select}\nINTO aggregates\nFROM telemetry {source}\n{where}\n{group}\n{having}"
GROUP = "GROUP BY TumblingWindow(minute, 5)"


def refused(text: str) -> str:
    with pytest.raises(DefinitionError) as refusal:
        compile_query(text, input_alias="telemetry", output_alias="aggregates")
    message = str(refusal.value)
    assert "\n" not in message
    assert re.match(r"query, line \d+, column \d+: .", message)
    return message


def query(
    select: str = "COUNT(*) AS n",
    source: str = "TIMESTAMP BY eventTime",
    where: str = "",
    group: str = GROUP,
    having: str = "",
) -> str:
    return TEMPLATE.format(select=select, source=source, where=where, group=group, having=having)


def test_the_template_itself_compiles() -> None:
    assert compile_query(query(), input_alias="telemetry", output_alias="aggregates").output[0].name == "n"


@pytest.mark.parametrize(
    ("select", "column", "reason"),
    [
        ("*", 8, "* is not supported: name the columns"),
        ("COUNT(*)", 8, "write AS and a name"),
        ("System.Timestamp()", 8, "write AS and a name"),
        ("COUNT(*) n", 17, "write AS before the name"),
        ("n = COUNT(*)", 8, "write AS before the name"),
        ("COUNT(*) AS 'n'", 20, "write AS before the name"),
        ("COUNT(*) AS n, SUM(x) AS N", 33, "`N` names two columns"),
        ("COUNT(*) AS Slice_Start", 20, "the pipeline itself adds"),
        ("COUNT(*) AS [a b]", 20, "cannot name a column"),
        ("deviceId, COUNT(*) AS n", 8, "`deviceId` is neither in GROUP BY nor in an aggregate"),
        ("COUNT(*) + x AS n", 19, "`x` is neither in GROUP BY nor in an aggregate"),
        ("DISTINCT x", 8, "DISTINCT is not supported"),
        ("TOP 3 COUNT(*) AS n", 12, "TOP is not supported"),
        ("COUNT(DISTINCT x) AS n", 23, r"COUNT(DISTINCT …) is not supported"),
        ("SUM(*) AS n", 12, r"SUM(*) is not supported"),
        ("COUNT() AS n", 8, "COUNT takes one argument"),
        ("MIN(x, y) AS n", 15, "another argument is not supported"),
        ("SUM('a') AS n", 12, "SUM takes bigint or float"),
        ("SUM(eventTime) AS n", 12, "SUM takes bigint or float"),
        ("SUM(COUNT(*)) AS n", 12, "COUNT cannot stand in WHERE or in an aggregate"),
        ("SUM(x) OVER (PARTITION BY y) AS n", 8, "OVER (…) is not supported"),
        ("COUNT(*) FILTER (WHERE x > 1) AS n", 8, "not supported in an expression: Filter"),
        ("MAX(System.Timestamp()) AS n", 12, "it stands in SELECT and HAVING only"),
        ("STDEV(x) AS n", 8, "the function STDEV is not supported"),
        ("TopOne(x) AS n", 8, "the function TopOne is not supported"),
        ("UDF.f(x) AS n", 8, "the function UDF is not supported"),
        ("System.Window().Id AS n", 8, "the function System is not supported"),
        ("GetMetadataPropertyValue(a, 'b') AS n", 8, "the function GetMetadataPropertyValue is not supported"),
        ("CAST(x AS bigint) AS n", 13, "a cast is not supported"),
        ("x > 1 AS n", 8, "a condition is not a value"),
        ("NULL AS n", 8, "NULL alone has no type"),
        ("N'a' AS n", 8, "not supported in an expression: National"),
        ("'a' 'b' AS n", 8, "not supported in an expression: Concat"),
        ("{fn COUNT(*)} AS n", 8, "`{` is not supported"),
        ('"x" AS n', 8, "write text in single quotes"),
        ("99999999999999999999 AS n", 8, "does not fit a bigint"),
        ("1e999 AS n", 8, "is not a bigint or a float"),
        ("0xFF AS n", 8, "not supported in an expression: HexString"),
        ("SUM(x % 2) AS n", 12, "% takes two bigints"),
        ("SUM('a' + x) AS n", 12, "arithmetic takes bigint and float"),
        ("CASE WHEN COUNT(*) > 1 THEN 'a' ELSE 1 END AS n", 18, "do not go together"),
        ("(SELECT 1) AS n", 16, "a query inside a query"),
    ],
)
def test_refused_in_select(select: str, column: int, reason: str) -> None:
    message = refused(query(select))
    assert message.startswith(f"query, line 1, column {column}: ")
    assert reason in message


@pytest.mark.parametrize(
    ("where", "column", "reason"),
    [
        ("WHERE COUNT(*) > 1", 7, "use HAVING"),
        ("WHERE System.Timestamp() > '2026-01-01'", 7, "it stands in SELECT and HAVING only"),
        ("WHERE x LIKE 'a%'", 7, "LIKE is not supported"),
        ("WHERE x", 7, "a condition is expected"),
        ("WHERE TRUE", 7, "a condition is expected"),
        ("WHERE x = NULL", 7, "write IS NULL or IS NOT NULL"),
        ("WHERE x IN (1, NULL)", 7, "write IS NULL or IS NOT NULL"),
        ("WHERE x IN (SELECT 1)", 20, "a query inside a query"),
        ("WHERE x IN y", 12, "a field as a list"),
        ("WHERE x > 'a'", 7, "compared with = and <> only"),
        ("WHERE x BETWEEN 'a' AND 'b'", 7, "compared with = and <> only"),
        ("WHERE x = y", 7, "CREATE TABLE telemetry (x bigint, …)"),
        ("WHERE x = 1 AND x = 'a'", 17, "used as nvarchar(max) here and as float elsewhere"),
        ("WHERE x.y = 1 AND x = 2", 19, "`x` is a record, as `x.y` shows"),
        ("WHERE x = 1 AND X = 2", 17, "too alike"),
        ("WHERE eventTime > 'yesterday'", 7, "is not an ISO time"),
        ("WHERE eventTime > '2026-03-01T10:00:00.1234567Z'", 7, "at most 6 decimals"),
        ("WHERE PartitionId = 1", 7, "metadata that ASA adds"),
        ("WHERE _partition = 'a'", 7, "taken by the pipeline"),
        ("WHERE EXISTS (SELECT 1)", 22, "a query inside a query"),
        ("WHERE x <=> 1", 7, "NullSafeEQ"),
        ("WHERE @x = 1", 8, "Parameter"),
        ("JOIN other ON x = y", 6, "JOIN is not supported"),
        ("CROSS APPLY GetArrayElements(x) AS y", 13, "JOIN is not supported"),
        (", other", 3, "JOIN is not supported"),
        ("WITH (NOLOCK)", 1, "syntax error near `WITH`"),
        ("PARTITION BY PartitionId", 1, "PARTITION BY is not needed"),
    ],
)
def test_refused_after_from(where: str, column: int, reason: str) -> None:
    message = refused(query(where=where))
    assert message.startswith(f"query, line 4, column {column}: ")
    assert reason in message


@pytest.mark.parametrize(
    ("group", "column", "reason"),
    [
        ("GROUP BY x", 10, "GROUP BY has no window"),
        ("GROUP BY Tumbling(s, 1), Hopping(s, 2, 1)", 26, "this is the second"),
        ("GROUP BY SessionWindow(minute, 1, 2)", 10, "SessionWindow is not supported yet"),
        ("GROUP BY SlidingWindow(minute, 1)", 10, "SlidingWindow is not supported yet"),
        ("GROUP BY Windows(Window('a', Tumbling(s, 1)))", 10, "Windows is not supported yet"),
        ("GROUP BY System.Timestamp()", 10, "the snapshot window, which is not supported yet"),
        ("GROUP BY x + 1, Tumbling(s, 1)", 10, "GROUP BY takes fields and one window"),
        ("GROUP BY 1, Tumbling(s, 1)", 10, "GROUP BY takes fields and one window"),
        ("GROUP BY ROLLUP(x), Tumbling(s, 1)", 17, "GROUP BY takes fields and one window"),
        ("GROUP BY Tumbling(month, 1)", 19, "a window's unit is"),
        ("GROUP BY Tumbling(1, minute)", 19, "a window's unit is"),
        ("GROUP BY Tumbling(s)", 10, "takes unit, size"),
        ("GROUP BY Hopping(s, 1)", 10, "takes unit, size, hop"),
        ("GROUP BY Tumbling(day, 8)", 24, "at most 7 days"),
        ("GROUP BY Tumbling(s, 0)", 22, "more than 0"),
        ("GROUP BY Tumbling(s, 1.5)", 22, "whole numbers"),
        ("GROUP BY Tumbling(s, x)", 22, "whole numbers"),
        ("GROUP BY Hopping(s, 2, 3)", 24, "at most its size"),
        ("GROUP BY Hopping(s, 2, 0)", 24, "more than 0"),
        ("GROUP BY x, Tumbling(s, 1) ORDER BY x", 37, "ORDER BY is not supported"),
        ("GROUP BY Tumbling(s, 1) WHERE x = 1", 31, "the order of a query is"),
        ("GROUP BY Tumbling(s, 1) HAVING x > 1", 32, "`x` is neither in GROUP BY"),
        ("GROUP BY Tumbling(s, 1),", 24, "something is missing after the last comma"),
        ("GROUP BY Tumbling(s, 1); SELECT 1", 24, "a pipeline has one query"),
        ("GROUP BY Tumbling(s, 1) UNION SELECT 1", None, "UNION is not supported"),
        ("GROUP BY Tumbling(s, 1) OPTION (MAXDOP 1)", 40, "OPTION is not supported"),
        ("GROUP BY Tumbling(s, 1) /* open", 25, "`/*` is never closed"),
        ("GROUP BY Tumbling(s, 1) {# jinja #}", 25, "of no known kind"),
        ("GROUP BY Tumbling(s, 1) /* a /* b */ c */", 25, "this comment is nested"),
        ("GROUP BY Tumbling(s, 1))", 24, "syntax error near `)`"),
        ("GROUP Tumbling(s, 1)", 1, "syntax error near `GROUP`"),
    ],
)
def test_refused_in_group_by(group: str, column: int | None, reason: str) -> None:
    message = refused(query(group=group))
    assert reason in message
    if column is not None:
        assert message.startswith(f"query, line 5, column {column}: ")


@pytest.mark.parametrize(
    ("source", "column", "reason"),
    [
        ("TIMESTAMP BY DATEADD(minute, 1, t)", 29, "TIMESTAMP BY takes a field, not an expression"),
        ("TIMESTAMP BY EventEnqueuedUtcTime", 29, "set the input's arrival_time"),
        ("TIMESTAMP BY t OVER x + 1", 36, "OVER takes fields"),
        ("OVER x", 16, "OVER belongs to TIMESTAMP BY"),
        ("TIMESTAMP BY t AS other", 31, "syntax error near `AS`"),
        ("AS other TIMESTAMP BY telemetry.t", 38, "FROM calls the input `other`"),
        ("TIMESTAMP BY t PARTITION BY x", 31, "PARTITION BY is not needed"),
        ("PARTITION BY PartitionId TIMESTAMP BY t", 16, "PARTITION BY is not needed"),
        ("TABLESAMPLE (1)", 29, "TABLESAMPLE is not supported"),
    ],
)
def test_refused_beside_the_input(source: str, column: int, reason: str) -> None:
    message = refused(query(source=source))
    assert message.startswith(f"query, line 3, column {column}: ")
    assert reason in message


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ("", "line 1, column 1", "there is no query"),
        ("-- nothing", "line 1, column 11", "there is no query"),
        ("SELECT", "line 1, column 1", "SELECT names no column"),
        ("SELECT a FROM", "line 1, column 10", "the query ends too early, after `FROM`"),
        ("SELECT 'a", "line 1, column 8", "`'` is never closed"),
        ("SELECT [a", "line 1, column 8", "`[` is never closed"),
        ("UPDATE x SET y = 1", "line 1, column 1", "a query begins with SELECT"),
        ("EXPLAIN SELECT 1", "line 1, column 1", "a query begins with SELECT"),
        ("WITH a AS (SELECT 1 AS b) " + query(), "line 1, column 6", "WITH is not supported"),
        ("CREATE VIEW x AS SELECT 1", "line 1, column 1", "of CREATE only CREATE TABLE"),
        (
            query().replace("FROM telemetry", "FROM telemetri"),
            "line 3, column 6",
            "the pipeline's input is `telemetry`",
        ),
        (query().replace("INTO aggregates", "INTO other"), "line 2, column 6", "the pipeline's output is `aggregates`"),
        (query().replace("INTO aggregates", "INTO #aggregates"), "line 2, column 7", "a temporary table"),
        (query().replace("FROM telemetry", "FROM dbo.telemetry"), "line 3, column 6", "a name of several parts"),
        (query().replace("FROM telemetry", "FROM (SELECT 1 AS a) x"), "line 3, column", "no query and no function"),
        (query(group=""), "line 3, column", "the query has no window"),
    ],
)
def test_refused_as_a_whole(text: str, place: str, reason: str) -> None:
    message = refused(text)
    assert place in message
    assert reason in message


@pytest.mark.parametrize(
    ("declaration", "column", "reason"),
    [
        ("CREATE TABLE other (x bigint)", 14, "the pipeline's input is `telemetry`"),
        ("CREATE TABLE telemetry (x int)", 27, "the type of `x` is one of bigint, float, nvarchar(max), datetime, bit"),
        ("CREATE TABLE telemetry (x nvarchar(50))", 27, "the type of `x` is one of"),
        ("CREATE TABLE telemetry (x bigint NOT NULL)", 27, "the type of `x` is one of"),
        ("CREATE TABLE telemetry (x)", 25, "the type of `x` is one of"),
        ("CREATE TABLE telemetry ()", 25, "a field and its type are missing"),
        ("CREATE TABLE telemetry (x bigint, x float)", 35, "`x` is declared twice"),
        ("CREATE TABLE telemetry (x bigint", 1, "with its closing parenthesis"),
        ("CREATE TABLE telemetry (x bigint) CREATE TABLE telemetry (y bigint)", 35, "one CREATE TABLE is enough"),
    ],
)
def test_refused_in_create_table(declaration: str, column: int, reason: str) -> None:
    message = refused(f"{declaration};\n{query()}")
    assert message.startswith(f"query, line 1, column {column}: ")
    assert reason in message


def test_with_create_table_every_field_is_declared() -> None:
    declared = "CREATE TABLE telemetry (eventTime datetime)\n"
    assert "`x` is missing in CREATE TABLE" in refused(declared + query("SUM(x) AS n"))
    assert "`x` is missing in CREATE TABLE" in refused(declared + query(source="TIMESTAMP BY eventTime OVER x"))
    assert "TIMESTAMP BY takes a datetime" in refused("CREATE TABLE telemetry (eventTime nvarchar(max))\n" + query())


def test_with_create_table_types_that_do_not_fit_are_refused() -> None:
    declared = "CREATE TABLE telemetry (eventTime datetime, name nvarchar(max), up bit, n bigint)\n"
    assert "MIN of nvarchar(max) is not supported" in refused(declared + query("MIN(name) AS a"))
    assert "SUM takes bigint or float" in refused(declared + query("SUM(up) AS a"))
    assert "do not go together" in refused(declared + query(where="WHERE name = 1"))
    assert "do not go together" in refused(declared + query(where="WHERE up = 2"))
    assert "do not go together" in refused(declared + query(where="WHERE eventTime = n"))
    assert "do not go together" in refused(declared + query(where="WHERE eventTime = name"))


def test_a_key_that_is_also_a_number_needs_create_table() -> None:
    text = query("floor, AVG(floor) AS a", group="GROUP BY floor, Tumbling(s, 1)")
    assert "`floor` is a key and used as float here" in refused(text)
    declared = f"CREATE TABLE telemetry (eventTime datetime, floor bigint)\n{text}"
    output = compile_query(declared, input_alias="telemetry", output_alias="aggregates").output
    assert [column.type for column in output] == ["bigint", "float"]


def test_an_error_deep_in_the_text_is_placed() -> None:
    message = refused(query("SUM(a) AS a,\n  /* x\n */ COUNT(*) AS n,\n  SUMM(c) AS d"))
    assert message.startswith("query, line 4, column 3: the function SUMM is not supported")


def test_a_query_nested_beyond_reason_is_refused_and_not_a_crash() -> None:
    assert "nested too deep" in refused(query(where="WHERE " + "(" * 2000 + "x = 1" + ")" * 2000))
