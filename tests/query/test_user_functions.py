"""JavaScript functions and aggregates in queries; `tests/cases` has the rows of more queries, and what is refused."""

from dataclasses import replace

import pytest

from recapture.errors import QueryError, RunError
from recapture.model import AsaType, JavaScriptFunction
from tests.query.small_stream import at, compiled, rows

HEX = JavaScriptFunction("hex2Int", "function main(x) { return parseInt(x, 16); }", AsaType.BIGINT, (AsaType.STRING,))
STRINGIFY = JavaScriptFunction("stringify", "function main(x) { return JSON.stringify(x); }", AsaType.STRING)
ADD = JavaScriptFunction("add", "function (x, y) { return x + y; }", AsaType.FLOAT, (AsaType.FLOAT, AsaType.FLOAT))
LEVELS = JavaScriptFunction(
    "levels",
    """function main() {
        this.init = function () { this.total = 0; };
        this.accumulate = function (value, timestamp) {
            this.total += value.level;
        };
        this.computeResult = function () { return this.total; };
    }""",
    AsaType.BIGINT,
    None,
    is_aggregate=True,
)
FUNCTIONS = [HEX, STRINGIFY, ADD, LEVELS]


def test_a_query_has_the_functions_that_it_calls_in_any_letter_case() -> None:
    query = compiled("SELECT UDF.HEX2INT(h) AS n, udf.hex2Int(g) AS m INTO out FROM telemetry", functions=FUNCTIONS)
    assert query.functions == (HEX,)
    assert [column.type for column in query.outputs[0].columns] == [AsaType.BIGINT, AsaType.BIGINT]


def test_a_query_has_the_aggregates_that_it_calls_in_any_letter_case() -> None:
    text = "SELECT UDA.LEVELS(telemetry) AS n INTO out FROM telemetry GROUP BY Tumbling(s, 1)"
    query = compiled(text, functions=FUNCTIONS)
    assert query.functions == (LEVELS,)
    assert [column.type for column in query.outputs[0].columns] == [AsaType.BIGINT]


def test_a_declared_type_of_an_argument_decides_the_type_of_a_field() -> None:
    query = compiled("SELECT udf.add(x, 1) AS y INTO out FROM telemetry", functions=FUNCTIONS)
    assert [column.type for column in query.inputs[0].columns] == [AsaType.FLOAT]


TEXT, RECORD, LIST_ = (f"CAST(UPPER(t) AS {kind})" for kind in ("nvarchar(max)", "record", "array"))
NUMBER, FLOAT, TIME = (f"CAST(UPPER(t) AS {kind})" for kind in ("bigint", "float", "datetime"))
NESTED = [
    f"DATEADD(month, {NUMBER}, {TIME})",
    f"DATEDIFF(month, {TIME}, CAST(LOWER(t) AS datetime))",
    f"DATEPART(week, {TIME})",
    f"DATENAME(month, {TIME})",
    f"DATETIMEFROMPARTS({NUMBER}, {NUMBER}, {NUMBER}, {NUMBER}, {NUMBER}, {NUMBER}, {NUMBER})",
    f"ROUND({FLOAT}, 1)",
    f"POWER({NUMBER}, {FLOAT})",
    f"CHARINDEX({TEXT}, {TEXT}, {NUMBER})",
    f"CONCAT({TEXT}, {NUMBER}, {FLOAT}, {TIME})",
    f"SUBSTRING({TEXT}, {NUMBER}, {NUMBER})",
    f"STUFF({TEXT}, {NUMBER}, {NUMBER}, {TEXT})",
    f"REGEXMATCH({TEXT}, 'a+')",
    f"TRANSLATE({TEXT}, {TEXT}, {TEXT})",
    f"REPLICATE({TEXT}, {NUMBER})",
    f"JSON_PARSE({TEXT})",
    f"CAST(GetArrayElement({LIST_}, {NUMBER}) AS nvarchar(max))",
    f"CAST(GetRecordPropertyValue({RECORD}, {TEXT}) AS nvarchar(max))",
    f"CAST({RECORD}.x.y.z AS datetime)",
    f"CASE WHEN {FLOAT} > 1 THEN {NUMBER} ELSE {NUMBER} + 1 END",
]


FAILING = JavaScriptFunction("f", "function main(x) {\n  return x.y.z;\n}", AsaType.STRING, (AsaType.STRING,))


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            "SELECT udf.f(id) AS y INTO out FROM telemetry",
            "udf.f: TypeError: Cannot read properties of undefined (reading 'z') (line 2 of its script); "
            'its arguments are ("a")',
        ),
        (
            "SELECT uda.levels(CAST(r AS record)) AS l INTO out FROM telemetry"
            " GROUP BY id, UPPER(name), Tumbling(minute, 1)",
            "uda.levels: TypeError: Cannot read properties of null (reading 'level') (line 4 of its script); "
            'its arguments are (null, "2026-03-01T10:00:01.000Z"); '
            'its group is {"window end":"2026-03-01T10:01:00.000Z","id":"a","key 2":"X"}',
        ),
    ],
)
def test_an_error_of_the_script_stops_the_run_with_its_line_and_arguments(query: str, message: str) -> None:
    with pytest.raises(RunError) as error:
        rows(query, [at(1, id="a", name="x")], functions=[FAILING, LEVELS])
    assert message in str(error.value)


def test_a_script_that_cannot_run_stops_the_query() -> None:
    broken = replace(FAILING, script="function main(x) {")
    with pytest.raises(QueryError, match=r"^the query failed.*: the script of udf\.f cannot run: SyntaxError"):
        rows("SELECT udf.f(id) AS y INTO out FROM telemetry", [at(1, id="a")], functions=[broken])
