"""Shells complete commands, options and names of files, and the command does not start more slowly for it."""

import subprocess
from pathlib import Path

import pytest

from tests.conftest import Python

COMPLETE = """
source "$1"
shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_shtab_recapture recapture "${!#}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""
"""Program of bash that prints what the last of some words may become."""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from recapture.cli import main

    file = tmp_path_factory.mktemp("completion") / "recapture.bash"
    with pytest.MonkeyPatch.context() as patch, file.open("w") as output:
        patch.setattr("sys.stdout", output)
        assert main(["completion", "bash"]) == 0
    return file


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        (["ba"], ["backfill"]),
        (["suite", "in"], ["init"]),
        (["backfill", "yours.yaml", "--sta"], ["--stage"]),
        (["diff", "yours.yaml", "--policy", "Ad"], ["Adjust"]),
        (["plan", "yours.y"], ["yours.yaml"]),
    ],
    ids=" ".join,
)
def test_bash_completes_a_word(words: list[str], completed: list[str], script: Path, tmp_path: Path) -> None:
    (tmp_path / "yours.yaml").touch()
    command = ["bash", "-c", COMPLETE, "bash", str(script), "recapture", *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split() == completed, done.stderr


def test_only_the_command_that_prints_the_script_imports_what_makes_it(python: Python) -> None:
    done = python("-c", "import sys, recapture.cli; recapture.cli._parser(); sys.exit('shtab' in sys.modules)")
    assert done.returncode == 0, done.stderr.decode()
