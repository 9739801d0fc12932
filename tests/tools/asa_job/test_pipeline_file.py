"""The written pipeline file: the unchanged query, a note above each line that needs one, and no credential."""

import contextlib
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from recapture.definition.document import read
from recapture.definition.pipeline import Pipeline, load
from recapture.errors import DefinitionError
from recapture.formats.csv import CsvInput
from recapture.formats.event_hubs import CaptureInput
from recapture.formats.path_names import InputPath
from recapture.tools.asa_job import Draft, carry_over, pipeline_text, read_job
from tests.tools.asa_job.jobs import (
    CAPTURED,
    PLAIN,
    SECRET,
    WIDE,
    WIDE_QUERY,
    capture_input,
    event_hub,
    event_hub_input,
    job_template,
    parts,
    project,
    reference_input,
    template,
    template_input,
    template_job,
)


def read_back(text: str, folder: Path) -> dict[str, Any]:
    """Return the values of a pipeline file with this text; PyYAML must read the same ones."""
    file = folder / "pipeline.yaml"
    file.write_text(text)
    values = read(file).values
    assert yaml.safe_load(text) == values
    return values


def text_of(path: Path) -> str:
    job = read_job(path)
    return pipeline_text(carry_over(job), job.origin)


def loaded(folder: Path, job: Path) -> Pipeline:
    """Return the pipeline that is imported from a job."""
    file = folder / "telemetry.yaml"
    file.write_text(text_of(job))
    return load(file)


def test_a_job_on_capture_blobs_gives_a_pipeline_that_loads(tmp_path: Path) -> None:
    pipeline = loaded(tmp_path, project(tmp_path, CAPTURED))
    (section,) = pipeline.inputs
    assert isinstance(section, CaptureInput)
    assert (pipeline.name, section.event_hub, pipeline.job.policy) == ("contoso_telemetry", "telemetry", "Drop")
    assert (pipeline.job.out_of_order_seconds, pipeline.job.late_seconds) == (10, 600)


def test_the_name_of_the_job_s_file_stays_in_its_comment(tmp_path: Path) -> None:
    file = job_template(tmp_path).rename(tmp_path / "a\nother: b\r#.json")
    text = text_of(file)
    assert text.startswith("# From the job in a?other: b?#.json.\n")
    assert "other" not in read_back(text, tmp_path)


def test_a_job_on_csv_blobs_gives_a_pipeline_that_loads(tmp_path: Path) -> None:
    datasource = {
        "type": "Microsoft.Storage/Blob",
        "properties": {
            "storageAccounts": [{"accountName": "contosodata", "accountKey": "[parameters('key')]"}],
            "container": "raw",
            "pathPattern": "logs/{partition}/{date}",
            "dateFormat": "yyyy-MM-dd",
            "timeFormat": "HH",
        },
    }
    csv = {"type": "Csv", "properties": {"fieldDelimiter": ";", "encoding": "UTF8"}}
    inputs = parts(telemetry=template_input(datasource=datasource, serialization=csv))
    section = loaded(tmp_path, job_template(tmp_path, inputs=inputs)).inputs[0]
    assert isinstance(section, CsvInput)
    assert (section.delimiter, section.names) == (";", InputPath("logs/{partition}/{date}", "YYYY-MM-DD"))


def test_a_job_with_two_streams_and_reference_data_gives_a_pipeline_that_loads(tmp_path: Path) -> None:
    files = CAPTURED | {
        "Inputs/alerts.json": capture_input("alerts", "contoso/alerts/{partition}"),
        "Inputs/regions.json": reference_input("regions", {"Type": "Csv"}),
    }
    query = (
        "SELECT t.deviceId, r.region INTO aggregates FROM telemetry t TIMESTAMP BY eventTime\n"
        "JOIN regions r ON t.regionId = r.id UNION SELECT deviceId, place AS region FROM alerts TIMESTAMP BY raisedAt\n"
    )
    pipeline = loaded(tmp_path, project(tmp_path, files, query))
    assert [section.alias for section in pipeline.inputs] == ["telemetry", "alerts"]
    assert [section.alias for section in pipeline.references] == ["regions"]


def test_an_event_hub_job_loads_only_after_its_container_is_filled_in(tmp_path: Path) -> None:
    file = tmp_path / "telemetry.yaml"
    text = text_of(project(tmp_path, PLAIN))
    file.write_text(text)
    with pytest.raises(DefinitionError, match=r"input\.container"):
        load(file)
    file.write_text(text.replace("ACCOUNT", "contoso").replace("CONTAINER", "capture"))
    assert load(file).inputs[0].arrival_time == "EventEnqueuedUtcTime"


def test_every_note_is_above_the_line_that_it_is_about(tmp_path: Path) -> None:
    lines = text_of(project(tmp_path, WIDE, WIDE_QUERY)).splitlines()
    assert lines[0] == "# From the job in asaproj.json."
    container = lines.index("  container: https://ACCOUNT.blob.core.windows.net/CONTAINER")
    assert lines[container - 1].startswith("  # TO DO: input telemetry does not say where Capture writes")
    alerts = lines.index("- alias: alerts")
    assert lines[alerts + 1].startswith("  # TO DO: input alerts does not say where Capture writes")
    path = lines.index("  path: regions/{date}/{time}/regions.json")
    assert lines[path - 1].startswith("  # TO DO: input regions is reference data of kind SQL Database")
    query = lines.index("  query: |")
    assert lines[query + 1 :][:3] == ["    " + line for line in WIDE_QUERY.splitlines()[:3]]
    dashboard = lines.index("- alias: dashboard")
    assert lines[dashboard + 1].startswith("  # TO DO: output dashboard goes to Power BI")
    assert "# compatibility level of the job: 1.2" in lines


