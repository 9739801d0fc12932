"""`recapture check-query` says of a query alone what runs, what does not, and why."""

from pathlib import Path

import pytest

from recapture.tools.check_query import CheckedQuery, check
from tests.commands import Command

COUNTS = "SELECT deviceId, COUNT(*) AS n INTO counts FROM telemetry GROUP BY deviceId, TumblingWindow(minute, 5)"
ANOMALIES = (
    "SELECT AnomalyDetection_SpikeAndDip(x, 95, 120, 'spikesanddips') OVER (LIMIT DURATION(minute, 2)) AS s\n"
    "INTO anomalies FROM telemetry"
)


def outputs(checked: CheckedQuery) -> dict[str, dict[str, str]]:
    return {output.alias: output.columns for output in checked.outputs}


def test_a_query_that_runs_has_its_inputs_and_its_columns_with_their_types() -> None:
    checked = check(COUNTS)
    assert checked.runs
    assert [(read.alias, read.is_reference, list(read.fields)) for read in checked.inputs] == [
        ("telemetry", False, ["deviceId"])
    ]
    assert outputs(checked) == {"counts": {"deviceId": "nvarchar(max)", "n": "bigint"}}


def test_a_string_in_double_quotes_is_not_a_field() -> None:
    checked = check('SELECT id, "my id" AS own INTO out FROM telemetry WHERE site = "roof" AND "my id" <> "a b"')
    assert [sorted(read.fields) for read in checked.inputs] == [["id", "my id", "site"]]


@pytest.mark.parametrize("between", ["\n", ";\n", " -- counts\n\n"])
def test_each_statement_is_checked_by_itself(between: str) -> None:
    checked = check(between.join([COUNTS, ANOMALIES, COUNTS.replace("counts", "again")]))
    assert list(outputs(checked)) == ["counts", "again"]
    (refusal,) = checked.refusals
    assert (refusal.line, refusal.column, refusal.outputs) == (1 + between.count("\n"), 8, ("anomalies",))
    assert refusal.what.startswith("AnomalyDetection_SpikeAndDip ")


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ("SELECT GetArrayLength(x) AS n INTO b FROM telemetry", "`x` is used as"),
        ("SELECT x INTO b FROM telemetry TIMESTAMP BY t", "`telemetry` is read here with a different TIMESTAMP BY"),
        ("SELECT 'a' AS x, SUM(y) AS m INTO a FROM telemetry GROUP BY TumblingWindow(hour, 1)", "float and nvarchar"),
    ],
)
def test_statements_that_run_alone_may_contradict_each_other(other: str, message: str) -> None:
    checked = check(f"SELECT AVG(x) AS m, SUM(x) AS x INTO a FROM telemetry GROUP BY TumblingWindow(hour, 1)\n{other}")
    assert not checked.runs
    (refusal,) = checked.refusals
    assert (refusal.outputs, message in refusal.what) == ((), True)
    assert (checked.outputs, checked.inputs) == ((), ())


def test_a_field_has_the_type_that_all_statements_together_give_it() -> None:
    both = check(
        "SELECT AVG(x) AS x INTO a FROM telemetry GROUP BY TumblingWindow(s, 1); SELECT x INTO b FROM telemetry"
    )
    assert both.inputs[0].fields == {"x": "float"}
    assert outputs(both) == {"a": {"x": "float"}, "b": {"x": "float"}}


def test_a_field_whose_values_have_types_that_matter_is_listed_with_its_own_type() -> None:
    mean = check("SELECT SUM(x) / COUNT(x) AS mean INTO a FROM telemetry GROUP BY TumblingWindow(hour, 1)")
    assert mean.inputs[0].fields == {"x": "float"}
    assert check("SELECT GetType(x) AS kind INTO a FROM telemetry").inputs[0].fields == {"x": "nvarchar(max)"}


def test_statements_that_call_javascript_functions_are_not_checked_together_and_this_is_said() -> None:
    checked = check("SELECT udf.f(x) AS y INTO a FROM telemetry; SELECT x INTO b FROM telemetry TIMESTAMP BY t")
    assert checked.runs
    assert checked.assumed[-1].startswith("it is not checked whether the statements contradict each other")


def test_a_refusal_that_several_statements_share_is_shown_once() -> None:
    step = f"WITH s AS ({ANOMALIES.replace('INTO anomalies ', '')})\n"
    checked = check(f"{step}SELECT s INTO a FROM s; SELECT s INTO b FROM s")
    assert [refusal.outputs for refusal in checked.refusals] == [("a", "b")]


