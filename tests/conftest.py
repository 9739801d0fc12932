"""Fixtures for all tests, and the marks of the tests. HYPOTHESIS_PROFILE sets how many examples are drawn."""

import atexit
import gc
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import is_hypothesis_test

from embedded.azurite import Azurite
from recapture.execute.processes.workers import Workers, workers
from recapture.process.startup import collect_garbage_rarely
from tests.commands import Command
from tests.draws import load_profile
from tests.lanes import LaneScheduling, place
from tests.paths import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page
    from pyspark.sql import SparkSession

Python = Callable[..., subprocess.CompletedProcess[bytes]]

load_profile()
os.environ.setdefault("TOKIO_WORKER_THREADS", "1")  # of deltalake, which takes a tenth more CPU time with a second one
collect_garbage_rarely()  # otherwise it takes a fifth of the time in which pytest collects the tests

LONG = {
    "services": (
        "e2e/test_airflow.py",
        "table/test_publish.py",
        "test_command_runs.py",
        "process/test_streams.py",
        "benchmarks/test_history.py",
        "e2e/test_kill.py",
        "tools/reports/test_run_report.py",
    ),
    "core": (
        "tools/compare/test_live_job.py",
        "execute/test_heartbeats.py",
        "run/test_breakages.py",
        "table/test_publish_interleavings.py",
        "benchmarks/test_programs.py",
        "tools/advise/test_counts.py",
        "ordering/test_profile.py",
        "ordering/test_slices_alone.py",
        "tools/reports/test_size.py",
        "archive/test_holes_against_oracle.py",
    ),
    "spark": (
        "benchmarks/test_run.py",
        "execute/test_spark_settings.py",
        "run/test_spark.py",
        "docs/test_walkthrough.py",
        "e2e/test_damage.py",
    ),
}
"""Files with long tests by lane, the longest first."""
MARKS = pytest.StashKey[dict[Path, set[str]]]()
"""Marks of the tests of each file that was collected, including tests that are not selected."""
FIXTURES = {
    "spark": "spark",
    "processes": "workers",
    "azurite": "storage",
    "azure": "storage",
    "certificate": "storage",
    "great_expectations": "audit",
    "parse": "airflow",
    "elsewhere": "airflow",
    "python": "process",
    "browser": "browser",
}
"""The mark of a test that uses a fixture: directly, through another fixture, or as the value of a parameter."""
FOLDERS = {
    "dags/": "airflow",
    "e2e/": "e2e",
    "embedded/": "storage",
    "recapture_airflow/": "airflow",
    "test_leaks.py": "process",
    "test_package.py": "process",
    "process/test_streams.py": "process",
    "run/test_audit_gate.py": "workers",
}
"""The mark of the tests in a folder or file. These tests start services or processes or load Airflow themselves."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, items: list[pytest.Item]) -> None:
    """Mark tests by what they start; those that start nothing and do not take long are marked `unit`.

    Sort the files for the workers that share them.
    """
    marks_of_files: dict[Path, set[str]] = {}
    for item in items:
        marks = _marks(item)
        for mark in sorted(marks) or ["unit"]:
            item.add_marker(mark)
        if is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker("property")
        marks_of_files.setdefault(item.path, set()).update(marks)
    items.sort(key=lambda item: place(marks_of_files[item.path], _length(item)))
    session.stash[MARKS] = marks_of_files


def pytest_collection_finish() -> None:
    """Keep what was imported out of garbage collection, which would look at all of it again and again.

    It ends at exit, because DuckDB complains of objects that are left, and not before: pytest collects five times at
    its end.
    """
    gc.freeze()
    atexit.register(gc.unfreeze)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LaneScheduling | None:
    if config.getvalue("dist") != "loadfile":
        return None
    return LaneScheduling(config, log, [f"tests/{name}" for name in LONG["core"]])


def _length(item: pytest.Item) -> int:
    """Return the place of a test's file among the long files of its lane, or sys.maxsize."""
    file = item.nodeid.removeprefix("tests/").partition("::")[0]
    return min((names.index(file) for names in LONG.values() if file in names), default=sys.maxsize)


def _marks(item: pytest.Item) -> set[str]:
    assert isinstance(item, pytest.Function)
    file = item.nodeid.removeprefix("tests/")
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    names = {*item.fixturenames, *(value for value in parameters if isinstance(value, str))}
    return (
        {mark for name, mark in FIXTURES.items() if name in names}
        | {mark for folder, mark in FOLDERS.items() if file.startswith(folder)}
        | ({"long"} if _length(item) < sys.maxsize else set())
    )


@pytest.fixture
def python() -> Python:
    """Run Python in another process with these arguments and variables; it imports from the checkout."""

    def run(*arguments: str | Path, **env: str) -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, *map(str, arguments)]
        variables = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)} | env
        return subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, check=False, timeout=300)

    return run


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


@pytest.fixture(scope="session")
def great_expectations() -> None:
    """Load Great Expectations and its expectations, which takes some seconds."""
    from recapture.quality.loading import load_great_expectations

    load_great_expectations()


@pytest.fixture(scope="session")
def azurite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Azurite]:
    """The storage emulator, in memory, on a free port. All tests of the session share it."""
    with Azurite(tmp_path_factory.mktemp("azurite") / "azurite.log") as running:
        yield running


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SparkSession]":
    """The Spark session of the command: two cores, and a JVM that starts quickly. All tests of the session share it."""
    from recapture.execute.spark.session import create_session
    from tests.worlds import QUICK_START

    logging.getLogger("py4j").setLevel(logging.WARNING)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_TOOL_OPTIONS", QUICK_START)
        running = create_session("local[2]", "recapture-tests", tmp_path_factory.mktemp("spark"))
    yield running
    running.stop()


@pytest.fixture(scope="module")
def processes() -> Iterator[Workers]:
    """One worker process, which computes what needs no Spark. The tests of a module share it; a failing run kills it.

    It ends before the tests of another module, which may stop the fork server.
    """
    with workers(1) as started:
        yield started


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    """A headless browser. The tests of a module share it; none of them may run an event loop."""
    from tests.browser import chromium

    with chromium() as running:
        yield running


@pytest.fixture
def page(browser: "Browser") -> "Iterator[Page]":
    """A page of its own session. It may not raise an error of a script."""
    errors: list[str] = []
    with browser.new_context() as context:
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        yield page
    assert errors == []
