"""What is not supported is refused with its line and column before anything is read; nothing is silently ignored."""

import re
from collections.abc import Callable

import pytest

from recapture.errors import DefinitionError
from recapture.formats.event_hubs import CaptureInput
from recapture.query.compile import compile_query
from recapture.query.model import CompiledQuery
from tests.query.nothing import evaluate_over_nothing

TEMPLATE = "SELECT {select}\nINTO aggregates\nFROM telemetry {source}\n{where}\n{group}\n{having}"
GROUP = "GROUP BY TumblingWindow(minute, 5)"


def refused(text: str) -> str:
    """Return the first line of the error; the other two show the place."""
    with pytest.raises(DefinitionError) as refusal:
        compile_query(text, inputs={"telemetry": CaptureInput.metadata}, output_aliases=["aggregates"])
    message, line, caret = str(refusal.value).split("\n")
    place = re.match(r"query, line (\d+), column (\d+): .", message)
    assert place
    assert line == f"    {text.split(chr(10))[int(place[1]) - 1]}"
    assert caret.index("^") == int(place[2]) + 3
    return message


def require_refusal(text: str, place: str, reason: str) -> None:
    message = refused(text)
    assert message.startswith(f"query, {place}")
    assert reason in message


def query(
    select: str = "COUNT(*) AS n",
    source: str = "TIMESTAMP BY eventTime",
    where: str = "",
    group: str = GROUP,
    having: str = "",
) -> str:
    return TEMPLATE.format(select=select, source=source, where=where, group=group, having=having)


def test_the_template_itself_compiles() -> None:
    [output] = compile_query(
        query(), inputs={"telemetry": CaptureInput.metadata}, output_aliases=["aggregates"]
    ).outputs
    assert output.columns[0].name == "n"