@given(st.text() | st.text(alphabet="SELECT\t \n'-#:|>{}é\u2028\x85\x00\ufeff\U0001f600"))
def test_any_query_is_read_back_unchanged(tmp_path_factory: pytest.TempPathFactory, query: str) -> None:
    draft = Draft("x", {"name": "x", "job": {"query": query}, "output": [{"alias": None}]})
    draft.notes["output", 0, "alias"] = [f"two\nlines {query}"]
    assert read_back(pipeline_text(draft, "t.json"), tmp_path_factory.getbasetemp()) == draft.values


@pytest.mark.parametrize("text", ["on", "y", "N", "0600", "12:30", "1e5", "1.5e3", "2026-03-01", "~", "=", "", "null"])
def test_a_text_that_looks_like_another_type_is_read_back_as_text(tmp_path: Path, text: str) -> None:
    draft = Draft("x", {"name": text, "job": {"query": text}})
    assert read_back(pipeline_text(draft, "t.json"), tmp_path) == draft.values


@given(st.lists(st.sampled_from(["SELECT\t1", "  FROM t  ", "", "-- é: # |", "\t", "GROUP BY x"]), min_size=1))
def test_a_query_of_plain_lines_is_written_as_a_block(lines: list[str]) -> None:
    draft = Draft("x", {"name": "x", "job": {"query": "\n".join(["SELECT", *lines])}})
    assert "\n  query: |" in pipeline_text(draft, "t.json")


DAMAGE: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 7, 1e99, "", "[", "[parameters('x')]", "[[x]", "\x00\x85", [], [[]], [{}], {}, {"a": 1}]
)


def damaged(data: st.DataObject, value: Any) -> Any:
    """Return the document with one value replaced by `DAMAGE`."""
    if isinstance(value, dict | list) and value and data.draw(st.integers(0, 5)):
        key = data.draw(st.sampled_from(list(value) if isinstance(value, dict) else list(range(len(value)))))
        changed = value.copy()
        changed[key] = damaged(data, value[key])
        return changed
    return data.draw(DAMAGE)


@given(st.data())
def test_any_damage_gives_a_readable_file_or_a_definition_error(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as home:
        name = data.draw(st.sampled_from(["", *PLAIN]))
        if name:
            path = project(Path(home), PLAIN)
            path.joinpath(name).write_text(json.dumps(damaged(data, PLAIN[name])))
        else:
            path = job_template(Path(home))
            path.write_text(json.dumps(damaged(data, json.loads(path.read_text()))))
        with contextlib.suppress(DefinitionError):
            job = read_job(path)
            draft = carry_over(job)
            assert read_back(pipeline_text(draft, job.origin), Path(home)) == draft.values


def with_secret_everywhere(value: Any) -> Any:
    """Return the document with SECRET in place of every text and number, except the names of its parts."""
    if isinstance(value, dict):
        unchanged = ("Name", "Type", "ScriptType", "name", "type", "DataSourceType", "query", "compatibilityLevel")
        return {key: item if key in unchanged else with_secret_everywhere(item) for key, item in value.items()}
    if isinstance(value, list):
        return [with_secret_everywhere(item) for item in value]
    return SECRET if isinstance(value, str | int) and not isinstance(value, bool) else value


def output_of_import(path: Path) -> str:
    """Return all output of importing this path, or the message of its error."""
    try:
        job = read_job(path)
    except DefinitionError as error:
        return str(error)
    draft = carry_over(job)
    return "\n".join([pipeline_text(draft, job.origin), *map(str, draft.missing), *map(str, draft.different)])


def test_no_credential_of_a_project_is_in_the_output(tmp_path: Path) -> None:
    assert SECRET in json.dumps(WIDE)
    assert SECRET not in output_of_import(project(tmp_path / "usual", WIDE, WIDE_QUERY))
    for name, part in WIDE.items():
        misplaced = project(tmp_path / name.replace("/", "-"), {**WIDE, name: with_secret_everywhere(part)}, WIDE_QUERY)
        assert SECRET not in output_of_import(misplaced), name
        broken = misplaced / name
        broken.write_text(broken.read_text().replace(f'"{SECRET}"', f'["{SECRET}"]'))
        assert SECRET not in output_of_import(misplaced), name
        broken.write_text(broken.read_text()[:-9])
        assert SECRET not in output_of_import(misplaced), name


@pytest.mark.parametrize("parameter", ["key", "plainKey"])
def test_no_credential_of_a_template_is_in_the_output(tmp_path: Path, parameter: str) -> None:
    value = f"[concat('x', parameters('{parameter}'))]"
    source = event_hub(serviceBusNamespace=value, eventHubName=value, sharedAccessPolicyKey=value)
    inputs = parts(telemetry=template_input(datasource=source))
    late = {"eventsLateArrivalMaxDelayInSeconds": f"[parameters('{parameter}')]"}
    resource = template_job(inputs=inputs)
    for job in (template_job(inputs=inputs, **late), resource, with_secret_everywhere(resource)):
        assert SECRET not in output_of_import(template(tmp_path / "t.json", job))


def test_a_project_with_a_secret_in_every_place_is_still_read(tmp_path: Path) -> None:
    """Without this, the tests above could pass for the wrong reason."""
    folder = project(tmp_path, {**PLAIN, "Inputs/telemetry.json": with_secret_everywhere(event_hub_input("telemetry"))})
    assert "alias: telemetry" in output_of_import(folder)
