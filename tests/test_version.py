"""The version follows the code: different code has a different version, and so a different run."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from recapture import __version__
from recapture.definition.digest import run_definition
from tests.paths import ROOT
from tests.worlds import World


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=Someone", "-c", "user.email=someone@example.com")
    return subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


def version(folder: Path) -> str:
    command = [sys.executable, "-m", "setuptools_scm"]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository whose only commit holds this checkout's version settings."""
    folder = tmp_path / "clone"
    folder.mkdir()
    for name in ("pyproject.toml", "setup.cfg", ".git_archival.txt", ".gitattributes"):
        shutil.copy(ROOT / name, folder)
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message=First")
    return folder


def test_each_commit_has_a_version_that_names_it(clone: Path) -> None:
    first, commit = version(clone), git(clone, "rev-parse", "--short=7", "HEAD").strip()
    assert commit in first
    git(clone, "commit", "--quiet", "--allow-empty", "--message=Second")
    assert version(clone) != first


def test_an_archive_of_a_commit_after_a_release_has_a_version_that_names_it(clone: Path, tmp_path: Path) -> None:
    git(clone, "tag", "v0.1.0")
    git(clone, "commit", "--quiet", "--allow-empty", "--message=Second")
    git(clone, "archive", "--output", str(tmp_path / "archive.tar"), "HEAD")
    archive = tmp_path / "archive"
    shutil.unpack_archive(tmp_path / "archive.tar", archive)
    assert git(clone, "rev-parse", "--short=7", "HEAD").strip() in version(archive)


def test_files_without_git_have_the_version_of_the_next_release(clone: Path, tmp_path: Path) -> None:
    shutil.copytree(clone, tmp_path / "files", ignore=shutil.ignore_patterns(".git"))
    [fallback] = re.findall(r'^fallback_version = "(.*)"$', (clone / "pyproject.toml").read_text("utf-8"), re.MULTILINE)
    assert version(tmp_path / "files") == fallback


def test_a_run_is_planned_by_this_version(tmp_path: Path) -> None:
    assert run_definition(World(tmp_path).define()).engine == __version__ != ""
