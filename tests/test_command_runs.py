"""Backfills by the command on Azurite: exit codes, output, and no key or signature in anything that they leave."""

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from azure.storage.blob import ContainerClient, ResourceTypes, generate_account_sas

from embedded.azurite import ACCOUNT, KEY, Azurite
from recapture.tools.sample import SampleEvent, capture_file
from tests.commands import FIRST_HOUR
from tests.leaks import Watch, holds_secret, spellings
from tests.paths import ROOT
from tests.worlds import QUICK_START, World, at, blob_name, body

WRONG_KEY = "YW5vdGhlci1hY2NvdW50cy1rZXk="

IN_DETAIL = """
import logging, os
logging.basicConfig(filename=f"{os.environ['LOGS']}/{os.getpid()}.log", level=logging.DEBUG)
"""
"""Code that every Python process of the command runs first, including Spark's workers."""
COMMANDS = """
import json, os, sys, tempfile
from recapture import cli
from recapture.process.startup import stop_fork_server
outcomes = []
standard_output = os.dup(1)
for connection_string, arguments in json.load(sys.stdin):
    os.environ["AZURE_STORAGE_CONNECTION_STRING"] = connection_string
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        os.dup2(out.fileno(), 1), os.dup2(err.fileno(), 2)
        code = cli.main(arguments)
        stop_fork_server()  # as the end of a command's process does
        sys.stdout.flush(), sys.stderr.flush()
        out.seek(0), err.seek(0)
        outcomes.append({"code": code, "out": out.read(), "err": err.read()})
os.write(standard_output, json.dumps(outcomes).encode())
"""


@dataclass(frozen=True)
class Outcome:
    """The exit code and the output of one command."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Runs:
    """Commands that ran one after the other, in one process."""

    outcomes: Mapping[str, Outcome]
    blobs: Mapping[str, bytes]
    """The content of the container afterwards, by name."""
    secrets: frozenset[bytes]
    watch: Watch


@pytest.fixture(scope="module")
def runs(azurite: Azurite, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Two hubs with one blob each, one of them truncated; backfills that publish, and backfills that are stopped.

    Spark computes the first one.
    """
    home = tmp_path_factory.mktemp("runs")
    client = ContainerClient.from_connection_string(azurite.connection_string, f"test-{uuid.uuid4().hex}")
    client.create_container()
    events = [SampleEvent(number, "0", at(6), content) for number, content in enumerate((body("a", at(5)), b"no JSON"))]
    for hub, content in (("telemetry", capture_file(events)), ("damaged", capture_file(events)[:-20])):
        client.upload_blob(f"capture/{blob_name('0', at(5), hub)}", content)
    place = f"{azurite.url}/{client.container_name}"
    telemetry, damaged = (define(home, place, hub, hub) for hub in ("telemetry", "damaged"))
    strict = define(home, place, "telemetry", "strict", quality="rows.json", engine="spark")
    key, writer, reader = azurite.connection_string, signed(azurite, "rwl"), signed(azurite, "rl")
    wrong = key.replace(KEY, WRONG_KEY)
    commands = {
        "stopped": (key, ["backfill", strict, *FIRST_HOUR, "--json"]),
        "damaged": (key, ["backfill", damaged, *FIRST_HOUR, "--json"]),
        "done": (key, ["backfill", telemetry, *FIRST_HOUR, "--json"]),
        "again": (key, ["backfill", telemetry, *FIRST_HOUR, "-v"]),
        "inferred": (reader, ["infer", telemetry, "--json"]),
        "signed plan": (writer, ["plan", telemetry, *FIRST_HOUR]),
        "signed rollback": (writer, ["rollback", telemetry, *FIRST_HOUR]),
        "not to be written": (reader, ["backfill", telemetry, *FIRST_HOUR]),
        "not to be read": (wrong, ["plan", telemetry, *FIRST_HOUR]),
        "not to be opened": (wrong, ["status", telemetry]),
    }
    signatures = [signed_string.rpartition("sig=")[2] for signed_string in (writer, reader)]
    secrets = frozenset[bytes]().union(*map(spellings, (KEY, WRONG_KEY, *signatures)))
    with Watch(secrets, home) as watch:
        completed = subprocess.run(
            [sys.executable, "-c", COMMANDS],
            input=json.dumps(list(commands.values())),
            cwd=home,
            env=detailed(home),
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
        )
    assert completed.stderr == ""
    outcomes = [Outcome(**outcome) for outcome in json.loads(completed.stdout)]
    blobs = {name: client.download_blob(name).readall() for name in client.list_blob_names()}
    return Runs(dict(zip(commands, outcomes, strict=True)), blobs, secrets, watch)


