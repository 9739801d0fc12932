"""A run without Spark: its processes end with it, and its failures are one line."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import active_children, forkserver
from pathlib import Path

import pytest

from recapture import printing
from recapture.commands import compute as commands_compute
from recapture.commands.progress import ProgressBar
from recapture.errors import PermanentError, RunError
from recapture.execute.processes.compute import compute
from recapture.execute.processes.workers import Workers, prepare, workers
from recapture.run.plan import plan_run
from recapture.run_files.computed import read_computed
from tests.blobs import rewrite
from tests.paths import ROOT
from tests.worlds import TEN, World, at, published, steady

SECONDS = 60
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "spark_jobs"), str(ROOT)])}
"""Variables of a process that runs a script of ours."""
LOADED = """{
    *__import__("sys").modules,
    *(
        name
        for module in [*__import__("sys").modules.values()]
        for name, value in vars(module).items()
        if type(value).__name__ == "Compiled" and getattr(vars(value).get("dispatcher"), "overloads", None)
    ),
}"""
"""Expression that a worker evaluates: names of its modules, and of the compiled functions that it has loaded."""


@pytest.fixture
def processes() -> Iterator[Workers]:
    """One process, which a failure kills."""
    with workers(1) as started:
        yield started


@pytest.fixture
def world(tmp_path: Path) -> World:
    return steady(tmp_path, hours=1, partitions=2)


def test_the_progress_reaches_the_number_of_tasks_and_slices(processes: Workers, world: World, tmp_path: Path) -> None:
    seen = []
    run = plan_run(world.define(), TEN, at(60))
    compute(processes, run, tmp_path, lambda done, total: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3), (3, 3)]
    assert published(world.table) == [], "staged is not published"


def test_a_damaged_blob_stops_the_run_with_one_line(processes: Workers, world: World, tmp_path: Path) -> None:
    blob = sorted(world.capture.rglob("*.avro"))[20]
    rewrite(blob, blob.read_bytes()[:-20])
    with pytest.raises(RunError, match=r"^blob \S+ is damaged: .*$") as error:
        compute(processes, plan_run(world.define(), TEN, at(60)), tmp_path)
    assert "\n" not in str(error.value)


def test_a_value_that_stops_the_query_names_the_slice_and_the_output(
    processes: Workers, world: World, tmp_path: Path
) -> None:
    query = "SELECT CAST(deviceId AS bigint) AS n INTO aggregates FROM telemetry"
    where = "slice 2024-03-01T10:00:00Z, output aggregates"
    with pytest.raises(RunError, match=rf"^the query failed for {where}: \[CAST_INVALID_INPUT\] CAST: 'device-"):
        compute(processes, plan_run(world.define(query), TEN, at(60)), tmp_path)


def test_an_error_of_a_javascript_function_names_the_slice_and_the_output(
    processes: Workers, world: World, tmp_path: Path
) -> None:
    (world.home / "f.js").write_text("function main(id) { throw Error('no'); }")
    functions = {"f": {"script": "f.js", "output_type": "bigint", "argument_types": ["nvarchar(max)"]}}
    file = world.define("SELECT udf.f(deviceId) AS n INTO aggregates FROM telemetry", functions=functions)
    where = "slice 2024-03-01T10:00:00Z, output aggregates"
    with pytest.raises(PermanentError, match=rf"^the query failed for {where}: udf\.f: Error: no"):
        compute(processes, plan_run(file, TEN, at(60)), tmp_path)


def test_an_unforeseen_failure_of_a_worker_is_one_line(processes: Workers, world: World, tmp_path: Path) -> None:
    run = plan_run(world.define(), TEN, at(60))
    with pytest.raises(RunError, match=r"^a worker failed: FileNotFoundError: .*absent"):
        compute(processes, run, tmp_path / "absent")


def test_a_worker_loads_nothing_for_its_tasks(processes: Workers, world: World, tmp_path: Path) -> None:
    """Every worker would do so, and the process from which all are forked does it once."""

    def loaded() -> set[str]:
        """Return the names of the modules that the worker has imported, and of the functions that it has compiled."""
        names: set[str] = processes.pool.submit(eval, LOADED).result()
        return names

    before = loaded()
    compute(processes, plan_run(world.define(), TEN, at(60)), tmp_path)
    assert loaded() == before
    assert {"recapture.ordering.radix", "sort_runs"} <= before
    assert "pandas" not in before


def test_suites_are_checked_while_the_workers_start(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    is_checked = threading.Event()

    @contextmanager
    def slowly_started(count: int) -> Iterator[Workers]:
        assert is_checked.wait(SECONDS)
        with workers(count) as started:
            yield started

    monkeypatch.setattr(commands_compute, "workers", slowly_started)
    bar = ProgressBar(printing.error_console(), hidden=True)
    run = plan_run(world.define(), TEN, at(60))
    assert commands_compute.compute_in_processes(run, "local[1]", is_checked.set, bar) == read_computed(run.files)


def test_the_end_of_a_worker_stops_the_run_and_says_what_to_do(world: World, tmp_path: Path) -> None:
    run = plan_run(world.define(), TEN, at(60))
    others = set(active_children())
    with workers(1) as started:

        def kill(done: int, total: int) -> None:
            (worker,) = set(active_children()) - others
            worker.kill()
            worker.join()

        with pytest.raises(
            RunError, match="a worker ended suddenly: if the machine had no memory left, compute fewer slices"
        ):
            compute(started, run, tmp_path, kill)


def test_the_end_of_the_fork_server_while_workers_start_is_one_line() -> None:
    prepare()
    server = forkserver._forkserver._forkserver_pid  # type: ignore[attr-defined]
    os.kill(server, signal.SIGSTOP)
    threading.Timer(0.5, os.kill, (server, signal.SIGKILL)).start()
    started = workers(2)
    with pytest.raises(RunError, match=r"^the workers could not be started, because the process that forks them ended"):
        started.__enter__()
    os.waitid(os.P_PID, server, os.WEXITED | os.WNOWAIT)
    with workers(1):
        """The next workers are forked from another server."""


def test_the_processes_end_with_the_context_even_if_they_are_busy() -> None:
    others = set(active_children())
    began = time.monotonic()
    with workers(1) as started:
        started.pool.submit(time.sleep, 10 * SECONDS)
    assert set(active_children()) == others
    assert time.monotonic() - began < SECONDS


GARBAGE = """
import gc
from recapture.execute.processes.workers import prepare, workers
from recapture.process.startup import collect_garbage_rarely

