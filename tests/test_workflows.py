"""The workflows on GitHub: their lanes share the tests out, their actions are pinned, and a tag is a release."""

import re
import subprocess
import sys
from collections.abc import Collection
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import release_files
import resolve
import yaml

from tests.lanes import SERVICES
from tests.paths import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
NOTES = ROOT / ".github" / "release_notes.py"
REPOSITORY = "https://github.com/owner/name"
LANES = ("core", "spark", "services")
"""Targets of the Makefile that run every test, one after the other."""
CHOSEN_BY = sorted({*SERVICES, "spark"})
"""Marks on which the lane of a test depends."""


def expression(lane: str) -> str:
    """Return the expression with which a target chooses the marks of its tests."""
    command = ["make", "--dry-run", "--always-make", "--no-print-directory", lane]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    [chosen] = re.findall(r'pytest .* -m "(.*)"', printed)
    return str(chosen)


def chooses(expression: str, marks: Collection[str]) -> bool:
    return bool(eval(expression, {}, {mark: mark in marks for mark in CHOSEN_BY}))


def test_a_test_is_in_exactly_one_lane_whatever_its_marks() -> None:
    expressions = [expression(lane) for lane in LANES]
    subsets = [subset for size in range(len(CHOSEN_BY) + 1) for subset in combinations(CHOSEN_BY, size)]
    assert len(subsets) == 64
    for marks in subsets:
        assert [chooses(lane, marks) for lane in expressions].count(True) == 1, marks


def test_every_pull_request_runs_the_checks_and_every_lane() -> None:
    [job] = workflow("test")["jobs"].values()
    matrix = job["strategy"]["matrix"]
    targets = [*matrix["targets"], *(row["targets"] for row in matrix["include"])]
    assert {*" ".join(targets).split()} == {"check", "site", *LANES}
    assert job["steps"][-1] == {"run": "make ${{ matrix.targets }}"}


def supported(package: str) -> tuple[list[str], list[str]]:
    """Return the versions that the page on releases calls tested for each change and each night."""
    _, section = (ROOT / "docs" / "releases.md").read_text("utf-8").split("\n## Supported versions\n")
    [row] = re.findall(rf"^\| {package} \|(.*)\|$", section.partition("\n## ")[0], re.MULTILINE)
    changes, nights = row.split("|")[1:3]
    return re.findall(r"\d[\d.]*\d", changes), re.findall(r"\d[\d.]*\d", nights)


def test_the_page_on_releases_names_the_versions_with_which_each_change_is_tested() -> None:
    [job] = workflow("test")["jobs"].values()
    matrix = job["strategy"]["matrix"]
    assert supported("Python")[0] == [*matrix["python"], *(row["python"] for row in matrix["include"])]
    locked = dict(resolve.pins(ROOT / "requirements.lock"))
    for package in ("pyspark", "apache-airflow", "pyarrow"):
        assert [f"{package}=={version}" for version in supported(package)[0]] == [locked[package]]


def test_the_page_on_releases_names_the_versions_with_which_nights_are_tested() -> None:
    jobs = workflow("nightly")["jobs"]["versions"]["strategy"]["matrix"]["include"]
    lanes = {"pyspark": "spark", "apache-airflow": "airflow"}
    named = [(lane, f"{package}=={version}") for package, lane in lanes.items() for version in supported(package)[1]]
    assert named == [(job["lane"], job["with"]) for job in jobs]
    assert supported("apache-airflow")[1] == [*resolve.AIRFLOW]
    assert list(dict.fromkeys(job["python"] for job in jobs)) == supported("Python")[1]


def workflow(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / f"{name}.yml").read_text("utf-8"))
    return loaded


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_an_action_is_pinned_by_the_hash_of_its_commit(file: Path) -> None:
    for action in re.findall(r"uses: (.*)", file.read_text("utf-8")):
        assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+", action), action


def notes(tag: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, NOTES, tag, REPOSITORY], capture_output=True, encoding="utf-8", check=False)


