"""JavaScript aggregates in queries: what a call means, and where it can be."""

import json

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from recapture.errors import DefinitionError
from recapture.model import AsaType, JavaScriptFunction
from tests.query.small_stream import at, compiled, rows

FLOAT, TEXT, ARRAY, RECORD = AsaType.FLOAT, AsaType.STRING, AsaType.ARRAY, AsaType.RECORD


def aggregate(name: str, accumulate: str, result: str, output: AsaType, *arguments: AsaType) -> JavaScriptFunction:
    """Return an aggregate whose state is a list."""
    script = f"""
        function main() {{
            this.init = function () {{ this.state = []; }};
            this.accumulate = function (value, timestamp) {{ {accumulate} }};
            this.computeResult = function () {{ return {result}; }};
        }}"""
    return JavaScriptFunction(name, script, output, arguments or None, is_aggregate=True)


LISTED = aggregate("listed", "this.state.push(value);", "this.state", ARRAY, FLOAT)
ANY = aggregate("any", "this.state.push(JSON.stringify(value));", "this.state", ARRAY)
TIMES = aggregate("times", "this.state.push(timestamp.toISOString());", "this.state.join()", TEXT, FLOAT)
NULLS = aggregate("nulls", "if (value === null) this.state.push(1);", "this.state.length", AsaType.BIGINT, TEXT)
LENGTH = aggregate("length", "this.state.push(1);", "this.state.length", AsaType.BIGINT, TEXT)
MEAN = JavaScriptFunction(
    "TWA",
    """
    function main() {
        this.init = function () {
            this.total = 0.0;
            this.weight = 0.0;
        }
        this.accumulate = function (value, timestamp) {
            this.total += value.level * value.weight;
            this.weight += value.weight;
        }
        this.computeResult = function () {
            result = this.weight == 0 ? 0 : this.total / this.weight;
            return result;
        }
    }""",
    FLOAT,
    None,
    is_aggregate=True,
)
DOUBLE = JavaScriptFunction("double", "function main(x) { return 2 * x; }", FLOAT, (FLOAT,))
FUNCTIONS = [LISTED, ANY, TIMES, LENGTH, MEAN, DOUBLE]


def refusal(text: str) -> str:
    with pytest.raises(DefinitionError) as error:
        compiled(text, functions=FUNCTIONS)
    return str(error.value).split("\n")[0].partition(": ")[2]


INSIDE = "cannot be inside another one: aggregate in a step of WITH, then aggregate its rows"
PLACE = "needs GROUP BY with a window, and is supported only in SELECT and HAVING"


