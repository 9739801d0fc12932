"""The README shows the rows that `make backfill` publishes."""

import re
from pathlib import Path

import pytest

from embedded.main import HOURS, PIPELINE, START
from recapture.tools.sample import world, write_world
from tests.commands import Command
from tests.paths import ROOT
from tests.worlds import HOUR, published


@pytest.mark.usefixtures("great_expectations")
def test_the_rows_are_those_of_the_sample(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "README.md").read_text("utf-8")
    count = re.search(r"^published: ([0-9,]+) rows$", page, re.MULTILINE)
    lines = re.findall(r"^│ (2026-.*)│$", page, re.MULTILINE)
    shown = [[cell.strip() for cell in line.split("│")] for line in lines]
    write_world(world(START, HOURS), tmp_path / "capture")
    monkeypatch.setenv("RECAPTURE_CONTAINER", (tmp_path / "capture").as_uri())
    monkeypatch.setenv("RECAPTURE_TABLE", (tmp_path / "table").as_uri())
    hours = ("--from", START.isoformat(), "--to", (START + HOURS * HOUR).isoformat())
    command.run("backfill", ROOT / "dags" / "pipelines" / f"{PIPELINE}.yaml", *hours)
    rows = published(tmp_path / "table", order="1, 2")
    assert count is not None
    assert int(count[1].replace(",", "")) == len(rows)
    assert shown == [
        [
            f"{row['windowEnd']:%Y-%m-%dT%H:%M:%SZ}",
            row["deviceId"],
            str(row["events"]),
            f"{row['avgTemperature']:.2f}",
            f"{row['slice_start']:%Y-%m-%dT%H:%M:%SZ}",
        ]
        for row in rows[: len(shown)]
    ]
    assert shown != []
