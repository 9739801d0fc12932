"""Reading a Fabric eventstream: each operator becomes a SELECT that compiles, or is refused with a reason."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from recapture.tools.asa_job import Draft, carry_over, read_job
from recapture.tools.asa_job.documents import SettingsPart
from tests.tools.asa_job.jobs import SECRET, refused

SCHEMA = {"Street": "Nvarchar(max)", "No_Bikes": "BigInt", "place": "Record", "PartitionId": "BigInt"}
FIELDS = (
    "TRY_CAST([Street] AS nvarchar(max)) AS [Street], TRY_CAST([No_Bikes] AS bigint) AS [No_Bikes], [place], "
    "[PartitionId]"
)
MINUTE = {"value": 1, "unit": "Minute"}
SUM = {"aggregationFunction": "Sum", "column": {"node": None, "columnName": "No_Bikes"}, "alias": "bikes"}


def node(name: str, type_: str, *inputs: str, schemas: Any = (), **properties: Any) -> dict[str, Any]:
    """Return a node in the form of "Topology - Get Eventstream Topology"."""
    listed = [
        {"name": read, "schema": {"columns": [{"name": column, "type": kind} for column, kind in schema.items()]}}
        for read, schema in schemas
    ]
    return {
        "name": name,
        "type": type_,
        "properties": properties,
        "inputNodes": [{"name": input_} for input_ in inputs],
        "inputSchemas": listed,
    }


JSON = {"type": "Json", "properties": {"encoding": "UTF8"}}
HUB = node("hub", "AzureEventHub", dataConnectionId=SECRET, consumerGroupName="$Default", inputSerialization=JSON)
STREAM = node("bikes-stream", "DefaultStream", "hub")


def definition(*operators: Any, reads: str | None = None, **parts: Any) -> dict[str, Any]:
    """Return the definition of an eventstream whose destination reads the last operator."""
    read = reads or (operators[-1]["name"] if operators else "bikes-stream")
    destination = node("lake", "Lakehouse", read, schemas=[("bikes-stream", SCHEMA)], deltaTable="bikes")
    return {
        "sources": [HUB],
        "streams": [STREAM],
        "operators": list(operators),
        "destinations": [destination],
        "compatibilityLevel": "1.1",
    } | parts


def drafted(folder: Path, document: Any) -> Draft:
    file = folder / "eventstream.json"
    file.write_text(json.dumps(document))
    return carry_over(read_job(file))


def query(draft: Draft) -> str:
    return str(draft.values["job"]["query"])


def missing(draft: Draft) -> list[str]:
    return [str(finding) for finding in draft.missing]


LACKING = [
    "eventstream.json, hub: input bikes-stream does not say where Capture writes its events: set container, namespace "
    "and event_hub, and capture_interval_seconds if it is not 300",
    "eventstream.json, lake: output lake goes to Lakehouse, but the pipeline publishes to a Delta table of its "
    "own: set the url of its table",
]


def condition(operator: str, value: Any = None, column: str = "Street") -> dict[str, Any]:
    return {"column": {"node": None, "columnName": column}, "operatorType": operator, "value": value}


def text(value: Any) -> dict[str, Any]:
    return {"dataType": "Nvarchar(max)", "value": value, "expressionType": "Literal"}


def group_by(window: Any, *aggregations: Any, keys: Any = ()) -> dict[str, Any]:
    return node("Op", "GroupBy", "bikes-stream", aggregations=aggregations or [SUM], groupBy=keys, window=window)


@pytest.mark.parametrize(
    ("filtered", "where"),
    [
        (condition("Equals", text("Rue de l'Arc")), "[Street] = 'Rue de l''Arc'"),
        (condition("NotEquals", {"dataType": "BigInt", "value": "3"}, "No_Bikes"), "[No_Bikes] <> 3"),
        (condition("GreaterThanOrEquals", {"dataType": "Float", "value": 1.5}, "x"), "[x] >= 1.5"),
        (
            condition("LessThan", {"dataType": "DateTime", "value": "2026-03-01"}, "t"),
            "[t] < CAST('2026-03-01' AS datetime)",
        ),
        (condition("Contains", text("50%_[a]")), "[Street] LIKE '%50[%][_][[]a]%'"),
        (condition("DoesNotStartWith", text("Rue")), "[Street] NOT LIKE 'Rue%'"),
        (condition("EndsWith", text("Arc")), "[Street] LIKE '%Arc'"),
        (condition("IsEmpty"), "[Street] = ''"),
        (condition("IsNull"), "[Street] IS NULL"),
        (condition("IsNotNullOrEmpty"), "[Street] IS NOT NULL AND [Street] <> ''"),
        (
            condition("Equals", text("a"))
            | {"column": {"columnName": "p", "columnPathSegments": [{"field": "q"}, "r"]}},
            "[p].[q].[r] = 'a'",
        ),
    ],
)
def test_a_filter_is_a_where(tmp_path: Path, filtered: Any, where: str) -> None:
    operator = node("Op", "Filter", "bikes-stream", conditions=[filtered])
    draft = drafted(tmp_path, definition(operator))
    assert query(draft) == (
        f"WITH [Op] AS (\n    SELECT * FROM [bikes-stream] WHERE {where}\n)\nSELECT {FIELDS} INTO [lake] FROM [Op]\n"
    )
    assert missing(draft) == LACKING


@pytest.mark.parametrize(
    ("window", "clause"),
    [
        (
            {"type": "Tumbling", "properties": {"duration": MINUTE, "offset": None}},
            "TumblingWindow(Duration(minute, 1))",
        ),
        (
            {"type": "Tumbling", "properties": {"duration": MINUTE, "offset": {"value": 5, "unit": "Second"}}},
            "TumblingWindow(Duration(minute, 1), Offset(second, 5))",
        ),
        (
            {"type": "Hopping", "properties": {"duration": {"value": 1, "unit": "Week"}, "hopSize": MINUTE}},
            "HoppingWindow(Duration(day, 7), Hop(minute, 1))",
        ),
        ({"type": "Sliding", "properties": {"duration": MINUTE}}, "SlidingWindow(Duration(minute, 1))"),
        (
            {"type": "Session", "properties": {"timeout": {"value": 5, "unit": "Second"}, "maxDuration": MINUTE}},
            "SessionWindow(Timeout(second, 5), MaxDuration(minute, 1))",
        ),
        ({"type": "Snapshot"}, "System.Timestamp()"),
    ],
)
def test_a_group_by_is_a_window_with_the_column_of_its_end(tmp_path: Path, window: Any, clause: str) -> None:
    draft = drafted(tmp_path, definition(group_by(window, keys=[{"columnName": "Street"}])))
    assert query(draft) == (
        "WITH [Op] AS (\n    SELECT [Street], SUM([No_Bikes]) AS [bikes], System.Timestamp() AS [Window_End_Time] "
        f"FROM [bikes-stream] GROUP BY [Street], {clause}\n)\nSELECT * INTO [lake] FROM [Op]\n"
    )
    assert missing(draft) == LACKING


def test_every_aggregate_and_every_operation_has_its_function(tmp_path: Path) -> None:
    functions = {
        "Average": "AVG([x])",
        "Count": "COUNT([x])",
        "Maximum": "MAX([x])",
        "Minimum": "MIN([x])",
        "StandardDeviation": "STDEV([x])",
        "StandardDeviationPopulation": "STDEVP([x])",
        "Variance": "VAR([x])",
        "VariancePopulation": "VARP([x])",
        "PercentileContinuous": "PERCENTILE_CONT(0.95) OVER (ORDER BY [x])",
        "PercentileDiscrete": "PERCENTILE_DISC(0.95) OVER (ORDER BY [x])",
    }
    aggregations = [
        {
            "aggregateFunction": name,
            "column": {"columnName": "x"},
            "alias": name,
            "arguments": [0.95] * (name[0] == "P"),
        }
        for name in functions
    ]
    window = {"type": "Tumbling", "properties": {"duration": MINUTE}}
    draft = drafted(tmp_path, definition(group_by(window, *aggregations)))
    columns = ", ".join(f"{call} AS [{name}]" for name, call in functions.items())
    assert f"SELECT {columns}, System.Timestamp()" in query(draft)
    assert missing(draft) == LACKING
    column: dict[str, Any] = {
        "node": None,
        "columnName": "Street",
        "expressionType": "ColumnReference",
        "columnPathSegments": [],
    }
    part = {"functionName": "DatePart", "arguments": [text("Hour"), {"columnName": "EventEnqueuedUtcTime"}]}
    operations = [
        {"type": "Rename", "properties": {"column": {"columnName": "Street"}}, "alias": "street"},
        {"type": "Rename", "properties": {"column": {"columnName": "place", "columnPathSegments": ["x"]}}},
        {"type": "Cast", "properties": {"targetDataType": "BigInt", "column": {"columnName": "n"}}, "alias": "n"},
        {"type": "FunctionCall", "properties": {"functionName": "CharIndex", "arguments": ["a", column]}, "alias": "i"},
        {"type": "FunctionCall", "properties": part, "alias": "hour"},
    ]
    draft = drafted(tmp_path, definition(node("Op", "ManageFields", "bikes-stream", columns=operations)))
    assert query(draft).splitlines()[1] == (
        "    SELECT [Street] AS [street], [place].[x] AS [x], CAST([n] AS bigint) AS [n], CHARINDEX('a', [Street]) AS "
        "[i], DATEPART(hour, [EventEnqueuedUtcTime]) AS [hour] FROM [bikes-stream]"
    )
    assert missing(draft) == LACKING


def test_an_aggregate_adds_its_columns_to_those_of_the_events(tmp_path: Path) -> None:
    aggregation = SUM | {"partitionBy": [{"columnName": "Street"}], "duration": MINUTE}
    draft = drafted(tmp_path, definition(node("Op", "Aggregate", "bikes-stream", aggregations=[aggregation])))
    assert query(draft) == (
        "WITH [Op] AS (\n    SELECT *, SUM([No_Bikes]) OVER (PARTITION BY [Street] LIMIT DURATION(minute, 1)) AS "
        f"[bikes] FROM [bikes-stream]\n)\nSELECT {FIELDS}, [bikes] INTO [lake] FROM [Op]\n"
    )
    assert missing(draft) == LACKING


def test_derived_streams_unions_and_several_sources_are_followed(tmp_path: Path) -> None:
    second = node("iot", "AzureIoTHub", inputSerialization=JSON)
    streams = [node("bikes-stream", "DefaultStream", "hub", "iot"), node("Calm", "DerivedStream", "Few")]
    few = node("Few", "Filter", "bikes-stream", conditions=[condition("LessThan", 3, "No_Bikes")])
    no = node("No", "Filter", "Calm", conditions=[condition("Equals", 0, "No_Bikes")])
    both = node("Both", "Union", "Calm", "No")
    unread = node("All", "DerivedStream", "bikes-stream")
    draft = drafted(tmp_path, definition(few, no, both, sources=[HUB, second], streams=[*streams, unread]))
    assert query(draft) == (
        f"WITH [bikes-stream] AS (\n    SELECT {FIELDS} FROM [hub] UNION SELECT {FIELDS} FROM [iot]\n),\n"
        "[Few] AS (\n    SELECT * FROM [bikes-stream] WHERE [No_Bikes] < 3\n),\n"
        "[No] AS (\n    SELECT * FROM [Few] WHERE [No_Bikes] = 0\n),\n"
        f"[Both] AS (\n    SELECT {FIELDS} FROM [Few] UNION SELECT {FIELDS} FROM [No]\n)\n"
        f"SELECT {FIELDS} INTO [lake] FROM [Both]\nSELECT {FIELDS} INTO [All] FROM [bikes-stream]\n"
    )
    assert [section["alias"] for section in draft.values["input"]] == ["hub", "iot"]
    assert [finding.partition(": ")[2][:40] for finding in missing(draft)] == [
        "input hub does not say where Capture wri",
        "input iot is of kind IoT Hub, but a pipe",
        "output lake goes to Lakehouse, but the p",
        "output All goes to DerivedStream, but th",
    ]


def test_the_query_of_a_sql_operator_is_taken_as_it_is_with_its_settings(tmp_path: Path) -> None:
    text = "SELECT Street, COUNT(*) AS n\r\nINTO [lake]\r\nFROM [bikes-stream]\r\nGROUP BY Street, Tumbling(minute, 1)"
    settings = {
        "eventsOutOfOrderPolicy": "Drop",
        "eventsOutOfOrderMaxDelayInSeconds": 5,
        "eventsLateArrivalMaxDelayInSeconds": 300,
    }
    operator = node("Sql", "SQL", "bikes-stream", query=text, advancedSettings=settings)
    (tmp_path / "eventstream.json").write_text(json.dumps(definition(operator)))
    job = read_job(tmp_path / "eventstream.json")
    assert (job.query, job.settings) == (
        text.replace("\r\n", "\n"),
        SettingsPart.model_validate(settings),
    )
    assert missing(carry_over(job)) == LACKING
    destinations = [*definition(operator)["destinations"], node("all", "Lakehouse", "bikes-stream")]
    assert missing(drafted(tmp_path, definition(operator, destinations=destinations)))[1] == (
        "eventstream.json, all: Lakehouse all does not read SQL Sql: write a pipeline of its own for it"
    )


def test_a_union_has_the_columns_that_all_its_inputs_have(tmp_path: Path) -> None:
    few = node("Few", "Filter", "bikes-stream", conditions=[condition("LessThan", 3, "No_Bikes")])
    schemas = [("bikes-stream", {"x": "BigInt", "y": "Bit", "z": "BigInt"}), ("Few", {"z": "BigInt", "y": "Float"})]
    both = node("Both", "Union", "bikes-stream", "Few", schemas=schemas)
    draft = drafted(tmp_path, definition(few, both, destinations=[node("lake", "Lakehouse", "Both")]))
    column = "TRY_CAST([z] AS bigint) AS [z]"
    assert f"SELECT {column} FROM [bikes-stream] UNION SELECT {column} FROM [Few]" in query(draft)


def test_fields_have_the_types_of_the_schemas_and_are_unknown_without_them(tmp_path: Path) -> None:
    draft = drafted(tmp_path, definition())
    assert query(draft) == f"SELECT {FIELDS} INTO [lake] FROM [bikes-stream]\n"
    assert "a value of another type is NULL" in str(draft.different)
    destination = node("lake", "Lakehouse", "bikes-stream")
    draft = drafted(tmp_path, definition(destinations=[destination]))
    assert query(draft) == "SELECT * INTO [lake] FROM [bikes-stream]\n"
    assert "run recapture infer FILE --write" in missing(draft)[-1]
    assert "a value of another type is NULL" not in str(draft.different)


def test_several_conditions_are_joined_by_and_and_left_to_the_user_to_check(tmp_path: Path) -> None:
    conditions = [condition("IsNotNull"), condition("GreaterThan", 1, "No_Bikes")]
    draft = drafted(tmp_path, definition(node("Op", "Filter", "bikes-stream", conditions=conditions)))
    assert "WHERE [Street] IS NOT NULL AND [No_Bikes] > 1" in query(draft)
    assert missing(draft) == [
        LACKING[0],
        "eventstream.json, Op: Filter Op has 2 conditions, and the definition does not say whether an event must meet "
        "all or one of them: the query has AND; if one is enough, write OR",
        LACKING[1],
    ]


def test_a_lakehouse_has_the_table_next_to_that_of_the_eventstream_so_only_the_address_of_capture_is_missing(
    tmp_path: Path,
) -> None:
    ids = {"workspaceId": "aaaa1111-cc22-3333-44dd-555555eeeeee", "itemId": "cccc2222-dd33-4444-55ee-666666ffffff"}
    window = {"type": "Tumbling", "properties": {"duration": MINUTE}}
    for schema, folder in (("dbo", "Tables/dbo"), ("", "Tables")):
        lake = node("lake", "Lakehouse", "Op", **ids, schema=schema, deltaTable="bikes")
        draft = drafted(tmp_path, definition(group_by(window), destinations=[lake]))
        assert missing(draft) == LACKING[:1]
        table = (
            f"https://onelake.blob.fabric.microsoft.com/{ids['workspaceId']}/{ids['itemId']}/{folder}/bikes_recapture"
        )
        assert draft.values["output"] == {"alias": "lake", "table": table}
        assert f"output lake goes to a table, but its rows are published in a table next to it, {table}" in [
            finding.what for finding in draft.different
        ]
    for odd in ({"workspaceId": "00000000-0000-0000-0000-000000000000"}, {"itemId": "x"}, {"deltaTable": "a/b"}):
        lake = node("lake", "Lakehouse", "Op", **ids | {"schema": "dbo", "deltaTable": "bikes"} | odd)
        assert missing(drafted(tmp_path, definition(group_by(window), destinations=[lake]))) == LACKING


def test_the_folder_of_a_repository_and_the_answer_of_the_api_have_the_name_of_the_item(tmp_path: Path) -> None:
    folder = tmp_path / "Bikes.Eventstream"
    folder.mkdir()
    (folder / "eventstream.json").write_text(json.dumps(definition()))
    assert read_job(folder).name == "Bikes"
    platform = {"metadata": {"type": "Eventstream", "displayName": "City bikes"}}
    (folder / ".platform").write_text(json.dumps(platform))
    assert read_job(folder).name == "City bikes"
    payloads = {"eventstream.json": definition(), "eventstreamProperties.json": {}, ".platform": platform}
    parts = [
        {
            "path": path,
            "payload": base64.b64encode(json.dumps(payload).encode()).decode(),
            "payloadType": "InlineBase64",
        }
        for path, payload in payloads.items()
    ]
    answer = tmp_path / "answer.json"
    answer.write_text(json.dumps({"definition": {"parts": parts}}))
    assert (read_job(answer).name, read_job(answer).query) == ("City bikes", read_job(folder).query)
    parts[0]["payload"] = SECRET
    answer.write_text(json.dumps({"definition": {"parts": parts}}))
    assert refused(answer) == "answer.json: a part of the definition is not text in Base64: download it again"
    answer.write_text(json.dumps({"definition": {"parts": parts[1:]}}))
    assert refused(answer) == "answer.json: the definition has no eventstream.json: export that of an eventstream"


JOIN = node("Join", "Join", "bikes-stream", "bikes-stream", joinType="Inner", joinOn=[], duration=MINUTE)
EXPAND = node("Expand", "Expand", "Join", column=[{"columnName": "list"}], ignoreMissingOrEmpty=True)
MONTHS = {"type": "Tumbling", "properties": {"duration": {"value": 1, "unit": "Month"}}}


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (
            definition(JOIN, EXPAND),
            "no query is known for Join Join (the definition does not say which side may be later, or what the columns "
            "are called); Expand Expand (the definition does not say what the columns of the elements are called): "
            "write the pipeline file yourself",
        ),
        (definition(group_by(MONTHS)), "GroupBy Op (its duration is in the unit Month)"),
        (definition(group_by({"type": "Tumbling"})), "GroupBy Op (it has a window Tumbling that is not complete)"),
        (definition(node("Op", "Magic", "bikes-stream")), "Magic Op (an operator of this type is not supported)"),
        (
            definition(node("Op", "Filter", "bikes-stream", conditions=[condition("Resembles")])),
            "Filter Op (it has a condition Resembles)",
        ),
        (
            definition(node("Op", "Filter", "bikes-stream", conditions=[condition("Equals", {"dataType": SECRET})])),
            "Filter Op (it has a literal of the type of an unknown name that cannot be read)",
        ),
        (
            definition(node("Op", "Filter", "bikes-stream"), node("Sql", "SQL", "bikes-stream", query="SELECT 1")),
            "Filter Op (it is next to SQL Sql)",
        ),
        (
            definition(node("Op", "Filter", "bikes-stream", conditions=[condition("Equals", text({"key": SECRET}))])),
            "Filter Op (it has a literal whose value is not a string)",
        ),
        (
            definition(node("Op", "Filter", "bikes-stream", conditions=[condition("Contains", text(None))])),
            "Filter Op (it has a literal whose value is not a string)",
        ),
        (
            definition(
                node(
                    "Op", "Filter", "bikes-stream", conditions=[condition("Equals", {"dataType": "Bit", "value": "x"})]
                )
            ),
            "Filter Op (it has a literal of the type Bit that cannot be read)",
        ),
        (
            definition(destinations=[node("a]b", "Lakehouse", "bikes-stream")]),
            "Lakehouse a]b (the name 'a]b' cannot be written in a query)",
        ),
        (
            definition(
                destinations=[node("lake", "Lakehouse", "bikes-stream", schemas=[("bikes-stream", {"]": "Bit"})])]
            ),
            "Lakehouse lake (the name ']' cannot be written in a query)",
        ),
        (
            definition(node("Op", "Aggregate", aggregations=[SUM | {"duration": MINUTE}]), node("Both", "Union", "Op")),
            "Aggregate Op (it reads 0 streams instead of one)",
        ),
        (
            definition(node("Op", "Filter", "bikes-stream"), node("Op", "Union", "bikes-stream")),
            "2 nodes are called Op: export the eventstream again",
        ),
        (
            definition(
                *(node(f"Op{n + 1}", "Union", f"Op{n}") for n in range(300)),
                node("Op0", "Union", "bikes-stream"),
                reads="Op300",
            ),
            "more than 200 operators and streams read each other in a row: split the eventstream",
        ),
        (definition(reads="nothing"), "lake reads nothing, which is not in the definition"),
        (definition(node("A", "Union", "B"), node("B", "Union", "A")), "B reads itself: correct the definition"),
        (definition(destinations=[]), "has no destination that reads a stream: add one, and export it again"),
        (definition(node("Op", "Filter", "bikes-stream", conditions=SECRET)), "Op: conditions: should be a list"),
    ],
)
def test_what_no_query_is_known_to_express_is_refused_operator_by_operator(
    tmp_path: Path, document: Any, reason: str
) -> None:
    file = tmp_path / "eventstream.json"
    file.write_text(json.dumps(document))
    message = refused(file)
    assert reason in message
    assert SECRET not in message
