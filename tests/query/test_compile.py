"""What ASAQL text compiles to: fields, types, windows, outputs and the canonical form."""

import pytest

from recapture.errors import DefinitionError
from recapture.formats.event_hubs import CaptureInput
from recapture.formats.iot_hub import IotHubInput
from recapture.model import ROUTED_TIME, AsaType, InputColumn, Metadata, MetadataColumn, OutputColumn
from recapture.query.compile import compile_query
from recapture.query.model import CompiledQuery
from recapture.time_model.ticks import TICKS_PER_MILLISECOND, TICKS_PER_SECOND
from recapture.time_model.windows import HoppingWindow
from tests.conftest import Python

MINUTE = 60 * TICKS_PER_SECOND

EXAMPLE = """
    SELECT System.Timestamp() AS windowEnd, deviceId, COUNT(*) AS events, AVG(temperature) AS avgTemperature
    INTO aggregates
    FROM telemetry TIMESTAMP BY eventTime OVER deviceId
    GROUP BY deviceId, TumblingWindow(minute, 5)
"""


def compiled(text: str) -> CompiledQuery:
    return compile_query(text, inputs={"telemetry": CaptureInput.metadata}, output_aliases=["aggregates"])


def counting(clauses: str, select: str = "COUNT(*) AS n") -> CompiledQuery:
    return compiled(f"SELECT {select} INTO aggregates FROM telemetry TIMESTAMP BY eventTime {clauses}")


def windowed(window: str) -> HoppingWindow:
    compiled_window = counting(f"GROUP BY {window}").inputs[0].reaches[0].window
    assert isinstance(compiled_window, HoppingWindow)
    return compiled_window


def types(query: CompiledQuery) -> dict[str, AsaType]:
    return {column.name: column.type for column in query.inputs[0].columns}


def test_the_example_compiles() -> None:
    query = compiled(EXAMPLE)
    assert query.inputs[0].columns == (
        InputColumn(("deviceId",), AsaType.STRING),
        InputColumn(("temperature",), AsaType.FLOAT),
    )
    assert query.inputs[0].timestamp_by == InputColumn(("eventTime",), AsaType.DATETIME)
    assert query.inputs[0].over == (InputColumn(("deviceId",), AsaType.STRING),)
    assert query.inputs[0].reaches[0].window == HoppingWindow(size=5 * MINUTE, hop=5 * MINUTE)
    assert query.outputs[0].columns == (
        OutputColumn("windowEnd", AsaType.DATETIME),
        OutputColumn("deviceId", AsaType.STRING),
        OutputColumn("events", AsaType.BIGINT),
        OutputColumn("avgTemperature", AsaType.FLOAT),
    )


def test_without_timestamp_by_the_arrival_time_is_used() -> None:
    query = compiled("SELECT COUNT(*) AS n INTO aggregates FROM telemetry GROUP BY Tumbling(hour, 1)")
    assert query.inputs[0].timestamp_by is None
    assert query.inputs[0].over == ()


@pytest.mark.parametrize(
    ("window", "size", "hop"),
    [
        ("TumblingWindow(minute, 5)", 5 * MINUTE, 5 * MINUTE),
        ("TUMBLING(MI, 5)", 5 * MINUTE, 5 * MINUTE),
        ("tumbling(n, 5)", 5 * MINUTE, 5 * MINUTE),
        ("TumblingWindow(Days, 7)", 7 * 24 * 60 * MINUTE, 7 * 24 * 60 * MINUTE),
        ("Tumbling(dd, 1)", 24 * 60 * MINUTE, 24 * 60 * MINUTE),
        ("Tumbling(d, 1)", 24 * 60 * MINUTE, 24 * 60 * MINUTE),
        ("Tumbling(hh, 1)", 60 * MINUTE, 60 * MINUTE),
        ("Tumbling(ss, 1)", TICKS_PER_SECOND, TICKS_PER_SECOND),
        ("Tumbling(ms, 1)", TICKS_PER_MILLISECOND, TICKS_PER_MILLISECOND),
        ("Tumbling(mcs, 1)", 10, 10),
        ("HoppingWindow(second, 60, 5)", MINUTE, 5 * TICKS_PER_SECOND),
        ("Hopping(minutes, 10, 10)", 10 * MINUTE, 10 * MINUTE),
    ],
)
def test_windows_have_several_spellings(window: str, size: int, hop: int) -> None:
    assert windowed(window) == HoppingWindow(size=size, hop=hop)


