"""What a pipeline takes from an ASA job, and the exact messages for what it cannot take."""

from pathlib import Path
from typing import Any

import pytest

from recapture.tools.asa_job import Draft, carry_over, read_job
from tests.paths import ROOT
from tests.tools.asa_job.jobs import (
    PLAIN,
    PLAIN_QUERY,
    RATE,
    WIDE,
    WIDE_QUERY,
    blob_output,
    capture_input,
    event_hub,
    event_hub_input,
    job_template,
    parts,
    project,
    reference_input,
    settings,
    template,
    template_input,
    template_job,
    template_output,
)

NO_CAPTURE = (
    "Inputs/telemetry.json: input telemetry does not say where Capture writes its events: set container, and "
    "capture_interval_seconds if it is not 300"
)
EXPORT = (
    "but a pipeline reads it from JSON or CSV blobs: export all rows each time they change, to a blob with that time "
    "in its name, and set container and path; if they never change, take {date} and {time} out of path"
)


OUTPUT = blob_output("more")


def drafted(folder: Path, changes: dict[str, Any] | None = None, query: str = PLAIN_QUERY) -> Draft:
    return carry_over(read_job(project(folder, PLAIN | (changes or {}), query)))


def missing(draft: Draft) -> list[str]:
    return [str(finding) for finding in draft.missing]


def different(draft: Draft) -> list[str]:
    return [str(finding) for finding in draft.different]


def test_every_part_that_a_pipeline_cannot_take_is_named_exactly(tmp_path: Path) -> None:
    draft = carry_over(read_job(project(tmp_path, WIDE, WIDE_QUERY)))
    assert missing(draft) == [
        NO_CAPTURE,
        f"Inputs/regions.json: input regions is reference data of kind SQL Database, {EXPORT}",
        NO_CAPTURE.replace("telemetry", "alerts"),
        "Functions/classify.js.json: function classify returns a value of any type (query lines 3 and 13), but a "
        "published column has one: set output_type",
        "Outputs/dashboard.json: output dashboard goes to Power BI, but the pipeline publishes to a Delta table of its "
        "own: set the url of its table",
    ]
    assert different(draft) == [
        "JobConfig.json: outputErrorPolicy Stop is written to the file but never applies: a table takes every row of "
        "its query, and an arithmetic error in the query stops the run",
        "Outputs/aggregates.json: output aggregates goes to Json blobs, but its rows are published in a Delta table in "
        "the same container, recapture/aggregates",
    ]


def test_the_example_in_the_docs_shows_the_messages(tmp_path: Path) -> None:
    shown = (ROOT / "docs" / "import.md").read_text()
    draft = carry_over(read_job(project(tmp_path, WIDE, WIDE_QUERY)))
    for finding in (*draft.missing, *draft.different):
        assert f"\n  {finding}\n" in shown


def test_an_event_hub_job_lacks_only_its_container(tmp_path: Path) -> None:
    draft = drafted(tmp_path)
    assert missing(draft) == [NO_CAPTURE]
    assert draft.values == {
        "name": "contoso_telemetry",
        "input": {
            "alias": "telemetry",
            "container": "https://ACCOUNT.blob.core.windows.net/CONTAINER",
            "namespace": "contoso",
            "event_hub": "telemetry",
            "capture_interval_seconds": 300,
            "arrival_time": "EventEnqueuedUtcTime",
        },
        "job": {
            "eventsOutOfOrderPolicy": "Drop",
            "eventsOutOfOrderMaxDelayInSeconds": 10,
            "eventsLateArrivalMaxDelayInSeconds": 600,
            "outputErrorPolicy": "Stop",
            "query": PLAIN_QUERY,
        },
        "output": {
            "alias": "aggregates",
            "table": "https://contosodata.blob.core.windows.net/curated/recapture/aggregates",
        },
    }


