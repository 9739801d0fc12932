"""The command in its surroundings: closed and full streams, a long TMPDIR, signals."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Python
from tests.paths import ROOT
from tests.worlds import COUNTS, World, at, body, version

BUFFERED = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
"""Environment in which Python buffers its streams, as it usually does."""
HOUR = "--from 2024-03-01T10:00:00Z --to 2024-03-01T11:00:00Z"


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path / "world")
    world.put("0", at(6), [body("a", at(5))])
    world.put("0", at(90))
    world.define(COUNTS)
    return world


def run(
    command: str, home: Path, stdout: int = subprocess.PIPE, stderr: int = subprocess.PIPE, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the command in a shell, which opens and closes its streams."""
    return subprocess.run(
        f'"{sys.executable}" -m recapture.cli {command}',
        shell=True,
        cwd=home,
        env=BUFFERED | {"PYTHONPATH": str(ROOT / "spark_jobs"), **environment},
        stdout=stdout,
        stderr=stderr,
        text=True,
        check=False,
        timeout=300,
    )


def test_a_full_standard_output_is_one_line_and_exit_3_as_rows_may_have_been_published(world: World) -> None:
    completed = run(f"backfill telemetry.yaml {HOUR} >/dev/full", world.home)
    assert completed.returncode == 3
    assert version(world.table) is not None
    assert completed.stderr.endswith(
        "is published, but its report failed: cannot write to standard output: No space left on device\n"
    )
    completed = run("status telemetry.yaml --json >/dev/full", world.home)
    assert completed.returncode == 3
    assert completed.stderr == "recapture: cannot write to standard output: No space left on device\n"


@pytest.mark.parametrize(
    "command", ["status telemetry.yaml", "status telemetry.yaml --json", f"plan telemetry.yaml {HOUR}"]
)
def test_a_command_whose_reader_has_ended_ends_silently_as_sigpipe_ends_it(world: World, command: str) -> None:
    completed = run_into_closed_pipe(command, world.home)
    assert (completed.returncode, completed.stderr) == (141, "")


@pytest.mark.parametrize("form", ["", "--json"])
def test_a_run_that_is_published_before_its_reader_ends_says_so_with_exit_3(world: World, form: str) -> None:
    completed = run_into_closed_pipe(f"backfill telemetry.yaml {HOUR} {form}", world.home)
    assert completed.returncode == 3
    assert version(world.table) is not None
    assert completed.stderr.endswith("standard output was closed before everything was printed\n")
    assert "Traceback" not in completed.stderr


def test_what_a_command_writes_is_written_even_if_its_reader_has_ended(world: World) -> None:
    completed = run_into_closed_pipe(f"advise telemetry.yaml {HOUR} --out advice.html", world.home)
    assert completed.returncode == 141
    assert (world.home / "advice.html").exists()


def test_a_run_whose_messages_nobody_reads_is_published_and_leaves_nothing_in_a_temporary_folder_with_a_long_path(
    world: World,
) -> None:
    world.define(COUNTS, eventsLateArrivalMaxDelayInSeconds=0)
    folder = world.home / ("long" * 30)
    folder.mkdir()
    reader, writer = os.pipe()
    os.close(reader)
    completed = run(f"backfill telemetry.yaml {HOUR} --json", world.home, stderr=writer, TMPDIR=str(folder))
    os.close(writer)
    assert completed.returncode == 0
    assert json.loads(completed.stdout)["warnings"]
    assert version(world.table) is not None
    assert list(folder.iterdir()) == []


def run_into_closed_pipe(command: str, home: Path) -> subprocess.CompletedProcess[str]:
    """Run the command with a standard output that nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        return run(command, home, stdout=writer)
    finally:
        os.close(writer)


@pytest.mark.parametrize("stream", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_command_works_with_closed_streams(world: World, stream: str) -> None:
    completed = run(f"status telemetry.yaml --json {stream}", world.home)
    assert (completed.returncode, completed.stderr) == (0, "")
    assert completed.stdout.startswith("{") == (">&-" not in stream.replace("2>&-", ""))
    assert run(f"absent {stream}", world.home).returncode == 2


TERMINATED = """
import os, signal, sys
from recapture import cli
from recapture.commands import plan

plan.run = lambda *_, **__: os.kill(os.getpid(), signal.SIGTERM)
sys.argv = ["recapture", "plan", sys.argv[1], "--from", "2024-03-01T10:00Z", "--to", "2024-03-01T11:00Z"]
cli.run()
"""


def test_sigterm_interrupts_as_ctrl_c_does(world: World, python: Python) -> None:
    completed = python("-c", TERMINATED, world.file)
    assert (completed.returncode, completed.stderr) == (130, b"recapture: interrupted\n")


def test_a_mistake_leaves_no_process_that_keeps_standard_error_open(world: World) -> None:
    completed = run(f"backfill absent.yaml {HOUR}", world.home)
    assert completed.returncode == 2
    assert completed.stderr.startswith("recapture: absent.yaml: ")


def test_each_line_of_the_log_is_an_object_also_those_of_the_workers(world: World) -> None:
    completed = run(f"backfill telemetry.yaml {HOUR} -v", world.home, RECAPTURE_LOG_FORMAT="json")
    assert completed.returncode == 0
    loggers = [json.loads(line)["logger"] for line in completed.stderr.splitlines()]
    assert {"recapture.run.publish", "recapture.execute.tasks"} <= {*loggers}