@pytest.mark.parametrize(
    ("select", "column", "reason"),
    [
        ("COUNT(*) AS n, SUM(x) AS N", 33, "`N` names two columns"),
        ("COUNT(*) AS Slice_Start", 20, "`Slice_Start` is reserved: choose another name with AS"),
        ("deviceId, COUNT(*) AS n", 8, "`deviceId` is neither in GROUP BY nor in an aggregate"),
        ("COUNT(*) + x AS n", 19, "`x` is neither in GROUP BY nor in an aggregate"),
        ("DISTINCT x", 8, "DISTINCT is not supported"),
        ("TOP 3 COUNT(*) AS n", 12, "TOP is not supported"),
        ("COUNT(DISTINCT x, y) AS n", 23, "DISTINCT is only for COUNT(DISTINCT x), as in ASA"),
        ("SUM(DISTINCT x) AS n", 21, "DISTINCT is only for COUNT(DISTINCT x), as in ASA"),
        ("SUM(*) AS n", 12, r"SUM(*) is not supported"),
        ("COUNT(x, y) AS n", 8, "COUNT takes one argument"),
        ("COUNT(telemetry, y) AS n", 8, "COUNT takes one argument"),
        ("COUNT(DISTINCT telemetry) AS n", 23, "COUNT(DISTINCT …) of whole rows is not supported"),
        ("SUM(telemetry) AS n", 12, "`telemetry` is a name in FROM, not a column"),
        ("MIN(x, y) AS n", 8, "MIN takes one argument"),
        ("SUM('a') AS n", 12, "SUM takes bigint or float"),
        ("SUM(eventTime) AS n", 12, "SUM takes bigint or float"),
        ("SUM(COUNT(*)) AS n", 12, "COUNT is an aggregate"),
        ("SUM(x) OVER (PARTITION BY y) AS n", 8, "OVER (…) needs LIMIT DURATION"),
        ("COUNT(*) FILTER (WHERE x > 1) AS n", 8, "not supported in an expression: Filter"),
        ("MAX(System.Timestamp()) AS n", 12, "use it outside of aggregates"),
        ("STDEV(x) OVER (ORDER BY x) AS n", 8, "use the window of GROUP BY"),
        ("TopOne(x, y) OVER (ORDER BY x) AS n", 8, "TOPONE takes fewer arguments"),
        ("TopOne() AS n", 8, "write TOPONE(…) OVER (ORDER BY x DESC)"),
        ("CollectTop() OVER (ORDER BY x) AS n", 8, "CollectTop takes how many first"),
        ("CollectTop(0) OVER (ORDER BY x) AS n", 19, "1 event at least"),
        ("Collect() OVER (ORDER BY x) AS n", 8, "Collect() takes no OVER"),
        ("PERCENTILE_CONT(2) OVER (ORDER BY x) AS n", 24, "a number from 0 to 1"),
        ("PERCENTILE_CONT(0.5) AS n", 8, "write PERCENTILE_CONT(0.95) OVER (ORDER BY x)"),
        ("PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x) AS n", 8, "put ORDER BY into OVER, such as PERCENTILE_CONT("),
        ("PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY x) AS n", 8, "put ORDER BY into OVER, such as PERCENTILE_CONT("),
        ("'a' || 'b' AS n", 8, "|| is not supported: concatenate strings with + or CONCAT, and"),
        ("MEDIAN(x) AS n", 8, "write PERCENTILE_CONT(0.5) OVER (ORDER BY x)"),
        ("LAG(x) OVER (LIMIT DURATION(hour, 1)) AS n", 8, "computed for each row, before GROUP BY"),
        ("UDF.f(x) AS n", 8, "udf.f is not declared: add it to functions in the pipeline file"),
        ("GetMetadataPropertyValue(a, 'b') AS n", 33, "the first argument is the input as FROM names it: telemetry"),
        (
            "COUNT(GetMetadataPropertyValue(telemetry, 'b')) AS n",
            50,
            "EventHubsCapture blobs do not have 'b': use [EventHub]",
        ),
        ("sentiment(x) AS n", 8, "If it is a machine learning function of the job, publish its arguments"),
        ("CAST(x AS bigint) AS n", 13, "`x` is neither in GROUP BY nor in an aggregate"),
        ("COUNT(CAST(x AS int)) AS n", 19, "`int` is not a type: the types are bigint"),
        ("x > 1 AS n", 8, "a condition is not a value"),
        ("NULL AS n", 8, "NULL alone has no type here: write, for example, CAST(NULL AS float)"),
        ("NULL + NULL AS n", 8, "NULL alone has no type here: write, for example, CAST(NULL AS float)"),
        ("COUNT(DISTINCT NULL) AS n", 23, "NULL alone has no type here: write, for example, CAST(NULL AS float)"),
        ("CASE WHEN COUNT(*) > 1 THEN NULL END AS n", 18, "NULL alone has no type here: write, for example, CAST"),
        ("'a' 'b' AS n", 8, "not supported in an expression: Concat"),
        ("{fn COUNT(*)} AS n", 8, "`{` is not supported"),
        ('"x" AS n', 8, "`x` is neither in GROUP BY nor in an aggregate"),
        ('COUNT(*) + ("x") AS n', 20, "write a string in single quotes"),
        ("COUNT(site.id) AS n, COUNT([site.id]) AS m", 35, "different fields with the same name, except for case"),
        ("99999999999999999999 AS n", 8, "does not fit a bigint"),
        ("1e999 AS n", 8, "is not a bigint or a float"),
        ("0xFF AS n", 8, "not supported in an expression: HexString"),
        ("SUM(x % 2) AS n", 12, "% takes two bigints"),
        ("SUM(1.5 & 3) AS n", 12, "~ & | ^ take bigint and bit, but this is float"),
        ("SUM('a' + x) AS n", 12, "SUM takes bigint or float"),
        ("SUM(1 + 'a') AS n", 12, "+ concatenates two strings"),
        ("(SELECT 1) AS n", 16, "a query inside a query"),
    ],
)
def test_an_unsupported_select_is_refused(select: str, column: int, reason: str) -> None:
    require_refusal(query(select), f"line 1, column {column}: ", reason)


