"""The command: its exit codes, its output, and its one-line errors."""

import json
import os
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from recapture import printing
from recapture.definition.pipeline import load
from recapture.errors import SetupError
from recapture.execute.processes.workers import Workers
from recapture.model import AsaType, JavaScriptFunction
from recapture.process import log
from recapture.run.status import status
from recapture.tools.asa_job import azure
from tests.commands import FIRST_HOUR, Command
from tests.conftest import Python
from tests.tools.asa_job.jobs import (
    CAPTURED,
    PLAIN,
    PLAIN_QUERY,
    RATE,
    SECRET,
    WIDE,
    WIDE_QUERY,
    project,
    template,
    template_job,
)
from tests.worlds import COUNTS, QUICK_START, TELEMETRY, TEN, World, at, backfill, body, contents, published, version


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Two hours with one event each; the event of the second hour is late."""
    world = World(tmp_path)
    world.put("0", at(12), [body("a", at(10))])
    world.put("0", at(72), [body("a", at(50))], 1)
    world.put("0", at(150))
    world.define()
    return world


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((), "COMMAND"),
        (("rerun",), "unknown command rerun: use one of plan, backfill, staged, "),
        (("stats", "{file}"), "unknown command stats: did you mean status?"),
        (("suite", "int", "{file}"), "unknown command int: did you mean init?"),
        (("plan", "--form", "2024-03-01T10:00:00Z"), "unknown option --form: did you mean --from?"),
        (("plan", "{file}", *FIRST_HOUR, "--Json"), "unknown option --Json: did you mean --json?"),
        (("plan",), "FILE"),
        (("plan", "{file}"), "--from"),
        (
            ("plan", "{file}", "--from", "yesterday", "--to", "2024-03-01T11:00:00Z"),
            "'yesterday' is not an ISO 8601 time",
        ),
        (
            ("backfill", "{file}", "--from", "2024-03-01T10:30:00Z", "--to", "2024-03-01T11:00:00Z"),
            "not on a slice border",
        ),
        (
            ("backfill", "{file}", "--from", "2024-03-01T11:00:00Z", "--to", "2024-03-01T11:00:00Z"),
            "the range is empty",
        ),
        (
            ("rollback", "{file}", "--from", "2024-03-01T11:00:00Z", "--to", "2024-03-01T10:00:00Z"),
            "the range is empty",
        ),
        (
            ("backfill", "{file}", "--from", "2024-03-01T11:00:00Z", "--to", "9998-03-01T11:00:00Z"),
            "lies in the future",
        ),
        (("backfill", "{file}.absent", *FIRST_HOUR), "cannot be read"),
        (("plan", "{file}", *FIRST_HOUR, "--zzz"), "unknown option --zzz: use one of -h, --help, --from, --to, "),
    ],
)
def test_a_mistake_in_the_arguments_is_one_line_and_exit_2(
    command: Command, world: World, arguments: tuple[str, ...], reason: str
) -> None:
    filled = [argument.replace("{file}", str(world.file)) for argument in arguments]
    assert reason in command.error(*filled)
    assert not world.table.exists()


WITHOUT = """
import sys
sys.modules[sys.argv[1]] = None
from recapture import cli
for command in ("backfill", "report"):
    assert cli.main([command, *sys.argv[2:]]) == 2
"""


@pytest.mark.parametrize(
    ("package", "needs"),
    [
        ("great_expectations", "the audit needs Great Expectations"),
        ("jinja2", "pages need jinja2"),
    ],
)
def test_without_the_packages_of_audits_and_reports_a_command_does_nothing_and_names_them(
    python: Python, world: World, package: str, needs: str
) -> None:
    completed = python("-c", WITHOUT, package, world.file, *FIRST_HOUR)
    assert completed.returncode == 0, completed.stderr.decode()
    assert completed.stderr.decode() == 2 * f"recapture: {needs}: install recapture[quality]\n"
    assert not world.table.exists()


def test_a_mistake_in_the_pipeline_file_is_one_line_with_its_place_and_exit_2(command: Command, world: World) -> None:
    world.file.write_text(world.file.read_text().replace('"job"', '"jobs"'))
    assert "telemetry.yaml:1: " in command.error("backfill", world.file, *FIRST_HOUR)


def test_help_and_mistakes_in_arguments_load_no_library_for_data(python: Python) -> None:
    """A person who waits for --help does not ask again."""
    text = """
