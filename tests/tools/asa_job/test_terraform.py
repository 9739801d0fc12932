"""Reading a job from what `terraform show -json` prints of a state or a plan."""

import json
from pathlib import Path
from typing import Any

import pytest

from recapture.tools.asa_job import carry_over, read_job
from recapture.tools.asa_job.job import BlobFolder, BlobPath, EventHub
from tests.tools.asa_job.jobs import PLAIN_QUERY, SECRET, refused

JOB_ID = "/subscriptions/s/resourceGroups/g/providers/Microsoft.StreamAnalytics/streamingJobs/contoso-job"
SERIALIZATION = [{"type": "Json", "encoding": "UTF8", "field_delimiter": None}]


def resource(kind: str, **values: Any) -> dict[str, Any]:
    type_ = f"azurerm_stream_analytics_{kind}"
    name = values.get("name", "x")
    return {"address": f"{type_}.{name}", "mode": "managed", "type": type_, "name": name, "values": values}


def job(**changes: Any) -> dict[str, Any]:
    values = {
        "name": "contoso-job",
        "compatibility_level": "1.2",
        "data_locale": "en-US",
        "events_late_arrival_max_delay_in_seconds": 60,
        "events_out_of_order_max_delay_in_seconds": 10,
        "events_out_of_order_policy": "Drop",
        "output_error_policy": "Stop",
        "transformation_query": PLAIN_QUERY,
        "job_storage_account": [{"account_key": SECRET, "account_name": "contosodata"}],
    }
    return resource("job", **values | changes)


def event_hub(**changes: Any) -> dict[str, Any]:
    values = {
        "name": "telemetry",
        "stream_analytics_job_name": "contoso-job",
        "servicebus_namespace": "contoso",
        "eventhub_name": "telemetry",
        "shared_access_policy_key": SECRET,
        "serialization": SERIALIZATION,
    }
    return resource("stream_input_eventhub", **values | changes)


def blobs(kind: str, **changes: Any) -> dict[str, Any]:
    values = {
        "name": "regions",
        "stream_analytics_job_name": "contoso-job",
        "storage_account_name": "contosodata",
        "storage_account_key": SECRET,
        "storage_container_name": "reference",
        "path_pattern": "regions/{date}/{time}/regions.csv",
        "date_format": "yyyy-MM-dd",
        "time_format": "HH",
        "serialization": [{"type": "Csv", "encoding": "UTF8", "field_delimiter": ";"}],
    }
    return resource(kind, **values | changes)


OUTPUT = blobs("output_blob", name="aggregates", storage_container_name="curated", path_pattern="rows/{date}")


def shown(folder: Path, *resources: dict[str, Any], values: str = "values", modules: Any = ()) -> Path:
    """Write what Terraform shows of these resources; return the file."""
    root = {"resources": list(resources), "child_modules": [{"resources": list(module)} for module in modules]}
    file = folder / "job.json"
    document = {"format_version": "1.0", "terraform_version": "1.9.0", values: {"root_module": root}}
    file.write_text(json.dumps(document))
    return file


@pytest.mark.parametrize("values", ["values", "planned_values"])
def test_a_job_is_read_from_a_state_or_a_plan(tmp_path: Path, values: str) -> None:
    read = read_job(shown(tmp_path, job(), event_hub(), OUTPUT, values=values))
    assert (read.name, read.query, read.origin) == ("contoso-job", PLAIN_QUERY, "job.json")
    assert list(read.settings.model_dump().values()) == ["Drop", 10, 60, "Stop", "1.2", "en-US"]
    (input_,) = read.inputs
    assert (input_.alias, input_.kind, input_.source, input_.serialization, input_.reference) == (
        *("telemetry", "Event Hub", EventHub("contoso", "telemetry"), "Json", False),
    )
    assert [(output.alias, output.target) for output in read.outputs] == [
        ("aggregates", BlobFolder("contosodata", "curated", ("rows",)))
    ]
    assert read.unread == ()


def test_the_pipeline_file_lacks_only_where_capture_writes(tmp_path: Path) -> None:
    draft = carry_over(read_job(shown(tmp_path, job(), event_hub(), OUTPUT)))
    assert [finding.what.partition(":")[0] for finding in draft.missing] == [
        "input telemetry does not say where Capture writes its events"
    ]
    assert SECRET not in str(draft)


def test_parts_in_modules_and_parts_that_name_the_job_by_its_id_are_read(tmp_path: Path) -> None:
    hub = event_hub(stream_analytics_job_name=None, stream_analytics_job_id=JOB_ID)
    hub["type"] = "azurerm_stream_analytics_stream_input_eventhub_v2"
    read = read_job(shown(tmp_path, job(), modules=[[hub], [blobs("reference_input_blob")]]))
    assert [(input_.alias, input_.reference, input_.delimiter) for input_ in read.inputs] == [
        ("telemetry", False, None),
        ("regions", True, ";"),
    ]
    assert read.inputs[1].path == BlobPath("regions/{date}/{time}/regions.csv", "YYYY-MM-DD", "HH")


@pytest.mark.parametrize(("kind", "is_aggregate"), [("udf", False), ("uda", True)])
def test_javascript_functions_are_read_with_their_types(tmp_path: Path, kind: str, is_aggregate: bool) -> None:
    function = resource(
        f"function_javascript_{kind}",
        name="rate",
        script="function main(x) { return x; }",
        input=[{"type": "nvarchar(max)", "configuration_parameter": None}, {"type": "any"}],
        output=[{"type": "bigint"}],
    )
    (read,) = read_job(shown(tmp_path, job(), event_hub(), function)).functions
    assert (read.name, read.is_aggregate, read.output_type, read.argument_types, read.script) == (
        *("rate", is_aggregate, "bigint", ("nvarchar(max)", "any"), "function main(x) { return x; }"),
    )


def test_one_of_several_jobs_is_chosen_with_its_parts(tmp_path: Path) -> None:
    other = event_hub(name="other", stream_analytics_job_name="second")
    file = shown(tmp_path, job(), event_hub(), job(name="second"), other)
    assert "has several jobs, contoso-job, second: choose one with --job NAME" in refused(file)
    assert [input_.alias for input_ in read_job(file, "Second").inputs] == ["other"]


def test_other_kinds_are_named(tmp_path: Path) -> None:
    sql = resource("output_mssql", name="aggregates", stream_analytics_job_name="contoso-job", password=SECRET)
    read = read_job(shown(tmp_path, job(), sql, resource("cluster", name="c"), resource("something_new", name="n")))
    assert [output.kind for output in read.outputs] == ["SQL Database"]
    assert read.unread == ("job.json, azurerm_stream_analytics_something_new.n",)


def test_what_cannot_be_read_says_what_to_do(tmp_path: Path) -> None:
    assert "no resource azurerm_stream_analytics_job in it" in refused(shown(tmp_path, event_hub()))
    message = refused(shown(tmp_path, job(transformation_query=None)))
    assert "transformation_query is not known: apply the plan, and show the state" in message
    (tmp_path / "main.tf").write_text("")
    for path in (tmp_path, tmp_path / "main.tf"):
        assert "run terraform show -json > job.json" in refused(path)
    for damaged in (job(name=["x"]), job(events_out_of_order_policy=SECRET)):
        assert SECRET not in refused(shown(tmp_path, damaged))
    file = shown(tmp_path)
    for values in (SECRET, {"root_module": SECRET}):
        file.write_text(json.dumps({"format_version": "1.0", "terraform_version": "1.9.0", "values": values}))
        assert refused(file).startswith("job.json: values")