def test_a_job_on_capture_blobs_lacks_nothing_and_takes_last_modified_as_arrival_time(tmp_path: Path) -> None:
    capture = capture_input("telemetry", "raw/contoso/telemetry/{partition}/{date}/{time}")
    draft = drafted(tmp_path, {"Inputs/telemetry.json": capture})
    assert draft.missing == []
    assert draft.values["input"] == {
        "alias": "telemetry",
        "container": "https://contosocapture.blob.core.windows.net/capture/raw",
        "namespace": "contoso",
        "event_hub": "telemetry",
        "capture_interval_seconds": 300,
        "arrival_time": "BlobLastModified",
    }
    assert different(draft)[0] == (
        "Inputs/telemetry.json: input telemetry does not give Capture's interval: set capture_interval_seconds if it "
        "is not 300"
    )


def blob_input(serialization: dict[str, Any], **storage: Any) -> dict[str, Any]:
    """Return an input that reads JSON lines or CSV."""
    capture = capture_input("telemetry", "raw/logs/{date}/{time}")
    properties = capture["BlobStorageProperties"] | {"DateFormat": "yyyy/MM/dd", "TimeFormat": "HH"} | storage
    return capture | {"Serialization": serialization, "BlobStorageProperties": properties}


def test_a_job_on_json_or_csv_blobs_keeps_its_path(tmp_path: Path) -> None:
    draft = drafted(tmp_path / "json", {"Inputs/telemetry.json": blob_input({"Type": "Json"})})
    assert draft.missing == []
    assert draft.values["input"] == {
        "alias": "telemetry",
        "format": "Json",
        "container": "https://contosocapture.blob.core.windows.net/capture",
        "path": "raw/logs/{date}/{time}",
        "date_format": "YYYY/MM/DD",
        "time_format": "HH",
        "arrival_time": "BlobLastModified",
    }
    csv = blob_input({"Type": "CSV", "FieldDelimiter": "\t"}, PathPattern="", DateFormat=None, TimeFormat=None)
    draft = drafted(tmp_path / "csv", {"Inputs/telemetry.json": csv | {"CompressionType": "GZip"}})
    assert draft.missing == []
    assert draft.values["input"] == {
        "alias": "telemetry",
        "format": "Csv",
        "container": "https://contosocapture.blob.core.windows.net/capture",
        "delimiter": "\t",
        "arrival_time": "BlobLastModified",
    }


def test_an_unreadable_setting_of_an_input_is_left_to_the_user_and_not_copied(tmp_path: Path) -> None:
    storage = {"PathPattern": "a/{x};AccountKey=abc==", "DateFormat": "secret", "TimeFormat": "secret"}
    changes = blob_input({"Type": "Csv", "FieldDelimiter": "secret"}, **storage) | {"CompressionType": "Deflate"}
    draft = drafted(tmp_path, {"Inputs/telemetry.json": changes})
    expected = [
        f"Inputs/telemetry.json: input telemetry {reason}"
        for reason in (
            "holds blobs compressed with Deflate, but only GZip is supported: have the writer leave them uncompressed",
            "has a path that cannot be read: set path",
            "has a date format that cannot be read: set date_format",
            "has a time format that cannot be read: set time_format",
            "has a delimiter that ASA does not support: set delimiter",
        )
    ]
    assert missing(draft) == expected
    assert "secret" not in str(draft.values)
    assert "AccountKey" not in str(draft.values)


def test_a_query_on_json_blobs_cannot_read_metadata_that_they_lack(tmp_path: Path) -> None:
    query = PLAIN_QUERY.replace("eventTime", "EventEnqueuedUtcTime")
    draft = drafted(tmp_path, {"Inputs/telemetry.json": blob_input({"Type": "Json"})}, query)
    assert "EventEnqueuedUtcTime is not metadata of Json blobs" in missing(draft)[0]


def test_a_query_that_reads_capture_s_records_has_to_read_the_body(tmp_path: Path) -> None:
    query = PLAIN_QUERY.replace("eventTime", "EnqueuedTimeUtc").replace("deviceId", "Body.deviceId", 1)
    draft = drafted(tmp_path, {"Inputs/telemetry.json": capture_input("telemetry")}, query)
    assert missing(draft)[0] == (
        "Inputs/telemetry.json: input telemetry reads Capture's records (query lines 1 and 3: one of SequenceNumber, "
        "Offset, EnqueuedTimeUtc, SystemProperties, Properties, Body), but a pipeline reads the fields of the body: "
        "use these fields in the query"
    )