@pytest.mark.parametrize(
    ("where", "column", "reason"),
    [
        ("WHERE COUNT(*) > 1", 7, "supported only in SELECT and HAVING"),
        ("WHERE x LIKE y ESCAPE '!'", 14, "LIKE … ESCAPE takes a pattern in quotes"),
        ("WHERE x LIKE 1", 14, "LIKE compares nvarchar(max)"),
        ("WHERE x", 7, "a condition is expected"),
        ("WHERE TRUE", 7, "a condition is expected"),
        ("WHERE x = NULL", 7, "write IS NULL or IS NOT NULL"),
        ("WHERE x IN (1, NULL)", 7, "write IS NULL or IS NOT NULL"),
        ("WHERE x IN (SELECT 1)", 20, "a query inside a query"),
        ("WHERE x IN y", 12, "a field as a list"),
        ("WHERE CAST(x AS bit) > 0", 12, "compared with = and <> only"),
        ("WHERE CAST(x AS bit) BETWEEN 0 AND 1", 12, "compared with = and <> only"),
        ("WHERE x + 1 = 1 AND X = 'a'", 21, "used as nvarchar(max) here and as float elsewhere"),
        ("WHERE eventTime > 'yesterday'", 7, "is not an ISO time"),
        ("WHERE _partition = 'a'", 7, "is reserved"),
        ("WHERE _unanchored = 'a'", 7, "is reserved"),
        ("WHERE EXISTS (SELECT 1)", 22, "a query inside a query"),
        ("WHERE x <=> 1", 7, "NullSafeEQ"),
        ("WHERE @x = 1", 8, "Parameter"),
        ("JOIN other ON x = y", 6, "to join other inputs or reference data, add `other` to the pipeline file"),
        ("CROSS APPLY Explode(x) AS y", 13, "APPLY takes GetArrayElements(array)"),
        (", other", 3, "FROM takes one name; others follow with JOIN … ON DATEDIFF("),
        ("WITH (NOLOCK)", 6, "write WITH step AS (SELECT …)"),
    ],
)
def test_an_unsupported_clause_after_from_is_refused(where: str, column: int, reason: str) -> None:
    require_refusal(query(where=where), f"line 4, column {column}: ", reason)


@pytest.mark.parametrize(
    ("group", "column", "reason"),
    [
        ("GROUP BY x", 10, "GROUP BY has no window"),
        ("GROUP BY Tumbling(s, 1), Hopping(s, 2, 1)", 26, "this is the second"),
        ("GROUP BY SessionWindow(minute, 1)", 10, "lacks its maxduration: write SessionWindow"),
        ("GROUP BY SessionWindow(minute, 2, 1)", 32, "at most its maxDuration"),
        ("GROUP BY SessionWindow(minute, 1, 2) OVER (PARTITION BY x)", 57, "`x` is in PARTITION BY but not in"),
        ("GROUP BY Tumbling(s, 1) OVER (PARTITION BY x)", 10, "OVER (PARTITION BY …) belongs to SessionWindow"),
        ("GROUP BY SlidingWindow(minute, 1, 1)", 10, "SlidingWindow is written SlidingWindow(minute, 5)"),
        ("GROUP BY Tumbling(Duration(s, 1), Hop(s, 1))", 35, "Tumbling is written TumblingWindow(minute, 5)"),
        ("GROUP BY Windows()", 10, "Windows() names no window"),
        ("GROUP BY Windows(Window('a', Tumbling(s, 1)), Tumbling(s, 2))", 10, "either all windows of Windows(…)"),
        ("GROUP BY Windows(Window('a', Tumbling(s, 1)), Window('a', Tumbling(s, 2)))", 10, "must differ"),
        ("GROUP BY Windows(Window(1, Tumbling(s, 1)))", 18, "with the id in quotes"),
        ("GROUP BY Windows(x)", 18, "a window is expected here"),
        ("GROUP BY System.Timestamp(), Tumbling(s, 1), Tumbling(s, 2)", 46, "this is the second"),
        (
            "GROUP BY System.Timestamp, Tumbling(s, 1) HAVING DATEPART(hour, System.Timestamp()) = 1",
            65,
            "name it in a step of WITH",
        ),
        ("GROUP BY 1, Tumbling(s, 1)", 10, "GROUP BY takes fields and expressions of them"),
        ("GROUP BY ROLLUP(x), Tumbling(s, 1)", 17, "not supported in an expression: Rollup"),
        ("GROUP BY Tumbling(month, 1)", 19, "a window takes a unit"),
        ("GROUP BY Tumbling(1, minute)", 19, "a window takes a unit"),
        ("GROUP BY Tumbling(s)", 10, "Tumbling is written TumblingWindow(minute, 5)"),
        ("GROUP BY Hopping(s, 1)", 10, "lacks its hop: write HoppingWindow(minute, 10, 5)"),
        ("GROUP BY Tumbling(day, 8)", 24, "at most 7 days"),
        ("GROUP BY Tumbling(s, 0)", 22, "more than 0"),
        ("GROUP BY Tumbling(s, 1.5)", 22, "are integers"),
        ("GROUP BY Tumbling(s, x)", 22, "are integers"),
        ("GROUP BY Hopping(s, 2, 604801)", 24, "more than 0 and at most 7 days"),
        ("GROUP BY Hopping(s, 2, 0)", 24, "more than 0"),
        ("GROUP BY x, Tumbling(s, 1) ORDER BY x", 37, "ORDER BY is not supported"),
        ("GROUP BY Tumbling(s, 1) WHERE x = 1", 31, "the order of a query is"),
        ("GROUP BY Tumbling(s, 1) HAVING x > 1", 32, "`x` is neither in GROUP BY"),
        ("GROUP BY Tumbling(s, 1),", 24, "something is missing after the last comma"),
        ("GROUP BY Tumbling(s, 1); SELECT 1 AS a INTO aggregates", 33, "the query has no FROM"),
        (
            "GROUP BY Tumbling(s, 1); SELECT a INTO aggregates FROM telemetry TIMESTAMP BY x",
            79,
            "a different TIMESTAMP BY",
        ),
        (
            "GROUP BY Tumbling(s, 1) UNION SELECT a FROM telemetry TIMESTAMP BY eventTime",
            38,
            "UNION needs the same columns in the same order: n",
        ),
        ("GROUP BY Tumbling(s, 1) OPTION (MAXDOP 1)", 40, "OPTION is not supported"),
        ("GROUP BY Tumbling(s, 1) /* open", 25, "`/*` is never closed"),
        ("GROUP BY Tumbling(s, 1) {# jinja #}", 25, "of no known kind"),
        ("GROUP BY Tumbling(s, 1) /* a /* b */ c */", 25, "this comment is nested"),
        ("GROUP BY Tumbling(s, 1))", 24, "syntax error near `)`"),
        ("GROUP Tumbling(s, 1)", 1, "syntax error near `GROUP`"),
    ],
)
def test_an_unsupported_group_by_is_refused(group: str, column: int, reason: str) -> None:
    require_refusal(query(group=group), f"line 5, column {column}: ", reason)