@pytest.mark.parametrize("name", ["nulls", "NULLS"])
def test_an_aggregate_may_have_the_name_of_a_keyword(spark: SparkSession, name: str) -> None:
    text = f"SELECT uda.{name}(x) AS n INTO out FROM telemetry GROUP BY Tumbling(minute, 1)"
    assert rows(spark, text, [at(1, x=None), at(2, x="a"), at(3, x=None)], functions=[NULLS]) == [[{"n": 2}]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT uda.listed(x) AS y INTO out FROM telemetry", f"uda.listed is an aggregate: it {PLACE}"),
        ("SELECT x INTO out FROM telemetry WHERE uda.length(x) > 1", f"uda.length is an aggregate: it {PLACE}"),
        (
            "SELECT SUM(uda.length(x)) AS y INTO out FROM telemetry GROUP BY Tumbling(s, 1)",
            f"uda.length is an aggregate: it {INSIDE}",
        ),
        (
            "SELECT uda.listed(SUM(x)) AS y INTO out FROM telemetry GROUP BY Tumbling(s, 1)",
            f"SUM is an aggregate: it {INSIDE}",
        ),
        (
            "SELECT uda.listed(x) OVER (LIMIT DURATION(hour, 1)) AS y INTO out FROM telemetry",
            "uda.listed takes no OVER: use the window of GROUP BY",
        ),
        (
            "SELECT uda.listed(x) OVER (ORDER BY x) AS y INTO out FROM telemetry GROUP BY Tumbling(s, 1)",
            "uda.listed takes no OVER: use the window of GROUP BY",
        ),
        (
            "SELECT uda.listed(x, y) AS y INTO out FROM telemetry GROUP BY Tumbling(s, 1)",
            "uda.listed takes one argument: to pass several values, select them in a step and pass the step",
        ),
        (
            "SELECT uda.any(GetArrayElement(x, 0)) AS y INTO out FROM telemetry GROUP BY Tumbling(s, 1)",
            "the type of this is not known, and JavaScript distinguishes strings from numbers: CAST it, or declare "
            "functions.any.argument_types in the pipeline file",
        ),
        (
            "SELECT uda.listed(telemetry) AS y INTO out FROM telemetry GROUP BY Tumbling(s, 1)",
            "uda.listed takes float here, but this is a record: the whole row",
        ),
        (
            "SELECT udf.listed(x) AS y INTO out FROM telemetry",
            "listed is an aggregate: call uda.listed(…), or correct its kind in functions",
        ),
        (
            "SELECT uda.double(x) AS y INTO out FROM telemetry GROUP BY Tumbling(s, 1)",
            "double is not an aggregate: call udf.double(…), or correct its kind in functions",
        ),
        (
            "SELECT uda.length(x) INTO out FROM telemetry GROUP BY Tumbling(s, 1)",
            "this column has no name: write AS and a name after it",
        ),
    ],
)
def test_a_call_that_cannot_be_compiled_says_what_to_do(text: str, message: str) -> None:
    assert refusal(text) == message


def test_a_query_has_the_aggregates_that_it_calls_in_any_letter_case() -> None:
    query = compiled("SELECT UDA.LENGTH(h) AS n INTO out FROM telemetry GROUP BY Tumbling(s, 1)", functions=FUNCTIONS)
    assert query.functions == (LENGTH,)
    assert [column.type for column in query.outputs[0].columns] == [AsaType.BIGINT]


def test_the_events_come_in_the_order_of_time_arrival_and_partition(spark: SparkSession) -> None:
    text = """
        SELECT uda.listed(x) AS listed, uda.times(x) AS times, Collect(CAST(x AS float)) AS collected INTO out
        FROM telemetry GROUP BY Tumbling(minute, 1)
    """
    events = [at(3, x=1.0), at(2, "1", x=2.0), at(2, "0", x=3.0), at(1.0009, x=4.0), at(2, "1", x=5.0)]
    [[row]] = rows(spark, text, events, functions=FUNCTIONS)
    assert row["listed"] == row["collected"] == [4, 2, 3, 5, 1]
    assert row["times"] == ",".join(f"2026-03-01T10:00:0{second}.000Z" for second in (1, 2, 2, 2, 3))


def test_the_example_of_microsoft_is_a_mean_of_the_rows_of_a_step(spark: SparkSession) -> None:
    text = """
        WITH value AS (
            SELECT CAST(NoiseLevelDB AS float) AS level, CAST(DurationSecond AS float) AS weight FROM telemetry
        )
        SELECT System.Timestamp() AS ts, uda.TWA(value) AS mean INTO out FROM value GROUP BY TumblingWindow(minute, 5)
    """
    events = [
        at(60, NoiseLevelDB="80", DurationSecond="22.0"),
        at(120, NoiseLevelDB="81", DurationSecond="38.0"),
        at(400, NoiseLevelDB="95", DurationSecond="0"),
    ]
    expected = [{"ts": 300.0, "mean": (80 * 22 + 81 * 38) / 60}, {"ts": 600.0, "mean": 0.0}]
    assert rows(spark, text, events, functions=FUNCTIONS) == [expected]