def test_the_notes_of_a_release_are_its_section_of_the_changelog() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    [newest, *older] = re.findall(r"^## \[(\d[^\]]*)\]", changelog, re.MULTILINE)
    printed = notes(f"v{newest}")
    assert printed.returncode == 0, printed.stderr
    assert "### Added" in printed.stdout
    pages = f"]({REPOSITORY}/blob/v{newest}/"
    assert printed.stdout.strip().replace(pages, "](") in changelog
    assert printed.stdout.count(pages) > 10, "relative links lead nowhere on the page of a release"
    assert not any(f"## [{version}]" in printed.stdout for version in (newest, *older))


def test_a_tag_that_is_not_the_newest_version_of_the_changelog_is_refused() -> None:
    refused = notes("v99.0.0")
    assert refused.returncode == 1
    assert refused.stderr.startswith("the tag is v99.0.0, but the newest release in CHANGELOG.md is ")


def test_the_changelog_has_the_changes_after_a_release_first_and_the_newest_release_next() -> None:
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert headings[0] == "[Unreleased]"
    released = [re.fullmatch(r"\[(\d+)\.(\d+)\.(\d+)\] - (\d{4}-\d\d-\d\d)", heading) for heading in headings[1:]]
    versions = [tuple(map(int, match.groups()[:3])) for match in released if match]
    assert len(versions) == len(released) >= 1
    assert versions == sorted(versions, reverse=True)
    assert [match[4] for match in released if match] == sorted((match[4] for match in released if match), reverse=True)


def test_constraints_are_the_pins_of_the_lock_and_name_the_version_of_airflow() -> None:
    lock = (ROOT / "requirements.lock").read_text("utf-8")
    name, text = release_files.constraints(ROOT / "requirements.lock")
    lines = text.splitlines()
    assert [line.split("==")[0] for line in lines] == re.findall(r"^([\w.-]+)==", lock, re.MULTILINE) != []
    assert not re.search(r"--hash|\\|#", text)
    assert any(re.fullmatch(r"numba==\S+( ; .+)?", line) for line in lines)
    assert f"apache-airflow=={name.removeprefix('constraints-airflow-').removesuffix('.txt')}" in lines


def test_the_page_on_releases_names_the_constraints_for_each_supported_airflow() -> None:
    page = (ROOT / "docs" / "releases.md").read_text("utf-8")
    newest, _ = release_files.constraints(ROOT / "requirements.lock")
    older = [f"constraints-airflow-{version}.txt" for version in resolve.AIRFLOW]
    assert re.findall(r"^\| `(constraints-[^`]*)` \|", page, re.MULTILINE) == [*older, newest]


def test_pins_of_older_versions_hold_only_for_pythons_that_have_them() -> None:
    assert resolve._older(["numpy==2.0.0", "tzdata==2026.1 ; sys_platform == 'win32' or sys_platform == 'wasi'"]) == [
        f"numpy==2.0.0 ; {resolve.OLDER}",
        f"tzdata==2026.1 ; (sys_platform == 'win32' or sys_platform == 'wasi') and {resolve.OLDER}",
    ]


def test_the_page_on_releases_names_the_files_of_the_next_one() -> None:
    [version] = re.findall(r'^fallback_version = "(.*)"$', (ROOT / "pyproject.toml").read_text("utf-8"), re.MULTILINE)
    page = (ROOT / "docs" / "releases.md").read_text("utf-8")
    files = re.findall(r"^\| `recapture-([\d.]+\d)[^`]*` \|", page, re.MULTILINE)
    assert files == [version] * 5, "the wheel, the sdist, the bill of materials, the image and the site"


def test_a_release_attests_every_file_that_it_attaches() -> None:
    [job] = workflow("release")["jobs"].values()
    assert job["permissions"] == {"contents": "write", "id-token": "write", "attestations": "write"}
    steps = job["steps"]
    [attesting] = [place for place, step in enumerate(steps) if "attest-build-provenance" in step.get("uses", "")]
    assert steps[attesting]["with"] == {"subject-path": "dist/*"}
    [creating] = [place for place, step in enumerate(steps) if "gh release create" in step.get("run", "")]
    assert "dist/*" in steps[creating]["run"]
    writing = [place for place, step in enumerate(steps) if "dist/" in step.get("run", "") or "make dist" in str(step)]
    assert max(place for place in writing if place != creating) < attesting < creating