@pytest.mark.parametrize(
    ("source", "column", "reason"),
    [
        ("TIMESTAMP BY DATEADD(month, 1, t)", 29, "DATEADD takes a unit from day to microsecond"),
        ("TIMESTAMP BY a + b", 29, "TIMESTAMP BY takes a field, CAST("),
        ("TIMESTAMP BY CASE k WHEN 'A' THEN a + b END", 50, "TIMESTAMP BY takes a field, CAST("),
        ("TIMESTAMP BY CASE k WHEN 1 THEN a END", 41, "in TIMESTAMP BY, write CASE field WHEN 'value'"),
        ("TIMESTAMP BY CASE WHEN k <> 'A' THEN a END", 39, "in TIMESTAMP BY, write CASE field WHEN 'value'"),
        ("TIMESTAMP BY CASE WHEN a IS NOT NULL THEN b END", 39, "in TIMESTAMP BY, write CASE field WHEN 'value'"),
        ("TIMESTAMP BY CASE PartitionId WHEN '0' THEN a END", 51, "in TIMESTAMP BY, write CASE field WHEN 'value'"),
        ("TIMESTAMP BY CASE a WHEN 'A' THEN a END", 50, "`a` is used as datetime here and as nvarchar(max)"),
        ("TIMESTAMP BY PartitionId", 29, "TIMESTAMP BY takes a field, CAST("),
        ("TIMESTAMP BY t OVER x + 1", 36, "OVER takes fields"),
        ("OVER x", 16, "OVER belongs to TIMESTAMP BY"),
        ("TIMESTAMP BY t AS other", 31, "syntax error near `AS`"),
        ("AS other TIMESTAMP BY telemetry.t", 38, "FROM calls this input `other`"),
        ("TABLESAMPLE (1)", 29, "TABLESAMPLE is not supported"),
    ],
)
def test_an_unsupported_clause_next_to_the_input_is_refused(source: str, column: int, reason: str) -> None:
    require_refusal(query(source=source), f"line 3, column {column}: ", reason)


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ("", "line 1, column 1", "there is no query"),
        ("-- nothing", "line 1, column 11", "there is no query"),
        ("SELECT", "line 1, column 1", "SELECT names no column"),
        ("SELECT a FROM", "line 1, column 10", "the query ends too early, after `FROM`"),
        ("SELECT a INTO FROM telemetry", "line 1, column 15", "not the keyword FROM: for this name write [FROM]"),
        ("SELECT a INTO b FROM Join", "line 1, column 22", "not the keyword JOIN: for this name write [Join]"),
        ("SELECT 'a", "line 1, column 8", "`'` is never closed"),
        ("SELECT [a", "line 1, column 8", "`[` is never closed"),
        ('SELECT "a', "line 1, column 8", '`"` is never closed'),
        ('SELECT "[" AS a, \'b', "line 1, column 18", "`'` is never closed"),
        ("UPDATE x SET y = 1", "line 1, column 1", "a query begins with SELECT"),
        ("EXPLAIN SELECT 1", "line 1, column 1", "a query begins with SELECT"),
        ("WITH a AS (SELECT 1 AS b) " + query(), "line 1, column 19", "the query has no FROM"),
        ("WITH a (SELECT 1 AS b) " + query(), "line 1, column 6", "write WITH step AS (SELECT …)"),
        ("WITH a AS (SELECT x FROM telemetry " + query(), "line 1, column 11", "this parenthesis is never closed"),
        ("CREATE VIEW x AS SELECT 1", "line 1, column 1", "the only CREATE that is supported is CREATE TABLE"),
        (
            query().replace("FROM telemetry", "FROM telemetri"),
            "line 3, column 6",
            "the pipeline's input is `telemetry`",
        ),
        (query().replace("INTO aggregates", "INTO other"), "line 2, column 6", "the pipeline's output is `aggregates`"),
        (query().replace("INTO aggregates", "INTO #aggregates"), "line 2, column 7", "a temporary table"),
        (query().replace("FROM telemetry", "FROM dbo.telemetry"), "line 3, column 6", "a name of several parts"),
        (query().replace("FROM telemetry", "FROM (SELECT 1 AS a) x"), "line 3, column 14", "the query has no FROM"),
        (query().replace("FROM telemetry", "FROM (telemetry)"), "line 3, column 7", "or (SELECT …) AS name"),
        (
            query(source="").replace("FROM telemetry", "FROM (SELECT a FROM telemetry) s TIMESTAMP BY a"),
            "line 3, column",
            "`s` is a step: TIMESTAMP BY belongs to the input itself",
        ),
        (
            query(source="").replace("FROM telemetry", "FROM (SELECT a INTO b FROM telemetry) s"),
            "line 3, column",
            "INTO belongs to the SELECTs after WITH, outside of FROM",
        ),
        (query(group=""), "line 1, column 8", "it needs GROUP BY with a window"),
        (query("x", group="", having="HAVING COUNT(*) > 1"), "line 6, column 8", "it needs GROUP BY with a window"),
        (query("a.x AS y", group="", having="HAVING y > 1"), "line 6, column 8", "does not know `y` of SELECT"),
        (query("*", group=""), "line 1, column 8", "* has no known columns here: run recapture infer FILE --write"),
        (
            "WITH a AS (SELECT * FROM telemetry UNION SELECT x FROM telemetry) SELECT x INTO aggregates FROM a",
            "line 1, column 19",
            "* has no known columns here: run recapture infer FILE --write",
        ),
        (query("*"), "line 1, column 8", "* cannot be used with GROUP BY"),
        (query(group=f"{GROUP} EXCEPT SELECT a FROM telemetry"), "line 1, column 8", "EXCEPT is not supported"),
    ],
)
def test_an_unsupported_query_is_refused(text: str, place: str, reason: str) -> None:
    require_refusal(text, place, reason)


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
        ("CREATE TABLE telemetry (x bigint, X float)", 35, "`X` is declared twice"),
        ("CREATE TABLE telemetry (x bigint", 1, "with its closing parenthesis"),
        (
            "CREATE TABLE telemetry (x bigint) CREATE TABLE telemetry (y bigint)",
            35,
            "`telemetry` has a CREATE TABLE already: remove one",
        ),
    ],
)
def test_an_unsupported_create_table_is_refused(declaration: str, column: int, reason: str) -> None:
    require_refusal(f"{declaration};\n{query()}", f"line 1, column {column}: ", reason)


