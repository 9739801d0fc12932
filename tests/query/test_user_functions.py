"""JavaScript functions in queries: what a call means, and where it can be."""

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from recapture.errors import DefinitionError
from recapture.execute.spark.functions import register
from recapture.model import AsaType, JavaScriptFunction
from recapture.time_model.ticks import UNIX_EPOCH
from tests.query.small_stream import at, compiled, rows

HEX = JavaScriptFunction("hex2Int", "function main(x) { return parseInt(x, 16); }", AsaType.BIGINT, (AsaType.STRING,))
PARSE = JavaScriptFunction("parse", "function main(x) { return JSON.parse(x); }", AsaType.RECORD, (AsaType.STRING,))
STRINGIFY = JavaScriptFunction("stringify", "function main(x) { return JSON.stringify(x); }", AsaType.STRING)
ADD = JavaScriptFunction("add", "function (x, y) { return x + y; }", AsaType.FLOAT, (AsaType.FLOAT, AsaType.FLOAT))
LIST = JavaScriptFunction("split", "function main(x) { return x.split(' '); }", AsaType.ARRAY, (AsaType.STRING,))
FIVE = JavaScriptFunction("five", "function main() { return 5; }", AsaType.BIGINT, ())
LATER = JavaScriptFunction(
    "later", "function main(x) { return new Date(x.getTime() + 1500); }", AsaType.DATETIME, (AsaType.DATETIME,)
)
FUNCTIONS = [HEX, PARSE, STRINGIFY, ADD, LIST, FIVE, LATER]


def refusal(text: str) -> str:
    with pytest.raises(DefinitionError) as error:
        compiled(text, functions=FUNCTIONS)
    return str(error.value).split("\n")[0].partition(": ")[2]


def test_a_query_has_the_functions_that_it_calls_in_any_letter_case() -> None:
    query = compiled("SELECT UDF.HEX2INT(h) AS n, udf.hex2Int(g) AS m INTO out FROM telemetry", functions=FUNCTIONS)
    assert query.functions == (HEX,)
    assert [column.type for column in query.outputs[0].columns] == [AsaType.BIGINT, AsaType.BIGINT]


def test_a_declared_type_of_an_argument_decides_the_type_of_a_field() -> None:
    query = compiled("SELECT udf.add(x, 1) AS y INTO out FROM telemetry", functions=FUNCTIONS)
    assert [column.type for column in query.inputs[0].columns] == [AsaType.FLOAT]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "SELECT udf.clean(x) AS y INTO out FROM telemetry",
            "udf.clean is not declared: add it to functions in the pipeline file, with its script and output_type. "
            "If it is not JavaScript, write it as an expression, or compute it after the backfill",
        ),
        (
            "SELECT uda.twa(x) AS y INTO out FROM telemetry GROUP BY Tumbling(s, 1)",
            "uda.twa is not declared: add it to functions in the pipeline file, with kind: aggregate, its script and "
            "output_type",
        ),
        (
            "SELECT udf.hex2Int(x, y) AS y INTO out FROM telemetry",
            "udf.hex2Int has 1 argument_types, but this has 2",
        ),
        (
            "WITH a AS (SELECT x FROM telemetry UNION SELECT y AS x FROM telemetry)"
            " SELECT udf.stringify(x) AS y INTO out FROM a",
            "the type of this is not known, and JavaScript distinguishes strings from numbers: CAST it, or declare "
            "functions.stringify.argument_types in the pipeline file",
        ),
        (
            "SELECT udf.stringify(GetArrayElement(list, 0)) AS y INTO out FROM telemetry",
            "the type of this is not known, and JavaScript distinguishes strings from numbers: CAST it, or declare "
            "functions.stringify.argument_types in the pipeline file",
        ),
        (
            "SELECT udf.hex2Int(5) AS y INTO out FROM telemetry",
            "udf.hex2Int takes nvarchar(max) here, but this is bigint",
        ),
        (
            "SELECT udf.hex2Int(telemetry) AS y INTO out FROM telemetry",
            "udf.hex2Int takes nvarchar(max) here, but this is a record: the whole row",
        ),
        (
            "WITH a AS (SELECT * FROM telemetry) SELECT udf.stringify(a) AS y INTO out FROM a",
            "the columns of `a` are not known: name them there instead of *",
        ),
        (
            "SELECT udf.stringify(telemetry) AS y INTO out FROM telemetry CROSS APPLY GetArrayElements(list) AS e",
            "next to APPLY, a row cannot be an argument: name its columns",
        ),
        (
            "SELECT udf.hex2Int(h) INTO out FROM telemetry",
            "this column has no name: write AS and a name after it",
        ),
        (
            "SELECT h INTO out FROM telemetry WHERE udf.hex2Int(h)",
            "a condition is expected, such as x > 1, at `udf`",
        ),
        (
            "SELECT dbo.clean(h) AS n INTO out FROM telemetry",
            "there is no function dbo.clean: a JavaScript function is called as udf.name(…)",
        ),
    ],
)
def test_a_call_that_cannot_be_compiled_says_what_to_do(text: str, message: str) -> None:
    assert refusal(text) == message