def test_a_window_may_be_offset() -> None:
    assert windowed("Tumbling(minute, 5, -1)") == HoppingWindow(size=5 * MINUTE, hop=5 * MINUTE, offset=-MINUTE)
    assert windowed("Hopping(minute, 10, 5, 1)") == HoppingWindow(size=10 * MINUTE, hop=5 * MINUTE, offset=MINUTE)


def test_fields_match_in_their_letter_case_and_table_names_in_any() -> None:
    query = counting("GROUP BY Telemetry.site.Name, TELEMETRY.[odd name], Tumbling(s, 1)")
    assert [column.path for column in query.inputs[0].columns] == [("site", "Name"), ("odd name",)]


def test_an_alias_of_the_input_qualifies_fields() -> None:
    query = compiled(
        "SELECT COUNT(*) AS n INTO aggregates FROM telemetry AS t TIMESTAMP BY t.at OVER t.id WHERE T.x.y = 1"
        " GROUP BY Tumbling(s, 1)"
    )
    assert query.inputs[0].timestamp_by == InputColumn(("at",), AsaType.DATETIME)
    assert [column.path for column in query.inputs[0].columns] == [("x", "y")]


def test_partition_id_in_over_adds_nothing() -> None:
    query = counting("OVER PartitionId, deviceId GROUP BY Tumbling(s, 1)")
    assert query.inputs[0].over == (InputColumn(("deviceId",), AsaType.STRING),)


@pytest.mark.parametrize(
    "name", ["timestamp", "time", "date", "value", "count", "type", "key", "order", "left", "user"]
)
def test_words_of_sql_may_be_fields(name: str) -> None:
    query = compiled(
        f"SELECT {name}, COUNT(site.{name}) AS n INTO aggregates FROM telemetry TIMESTAMP BY t OVER {name}"
        f" GROUP BY {name}, Tumbling(s, 1)"
        if name not in ("order", "left", "user", "key")
        else f"SELECT [{name}], COUNT(*) AS n INTO aggregates FROM telemetry TIMESTAMP BY t OVER [{name}]"
        f" GROUP BY [{name}], Tumbling(s, 1)"
    )
    assert query.inputs[0].over == (InputColumn((name,), AsaType.STRING),)
    assert query.outputs[0].columns[0].name == name


def test_types_come_from_use() -> None:
    query = counting(
        "WHERE limitValue > 3 AND unit = 'C' AND seen IS NOT NULL AND eventTime < '2026-03-01T00:00:00Z'"
        " GROUP BY deviceId, Tumbling(s, 1)",
        "SUM(a) AS a, MIN(b) AS b, SUM(c * d) AS c, COUNT(e) AS e, MAX(eventTime) AS f,"
        " AVG(CASE WHEN g = 'x' THEN h END) AS g",
    )
    assert types(query) == {
        "deviceId": AsaType.STRING,
        "limitValue": AsaType.STRING,
        "unit": AsaType.STRING,
        "seen": AsaType.STRING,
        "eventTime": AsaType.DATETIME,
        "a": AsaType.FLOAT,
        "b": AsaType.FLOAT,
        "c": AsaType.FLOAT,
        "d": AsaType.FLOAT,
        "e": AsaType.STRING,
        "g": AsaType.STRING,
        "h": AsaType.FLOAT,
    }
    assert query.outputs[0].columns[4] == OutputColumn("f", AsaType.DATETIME)


def test_a_published_field_takes_the_type_of_the_field_that_it_is_compared_with() -> None:
    query = counting("WHERE a = b AND b = c GROUP BY a, Tumbling(s, 1)", "a AS a, AVG(c) AS n")
    assert types(query) == {"a": AsaType.FLOAT, "b": AsaType.STRING, "c": AsaType.FLOAT}