def test_an_input_that_is_only_joined_without_a_time_bound_is_reference_data() -> None:
    checked = check("SELECT t.x, d.site INTO out FROM telemetry t JOIN devices d ON t.id = d.id")
    assert [(read.alias, read.is_reference) for read in checked.inputs] == [("telemetry", False), ("devices", True)]


def test_an_input_that_is_joined_with_a_time_bound_has_events() -> None:
    bound = "DATEDIFF(minute, t, a) BETWEEN 0 AND 5"
    checked = check(f"SELECT t.x, a.y INTO out FROM telemetry t JOIN alarms a ON t.id = a.id AND {bound}")
    assert [(read.alias, read.is_reference) for read in checked.inputs] == [("telemetry", False), ("alarms", False)]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT t.* INTO out FROM telemetry t JOIN devices d ON t.id = d.id",
        "SELECT * INTO out FROM telemetry t PARTITION BY PartitionId JOIN devices d ON t.id = d.id",
    ],
)
def test_the_reason_of_a_refusal_does_not_take_reference_data_for_events(query: str) -> None:
    assert [refusal.what.partition(" ")[0] for refusal in check(query).refusals] == ["*"]


def test_an_output_may_be_named_in_double_quotes() -> None:
    assert list(outputs(check(COUNTS.replace("counts", '"all-counts"')))) == ["all-counts"]


def test_the_functions_of_a_query_are_assumed() -> None:
    window = "GROUP BY TumblingWindow(minute, 5)"
    checked = check(f"SELECT SUM(udf.rate(x)) AS y, uda.middle(x) AS z INTO out FROM telemetry {window}")
    assert checked.runs
    assert [assumed.partition(" ")[0] for assumed in checked.assumed] == ["udf.rate", "uda.middle"]


def test_the_metadata_of_an_iot_hub_is_known() -> None:
    assert check("SELECT IoTHub.ConnectionDeviceId AS device INTO out FROM telemetry").runs


@pytest.mark.parametrize("text", ["", "SELECT", "SELECT x INTO out FROM telemetry WHERE (", "DROP TABLE x"])
def test_a_syntax_error_is_shown_with_its_place(text: str) -> None:
    checked = check(text)
    assert not checked.runs
    assert checked.refusals[0].line == 1


def test_the_command_prints_what_runs_and_what_does_not(tmp_path: Path, command: Command) -> None:
    file = tmp_path / "query.asaql"
    file.write_text(f"\ufeff{COUNTS};\r\n{ANOMALIES}\r\n")
    lines = command.text("check-query", file, code=1).splitlines()
    assert lines[0] == "input telemetry (events): deviceId nvarchar(max)"
    assert lines[1] == "output counts runs: deviceId nvarchar(max), n bigint"
    assert lines[2].startswith("output anomalies does not run: line 2, column 8: AnomalyDetection_SpikeAndDip ")
    document = command.json("check-query", file, code=1)
    assert (document["runs"], document["refusals"][0]["outputs"]) == (False, ["anomalies"])


def test_a_query_that_runs_has_the_exit_code_0(tmp_path: Path, command: Command) -> None:
    file = tmp_path / "query.sql"
    file.write_text(COUNTS)
    assert command.text("check-query", file).splitlines()[-1] == "the whole query runs"


@pytest.mark.parametrize(("name", "content"), [("a.yaml", b""), ("none.sql", None), ("a.sql", b"\xff\xfe")])
def test_a_file_that_is_no_query_is_a_usage_error(
    tmp_path: Path, command: Command, name: str, content: bytes | None
) -> None:
    file = tmp_path / name
    if content is not None:
        file.write_bytes(content)
    command.run("check-query", file, code=2)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT 1 AS x", "the query has no FROM: write FROM input"),
        ("SELECT *.x FROM TumblingWindow(second, 5) a", "FROM takes a name, such as `input`, or (SELECT …) AS name"),
        ("SELECT x @ z FROM a", "a name goes after AS: write AS and a name after this column"),
        ("SELECT COUNT(*) AS CREATE TABLE n FROM a GROUP BY Windows()", "write CREATE TABLE input (field type, …)"),
        (
            "WITH s AS (SELECT x FROM s) SELECT * FROM s",
            "FROM s: the query has no input and no earlier step of this name; a step can read only the steps before it",
        ),
    ],
)
def test_a_query_without_inputs_or_with_odd_signs_is_refused_with_a_reason(query: str, message: str) -> None:
    assert [refusal.what.splitlines()[0] for refusal in check(query).refusals] == [message]