def define(home: Path, place: str, hub: str, table: str, quality: str | None = None, **keys: str) -> str:
    """Write a pipeline file for a hub and a table, and return its path."""
    world = World(home)
    ten_rows = {"type": "expect_table_row_count_to_be_between", "description": "ten rows", "kwargs": {"min_value": 10}}
    world.write_suite(ten_rows, name="rows")
    world.define(quality=quality)
    sections = world.sections() | keys
    sections["input"] |= {"container": f"{place}/capture", "event_hub": hub, "arrival_time": "EventEnqueuedUtcTime"}
    sections["output"]["table"] = f"{place}/{table}"
    file = home / f"{table}_pipeline.yaml"
    file.write_text(json.dumps(sections))
    return str(file)


def signed(azurite: Azurite, permission: str) -> str:
    """Return a connection string with a signature in place of the key."""
    types, until = ResourceTypes(container=True, object=True), datetime.now(UTC) + timedelta(hours=1)
    signature = generate_account_sas(ACCOUNT, KEY, types, permission, until)
    return f"BlobEndpoint={azurite.url};SharedAccessSignature={signature}"


def detailed(home: Path) -> dict[str, str]:
    """Return an environment in which every process logs at DEBUG and keeps its temporary files in that folder."""
    logs, temporary, first = (home / name for name in ("logs", "tmp", "first"))
    for folder in (logs, temporary, first):
        folder.mkdir()
    (first / "sitecustomize.py").write_text(IN_DETAIL)
    return os.environ | {
        "PYTHONPATH": os.pathsep.join([str(first), str(ROOT)]),
        "LOGS": str(logs),
        "TMPDIR": str(temporary),
        "SPARK_LOCAL_DIRS": str(temporary),
        "JAVA_TOOL_OPTIONS": f"{QUICK_START} -Djava.io.tmpdir={temporary}",
    }


def test_a_backfill_that_published_exits_0_and_prints_one_object(runs: Runs) -> None:
    outcome = runs.outcomes["done"]
    assert outcome.code == 0, outcome.err
    assert outcome.out.count("\n") == 1
    report = json.loads(outcome.out)
    assert report["run"].startswith("20240301T100000Z-20240301T110000Z-")
    assert [(slice_["slice_start"], slice_["rows"]) for slice_ in report["slices"]] == [("2024-03-01T10:00:00Z", 1)]
    counts = {"InputEvents": 2, "on_time": 1, "DeserializationError": 1, "OutputEvents": 1}
    assert report["metrics"] == report["metrics"] | counts
    assert report["version"] == 1
    assert report["report"].endswith(f"/_recapture/{report['run']}/report.html")
    assert "telemetry/_delta_log/00000000000000000001.json" in runs.blobs
    assert "Traceback" not in outcome.err


def test_an_unchanged_backfill_exits_0_and_says_so(runs: Runs) -> None:
    again = runs.outcomes["again"]
    assert again.code == 0
    assert "unchanged, already published as version 1" in again.out
    assert "audit passed" in again.out