import sys
from recapture import cli
assert cli.main(["status"]) == 2
print(*sorted({"numpy", "pyarrow", "sqlglot", "pydantic", "deltalake", "pandas"} & sys.modules.keys()))
"""
    completed = python("-c", text)
    assert (completed.returncode, completed.stdout) == (0, b"\n"), completed.stderr.decode()


def test_the_process_that_starts_workers_is_forked_before_the_console_is_loaded(python: Python) -> None:
    """No worker prints, and the first task waits for that process."""
    loaded = python(
        "-c", "import sys, recapture.cli, recapture.execute.processes.task_files; print('rich' in sys.modules)"
    )
    assert loaded.stdout == b"False\n", loaded.stderr.decode()


def test_times_without_a_zone_are_utc(command: Command, world: World) -> None:
    def planned(*arguments: str) -> str:
        return str(command.json("plan", world.file, *arguments)["run"])

    assert planned("--from", "2024-03-01T10:00", "--to", "2024-03-01T12:00+01:00") == planned(*FIRST_HOUR)


def test_plan_explains_how_the_rows_are_computed(command: Command, world: World) -> None:
    relations = command.json("plan", world.file, *FIRST_HOUR, "--explain")["relations"]
    assert relations[:2] == ["output aggregates", "  output: reads input telemetry"]
    assert relations[1] in command.text("plan", world.file, *FIRST_HOUR, "--explain")
    assert "relations" not in command.json("plan", world.file, *FIRST_HOUR)


def test_plan_shows_what_would_be_read_and_writes_nothing(command: Command, world: World) -> None:
    before = contents(world.home)
    plan = command.json("plan", world.file, *FIRST_HOUR)
    assert "2024-03-01T10:00:00Z" in command.text("plan", world.file, *FIRST_HOUR)
    assert contents(world.home) == before
    assert (plan["partitions"], plan["blobs"], plan["complete"]) == (["0"], 1, True)
    blob = next(path for path in world.capture.rglob("*.avro") if path.stat().st_mtime == at(12).timestamp())
    sizes = {"blobs": 1, "bytes": blob.stat().st_size, "incomplete": []}
    inputs = [{"alias": "telemetry", **sizes}]
    state = {"state": "missing", "differing": []}
    assert plan["slices"] == [{"slice_start": "2024-03-01T10:00:00Z", **state, **sizes, "inputs": inputs}]


def test_plan_shows_how_far_capture_has_got_and_warns_of_unusual_blobs(command: Command, world: World) -> None:
    """It names every partition, also a silent one, and a blob that was written far from the time in its name."""
    world.define(inputs=[TELEMETRY | {"empty_blobs": True}])
    world.put("1", at(-120))
    late = world.put("0", at(40), opened=at(-600)).relative_to(world.capture)
    plan = command.json("plan", world.file, *FIRST_HOUR)
    reached = [(partition["partition"], partition["reached"], partition["path_time"]) for partition in plan["capture"]]
    assert reached == [
        ("0", "2024-03-01T12:30:00Z", "2024-03-01T12:25:00Z"),
        ("1", "2024-03-01T08:00:00Z", "2024-03-01T07:55:00Z"),
    ]
    assert plan["silent_partitions"] == ["1"]
    assert (plan["far_blobs"]["read"], plan["far_blobs"]["example"]) == (1, str(late))
    out, err = command.run("plan", world.file, *FIRST_HOUR)
    assert "partition 0: written up to 2024-03-01T12:30:00Z; the newest blob has the time 2024-03-01T12:25" in out
    assert "warning: partition 1: 16 blobs are missing from 2024-03-01T09:45:00Z" in err
    assert "1 blob was written far from the time in its name (hours 2024-03-01T00:00:00Z" in err


def test_a_container_that_is_missing_or_holds_another_hub_is_one_line_and_exit_1(
    command: Command, world: World
) -> None:
    os.rename(world.capture, world.home / "elsewhere")
    assert "does not exist" in command.error("backfill", world.file, *FIRST_HOUR, code=1)
    world.capture.mkdir()
    assert "no blob of this input under" in command.error("plan", world.file, *FIRST_HOUR, code=1)


def test_a_table_that_cannot_be_written_is_one_line_and_exit_1(command: Command, world: World) -> None:
    world.table.write_text("in the way")
    assert str(world.table) in command.error("backfill", world.file, *FIRST_HOUR, code=1)
    assert str(world.table) in command.error("status", world.file, code=1)


def test_status_without_a_table_is_empty_and_creates_none(command: Command, world: World) -> None:
    output = command.json("status", world.file)
    assert (output["slices"], output["unpublished"]) == ([], [])
    assert not world.table.exists()


def test_a_rollback_of_an_unpublished_slice_is_one_line_and_exit_1(command: Command, world: World) -> None:
    line = command.error("rollback", world.file, *FIRST_HOUR, code=1)
    assert "nothing is published for slice 2024-03-01T10:00:00Z" in line
    assert not world.table.exists()


def test_status_shows_slices_their_lateness_and_the_gaps_between_them(
    processes: Workers, command: Command, world: World
) -> None:
    pipeline = world.define()
    backfill(processes, pipeline, at(-60), TEN)
    backfill(processes, pipeline, at(60), at(120))
    output = command.json("status", world.file)
    shown = [
        (slice_["slice_start"], slice_["rows"], slice_["late_share"], slice_["quality"]) for slice_ in output["slices"]
    ]
    assert shown == [
        ("2024-03-01T09:00:00Z", 0, None, "passed with warnings"),
        ("2024-03-01T11:00:00Z", 1, 1.0, "passed with warnings"),
    ]
    assert output["unpublished"] == [{"from": "2024-03-01T10:00:00Z", "to": "2024-03-01T11:00:00Z"}]
    text = command.text("status", world.file)
    assert "100.0%" in text
    assert "nothing of aggregates is published from 2024-03-01T10:00:00Z to 2024-03-01T11:00:00Z" in text


def test_check_finds_stale_slices_and_status_and_report_know_of_them(
    processes: Workers, command: Command, world: World, tmp_path: Path
) -> None:
    backfill(processes, world.define(), TEN, at(120))
    both = ("--from", "2024-03-01T10:00:00Z", "--to", "2024-03-01T12:00:00Z")
    text = command.text("status", world.file)
    assert "the archive has not been compared with what the published slices read: run recapture check" in text
    world.put("0", at(85), [body("b", at(84))], 2)
    assert command.text("check", world.file, *both).splitlines() == [
        "stale: 2024-03-01T11:00:00Z: blobs were added, modified or deleted since they were read",
        "2 published slices from 2024-03-01T10:00:00Z to 2024-03-01T12:00:00Z checked: 1 stale",
    ]
    command.text("check", world.file, *FIRST_HOUR)
    compared = (
        "what the slices from 2024-03-01T10:00:00Z to 2024-03-01T11:00:00Z read was last compared with the archive"
    )
    last = command.text("status", world.file, *both).splitlines()[-1]
    assert last.startswith(compared)
    later = ("--from", "2024-03-01T11:00:00Z", "--to", "2024-03-01T12:00:00Z")
    last = command.text("status", world.file, *later).splitlines()[-1]
    assert last.startswith(compared)
    assert last.endswith("; no slice shown here is among them: run recapture check for these")
    command.text("check", world.file, *both)
    shown = command.json("status", world.file, "--state", "stale", *both)
    assert [slice_["slice_start"] for slice_ in shown["slices"]] == ["2024-03-01T11:00:00Z"]
    assert shown["states"]["stale"] == 1
    verdict = command.json("report", world.file, "--out", tmp_path / "range.html")["verdict"]
    assert verdict["level"] == "bad"
    assert "1 slice is stale, as blobs were added, modified or deleted since they were read" in verdict["sentence"]


def test_a_changed_query_is_seen_in_every_place_that_shows_a_state(
    processes: Workers, command: Command, world: World, tmp_path: Path
) -> None:
    backfill(processes, world.define(), TEN, at(120))
    changed = world.define(query=COUNTS.replace("GROUP BY", "WHERE temperature > 0 GROUP BY"))
    backfill(processes, changed, at(60), at(120))
    shown = command.json("status", world.file)
    assert [(slice_["state"], slice_["differing"]) for slice_ in shown["slices"]] == [
        ("outdated", ["query"]),
        ("published with warnings", []),
    ]
    (planned,) = command.json("plan", world.file, *FIRST_HOUR)["slices"]
    assert (planned["state"], planned["differing"]) == ("outdated", ["query"])
    verdict = command.json("report", world.file, "--out", tmp_path / "range.html")["verdict"]
    assert verdict["level"] == "warning"
    assert "1 slice was computed or judged with another query than the pipeline has now" in verdict["sentence"]


def test_status_takes_only_states_that_there_are(command: Command, world: World) -> None:
    assert "--state fresh: the states are " in command.error("status", world.file, "--state", "fresh")
    assert "give both --from and --to" in command.error("status", world.file, *FIRST_HOUR[:2])


def test_rollback_gives_a_slice_back_what_it_held(processes: Workers, command: Command, world: World) -> None:
    first = backfill(processes, world.define(), TEN, at(60))
    before = published(world.table)
    world.put("0", at(20), [body("a", at(18))], 5)
    second = backfill(processes, world.define(), TEN, at(60))
    assert published(world.table) != before
    report = command.json("rollback", world.file, *FIRST_HOUR)
    change = {"version": version(world.table), "slices": ["2024-03-01T10:00:00Z"]}
    output = {"alias": "aggregates", "table": world.table.as_uri(), **change}
    runs = {"taken_back": second["run"], "run": first["run"]}
    rolled_back = [{"slice_start": "2024-03-01T10:00:00Z", **runs, "changed": True}]
    assert report == {
        "pipeline": "telemetry",
        "outputs": [output],
        "rolled_back": rolled_back,
        "warnings": [],
        **change,
    }
    assert published(world.table) == before
    assert status(world.define())["slices"][0]["run"] == first["run"]
    text = command.text("rollback", world.file, *FIRST_HOUR)
    assert f"aggregates: nothing to do, version {change['version']} was rolled back already" in text
    assert "to go back further, name the run that the slices hold now with --run" in text
    text = command.text("rollback", world.file, *FIRST_HOUR, "--run", first["run"])
    assert f"run {first['run']} taken back, holds nothing" in text
    assert published(world.table) == []
    assert status(world.define())["slices"] == []


def test_a_late_tolerance_below_the_capture_interval_warns_on_standard_error(command: Command, world: World) -> None:
    world.define(eventsLateArrivalMaxDelayInSeconds=5)
    out, err = command.run("plan", world.file, *FIRST_HOUR, "--json")
    json.loads(out)
    assert "warning: " in err
    assert "eventsLateArrivalMaxDelayInSeconds is 5" in err


def test_import_writes_a_pipeline_that_loads_and_exits_0(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    project(tmp_path / "job", CAPTURED)
    lines = command.text("import", "job").splitlines()
    assert lines[0] == "contoso_telemetry.yaml: the pipeline of the job contoso-telemetry"
    assert lines[1] == "not quite as in the job:"
    assert load(Path("contoso_telemetry.yaml")).name == "contoso_telemetry"


def test_import_writes_the_scripts_of_functions_next_to_the_pipeline(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    project(tmp_path / "job", CAPTURED | RATE, PLAIN_QUERY.replace("COUNT(*)", "udf.rate(COUNT(*))"))
    assert command.json("import", "job")["scripts"] == ["contoso_telemetry_functions/rate.js"]
    script = str(RATE["Functions/rate.js"])
    expected = JavaScriptFunction("rate", script, AsaType.FLOAT, (AsaType.BIGINT,))
    assert load(Path("contoso_telemetry.yaml")).query.functions == (expected,)


def test_import_writes_what_it_can_lists_the_rest_and_exits_1(command: Command, tmp_path: Path) -> None:
    folder, file = project(tmp_path / "job", WIDE, WIDE_QUERY), tmp_path / "telemetry.yaml"
    listed, _ = command.run("import", folder, "--output", file, code=1)
    text = file.read_text()
    file.unlink()
    assert "classify.js already exists and is not overwritten" in command.error("import", folder, "--output", file)
    assert not file.exists()
    shutil.rmtree(tmp_path / "contoso_telemetry_functions")
    report = command.json("import", folder, "--output", file, code=1)
    assert file.read_text() == text
    assert (report["job"], report["pipeline"], report["ready"]) == ("contoso-telemetry", str(file), False)
    assert [entry["where"] for entry in report["missing"]] == [
        "Inputs/telemetry.json",
        "Inputs/regions.json",
        "Inputs/alerts.json",
        "Functions/classify.js.json",
        "Outputs/dashboard.json",
    ]
    assert report["scripts"] == [str(tmp_path / "contoso_telemetry_functions" / "classify.js")]
    assert "return x > 30" in Path(report["scripts"][0]).read_text()
    assert "to do before the pipeline gives the results of the job:" in listed
    for entry in [*report["missing"], *report["different"]]:
        assert f"  {entry['where']}: {entry['what']}" in listed
    assert SECRET not in listed + text + json.dumps(report)


def test_import_of_a_star_names_the_command_that_declares_its_fields(command: Command, tmp_path: Path) -> None:
    folder, file = project(tmp_path / "job", CAPTURED, "SELECT * INTO aggregates FROM telemetry"), tmp_path / "p.yaml"
    assert "run recapture infer FILE --write" in command.text("import", folder, "--output", file, code=1)


def test_import_never_overwrites_and_needs_a_place_to_write_to(command: Command, tmp_path: Path) -> None:
    folder, file = project(tmp_path / "job", PLAIN), tmp_path / "telemetry.yaml"
    file.write_text("mine")
    assert f"{file} already exists and is not overwritten" in command.error("import", folder, "--output", file)
    assert file.read_text() == "mine"
    nowhere = tmp_path / "absent" / "telemetry.yaml"
    assert f"{nowhere} cannot be written (No such file or directory)" in command.error(
        "import", folder, "--output", nowhere
    )


def test_import_cuts_a_long_name_of_a_job_and_says_so(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = project(tmp_path / "job", CAPTURED) / "asaproj.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"name": "long" * 75}))
    assert "the name of the job has 300 characters: the pipeline's has the first 63" in command.text("import", "job")
    assert load(tmp_path / f"{('long' * 75)[:63]}.yaml").name == ("long" * 75)[:63]


def test_import_says_that_the_name_of_a_file_is_too_long(command: Command, tmp_path: Path) -> None:
    file = tmp_path / f"{'x' * 300}.yaml"
    folder = project(tmp_path / "job", PLAIN)
    assert f"{file} cannot be written (File name too long)" in command.error("import", folder, "--output", file)


def test_import_says_what_is_not_a_job_and_asks_which_of_several(command: Command, tmp_path: Path) -> None:
    assert "there is no such file or folder" in command.error("import", tmp_path / "absent")
    file = template(tmp_path / "t.json", template_job(), template_job() | {"name": "second"})
    assert "has several jobs, contoso-telemetry, second" in command.error("import", file)
    command.run("import", file, "--job", "second", "--output", tmp_path / "second.yaml", code=1)
    assert "name: second\n" in (tmp_path / "second.yaml").read_text()
    for place in ([], ["--subscription", "s", "--job", "j"], [file, "--subscription", "s", "--resource-group", "g"]):
        assert "name the job: PATH, or --subscription ID --resource-group NAME" in command.error("import", *place)
    assert "'s' is not the id of a subscription" in command.error(
        *("import", "--subscription", "s", "--resource-group", "g", "--job", "j")
    )


def test_import_of_a_job_that_azure_does_not_give_exits_2_as_nothing_is_written(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*names: str) -> None:
        raise SetupError("not authorised to read the job j")

    monkeypatch.setattr(azure, "read_azure_job", refuse)
    arguments = ("--subscription", "s", "--resource-group", "g", "--job", "j")
    assert command.error("import", *arguments) == "recapture: not authorised to read the job j"


def test_import_takes_the_address_of_capture_from_another_file(command: Command, tmp_path: Path) -> None:
    destination = {"storageAccountResourceId": "providers/x/contosoarchive", "blobContainer": "capture"}
    capture = {"enabled": True, "intervalInSeconds": 60, "destination": {"properties": destination}}
    hub = {"type": "Microsoft.EventHub/namespaces/eventhubs", "name": "contoso/telemetry"}
    hubs = template(tmp_path / "hubs.json", hub | {"properties": {"captureDescription": capture}})
    job = project(tmp_path / "job", PLAIN)
    command.run("import", job, "--capture", hubs, "--output", tmp_path / "job.yaml")
    assert str(load(tmp_path / "job.yaml").inputs[0].container).endswith(
        "//contosoarchive.blob.core.windows.net/capture"
    )


def test_import_lists_a_setting_that_a_pipeline_does_not_accept(command: Command, tmp_path: Path) -> None:
    changed = {**PLAIN["JobConfig.json"], "EventsOutOfOrderMaxDelayInSeconds": 600}
    files = CAPTURED | {"JobConfig.json": changed}
    file = tmp_path / "telemetry.yaml"
    (finding,) = command.json("import", project(tmp_path / "job", files), "--output", file, code=1)["missing"]
    assert finding["what"].startswith(f"{file}:")
    assert "eventsOutOfOrderMaxDelayInSeconds" in finding["what"]


def test_a_value_that_looks_like_markup_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    printing.print_rows(printing.console(), "[b]", pa.table({"[/red]": ["[/red]", "[bold]x"]}), 2)
    shown = capsys.readouterr().out
    assert shown.count("[/red]") == 2
    assert "[bold]x" in shown


def test_a_time_beyond_the_calendar_is_refused(command: Command, world: World) -> None:
    line = command.error("plan", world.file, "--from", "0001-01-01T00:00+05:00", "--to", "2024-03-01T11:00:00Z")
    assert "'0001-01-01T00:00+05:00' is not an ISO 8601 time" in line


def test_an_invalid_spark_master_is_one_line_and_exit_1(python: Python, world: World) -> None:
    completed = python(
        "-m",
        "recapture.cli",
        "backfill",
        world.file,
        *FIRST_HOUR,
        "--master",
        "nonsense",
        JAVA_TOOL_OPTIONS=QUICK_START,
    )
    assert (completed.returncode, completed.stdout) == (1, b"")
    (line,) = completed.stderr.decode().splitlines()
    assert line.startswith("recapture: Spark did not start")
    assert "Master must" in line
    assert version(world.table) is None


def test_pyspark_does_not_print_the_errors_that_the_command_reports(
    spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    log.silence_spark_errors()
    with pytest.raises(PySparkException):
        spark.sql("SELECT absent")
    assert capfd.readouterr() == ("", "")


def test_the_query_of_these_tests_names_the_columns_of_the_table(processes: Workers, world: World) -> None:
    backfill(processes, world.define(COUNTS), TEN, at(60))
    assert published(world.table) == [
        {"windowEnd": at(10), "deviceId": "a", "events": 1, "avgTemperature": 20.0, "slice_start": TEN}
    ]


@pytest.mark.parametrize(
    ("locale", "code", "message"),
    [
        ({"LC_ALL": "C"}, 0, ""),
        (
            {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
            2,
            "recapture: the encoding of this locale is ascii: use a UTF-8 locale, such as LC_ALL=C.UTF-8\n",
        ),
    ],
    ids=["no locale", "another encoding"],
)
def test_names_are_utf8_in_every_accepted_locale(
    python: Python, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, locale: dict[str, str], code: int, message: str
) -> None:
    """In another encoding, blobs would have other names, and so the run another id."""
    world = World(tmp_path / "büro")
    world.put("0", at(30), [body("a", at(29))])
    world.define()
    for name in [name for name in os.environ if name.startswith(("LC_", "LANG", "PYTHON"))]:
        monkeypatch.delenv(name)
    completed = python("-m", "recapture.cli", "plan", world.file, *FIRST_HOUR, **locale)
    assert (completed.returncode, completed.stderr.decode()) == (code, message)


def test_standard_output_escapes_what_its_encoding_cannot_represent(python: Python, tmp_path: Path) -> None:
    folder = project(tmp_path / "job", CAPTURED)
    command = ("-m", "recapture.cli", "import", folder, "--output", tmp_path / "büro.yaml")
    completed = python(*command, PYTHONIOENCODING="ascii")
    assert (completed.returncode, completed.stderr) == (0, b"")
    assert b"b\\xfcro.yaml: the pipeline of the job" in completed.stdout
