"""The page on quality has every expectation of Recapture's with its arguments, and suites that load."""

import json
import re
from pathlib import Path

import pytest

from recapture.quality import suites
from recapture.quality.signatures import SIGNATURES
from tests.paths import ROOT

PAGE = (ROOT / "docs" / "quality.md").read_text("utf-8")
COLUMNS = ("windowEnd", "deviceId", "events", "avgTemperature", "slice_start")
SUITES = [block for block in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL) if '"name": "telemetry"' in block]


@pytest.mark.parametrize("kind", SIGNATURES)
def test_an_expectation_has_a_row_with_its_arguments(kind: str) -> None:
    (row,) = re.findall(rf"^\| `{kind}` \|.*$", PAGE, re.MULTILINE)
    named = re.findall(r"`(\w+)`", row.rpartition(" | ")[2])
    assert named == list(SIGNATURES[kind].arguments)


@pytest.mark.parametrize("text", SUITES)
def test_a_suite_on_the_page_loads(text: str, tmp_path: Path) -> None:
    path = tmp_path / "telemetry.json"
    path.write_text(text, encoding="utf-8")
    assert len(suites.load(path, COLUMNS).expectations) == len(json.loads(text)["expectations"])
    assert len(SUITES) == 2