def test_a_pattern_without_namespace_and_event_hub_leaves_them_to_the_user(tmp_path: Path) -> None:
    draft = drafted(tmp_path, {"Inputs/telemetry.json": capture_input("telemetry", "{date}/{time}")})
    assert missing(draft) == [
        "Inputs/telemetry.json: input telemetry has no namespace: set namespace",
        "Inputs/telemetry.json: input telemetry has no event hub: set event_hub",
    ]
    assert (draft.values["input"]["namespace"], draft.values["input"]["event_hub"]) == (None, None)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {"Serialization": {"Type": "Protobuf"}},
            "input telemetry holds Protobuf bodies, but only JSON, CSV and Avro are supported: every event would be "
            "malformed; have the senders write one of these",
        ),
        (
            {"EventHubProperties": None, "DataSourceType": "IoT Hub", "IoTHubProperties": {}},
            "input telemetry is of kind IoT Hub, but a pipeline reads only archives: route its events to an event hub "
            "with Capture, and set container, namespace and event_hub; or use another input format",
        ),
        (
            capture_input("telemetry") | {"Serialization": {"Type": "Parquet"}},
            "input telemetry reads Parquet blobs, but only JSON, CSV and Capture's Avro blobs are supported: set "
            "container to one that Capture writes to",
        ),
        (
            capture_input("telemetry") | {"BlobStorageProperties": {"PathPattern": "contoso/telemetry/{date}"}},
            "input telemetry has no valid storage account or container name: set container",
        ),
    ],
)
def test_an_input_that_cannot_be_read_as_it_is_is_reported(
    tmp_path: Path, changes: dict[str, Any], expected: str
) -> None:
    draft = drafted(tmp_path, {"Inputs/telemetry.json": event_hub_input("telemetry", **changes)})
    assert f"Inputs/telemetry.json: {expected}" in missing(draft)


@pytest.mark.parametrize(
    ("changes", "keys"),
    [
        ({"Serialization": {"Type": "Csv", "FieldDelimiter": ";"}}, {"body_format": "Csv", "body_delimiter": ";"}),
        ({"Serialization": {"Type": "Avro"}, "CompressionType": "GZip"}, {"body_format": "Avro"}),
        ({"CompressionType": "GZip"}, {"body_compression": "GZip"}),
        ({"CompressionType": "Deflate"}, {"body_compression": "Deflate"}),
        ({}, {}),
    ],
)
def test_how_bodies_are_written_is_carried_over(tmp_path: Path, changes: dict[str, Any], keys: dict[str, str]) -> None:
    draft = drafted(tmp_path, {"Inputs/telemetry.json": event_hub_input("telemetry", **changes)})
    section = draft.values["input"]
    assert {key: value for key, value in section.items() if key.startswith("body_")} == keys
    assert missing(draft) == [NO_CAPTURE]


def test_a_job_without_a_stream_takes_its_alias_from_the_query(tmp_path: Path) -> None:
    files = {name: text for name, text in PLAIN.items() if not name.startswith("Inputs")}
    draft = carry_over(read_job(project(tmp_path, files)))
    assert draft.values["input"]["alias"] == "telemetry"
    assert missing(draft) == [
        "asaproj.json: the job defines no stream input: set container, namespace and event_hub to those of the Capture"
    ]


def test_the_stream_is_the_one_that_the_query_reads(tmp_path: Path) -> None:
    files = {"Inputs/a.json": event_hub_input("first"), **PLAIN}
    draft = carry_over(read_job(project(tmp_path, files)))
    assert draft.values["input"]["alias"] == "telemetry"
    assert "Inputs/a.json: input first is not read by the query: left out" in different(draft)


def test_functions_and_outputs_that_the_query_does_not_use_are_left_out(tmp_path: Path) -> None:
    function = {"Name": "classify", "ScriptType": "CSharpFunction"}
    files = {"Functions/classify.json": function, "Outputs/old.json": blob_output("old")}
    messages = different(drafted(tmp_path, files))
    assert "Functions/classify.json: function classify is not called by the query: left out" in messages
    assert "Outputs/old.json: output old is not written by the query: left out" in messages