def test_types_come_from_create_table() -> None:
    query = compiled("""
        CREATE TABLE Telemetry (id bigint, [odd name] NVARCHAR(MAX), site.floor BIGINT, up bit, v float, at datetime);
        SELECT id, SUM(site.floor) AS s, AVG(id) AS a, SUM(v) AS v, MAX(up) AS u, MIN(at) AS m, SUM(id) / COUNT(*) AS q,
               SUM(id) / 2.0 AS r
        INTO aggregates FROM telemetry WHERE up = 1 AND [odd name] IN ('x') GROUP BY id, Tumbling(s, 1)
    """)
    assert types(query)["site.floor"] is AsaType.BIGINT
    assert [column.type for column in query.outputs[0].columns] == [
        AsaType.BIGINT,
        AsaType.BIGINT,
        AsaType.FLOAT,
        AsaType.FLOAT,
        AsaType.BIT,
        AsaType.DATETIME,
        AsaType.BIGINT,
        AsaType.FLOAT,
    ]


def test_comments_white_space_and_letter_case_of_keywords_do_not_change_the_canonical_form() -> None:
    rewritten = """
        select system.timestamp() as windowEnd, deviceId,count( * ) as events, -- how many
        avg(temperature) as avgTemperature into AGGREGATES from Telemetry timestamp by eventTime over deviceId
        /* five
           minutes */ group by deviceId, TUMBLINGWINDOW(Minute,5);
    """
    assert compiled(rewritten).canonical == compiled(EXAMPLE).canonical
    assert compiled(compiled(EXAMPLE).canonical).canonical == compiled(EXAMPLE).canonical
    assert compiled(compiled(EXAMPLE).canonical).outputs[0].plan == compiled(EXAMPLE).outputs[0].plan


@pytest.mark.parametrize(
    ("part", "replacement"),
    [
        ("deviceId", "DeviceId"),
        ("windowEnd", "windowend"),
        ("minute, 5", "minute, 6"),
        ("COUNT(*)", "COUNT(1)"),
        ("GROUP BY", "WHERE x = 'a' GROUP BY"),
    ],
)
def test_what_changes_the_meaning_changes_the_canonical_form(part: str, replacement: str) -> None:
    assert compiled(EXAMPLE.replace(part, replacement)).canonical != compiled(EXAMPLE).canonical


def test_literals_keep_their_letter_case_and_white_space_in_the_canonical_form() -> None:
    assert "'a  B--c'" in counting("WHERE x = 'a  B--c' GROUP BY Tumbling(s, 1)").canonical


def test_without_into_a_query_writes_to_output() -> None:
    text = "SELECT COUNT(*) AS n FROM telemetry GROUP BY Tumbling(s, 1)"
    assert (
        compile_query(text, inputs={"telemetry": CaptureInput.metadata}, output_aliases=["output"])
        .outputs[0]
        .columns[0]
        .name
        == "n"
    )
    with pytest.raises(DefinitionError, match="the pipeline's output is `aggregates`"):
        compiled(text)


@pytest.mark.parametrize(
    ("window", "every_hour"),
    [
        ("TumblingWindow(minute, 5)", True),
        ("HoppingWindow(hour, 24, 1)", True),
        ("TumblingWindow(hour, 2)", False),
        ("SessionWindow(minute, 5, 30)", False),
        ("SlidingWindow(hour, 2)", True),
        ("HoppingWindow(minute, 5, 10)", False),
    ],
)
def test_a_query_knows_whether_events_of_an_hour_always_have_a_window_that_ends_in_it(
    window: str, every_hour: bool
) -> None:
    assert counting(f"GROUP BY {window}").ends_windows_every(60 * MINUTE) == every_hour


@pytest.mark.parametrize(
    ("step", "window", "every_hour"),
    [
        ("id", "TumblingWindow(minute, 5)", True),
        ("id", "SessionWindow(minute, 5, 60)", False),
        ("COUNT(*) AS id", "TumblingWindow(day, 1)", False),
        ("COUNT(*) AS id", "SlidingWindow(hour, 2)", True),
    ],
)
def test_windows_over_a_step_count_among_those_that_need_not_end_in_every_hour(
    step: str, window: str, every_hour: bool
) -> None:
    grouped = "GROUP BY TumblingWindow(hour, 1)" if step.startswith("COUNT") else ""
    query = compiled(
        f"WITH a AS (SELECT {step} FROM telemetry TIMESTAMP BY eventTime {grouped})"
        f" SELECT id, COUNT(*) AS n INTO aggregates FROM a GROUP BY id, {window}"
    )
    assert query.ends_windows_every(60 * MINUTE) == every_hour


