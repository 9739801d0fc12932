"""Reading an ASA project: files of the tools for Visual Studio Code and Visual Studio, sound and damaged."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from recapture.tools.asa_job import read_job
from recapture.tools.asa_job.documents import SettingsPart
from recapture.tools.asa_job.job import BlobFolder, EventHub, JobFunction
from tests.tools.asa_job.jobs import (
    PLAIN,
    PLAIN_QUERY,
    RATE,
    WIDE,
    capture_input,
    event_hub_input,
    project,
    refused,
    settings,
)


def test_a_project_gives_its_query_its_settings_and_its_parts(tmp_path: Path) -> None:
    job = read_job(project(tmp_path, WIDE))
    assert (job.name, job.query, job.query_where) == ("contoso-telemetry", PLAIN_QUERY, "Transformation.asaql")
    assert (job.settings_where, list(job.settings.model_dump().values())) == (
        "JobConfig.json",
        ["Drop", 10, 600, "Stop", "1.2", "en-US"],
    )
    assert [(part.alias, part.kind, part.reference) for part in job.inputs] == [
        ("telemetry", "Event Hub", False),
        ("alerts", "Event Hub", False),
        ("regions", "SQL Database", True),
    ]
    assert job.inputs[0].source == EventHub("contoso", "telemetry")
    outputs = [(part.alias, part.kind) for part in job.outputs]
    assert outputs == [("aggregates", "Blob storage"), ("dashboard", "Power BI")]
    assert job.outputs[0].target == BlobFolder("contosodata", "curated", ("rows",))
    script = "function main(x) {\n    return x > 30 ? 'hot' : 'cold';\n}\n"
    assert job.functions == (
        JobFunction("classify", "Functions/classify.js.json", "JavaScript", script=script, argument_types=("any",)),
    )


def test_the_project_file_stands_for_its_folder(tmp_path: Path) -> None:
    folder = project(tmp_path, PLAIN)
    assert read_job(folder / "asaproj.json") == read_job(folder)


def test_paths_with_backslashes_and_files_with_a_byte_order_mark_are_read(tmp_path: Path) -> None:
    files = {name.replace("/", "\\"): text for name, text in PLAIN.items()}
    folder = project(tmp_path, files)
    for name in ("Inputs/telemetry.json", "Transformation.asaql"):
        file = folder / name
        file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes().replace(b"\n", b"\r\n"))
    job = read_job(folder)
    assert (job.inputs[0].where, job.query) == ("Inputs/telemetry.json", PLAIN_QUERY)


def test_local_samples_are_not_inputs(tmp_path: Path) -> None:
    mock = {"InputAlias": "telemetry", "FilePath": "sample.json", "ScriptType": "InputMock"}
    job = read_job(project(tmp_path, {**PLAIN, "Inputs/Local_telemetry.json": mock}))
    assert len(job.inputs) == 1
    assert job.unread == ()


def test_a_file_of_an_unknown_kind_is_reported(tmp_path: Path) -> None:
    assert read_job(project(tmp_path, {**PLAIN, "new.json": {"ScriptType": "Dashboard"}})).unread == ("new.json",)


def test_keys_are_read_in_any_letter_case(tmp_path: Path) -> None:
    config = {key.upper(): value for key, value in settings().items() if key != "ScriptType"}
    folder = project(tmp_path, {**PLAIN, "JobConfig.json": {**config, "ScriptType": "JobConfig"}})
    assert read_job(folder).settings.events_late_arrival_max_delay_in_seconds == 600


def test_null_means_absent_and_older_spellings_of_settings_are_understood(tmp_path: Path) -> None:
    config = settings(EventsOutOfOrderPolicy=None, EventsLateArrivalMaxDelayInSeconds="5", CompatibilityLevel=1.1)
    parsed = read_job(project(tmp_path, {**PLAIN, "JobConfig.json": config})).settings
    assert parsed.events_out_of_order_policy is None
    assert (parsed.events_late_arrival_max_delay_in_seconds, parsed.compatibility_level) == (5, "1.1")


VISUAL_STUDIO = """<Project ToolsVersion="4.0" xmlns="http://schemas.microsoft.com/developer/msbuild/2003">
  <PropertyGroup><Name>contoso-telemetry</Name></PropertyGroup>
  <ItemGroup>
    <Configure Include="JobConfig.json"><SubType>JobConfig</SubType></Configure>
    <Configure Include="Inputs\\telemetry.json"><SubType>Input</SubType></Configure>
    <Configure Include="Outputs\\aggregates.json"><SubType>Output</SubType></Configure>
  </ItemGroup>
  <ItemGroup><Script Include="Transformation.asaql" />{more}</ItemGroup>