@pytest.mark.parametrize(
    ("sub_type", "language"),
    [("CSharpFunction", "C#"), ("AMLFunction", "machine learning"), ("XFunction", "XFunction")],
)
def test_a_function_is_reported_with_its_language(tmp_path: Path, sub_type: str, language: str) -> None:
    query = PLAIN_QUERY.replace("COUNT(*)", "udf.rate(deviceId)")
    draft = drafted(tmp_path, {"Functions/rate.json": {"Name": "rate", "ScriptType": sub_type}}, query)
    assert any(f"function rate is written in {language} (query line 1)" in message for message in missing(draft))


CALLING = PLAIN_QUERY.replace("COUNT(*)", "udf.rate(COUNT(*))")


AGGREGATING = PLAIN_QUERY.replace("COUNT(*)", "uda.total(CAST(temperature AS float))")
TOTAL: dict[str, Any] = {
    "Functions/total.js.json": {
        "Name": "total",
        "Type": "Aggregate",
        "ScriptType": "JSFunction",
        "FunctionInputs": [{"DataType": "any"}, {"DataType": "any"}],
        "OutputType": "float",
    },
    "Functions/total.js": "function main() {}",
}
"""Files of a JavaScript aggregate, as Visual Studio writes them: its second argument is the timestamp."""


@pytest.mark.parametrize(
    ("files", "query", "name", "types"),
    [
        (RATE, CALLING, "rate", {"output_type": "float", "argument_types": ["bigint"]}),
        (TOTAL, AGGREGATING, "total", {"kind": "aggregate", "output_type": "float", "argument_types": ["any"]}),
    ],
)
def test_a_javascript_function_is_carried_over_with_its_script_kind_and_types(
    tmp_path: Path, files: dict[str, Any], query: str, name: str, types: dict[str, Any]
) -> None:
    draft = drafted(tmp_path, files, query)
    script = f"contoso_telemetry_functions/{name}.js"
    assert draft.values["functions"] == {name: types | {"script": script}}
    assert draft.scripts == {script: files[f"Functions/{name}.js"]}
    assert missing(draft) == [NO_CAPTURE]


def drafted_template(folder: Path, query: str, name: str, kind: str, argument: str, script: str) -> Draft:
    """Return the draft of a template whose job has a JavaScript function that returns a float."""
    binding = {"type": "Microsoft.StreamAnalytics/JavascriptUdf", "properties": {"script": script}}
    signature = {"inputs": [{"dataType": argument}], "output": {"dataType": "float"}, "binding": binding}
    functions = parts(**{name: {"type": kind, "properties": signature}})
    transformation = {"name": "t", "properties": {"query": query}}
    return carry_over(read_job(job_template(folder, functions=functions, transformation=transformation)))


@pytest.mark.parametrize(
    ("files", "query", "name", "kind", "argument"),
    [(RATE, CALLING, "rate", "Scalar", "bigint"), (TOTAL, AGGREGATING, "total", "Aggregate", "any")],
)
def test_a_function_of_a_template_is_that_of_a_project(
    tmp_path: Path, files: dict[str, Any], query: str, name: str, kind: str, argument: str
) -> None:
    draft = drafted_template(tmp_path, query, name, kind, argument, files[f"Functions/{name}.js"])
    other = drafted(tmp_path, files, query)
    assert (draft.values["functions"], draft.scripts) == (other.values["functions"], other.scripts)


def test_a_function_without_a_script_is_reported(tmp_path: Path) -> None:
    draft = drafted(tmp_path, {"Functions/rate.js.json": RATE["Functions/rate.js.json"]}, CALLING)
    assert (
        "Functions/rate.js.json: function rate has no script that can be read (query line 1): set script to its file"
    ) in missing(draft)


def test_an_output_that_the_job_does_not_define_is_reported(tmp_path: Path) -> None:
    draft = drafted(tmp_path, query=PLAIN_QUERY.replace("aggregates", "elsewhere"))
    assert draft.values["output"] == {
        "alias": "elsewhere",
        "table": "https://ACCOUNT.blob.core.windows.net/CONTAINER/elsewhere",
    }
    assert missing(draft)[1] == (
        "Transformation.asaql: the query writes to elsewhere (query line 2), which the job does not define: set the "
        "url of its table"
    )
    without_into = drafted(tmp_path / "silent", query=PLAIN_QUERY.replace("INTO aggregates\n", ""))
    assert missing(without_into)[1] == (
        "Transformation.asaql: the query has no INTO, so it writes to `output`, which the job does not define: set "
        "the url of its table"
    )


