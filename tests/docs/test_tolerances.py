"""The page on tolerances: its pipeline is valid, and its commands print what it shows."""

import re
import shlex
from pathlib import Path

import pytest

from recapture import cli
from recapture.tools.sample import __main__ as sample_writer
from tests.docs.test_walkthrough import pattern
from tests.paths import ROOT

PAGE = (ROOT / "docs" / "tolerances.md").read_text("utf-8")
MODULE = "python -m recapture.tools.sample "


def test_the_commands_print_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (definition,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    Path("fleet.yaml").write_text(definition)
    (transcript,) = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
    for step in re.split(r"^\$ ", transcript, flags=re.MULTILINE)[1:]:
        command, _, shown = step.partition("\n")
        if command.startswith(MODULE):
            sample_writer.main(shlex.split(command.removeprefix(MODULE)))
        else:
            assert cli.main(shlex.split(command.removeprefix("recapture "))) == 0
        captured = capsys.readouterr()
        printed = captured.out + captured.err
        assert re.fullmatch(pattern(shown), printed), printed
    assert Path("advice.html").stat().st_size > 10_000