def test_a_function_is_a_scalar_in_select_and_where(spark: SparkSession) -> None:
    text = (
        "SELECT udf.hex2Int(h) AS n, udf.hex2Int(h) + udf.five() AS m INTO out FROM telemetry WHERE udf.hex2Int(h) > 9"
    )
    events = [at(1, h="ff"), at(2, h="9"), at(3, h="a")]
    assert rows(spark, text, events, functions=FUNCTIONS) == [[{"n": 10, "m": 15}, {"n": 255, "m": 260}]]


def test_a_function_is_a_key_the_argument_of_an_aggregate_and_takes_aggregates(spark: SparkSession) -> None:
    text = """
        SELECT udf.hex2Int(h) AS k, SUM(udf.add(x, 1)) AS total, udf.add(MAX(x), COUNT(*)) AS top INTO out
        FROM telemetry GROUP BY udf.hex2Int(h), Tumbling(hour, 1) HAVING udf.add(SUM(x), 0) > 2
    """
    events = [at(1, h="a", x=1.0), at(2, h="0A", x=2.5), at(3, h="b", x=2.0)]
    assert rows(spark, text, events, functions=FUNCTIONS) == [[{"k": 10, "total": 5.5, "top": 4.5}]]


def test_functions_nest_and_go_into_built_in_functions(spark: SparkSession) -> None:
    text = """
        SELECT udf.add(udf.hex2Int(h), udf.hex2Int(g)) AS total, SUBSTRING(UPPER(CONCAT(h, g, h, g, h, g, h, g, h, g,
        h, g, h, g)), udf.hex2Int(h), udf.five() - 2) AS part INTO out FROM telemetry
    """
    assert rows(spark, text, [at(1, h="2", g="f")], functions=FUNCTIONS) == [[{"total": 17.0, "part": "F2F"}]]


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


def test_the_value_of_every_function_can_be_an_argument_and_takes_a_result(spark: SparkSession) -> None:
    """Spark leaves some calls of Python functions in the plan, unevaluated, if lambdas in their arguments nest."""
    items = [
        f"udf.stringify({nested}) AS a{number}, udf.stringify(CONCAT('x', udf.stringify({nested}))) AS b{number}"
        for number, nested in enumerate(NESTED)
    ]
    query = compiled(f"SELECT {', '.join(items)} INTO out FROM telemetry", functions=FUNCTIONS)
    register(spark, query)
    times = ("_slice_start", "_slice_end", "_system_timestamp", "_arrival")
    columns = ", ".join(f"id AS {name}" for name in times)
    spark.sql(f"SELECT CAST(NULL AS STRING) AS t, '0' AS _partition, {columns} FROM range(1)").createOrReplaceTempView(
        "`input telemetry`"
    )
    plan = spark.sql(query.outputs[0].sql)._jdf.queryExecution().optimizedPlan().toString()
    left = [line for line in plan.splitlines() if "udf_stringify(" in line and "ArrowEvalPython" not in line]
    assert "ArrowEvalPython" in plan
    assert left == []