def test_a_project_whose_files_are_not_checked_in_gives_a_file_and_what_is_missing(tmp_path: Path) -> None:
    folder = project(tmp_path, PLAIN | RATE, CALLING)
    for name in ("JobConfig.json", "Inputs/telemetry.json", "Functions/rate.js.json"):
        folder.joinpath(name).unlink()
    folder.joinpath("Outputs/aggregates.json").write_text('{"ScriptType": "Output"}')
    draft = carry_over(read_job(folder))
    assert missing(draft) == [
        "Inputs/telemetry.json: input telemetry is not defined, as its file does not exist: set container, namespace "
        "and event_hub to those of its Capture, or restore the file and import the job again",
        "Functions/rate.js.json: function rate (query line 1) is not defined, as its file does not exist: set "
        "output_type, and add kind: aggregate if it is an aggregate",
        "JobConfig.json: the settings of the job are not known, as this file does not exist: the pipeline file has "
        "ASA's defaults; set the policies and the tolerances of the job",
        "Outputs/aggregates.json: output aggregates is not defined, as its file is a placeholder of Visual Studio, "
        "without a name: set the url of its table",
    ]
    assert (draft.values["input"]["alias"], draft.values["output"]["alias"]) == ("telemetry", "aggregates")
    assert draft.scripts == {"contoso_telemetry_functions/rate.js": "function main(n) { return n / 300; }"}


def test_a_placeholder_that_the_query_does_not_name_is_left_out(tmp_path: Path) -> None:
    changes = {"Inputs/Input.json": {"ScriptType": "Input"}, "Outputs/Output.json": {"ScriptType": "Output"}}
    draft = drafted(tmp_path, changes)
    assert missing(draft) == [NO_CAPTURE]
    assert "Inputs/Input.json: input Input is not read by the query: left out" in different(draft)
    assert "Outputs/Output.json: output Output is not written by the query: left out" in different(draft)


TWO_STREAMS = PLAIN_QUERY + "SELECT deviceId INTO more FROM alerts\n"
LOOK_UP = PLAIN_QUERY.replace("deviceId", "r.region").replace(
    "TIMESTAMP BY eventTime", "t TIMESTAMP BY t.eventTime JOIN regions r ON t.deviceId = r.deviceId"
)


def test_every_stream_that_the_query_reads_is_an_input_and_has_its_own_findings(tmp_path: Path) -> None:
    files = {"Inputs/alerts.json": capture_input("alerts", "contoso/alerts/{partition}"), "Outputs/more.json": OUTPUT}
    draft = drafted(tmp_path, files, TWO_STREAMS)
    inputs = draft.values["input"]
    assert [section["alias"] for section in inputs] == [section["event_hub"] for section in inputs]
    assert [section["alias"] for section in inputs] == ["telemetry", "alerts"]
    assert [section["arrival_time"] for section in inputs] == ["EventEnqueuedUtcTime", "BlobLastModified"]
    assert missing(draft) == [NO_CAPTURE]
    assert list(draft.notes) == [("input", 0, "container"), ("job",)]


def test_inputs_are_in_the_order_of_the_query(tmp_path: Path) -> None:
    files = {"Inputs/alerts.json": event_hub_input("alerts"), **PLAIN, "Outputs/more.json": OUTPUT}
    query = "SELECT deviceId INTO more FROM alerts\n" + PLAIN_QUERY
    draft = carry_over(read_job(project(tmp_path, files, query)))
    assert [section["alias"] for section in draft.values["input"]] == ["alerts", "telemetry"]


