"""The house rules that no single module can keep: one lock, one Spark, repeatable tests, imports that point one way."""

import ast
import configparser
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.paths import ROOT

PACKAGE = ROOT / "spark_jobs" / "recapture"

MAY_IMPORT = {
    "time_model": {"time_model"},
    "query": {"query", "time_model"},
    "asa_job": {"asa_job", "definition", "formats", "query"},
    "capture": {"capture", "storage", "query", "time_model"},
    "storage": {"storage"},
    "quality": {"quality", "storage", "capture", "query", "time_model"},
}
"""The rooms of the package below its top, and the rooms that each may know. All may use recapture.errors."""


def requirements() -> list[Requirement]:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    texts = (setup["options"]["install_requires"] + setup["options.extras_require"]["dev"]).split("\n")
    return [Requirement(text) for text in texts if text.strip()]


def locked() -> dict[str, Version]:
    pins = re.findall(r"^([\w.-]+)(?:\[[^\]]*\])?==(\S+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    return {canonicalize_name(name): Version(version) for name, version in pins}


def asked_for_by_us() -> set[str]:
    found: set[str] = set()
    current = ""
    for line in (ROOT / "requirements.lock").read_text().splitlines():
        if pin := re.match(r"([\w.-]+)==", line):
            current = canonicalize_name(pin[1])
        elif "recapture (setup.cfg)" in line:
            found.add(current)
    return found


def imported(file: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names


def test_the_lock_pins_what_setup_cfg_asks_for() -> None:
    pins = locked()
    stale = [
        str(asked)
        for asked in requirements()
        if canonicalize_name(asked.name) not in pins or pins[canonicalize_name(asked.name)] not in asked.specifier
    ]
    assert not stale, "run `make lock`"


def test_the_lock_was_made_from_these_requirements_and_no_others() -> None:
    assert asked_for_by_us() == {canonicalize_name(asked.name) for asked in requirements()}, "run `make lock`"


@pytest.mark.parametrize("file", ["requirements.lock", "docker/azurite/package-lock.json"])
def test_a_lock_names_no_registry(file: str) -> None:
    text = (ROOT / file).read_text()
    assert not re.findall(r'"resolved"|--(?:extra-)?index-url|--find-links|file://', text)


def test_every_pin_has_a_hash() -> None:
    text = (ROOT / "requirements.lock").read_text()
    pins = re.findall(r"^[\w.-]+(?:\[[^\]]*\])?==", text, re.MULTILINE)
    assert len(re.findall(r"^[\w.-]+(?:\[[^\]]*\])?==.*\\\n    --hash=sha256:", text, re.MULTILINE)) == len(pins) > 0


def test_pyspark_and_pyspark_client_are_one_version() -> None:
    pins = locked()
    assert pins["pyspark"] == pins["pyspark-client"]


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_a_room_knows_nothing_of_its_callers(room: str) -> None:
    allowed = {f"recapture.{name}" for name in (*MAY_IMPORT[room], "errors")}
    for file in (PACKAGE / room).rglob("*.py"):
        ours = {name for name in imported(file) if name.startswith("recapture.")}
        upward = {name for name in ours if ".".join(name.split(".")[:2]) not in allowed}
        assert not upward, file.relative_to(ROOT)


def test_the_engine_imports_no_airflow() -> None:
    outside = {"airflow", "embedded", "capture_complete"}
    for file in PACKAGE.rglob("*.py"):
        assert not {name.split(".")[0] for name in imported(file)} & outside, file.relative_to(ROOT)


def test_the_time_model_does_no_io_and_starts_no_spark() -> None:
    for file in (PACKAGE / "time_model").rglob("*.py"):
        assert not {name.split(".")[0] for name in imported(file)} & {"pyspark", "azure", "pathlib", "os", "io"}


ELSEWHERE = {
    "PYTHONHASHSEED": "1",
    "TZ": "Asia/Kathmandu",
    "LC_ALL": "C",
    "PYTHONUTF8": "0",
    "PYTHONCOERCECLOCALE": "0",
    "HYPOTHESIS_PROFILE": "repeatable",
}
"""Another machine: hash seed, time zone and locale. Its clock is some seconds ahead, since it starts later."""


def run_elsewhere(*arguments: str, **env: str) -> str:
    """Return the standard output of Python in the root, with the environment of another machine."""
    command, utf8 = [sys.executable, *arguments], {"PYTHONIOENCODING": "utf-8"}
    ran = subprocess.run(command, cwd=ROOT, env=os.environ | ELSEWHERE | utf8 | env, capture_output=True, check=True)
    return ran.stdout.decode()


def test_tests_have_the_same_ids_on_every_machine(request: pytest.FixtureRequest) -> None:
    collected = run_elsewhere("-m", "pytest", "--collect-only", "--quiet", "-p", "no:cacheprovider", "tests")
    here, there = {item.nodeid for item in request.session.items}, set(collected.splitlines())
    assert here - there == set()


DRAW = """
from hypothesis import given, strategies as st
from tests.draws import load_profile
load_profile()

@given(st.integers())
def draw(number: int) -> None:
    print(number)

draw()
"""


def test_hypothesis_draws_the_same_on_every_machine_and_anew_in_depth() -> None:
    """The deep profile draws ten times as many examples, other ones in every run."""
    usual = run_elsewhere("-c", DRAW)
    assert usual == run_elsewhere("-c", DRAW, PYTHONHASHSEED="2", TZ="UTC")
    deep = [run_elsewhere("-c", DRAW, HYPOTHESIS_PROFILE="deep") for _ in range(2)]
    assert deep[0] != deep[1]
    assert len(deep[0].splitlines()) >= 5 * len(usual.splitlines()) > 0