def test_with_create_table_every_field_is_declared() -> None:
    declared = "CREATE TABLE telemetry (eventTime datetime)\n"
    assert "`x` is missing in CREATE TABLE" in refused(declared + query("SUM(x) AS n"))
    assert "`x` is missing in CREATE TABLE" in refused(declared + query(source="TIMESTAMP BY eventTime OVER x"))
    assert "TIMESTAMP BY takes a datetime" in refused("CREATE TABLE telemetry (eventTime nvarchar(max))\n" + query())


def test_with_create_table_types_that_do_not_fit_are_refused() -> None:
    declared = "CREATE TABLE telemetry (eventTime datetime, name nvarchar(max), up bit, n bigint)\n"
    assert "SUM takes bigint or float" in refused(declared + query("SUM(up) AS a"))
    assert "cannot be combined" in refused(declared + query(where="WHERE name = 1"))
    assert "cannot be combined" in refused(declared + query(where="WHERE up = 2"))
    assert "cannot be combined" in refused(declared + query(where="WHERE eventTime = n"))
    assert "cannot be combined" in refused(declared + query(where="WHERE eventTime = name"))


def test_a_key_that_is_also_a_number_has_the_declared_type() -> None:
    text = query("floor, COUNT(*) AS n", where="WHERE floor > 3", group="GROUP BY floor, Tumbling(s, 1)")
    declared = f"CREATE TABLE telemetry (eventTime datetime, floor bigint)\n{text}"
    output = (
        compile_query(declared, inputs={"telemetry": CaptureInput.metadata}, output_aliases=["aggregates"])
        .outputs[0]
        .columns
    )
    assert [column.type for column in output] == ["bigint", "bigint"]