def test_the_properties_and_elements_of_a_result_are_read(spark: SparkSession) -> None:
    text = """
        WITH a AS (SELECT udf.parse(j) AS r, j FROM telemetry)
        SELECT a.r.car.name AS name, udf.parse(j).car.doors + 1 AS doors, e.ArrayValue AS word INTO out
        FROM a CROSS APPLY GetArrayElements(udf.split(a.r.text)) AS e
    """
    event = at(1, j='{"car": {"name": "x", "doors": 4}, "text": "one two"}')
    expected = [{"name": "x", "doors": 5.0, "word": word} for word in ("one", "two")]
    assert rows(spark, text, [event], functions=FUNCTIONS) == [expected]


def test_a_datetime_is_a_date_in_milliseconds_and_back(spark: SparkSession) -> None:
    text = "SELECT udf.later(System.Timestamp()) AS t, udf.stringify(System.Timestamp()) AS d INTO out FROM telemetry"
    expected = [{"t": 2.75, "d": '"2026-03-01T10:00:01.250Z"'}]
    assert rows(spark, text, [at(1.2509, x=1)], functions=FUNCTIONS) == [expected]


def test_a_null_argument_is_null_in_javascript(spark: SparkSession) -> None:
    text = """
        SELECT udf.stringify(NULL) AS a, udf.stringify(CAST(x AS bigint)) AS b, udf.stringify(CAST(r AS record)) AS c,
            udf.stringify(CAST(t AS datetime)) AS d INTO out FROM telemetry
    """
    expected = [dict.fromkeys("abcd", "null")]
    assert rows(spark, text, [at(1)], functions=FUNCTIONS) == [expected]


def test_a_row_of_the_input_is_its_body_with_the_input_columns(spark: SparkSession) -> None:
    text = "SELECT udf.stringify(t) AS row INTO out FROM telemetry AS t"
    event = at(1, a=1, b={"c": [True, None]}) | {"@PartitionId": 3, "@EventEnqueuedUtcTime": UNIX_EPOCH}
    expected = (
        '{"a":1,"b":{"c":[true,null]},"EventProcessedUtcTime":null,"PartitionId":3,'
        '"EventEnqueuedUtcTime":"1970-01-01T00:00:00.000Z"}'
    )
    assert rows(spark, text, [event], functions=FUNCTIONS) == [[{"row": expected}]]


def test_a_row_of_a_step_is_a_record_of_its_columns(spark: SparkSession) -> None:
    text = """
        WITH a AS (SELECT CAST(x AS bigint) AS n, System.Timestamp() AS t, CAST(r AS record) AS r FROM telemetry)
        SELECT udf.stringify(a) AS row INTO out FROM a
    """
    [[row]] = rows(spark, text, [at(1, x="7", r={"s": 1})], functions=FUNCTIONS)
    assert row == {"row": '{"n":7,"t":"2026-03-01T10:00:01.000Z","r":{"s":1}}'}


def test_an_error_of_the_script_stops_the_run_with_its_line_and_arguments(spark: SparkSession) -> None:
    failing = JavaScriptFunction("f", "function main(x) {\n  return x.y.z;\n}", AsaType.STRING, (AsaType.STRING,))
    with pytest.raises(PySparkException) as error:
        rows(spark, "SELECT udf.f(h) AS y INTO out FROM telemetry", [at(1, h="a")], functions=[failing])
    expected = (
        "udf.f: TypeError: Cannot read properties of undefined (reading 'z') (line 2 of its script); "
        'its arguments are ("a")'
    )
    assert expected in str(error.value)


def test_a_case_and_a_where_guard_a_call(spark: SparkSession) -> None:
    text = "SELECT CASE WHEN j IS NOT NULL THEN udf.parse(j).a END AS a INTO out FROM telemetry"
    guarded = "SELECT udf.parse(j).a AS a INTO out FROM telemetry WHERE j LIKE '{%'"
    events = [at(1), at(2, j='{"a": 1}')]
    broken = JavaScriptFunction(
        "parse", "function main(x) { return JSON.parse(x.trim()); }", AsaType.RECORD, (AsaType.STRING,)
    )
    assert rows(spark, text, events, functions=[broken]) == [[{"a": "1"}, {"a": None}]]
    assert rows(spark, guarded, [*events, at(3, j="no")], functions=[broken]) == [[{"a": "1"}]]