def test_null_is_accumulated_as_null(spark: SparkSession) -> None:
    text = """
        SELECT uda.any(CAST(x AS bigint)) AS n, uda.any(CAST(t AS datetime)) AS t, uda.any(CAST(r AS record)) AS r,
            uda.any(NULL) AS nothing INTO out FROM telemetry GROUP BY Tumbling(minute, 1)
    """
    events = [at(1), at(2, x="5", t="2026-03-01T10:00:00Z", r={"a": 1})]
    assert rows(spark, text, events, functions=FUNCTIONS) == [
        [
            {
                "n": ["null", "5"],
                "t": ["null", '"2026-03-01T10:00:00.000Z"'],
                "r": ["null", '{"a":1}'],
                "nothing": ["null", "null"],
            }
        ]
    ]


def test_a_row_of_the_input_is_its_body_with_the_input_columns(spark: SparkSession) -> None:
    text = "SELECT uda.any(telemetry) AS listed INTO out FROM telemetry GROUP BY Tumbling(minute, 1)"
    [[row]] = rows(spark, text, [at(1, a=1) | {"@PartitionId": 3}], functions=FUNCTIONS)
    [listed] = map(json.loads, row["listed"])
    assert listed == {"a": 1, "EventProcessedUtcTime": None, "PartitionId": 3, "EventEnqueuedUtcTime": None}


def test_an_aggregate_is_a_value_of_its_group(spark: SparkSession) -> None:
    text = """
        SELECT id, uda.length(h) + 1 AS n, udf.double(uda.length(h)) AS twice, uda.listed(udf.double(x)) AS doubled,
            CASE WHEN uda.length(h) > 1 THEN 'many' ELSE 'one' END AS many, MAX(x) AS top INTO out
        FROM telemetry GROUP BY id, Tumbling(minute, 1) HAVING uda.length(h) < 3
    """
    events = [at(1, id="a", x=1.0), at(2, id="a", x=2.0), at(3, id="b", x=3.0), *(at(4, id="c") for _ in range(3))]
    assert rows(spark, text, events, functions=FUNCTIONS) == [
        [
            {"id": "a", "n": 3, "twice": 4.0, "doubled": [2, 4], "many": "many", "top": 2.0},
            {"id": "b", "n": 2, "twice": 2.0, "doubled": [6], "many": "one", "top": 3.0},
        ]
    ]


def test_a_later_step_reads_the_elements_of_a_result(spark: SparkSession) -> None:
    text = """
        WITH a AS (SELECT uda.listed(x) AS list FROM telemetry GROUP BY SlidingWindow(second, 2) HAVING COUNT(*) > 1)
        SELECT e.ArrayIndex AS i, CAST(e.ArrayValue AS float) AS x INTO out
        FROM a CROSS APPLY GetArrayElements(a.list) AS e
    """
    events = [at(1, x=1.0), at(2, x=2.0), at(9, x=3.0)]
    assert rows(spark, text, events, functions=FUNCTIONS) == [[{"i": 0, "x": 1.0}, {"i": 1, "x": 2.0}]]


def test_an_error_of_the_script_stops_the_run_with_its_event_and_its_group(spark: SparkSession) -> None:
    text = """
        SELECT uda.TWA(CAST(r AS record)) AS mean INTO out FROM telemetry
        GROUP BY id, UPPER(name), Tumbling(minute, 1)
    """
    with pytest.raises(PySparkException) as error:
        rows(spark, text, [at(1, id="a", name="x")], functions=FUNCTIONS)
    expected = (
        "uda.TWA: TypeError: Cannot read properties of null (reading 'level') (line 8 of its script); "
        'its arguments are (null, "2026-03-01T10:00:01.000Z"); its group is {"window end":"2026-03-01T10:01:00.000Z",'
        '"id":"a","key 2":"X"}'
    )
    assert expected in str(error.value)


def test_a_case_guards_a_call(spark: SparkSession) -> None:
    text = """
        SELECT CASE WHEN COUNT(r) = COUNT(*) THEN uda.TWA(CAST(r AS record)) END AS mean INTO out
        FROM telemetry GROUP BY Tumbling(minute, 1)
    """
    events = [at(1), at(61, r={"level": 3, "weight": 2})]
    assert rows(spark, text, events, functions=FUNCTIONS) == [[{"mean": 3.0}, {"mean": None}]]
