"""The rules of the whole repository: one lock, one version of Spark, repeatable tests."""

import configparser
import re
from collections.abc import Callable

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.conftest import Python
from tests.paths import ROOT


def requirements() -> list[Requirement]:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    lists = [setup["options"]["install_requires"], *setup["options.extras_require"].values()]
    return [Requirement(text) for text in "\n".join(lists).split("\n") if text.strip()]


def locked() -> dict[str, Version]:
    pins = re.findall(r"^([\w.-]+)(?:\[[^\]]*\])?==(\S+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    return {canonicalize_name(name): Version(version) for name, version in pins}


def required_names() -> set[str]:
    names: set[str] = set()
    current = ""
    for line in (ROOT / "requirements.lock").read_text().splitlines():
        if pin := re.match(r"([\w.-]+)==", line):
            current = canonicalize_name(pin[1])
        elif "recapture (setup.cfg)" in line:
            names.add(current)
    return names


def test_the_lock_pins_what_setup_cfg_asks_for() -> None:
    pins = locked()
    stale = [
        str(requirement)
        for requirement in requirements()
        if canonicalize_name(requirement.name) not in pins
        or pins[canonicalize_name(requirement.name)] not in requirement.specifier
    ]
    assert not stale, "run `make lock`"


def test_the_lock_was_made_from_these_requirements_and_no_others() -> None:
    assert required_names() == {canonicalize_name(requirement.name) for requirement in requirements()}, (
        "run `make lock`"
    )


@pytest.mark.parametrize(
    "file", ["requirements.lock", "docker/azurite/package-lock.json", "docker/browser/package-lock.json"]
)
def test_a_lock_names_no_registry(file: str) -> None:
    text = (ROOT / file).read_text()
    assert not re.findall(r'"resolved"|--(?:extra-)?index-url|--find-links|file://', text)


def test_only_the_lock_pins_versions() -> None:
    assert [str(requirement) for requirement in requirements() if "==" in str(requirement.specifier)] == []


def test_every_pin_has_a_hash() -> None:
    text = (ROOT / "requirements.lock").read_text()
    pins = re.findall(r"^[\w.-]+(?:\[[^\]]*\])?==", text, re.MULTILINE)
    assert len(re.findall(r"^[\w.-]+(?:\[[^\]]*\])?==.*\\\n    --hash=sha256:", text, re.MULTILINE)) == len(pins) > 0


def test_pyspark_and_pyspark_client_have_the_same_version() -> None:
    pins = locked()
    assert pins["pyspark"] == pins["pyspark-client"]


ELSEWHERE = {
    "PYTHONHASHSEED": "1",
    "TZ": "Asia/Kathmandu",
    "LC_ALL": "C",
    "PYTHONUTF8": "0",
    "PYTHONCOERCECLOCALE": "0",
    "HYPOTHESIS_PROFILE": "repeatable",
}
"""The environment of another machine: hash seed, time zone and locale."""


Elsewhere = Callable[..., str]


@pytest.fixture
def elsewhere(python: Python) -> Elsewhere:
    """Run Python in the root with the environment of another machine, and return its standard output."""

    def run(*arguments: str, **env: str) -> str:
        completed = python(*arguments, **(ELSEWHERE | {"PYTHONIOENCODING": "utf-8"} | env))
        assert completed.returncode == 0, completed.stderr.decode()
        return completed.stdout.decode()

    return run


def test_tests_have_the_same_ids_on_every_machine(request: pytest.FixtureRequest, elsewhere: Elsewhere) -> None:
    collected = elsewhere("-m", "pytest", "--collect-only", "--quiet", "-p", "no:cacheprovider", "tests")
    ids = {item.nodeid for item in request.session.items}
    assert ids - set(collected.splitlines()) == set()


DRAW = """
from hypothesis import given, strategies as st
from tests.draws import load_profile
load_profile()

@given(st.integers())
def draw(number: int) -> None:
    print(number)

draw()
"""


def test_hypothesis_draws_the_same_examples_on_every_machine_and_new_ones_in_the_deep_profile(
    elsewhere: Elsewhere,
) -> None:
    """The deep profile draws ten times as many examples, and new ones in every run."""
    usual = elsewhere("-c", DRAW)
    assert usual == elsewhere("-c", DRAW, PYTHONHASHSEED="2", TZ="UTC")
    deep = [elsewhere("-c", DRAW, HYPOTHESIS_PROFILE="deep") for _ in range(2)]
    assert deep[0] != deep[1]
    assert len(deep[0].splitlines()) >= 5 * len(usual.splitlines()) > 0