def test_reference_data_in_blobs_keeps_its_path_and_format(tmp_path: Path) -> None:
    csv = reference_input("regions", {"Type": "Csv", "FieldDelimiter": ";"}) | {"CompressionType": "GZip"}
    draft = drafted(tmp_path / "csv", {"Inputs/regions.json": csv}, LOOK_UP)
    assert missing(draft) == [NO_CAPTURE]
    assert draft.notes["input", 0, "container"]
    assert draft.values["input"][1] == {
        "type": "Reference",
        "alias": "regions",
        "format": "Csv",
        "container": "https://contosodata.blob.core.windows.net/reference",
        "path": "regions/{date}/{time}/regions.csv",
        "date_format": "YYYY-MM-DD",
        "time_format": "HH-mm",
        "delimiter": ";",
    }
    once = reference_input("regions", {"Type": "Json"}, PathPattern="regions.json", DateFormat=None, TimeFormat=None)
    draft = drafted(tmp_path / "json", {"Inputs/regions.json": once}, LOOK_UP)
    assert missing(draft) == [NO_CAPTURE]
    assert draft.values["input"][1] == {
        "type": "Reference",
        "alias": "regions",
        "format": "Json",
        "container": "https://contosodata.blob.core.windows.net/reference",
        "path": "regions.json",
    }


def test_reference_data_of_a_template_is_that_of_a_project(tmp_path: Path) -> None:
    properties = {
        "storageAccounts": [{"accountName": "contosodata", "accountKey": "[parameters('key')]"}],
        "container": "reference",
        "pathPattern": "regions/{date}/{time}/regions.csv",
        "dateFormat": "yyyy-MM-dd",
        "timeFormat": "HH-mm",
    }
    csv = {"type": "Csv", "properties": {"fieldDelimiter": ","}}
    datasource = {"type": "Microsoft.Storage/Blob", "properties": properties}
    regions = template_input(type="Reference", datasource=datasource, serialization=csv)
    draft = looking_up(tmp_path, regions)
    other = drafted(tmp_path, {"Inputs/regions.json": reference_input("regions", {"Type": "Csv"})}, LOOK_UP)
    assert draft.values["input"] == other.values["input"]


def looking_up(folder: Path, regions: dict[str, Any]) -> Draft:
    """Return the draft of a template whose job joins this reference data."""
    inputs = parts(telemetry=template_input(), regions=regions)
    transformation = {"name": "t", "properties": {"query": LOOK_UP}}
    return carry_over(read_job(job_template(folder, inputs=inputs, transformation=transformation)))


def test_reference_data_in_a_database_has_a_section_to_fill_in(tmp_path: Path) -> None:
    datasource = {"type": "Microsoft.Sql/Server/Database", "properties": {"table": "regions", "password": "secret"}}
    draft = looking_up(tmp_path, template_input(type="Reference", datasource=datasource))
    assert draft.values["input"][1] == {
        "type": "Reference",
        "alias": "regions",
        "format": "Json",
        "container": "https://ACCOUNT.blob.core.windows.net/CONTAINER",
        "path": "regions/{date}/{time}/regions.json",
    }
    message = f"input regions is reference data of kind SQL Database, {EXPORT}"
    assert missing(draft)[1:] == [f"t.json, inputs/regions: {message}"]
    assert draft.notes["input", 1, "container"] == draft.notes["input", 1, "path"] == [f"TO DO: {message}"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"Serialization": {"Type": "Delta"}}, f"input regions is reference data in Delta, {EXPORT}"),
        ({"Serialization": {"Type": "Avro"}}, f"input regions is reference data in Avro, {EXPORT}"),
        (
            {"CompressionType": "Deflate"},
            "input regions holds blobs compressed with Deflate, but only GZip is supported: have the writer leave them "
            "uncompressed",
        ),
        (
            {"BlobReferenceProperties": {"PathPattern": "a.csv"}},
            "input regions has no valid storage account or container name: set container",
        ),
        (
            reference_input("regions", {"Type": "Csv"}, PathPattern=""),
            "input regions has no path: set path to the name of the blob",
        ),
        (
            reference_input("regions", {"Type": "Csv"}, DeltaPathPattern="changes/{date}/{time}/regions.csv"),
            "input regions has blobs of changes (deltaPathPattern), but a pipeline reads only blobs of all rows: write "
            "a blob of all rows for each change",
        ),
    ],
)
def test_reference_data_that_cannot_be_read_as_it_is_is_reported(
    tmp_path: Path, changes: dict[str, Any], expected: str
) -> None:
    regions = reference_input("regions", {"Type": "Csv"}) | changes
    draft = drafted(tmp_path, {"Inputs/regions.json": regions}, LOOK_UP)
    assert missing(draft) == [NO_CAPTURE, f"Inputs/regions.json: {expected}"]