def test_a_verbose_backfill_logs_its_stages_and_its_tasks(runs: Runs) -> None:
    lines = [line.partition(" INFO ")[2] for line in runs.outcomes["again"].err.splitlines()]
    run = json.loads(runs.outcomes["done"].out)["run"]
    expected = [
        f"recapture.run.plan: run {run}: planned 1 slice of telemetry, input telemetry, 1 blob ",
        f"recapture.execute.stage: run {run}: order and aggregate in 1 task: begins",
        f"recapture.execute.tasks: run {run}: input telemetry, partition 0, slices 2024-03-01T10:00:00Z to "
        "2024-03-01T11:00:00Z, 1 blob ",
        f"recapture.run.audit: run {run}: audit passed",
        f"recapture.run.publish: run {run}: publish 1 slice: aggregates version 1, ",
    ]
    for line in expected:
        assert any(logged.startswith(line) for logged in lines), line
    assert any(": 2 events in " in logged for logged in lines)


def test_a_backfill_that_its_audit_stopped_exits_1_and_publishes_nothing(runs: Runs) -> None:
    stopped = runs.outcomes["stopped"]
    assert (stopped.code, stopped.out) == (1, "")
    line = last_line(stopped)
    assert line.startswith("recapture: run ")
    assert "nothing was published: rows: not met: ten rows" in line
    page = line.rpartition("; report: ")[2].rpartition("/strict/")[2]
    assert b"Do not trust this hour" in runs.blobs[f"strict/{page}"]
    assert not any(name.startswith("strict/_delta_log") for name in runs.blobs)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("damaged", "recapture: blob contoso/damaged/0/2024/03/01/10/05/00.avro is damaged: it is cut off"),
        ("not to be written", "recapture: not authorised to write "),
        ("not to be read", "recapture: not authorised to use the table http://127.0.0.1:"),
        ("not to be opened", "recapture: not authorised to use the table http://127.0.0.1:"),
    ],
)
def test_a_blob_or_a_place_that_cannot_be_used_is_reported_in_one_line_with_exit_1(
    runs: Runs, command: str, message: str
) -> None:
    outcome = runs.outcomes[command]
    assert (outcome.code, outcome.out) == (1, "")
    assert last_line(outcome).startswith(message)


def test_a_signature_is_enough_to_plan_and_to_roll_back(runs: Runs) -> None:
    for command in ("signed plan", "signed rollback"):
        assert runs.outcomes[command].code == 0, runs.outcomes[command].err
    assert "telemetry/_delta_log/00000000000000000002.json" in runs.blobs


def test_a_signature_that_may_read_the_archive_is_enough_to_infer_its_fields(runs: Runs) -> None:
    outcome = runs.outcomes["inferred"]
    assert outcome.code == 0, outcome.err
    inferred = json.loads(outcome.out)
    assert [(field["name"], field["type"]) for field in inferred["fields"]] == [
        ("deviceId", "nvarchar(max)"),
        ("temperature", "float"),
        ("eventTime", "datetime"),
    ]
    assert inferred["warnings"] == ["1 event of the sample cannot be read: a run quarantines such events"]


def test_no_key_and_no_signature_is_printed_written_logged_or_on_a_command_line(runs: Runs) -> None:
    for outcome in runs.outcomes.values():
        assert not holds_secret(outcome.out + outcome.err, runs.secrets)
    assert [name for name, content in runs.blobs.items() if holds_secret(content, runs.secrets)] == []
    assert runs.watch.leaks == set()
    processes = (
        "org.apache.spark.deploy.SparkSubmit",
        "-m recapture.execute.spark.daemon",
        "from multiprocessing.resource_tracker",
    )
    for part in (*processes, "/logs/", "/tmp/"):
        assert any(part in checked for checked in runs.watch.checked), part


def last_line(outcome: Outcome) -> str:
    """Return the last line on standard error, which is the only one apart from warnings."""
    (line,) = (line for line in outcome.err.splitlines() if not line.startswith("warning:"))
    return line