def test_a_step_that_no_output_reads_does_not_change_whether_windows_end_in_every_hour() -> None:
    query = compiled(
        "WITH days AS (SELECT COUNT(*) AS n FROM telemetry GROUP BY TumblingWindow(day, 1))"
        " SELECT COUNT(*) AS n INTO aggregates FROM telemetry GROUP BY TumblingWindow(minute, 5)"
    )
    assert query.ends_windows_every(60 * MINUTE)


def test_the_tasks_load_no_compiler_and_no_pandas(python: Python) -> None:
    """Each Python worker of Spark loads them anew."""
    slow = {"sqlglot", "recapture.query.compile", "recapture.definition.pipeline", "pandas"}
    loaded = python(
        "-c", f"import sys, recapture.execute.tasks, pyarrow; pyarrow.array([1]); print({{*sys.modules}} & {slow})"
    )
    assert loaded.stdout == b"set()\n", loaded.stderr


@pytest.mark.parametrize("name", ["rows", "Temp", "temporary", "lateral", "describe", "qualify", "[table]", '"join"'])
def test_words_that_are_keywords_elsewhere_name_inputs_outputs_and_steps(name: str) -> None:
    alias, metadata = name.strip('[]"'), CaptureInput.metadata
    text = f"SELECT id INTO {name} FROM {name}"
    [output] = compile_query(text, inputs={alias: metadata}, output_aliases=[alias]).outputs
    assert output.alias == alias
    text = f"WITH {name} AS (SELECT x FROM telemetry) SELECT x INTO out FROM {name}"
    assert compile_query(text, inputs={"telemetry": metadata}, output_aliases=["out"]).outputs


@pytest.mark.parametrize("select", ["SELECT id AS [from]", "SELECT id AS into", "SELECT telemetry.from AS x"])
def test_columns_may_be_called_from_and_into(select: str) -> None:
    text = f"{select} INTO out FROM telemetry"
    metadata = CaptureInput.metadata
    assert compile_query(text, inputs={"telemetry": metadata}, output_aliases=["out"]).outputs


def test_metadata_of_an_iot_hub_is_read_by_either_of_its_names() -> None:
    text = """
        SELECT IoTHub.ConnectionDeviceId AS a, GetMetadataPropertyValue(i, 'IoTHub.ConnectionDeviceId') AS b,
               GetMetadataPropertyValue(i, '[IoTHub].[EnqueuedTime]') AS t INTO out FROM telemetry AS i
    """
    metadata = IotHubInput.metadata
    query = compile_query(text, inputs={"telemetry": metadata}, output_aliases=["out"])
    device = MetadataColumn(Metadata.IOT_HUB, "connectionDeviceId")
    assert query.inputs[0].metadata == (device, MetadataColumn(Metadata.EVENT_ENQUEUED))
    behind_hub = compiled(text.replace("IoTHub.ConnectionDeviceId AS a,", "").replace("INTO out", "INTO aggregates"))
    keys = ("iothub-connection-device-id", ROUTED_TIME)
    assert behind_hub.inputs[0].metadata == tuple(MetadataColumn(Metadata.ROUTED, key) for key in keys)


def test_declared_fields_are_checked_unless_they_are_input_columns() -> None:
    table = "CREATE TABLE telemetry (id nvarchar(max), n bigint, PartitionId bigint, iotHub record, at datetime) "
    text = table + "SELECT id INTO aggregates FROM telemetry TIMESTAMP BY at"
    name, n, at, hub = (
        InputColumn((name,), AsaType[kind])
        for name, kind in (("id", "STRING"), ("n", "BIGINT"), ("at", "DATETIME"), ("iotHub", "RECORD"))
    )
    assert compiled(text).inputs[0].columns_to_check == (name, n, hub, at)
    iot_hub = compile_query(text, inputs={"telemetry": IotHubInput.metadata}, output_aliases=["aggregates"])
    assert iot_hub.inputs[0].columns_to_check == (name, n, at)
    assert compiled(text.removeprefix(table)).inputs[0].columns_to_check == ()


@pytest.mark.parametrize("call", ["COALESCE({}, 1)", "IIF(1 = 1, {}, 1)", "ABS({})"])
def test_calls_in_calls_are_compiled_once(call: str) -> None:
    """Compiled twice in each call, the innermost of 24 would be compiled 16 million times."""
    expression = "x"
    for _ in range(24):
        expression = call.format(expression)
    assert compiled(f"SELECT {expression} AS v INTO aggregates FROM telemetry").outputs