def test_a_job_of_reference_data_alone_has_a_stream_to_fill_in(tmp_path: Path) -> None:
    files = {"JobConfig.json": settings(), "Inputs/regions.json": reference_input("regions", {"Type": "Csv"})}
    draft = carry_over(read_job(project(tmp_path, files, LOOK_UP)))
    assert [section["alias"] for section in draft.values["input"]] == ["telemetry", "regions"]
    assert missing(draft)[0].startswith("asaproj.json: the job defines no stream input: set container")
    assert ("input", 0, "namespace") in draft.notes


def test_an_input_whose_file_does_not_exist_is_a_section_to_fill_in(tmp_path: Path) -> None:
    files = PLAIN | {"Inputs/alerts.json": {"ScriptType": "Input"}, "Outputs/more.json": OUTPUT}
    folder = project(tmp_path, files, TWO_STREAMS)
    folder.joinpath("Inputs/alerts.json").unlink()
    draft = carry_over(read_job(folder))
    assert draft.values["input"][1]["alias"] == "alerts"
    assert missing(draft) == [
        NO_CAPTURE,
        "Inputs/alerts.json: input alerts is not defined, as its file does not exist: set container, namespace and "
        "event_hub to those of its Capture, or restore the file and import the job again",
    ]


def test_reference_data_whose_file_is_a_placeholder_is_a_section_to_fill_in(tmp_path: Path) -> None:
    draft = drafted(tmp_path, {"Inputs/regions.json": {"ScriptType": "Input", "Type": "Reference data"}}, LOOK_UP)
    assert missing(draft)[1:] == [
        "Inputs/regions.json: input regions is not defined, as its file is a placeholder of Visual Studio, without a "
        "name: set format, container and path to those of its blobs, or restore the file and import the job again",
    ]


BITS = "true and false in deviceId are bit instead of bigint 1 and 0: add a CAST if the query relies on bigint"
BEFORE_1_1 = (
    "the names of windowEnd and deviceId keep their case instead of becoming lower case; a string that looks like a "
    "time in deviceId stays a string instead of becoming a datetime in UTC"
)
DECLARED = "CREATE TABLE telemetry (eventTime datetime, deviceId nvarchar(max), place record, weight float);\n"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"CompatibilityLevel": "1.1"}, f"the compatibility level is 1.1, but the query runs as in 1.2: {BITS}"),
        (
            {"CompatibilityLevel": "1.0"},
            f"the compatibility level is 1.0, but the query runs as in 1.2: {BITS}; {BEFORE_1_1}",
        ),
        (
            {"CompatibilityLevel": "2.0"},
            "the compatibility level is 2.0, but the query runs as in 1.2: the differences are not known",
        ),
        (
            {"CompatibilityLevel": None},
            f"the job sets no compatibility level, and its query runs as in 1.2: if it was 1.0, {BITS}; {BEFORE_1_1}",
        ),
        ({"DataLocale": "de-DE"}, "dataLocale is de-DE, but numbers and times in strings are read as in en-US"),
        (
            {"EventsLateArrivalMaxDelayInSeconds": None},
            "eventsLateArrivalMaxDelayInSeconds is not set: the file says -1 (no limit), as ASA does by default",
        ),
    ],
)
def test_settings_that_mean_something_else_in_a_pipeline_are_reported(
    tmp_path: Path, changes: dict[str, Any], expected: str
) -> None:
    draft = drafted(tmp_path, {"JobConfig.json": settings(**changes)})
    assert missing(draft) == [NO_CAPTURE]
    assert f"JobConfig.json: {expected}" in different(draft)


