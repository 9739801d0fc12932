"""The walkthrough: its commands run one after the other, and print what the page shows."""

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from recapture import cli
from recapture.execute.spark import session
from tests.paths import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = ROOT / "docs" / "walkthrough.md"
HOME = "/home/you/walkthrough"
"""The folder in which the page runs its commands."""
EXIT_CODE = "echo $?"


@dataclass(frozen=True)
class Step:
    """A command of the page, and the lines that it prints. `…` is any text, and any lines if it is alone."""

    command: str
    shown: str


def steps() -> list[Step]:
    blocks = re.findall(r"^```console\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    matches = [
        re.match(r"(.*)\n([^\0]*)", step) for block in blocks for step in re.split(r"^\$ ", block, flags=re.M)[1:]
    ]
    return [Step(match[1], match[2]) for match in matches if match]


def pattern(shown: str) -> str:
    """Return the pattern of what a command prints, digests aside."""
    lines = [
        "(?:.*\n)*?" if line == "…\n" else ".*".join(map(re.escape, line.split("…")))
        for line in shown.splitlines(keepends=True)
    ]
    return without_digests("".join(lines))


def without_digests(text: str) -> str:
    return re.sub(r"\b[0-9a-f]{12}\b", "DIGEST", text)


@pytest.fixture
def terminal(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> "Terminal":
    """A copy of the walkthrough's folder, and the session of Spark that all tests share."""

    @contextlib.contextmanager
    def shared(*_: object) -> Iterator["SparkSession"]:
        yield spark

    home = shutil.copytree(ROOT / "docs" / "walkthrough", tmp_path / "walkthrough")
    monkeypatch.chdir(home)
    monkeypatch.setattr(session, "spark_session", shared)
    return Terminal(home, capfd)


@dataclass
class Terminal:
    """A terminal in a folder. The product's commands run in this process, others in a shell."""

    home: Path
    capture: pytest.CaptureFixture[str]
    code: int = 0

    def run(self, command: str) -> str:
        """Run a command and return what it prints."""
        if command == EXIT_CODE:
            return f"{self.code}\n"
        if command.startswith("recapture "):
            self.code = cli.main(shlex.split(command)[1:])
        else:
            path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
            variables = os.environ | {"PATH": path, "PYTHONPATH": os.pathsep.join(sys.path)}
            self.code = subprocess.run(["bash", "-c", command], env=variables, check=False).returncode
        printed = self.capture.readouterr()
        return (printed.out + printed.err).replace(str(self.home), HOME)


@pytest.mark.usefixtures("great_expectations")
def test_every_command_prints_what_the_page_shows(terminal: Terminal) -> None:
    page = steps()
    for step, following in zip(page, [*page[1:], None], strict=True):
        printed = terminal.run(step.command)
        assert re.fullmatch(pattern(step.shown), without_digests(printed)), f"$ {step.command}\n{printed}"
        assert terminal.code == 0 or EXIT_CODE in (step.command, following and following.command), printed


def test_the_page_shows_the_query_of_the_project() -> None:
    query = (ROOT / "docs" / "walkthrough" / "contoso-fleet" / "Transformation.asaql").read_text()
    assert f"```sql\n{query}```\n" in PAGE.read_text()