</Project>
"""


def visual_studio(folder: Path, text: str = VISUAL_STUDIO.replace("{more}", "")) -> Path:
    project(folder, PLAIN).joinpath("asaproj.json").unlink()
    folder.joinpath("telemetry.asaproj").write_text(text)
    return folder


def test_a_project_of_visual_studio_gives_the_same_job_as_one_of_visual_studio_code(tmp_path: Path) -> None:
    older, newer = tmp_path / "older", tmp_path / "newer"
    job = read_job(visual_studio(older))
    assert job == read_job(older / "telemetry.asaproj")
    expected = read_job(project(newer, PLAIN))
    for field in ("name", "query", "settings", "inputs", "outputs"):
        assert getattr(job, field) == getattr(expected, field)


def test_mistakes_in_a_project_of_visual_studio_are_reported(tmp_path: Path) -> None:
    two = VISUAL_STUDIO.replace("{more}", '<Script Include="Other.asaql" />')
    message = refused(visual_studio(tmp_path / "two", two))
    assert message == "telemetry.asaproj: has several queries, Transformation.asaql, Other.asaql: keep one <Script>"
    assert refused(visual_studio(tmp_path / "cut", VISUAL_STUDIO[:-20])).startswith("telemetry.asaproj:8:")
    entities = "<!DOCTYPE x [<!ENTITY a 'b'>]>" + VISUAL_STUDIO
    assert "declares a document type" in refused(visual_studio(tmp_path / "entities", entities))


def test_a_path_that_is_not_a_job_is_reported(tmp_path: Path) -> None:
    assert refused(tmp_path / "absent").endswith("absent: there is no such file or folder")
    assert "not an ASA project: it has no asaproj.json and no .asaproj" in refused(tmp_path)
    script, bicep = tmp_path / "query.asaql", tmp_path / "main.bicep"
    script.write_text(PLAIN_QUERY)
    bicep.write_text("param x string")
    assert refused(script).endswith("a query without its job: run recapture check-query, or name the job's folder")
    assert "not an ASA job: name a project's folder or file, an ARM template" in refused(
        script.rename(script.with_suffix(""))
    )
    assert "az bicep build --file main.bicep" in refused(bicep)
    for name in ("a.asaproj", "b.asaproj"):
        tmp_path.joinpath(name).write_text("")
    assert "has several projects, a.asaproj, b.asaproj: name one of these files" in refused(tmp_path)


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("asaproj.json", '{"name": "x",\n  "startFile" }', "asaproj.json:2:15: not JSON: Expecting ':' delimiter"),
        ("asaproj.json", "[]", "asaproj.json: this should be an object"),
        ("asaproj.json", '{"configurations": 7}', "asaproj.json: configurations: should be a list"),
        ("Inputs/telemetry.json", "", "Inputs/telemetry.json:1:1: not JSON: Expecting value"),
        ("Inputs/telemetry.json", '{"Name": 7}', "Inputs/telemetry.json: Name: should be a string"),
        (
            "Inputs/telemetry.json",
            '{"Name": "t", "EventHubProperties": {"EventHubName": 7}}',
            "Inputs/telemetry.json: EventHubProperties.EventHubName: should be a string",
        ),
        ("Outputs/aggregates.json", '{"Name": "t", "Serialization": "Json"}', "Serialization: should be an object"),
        ("JobConfig.json", '{"EventsOutOfOrderPolicy": "adapt"}', "EventsOutOfOrderPolicy: should be Adjust or Drop"),
        ("JobConfig.json", '{"OutputErrorPolicy": 1}', "JobConfig.json: OutputErrorPolicy: should be Stop or Drop"),
        (
            "JobConfig.json",
            '{"EventsLateArrivalMaxDelayInSeconds": "soon"}',
            "EventsLateArrivalMaxDelayInSeconds: should be an integer",
        ),
        ("JobConfig.json", '{"DataLocale": "\\ud800"}', "not valid Unicode: an escape is half of a surrogate pair"),
        ("JobConfig.json", "9" * 5000, "JobConfig.json: a number has too many digits: correct it"),
        ("JobConfig.json", "[" * 200_000, "JobConfig.json: JSON is nested too deeply"),
    ],
)
def test_damage_to_a_file_is_one_line_with_its_place(tmp_path: Path, file: str, text: str, message: str) -> None:
    folder = project(tmp_path, PLAIN)
    folder.joinpath(file).write_text(text)
    assert message in refused(folder)


def test_a_file_that_is_not_utf_8_is_reported(tmp_path: Path) -> None:
    folder = project(tmp_path, PLAIN)
    folder.joinpath("JobConfig.json").write_bytes(b'{"DataLocale": "\xff"}')
    assert refused(folder) == "JobConfig.json: not UTF-8 text: save it as UTF-8"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "its file does not exist"),
        ('{"ScriptType": "Output"}', "its file is a placeholder of Visual Studio, without a name"),
        ('{"Name": null, "ScriptType": "Output"}', "its file is a placeholder of Visual Studio, without a name"),
    ],
)
def test_a_part_that_its_file_does_not_define_has_the_name_of_the_file(
    tmp_path: Path, text: str | None, problem: str
) -> None:
    parts = ("Inputs/telemetry.json", "Outputs/aggregates.json", "Functions/rate.js.json")
    folder = project(tmp_path, PLAIN | RATE)
    for name in parts:
        folder.joinpath(name).unlink() if text is None else folder.joinpath(name).write_text(text)
    job = read_job(folder)
    assert [(part.alias, part.problem) for part in job.inputs] == [("telemetry", problem)]
    assert [(part.alias, part.problem) for part in job.outputs] == [("aggregates", problem)]
    assert [(part.name, part.problem, part.script) for part in job.functions] == [
        ("rate", problem, RATE["Functions/rate.js"])
    ]


def test_settings_whose_file_does_not_exist_are_not_known(tmp_path: Path) -> None:
    folder = project(tmp_path, PLAIN)
    assert read_job(folder).settings_exist
    folder.joinpath("JobConfig.json").unlink()
    job = read_job(folder)
    assert (job.settings, job.settings_where, job.settings_exist) == (SettingsPart(), "JobConfig.json", False)


def test_compression_is_also_read_as_visual_studio_spells_it(tmp_path: Path) -> None:
    written = {**event_hub_input("telemetry", CompressionType=None), "CompresssionType": "GZip"}
    assert read_job(project(tmp_path, {**PLAIN, "Inputs/telemetry.json": written})).inputs[0].compression == "GZip"


def test_the_query_file_must_be_named_and_must_exist(tmp_path: Path) -> None:
    folder = project(tmp_path, PLAIN)
    folder.joinpath("Other.asaql").write_text(PLAIN_QUERY)
    start = '"startFile": "Transformation.asaql",'
    text = folder.joinpath("asaproj.json").read_text()
    folder.joinpath("asaproj.json").write_text(text.replace(start, ""))
    assert refused(folder) == (
        "asaproj.json: no query file is set: set startFile to one of Other.asaql, Transformation.asaql"
    )
    folder.joinpath("asaproj.json").write_text(text.replace(start, '"startFile": "Old.asaql",'))
    assert refused(folder) == (
        "asaproj.json: the query file Old.asaql does not exist: correct it; the folder has Other.asaql, "
        "Transformation.asaql"
    )


def start_with(folder: Path, name: str) -> None:
    """Name another query file in the project."""
    file = folder / "asaproj.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"startFile": name}))


@pytest.mark.parametrize(
    "name", ["/proc/self/environ", "../outside.txt", "..\\outside.txt", "link", "folder/outside.txt"]
)
def test_a_query_outside_the_project_s_folder_is_not_read(tmp_path: Path, name: str) -> None:
    tmp_path.joinpath("outside.txt").write_text("SELECT outside INTO output FROM input")
    folder = project(tmp_path / "job", PLAIN)
    folder.joinpath("link").symlink_to("../outside.txt")
    folder.joinpath("folder").symlink_to(tmp_path, target_is_directory=True)
    start_with(folder, name)
    assert refused(folder) == (
        f"{name.replace(chr(92), '/')}: leads out of the job's folder, so it is not read: copy the file into the "
        "folder, and refer to the copy"
    )


def test_a_link_within_the_project_s_folder_is_followed(tmp_path: Path) -> None:
    folder = project(tmp_path, PLAIN)
    folder.joinpath("Transformation.asaql").rename(folder / "shared.asaql")
    folder.joinpath("Transformation.asaql").symlink_to("shared.asaql")
    assert read_job(folder).query == PLAIN_QUERY


@pytest.mark.parametrize("name", ["asaproj.json", *PLAIN, "Functions/rate.js.json", "Functions/rate.js"])
def test_no_file_of_a_project_is_a_link_that_leads_out_of_its_folder(tmp_path: Path, name: str) -> None:
    folder = project(tmp_path / "job", PLAIN | RATE)
    folder.joinpath(name).rename(tmp_path / "outside")
    folder.joinpath(name).symlink_to(tmp_path / "outside")
    assert refused(folder).startswith(f"{name}: leads out of the job's folder")


@pytest.mark.parametrize("name", ["asaproj.json", *PLAIN, "Functions/rate.js.json", "Functions/rate.js"])
def test_a_pipe_in_a_project_is_reported(tmp_path: Path, name: str) -> None:
    folder = project(tmp_path, PLAIN | RATE)
    folder.joinpath(name).unlink()
    os.mkfifo(folder / name)
    assert refused(folder) == f"{name}: cannot be read (not a regular file)"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a" * 300, f"the query file {'a' * 300} does not exist: correct it; the folder has Transformation.asaql"),
        ("a\0b", r"'a\x00b' is not the name of a file: correct it in the project"),
        (".", ".: cannot be read (Is a directory)"),
    ],
)
def test_a_query_file_of_an_impossible_name_is_reported(tmp_path: Path, name: str, message: str) -> None:
    folder = project(tmp_path, PLAIN)
    start_with(folder, name)
    assert refused(folder).removeprefix("asaproj.json: ") == message


def test_a_project_of_too_large_files_is_refused(tmp_path: Path) -> None:
    part = event_hub_input("telemetry", Note="x" * 6_000_000)
    folder = project(tmp_path, {**PLAIN, "Inputs/a.json": part, "Inputs/b.json": part, "Inputs/c.json": part})
    assert refused(folder) == "Inputs/c.json: the files of the job have more than 16 MiB in all: shorten them"


@pytest.mark.parametrize(
    ("pattern", "folders"),
    [
        ("contoso/telemetry/{partition}/{date}", ("contoso", "telemetry")),
        ("/raw/contoso/telemetry/", ("raw", "contoso", "telemetry")),
        ("{date}/{time}", ()),
        ("contoso/x-{date}", ("contoso",)),
        ("", ()),
    ],
)
def test_the_folders_of_a_blob_input_are_those_before_the_first_token(
    tmp_path: Path, pattern: str, folders: tuple[str, ...]
) -> None:
    job = read_job(project(tmp_path, {**PLAIN, "Inputs/telemetry.json": capture_input("telemetry", pattern)}))
    assert job.inputs[0].source == BlobFolder("contosocapture", "capture", folders)


@pytest.mark.parametrize("name", ["contoso;SharedAccessKey=x", "con toso", "Endpoint=sb://contoso/", "a" * 60])
def test_an_invalid_name_is_not_used_as_a_name(tmp_path: Path, name: str) -> None:
    hub: dict[str, Any] = {"ServiceBusNamespace": name, "EventHubName": f"{name}/"}
    changed = event_hub_input("telemetry", EventHubProperties=hub)
    assert read_job(project(tmp_path, {**PLAIN, "Inputs/telemetry.json": changed})).inputs[0].source == EventHub(
        None, None
    )