@pytest.mark.parametrize(
    ("level", "query", "expected"),
    [
        ("1.1", DECLARED + PLAIN_QUERY, []),
        (
            "1.0",
            (DECLARED + PLAIN_QUERY)
            .replace("AS windowEnd", "AS window_end")
            .replace(", deviceId,", ", deviceId AS d,"),
            ["CREATE TABLE rejects NaN in weight"],
        ),
        (
            "1.1",
            DECLARED + PLAIN_QUERY.replace("GROUP", "WHERE ST_WITHIN(place, CreatePoint(1.0, 2.0)) = 1 GROUP"),
            ["in ST_WITHIN, shapes are compared on a plane instead of on the globe"],
        ),
        (
            "1.1",
            PLAIN_QUERY.replace("COUNT(*)", "NOFUNCTION(x)"),
            [
                "true and false in JSON are bit instead of bigint 1 and 0: add a CAST if the query relies on bigint",
                "geospatial functions compare shapes on a plane instead of on the globe",
            ],
        ),
    ],
)
def test_only_the_differences_of_a_level_that_touch_the_query_are_reported(
    tmp_path: Path, level: str, query: str, expected: list[str]
) -> None:
    draft = drafted(tmp_path, {"JobConfig.json": settings(CompatibilityLevel=level)}, query)
    prefix = f"JobConfig.json: the compatibility level is {level}, but the query runs as in 1.2: "
    reported = [finding.removeprefix(prefix) for finding in different(draft) if finding.startswith(prefix)]
    assert reported == (["; ".join(expected)] if expected else [])


def test_a_setting_that_the_job_leaves_out_has_asa_s_default(tmp_path: Path) -> None:
    job = drafted(tmp_path, {"JobConfig.json": {"ScriptType": "JobConfig"}}).values["job"]
    assert job == {
        "eventsOutOfOrderPolicy": "Adjust",
        "eventsOutOfOrderMaxDelayInSeconds": 0,
        "eventsLateArrivalMaxDelayInSeconds": -1,
        "query": PLAIN_QUERY,
    }


def test_a_value_that_a_template_leaves_open_is_an_environment_variable_and_reported(tmp_path: Path) -> None:
    source = event_hub(serviceBusNamespace="[parameters('space')]", eventHubName="telemetry")
    file = job_template(
        tmp_path,
        inputs=parts(telemetry=template_input(datasource=source | {"type": "Microsoft.EventHub/EventHub"})),
        eventsLateArrivalMaxDelayInSeconds="[parameters('late')]",
        transformation={"properties": {"query": f"[concat('{PLAIN_QUERY}', parameters('having'))]"}},
    )
    draft = carry_over(read_job(file))
    assert draft.values["input"]["namespace"] == "${space}"
    assert draft.values["job"]["eventsLateArrivalMaxDelayInSeconds"] == "${late}"
    messages = missing(draft)
    assert (
        "t.json: input.namespace uses ${space}, which the template leaves open: set the environment variable "
        "space, or write the value"
    ) in messages
    assert any(
        message.startswith("t.json: job.eventsLateArrivalMaxDelayInSeconds uses ${late}") for message in messages
    )
    assert (
        "t.json, contoso-telemetry: the query uses ${having}, which the template leaves open: write its value in "
        "the query"
    ) in messages


def test_a_job_whose_name_is_left_open_is_named_after_its_file(tmp_path: Path) -> None:
    resource = template_job() | {"name": "[parameters('nowhere')]"}
    draft = carry_over(read_job(template(tmp_path / "7-Streams.JobTemplate.json", resource)))
    assert draft.name == "job_7_streams"


def test_the_kind_of_an_output_is_reported_in_words(tmp_path: Path) -> None:
    outputs = parts(aggregates=template_output("Microsoft.Sql/Server/Database"))
    draft = carry_over(read_job(job_template(tmp_path, outputs=outputs)))
    assert (
        "t.json, outputs/aggregates: output aggregates goes to SQL Database, but the pipeline publishes to a Delta "
        "table of its own: set the url of its table"
    ) in missing(draft)


def test_watermark_settings_of_an_output_are_left_out(tmp_path: Path) -> None:
    watermarks = {"watermarkSettings": {"watermarkMode": "SendCurrentPartitionWatermark"}}
    draft = carry_over(read_job(job_template(tmp_path, outputs=parts(aggregates=template_output() | watermarks))))
    assert (
        "t.json, outputs/aggregates: the watermark settings of output aggregates only decide when the live job sends a "
        "row: left out"
    ) in different(draft)