if __name__ == "__main__":
    usual = gc.get_threshold()
    collect_garbage_rarely()
    prepare(forks={forks})
    with workers(1) as started:
        assert started.pool.submit(gc.get_threshold).result() == usual != gc.get_threshold()
        assert started.pool.submit(gc.get_freeze_count).result() > 0
"""


@pytest.mark.parametrize("forks", [False, True], ids=["a new server", "a forked server"])
def test_workers_look_for_garbage_as_usual_but_not_in_what_they_share(tmp_path: Path, forks: bool) -> None:
    script = tmp_path / "garbage.py"
    script.write_text(GARBAGE.format(forks=forks))
    subprocess.run([sys.executable, script], env=ENVIRONMENT, check=True)


IMPORTING = """
import builtins
import signal

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
from recapture.execute.processes.workers import prepare

imports, handlers = builtins.__import__, set()

def seen(name, *rest):
    if name.startswith("recapture."):
        handlers.add(signal.getsignal(signal.SIGINT))
    return imports(name, *rest)

builtins.__import__ = seen
prepare(forks=True)
assert handlers == {signal.default_int_handler}, handlers
"""


def test_ctrl_c_is_not_ignored_while_the_command_imports_what_the_tasks_need(tmp_path: Path) -> None:
    script = tmp_path / "importing.py"
    script.write_text(IMPORTING)
    subprocess.run([sys.executable, script], env=ENVIRONMENT, check=True)


BUSY = """
import signal
import threading
import time
from multiprocessing import active_children, forkserver
from recapture.execute.processes.workers import prepare, workers
from recapture.process.startup import fork_server_pid

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    prepare(forks={forks})
    with workers(2) as started:
        started.pool.submit(abs, 1).result()
        print(fork_server_pid(), *(child.pid for child in active_children()), flush=True)
        started.pool.submit(time.sleep, 600).result()
"""


@pytest.mark.parametrize("forks", [False, True], ids=["a new server", "a forked server"])
@pytest.mark.parametrize(
    ("stop", "code", "said"),
    [
        (lambda pid: os.kill(pid, signal.SIGKILL), -signal.SIGKILL, 0),
        (lambda pid: os.killpg(pid, signal.SIGINT), -signal.SIGINT, 1),
    ],
    ids=["killed", "Ctrl-C"],
)
def test_the_processes_end_when_the_command_does(
    tmp_path: Path, stop: Callable[[int], None], code: int, said: int, forks: bool
) -> None:
    """A Ctrl-C reaches all processes of a terminal, but only the command prints something."""
    script = tmp_path / "busy.py"
    script.write_text(BUSY.format(forks=forks))
    running = subprocess.Popen(
        [sys.executable, script],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert running.stdout is not None
    pids = [int(pid) for pid in running.stdout.readline().split()]
    assert len(pids) == 3
    commands = {Path("/proc", str(pid), "cmdline").read_bytes() for pid in pids}
    assert len(commands) == 1
    assert (commands == {Path("/proc", str(running.pid), "cmdline").read_bytes()}) == forks
    stop(running.pid)
    _, errors = running.communicate(timeout=SECONDS)
    assert running.returncode == code
    assert errors.count("Traceback") == said
    deadline = time.monotonic() + SECONDS
    while any(Path("/proc", str(pid)).exists() for pid in pids):
        assert time.monotonic() < deadline, "the processes are still there"
        time.sleep(0.05)