def test_a_key_that_is_aggregated_as_a_number_is_a_measure() -> None:
    for text in (
        query("v, AVG(v) AS a", group="GROUP BY v, Tumbling(s, 1)"),
        "WITH once AS (SELECT v FROM telemetry TIMESTAMP BY t GROUP BY v, System.Timestamp()) "
        "SELECT v AS a, SUM(v) AS s INTO aggregates FROM once GROUP BY v, Tumbling(minute, 5)",
    ):
        [output] = compile_query(
            text, inputs={"telemetry": CaptureInput.metadata}, output_aliases=["aggregates"]
        ).outputs
        assert [column.type for column in output.columns] == ["float", "float"]


def test_an_error_deep_in_the_text_has_its_line_and_column() -> None:
    message = refused(query("SUM(a) AS a,\n  /* x\n */ COUNT(*) AS n,\n  SUMM(c) AS d"))
    assert message.startswith("query, line 4, column 3: there is no function SUMM: did you mean SUM?")


def test_a_query_nested_beyond_reason_is_refused_without_a_crash() -> None:
    assert "nested too deeply" in refused(query(where="WHERE " + "(" * 2000 + "x = 1" + ")" * 2000))


@pytest.mark.parametrize(
    ("write", "deepest"),
    [
        (lambda levels: "(" * levels + "x = 1" + " OR k = 'a' AND x > 1)" * levels, 245),
        (lambda levels: " + ".join(["x"] * levels) + " > 1", 490),
        (lambda levels: "NOT " * levels + "x = 1", 490),
        (lambda levels: "(" * levels + "x = 1" + ")" * levels, 490),
        (lambda levels: "ABS(" * levels + "x" + ")" * levels + " = 1", 490),
        (lambda levels: "SUBSTRING(" * levels + "k" + ", x, 1)" * levels + " = 'a'", 490),
        (lambda levels: "CASE WHEN x = 1 THEN " * levels + "x" + " ELSE 0 END" * levels + " = 1", 245),
    ],
    ids=["OR AND", "+", "NOT", "()", "ABS", "SUBSTRING", "CASE"],
)
@pytest.mark.parametrize("depth", [0, 700])
def test_whether_a_query_is_nested_too_deeply_does_not_depend_on_the_caller(
    write: Callable[[int], str], deepest: int, depth: int
) -> None:
    declared = "CREATE TABLE telemetry (x bigint, k nvarchar(max));\nSELECT x INTO aggregates FROM telemetry WHERE "

    def compiled(levels: int) -> CompiledQuery:
        inputs = {"telemetry": CaptureInput.metadata}
        return compile_query(declared + write(levels), inputs=inputs, output_aliases=["aggregates"])

    def compile_from(depth: int) -> None:
        """Compile and evaluate a deep query, and compile one that is too deep, from so many calls."""
        if depth:
            compile_from(depth - 1)
            return
        evaluate_over_nothing(compiled(deepest))
        with pytest.raises(DefinitionError, match=r"line \d+, column \d+: this is nested too deeply"):
            compiled(deepest + 20)

    compile_from(depth)


def test_a_column_whose_name_the_table_would_cut_off_is_refused() -> None:
    with pytest.raises(DefinitionError, match=r"line 1, column 13: the name of this column contains U\+0000"):
        compile_query("SELECT x AS [a\0b] INTO out FROM t", inputs={"t": CaptureInput.metadata}, output_aliases=["out"])
