"""Make the pictures of the README: the calendar of the sample world, and the report of one of its hours.

`make pictures` runs it.
"""

import os
import tempfile
from datetime import UTC, date, datetime
from pathlib import Path

from playwright.sync_api import Browser

from recapture import cli
from recapture.definition.pipeline import Pipeline, load
from recapture.run.slices import slice_length
from recapture.run_files.contents import AUDIT
from recapture.run_files.planned import files_of
from recapture.time_model import ticks
from recapture.tools.coverage.activity import Activity
from recapture.tools.coverage.calendar import Shown, audited_runs, calendar_page
from recapture.tools.coverage.chosen import failures
from recapture.tools.coverage.marks import Access
from recapture.tools.coverage.ranges import Range
from recapture.tools.coverage.reading import CoverageReader
from recapture.tools.sample import world, write_world
from tests.browser import chromium
from tests.paths import ROOT
from tests.worlds import HOUR

FOLDER = ROOT / "docs" / "pictures"
PIPELINE = ROOT / "dags" / "pipelines" / "telemetry.yaml"
START = datetime(2026, 3, 1, tzinfo=UTC)
HOURS, FAULTY_HOUR = 60, 50
RANGES = ((0, 24), (24, FAULTY_HOUR), (FAULTY_HOUR, FAULTY_HOUR + 1), (FAULTY_HOUR + 1, HOURS))
"""Ranges that are backfilled, in hours after the start. The audit stops the faulty hour."""
WIDTH, HEIGHT = 1000, 800
"""Size of a picture, at most; in pixels."""
STYLE = f"max-height: {HEIGHT}px; padding: 0 24px 16px; box-sizing: border-box; overflow: hidden"


def main() -> None:
    """Write both pictures."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        home = Path(folder)
        write_world(world(START, HOURS, faulty_hour=FAULTY_HOUR), home / "capture")
        os.environ["RECAPTURE_CONTAINER"] = (home / "capture").as_uri()
        os.environ["RECAPTURE_TABLE"] = (home / "table").as_uri()
        for first, end in RANGES:
            bounds = [(START + hours * HOUR).isoformat() for hours in (first, end)]
            cli.main(["backfill", str(PIPELINE), "--from", bounds[0], "--to", bounds[1]])
        page = home / "calendar.html"
        page.write_bytes(calendar(load(PIPELINE)))
        take(browser, page, "calendar", ".beside")
        [report] = home.glob(f"table/_recapture/{START:%Y%m%d}T000000Z-*/report.html")
        take(browser, report, "report", "body")


def calendar(pipeline: Pipeline) -> bytes:
    """Return the calendar as Airflow shows it, three hours after the last slice that can be computed."""
    now, start = START + (HOURS + 3) * HOUR, ticks.from_datetime(START)
    length = slice_length(pipeline)
    coverage = CoverageReader(pipeline).read(now, os.environ, Activity(is_updated=True, since=start))
    faulty = Range(start + FAULTY_HOUR * length, start + (FAULTY_HOUR + 1) * length)
    month = date(START.year, START.month, 1)
    runs = audited_runs(coverage.slices, month, faulty)
    return calendar_page(
        pipeline.name,
        [pipeline.name],
        coverage,
        Shown(month, faulty),
        length,
        Access("", "", dict.fromkeys(("request", "backfill", "rollback", "check")), asks_for_approval=True),
        {run: failures(files_of(pipeline, run).read(AUDIT).audit) for run in runs},
    )


def take(browser: Browser, file: Path, name: str, selector: str) -> None:
    """Take a picture of an element of a page: of its top, if it is higher than a picture."""
    page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
    page.goto(file.as_uri())
    element = page.locator(selector)
    element.evaluate(f"element => {{ element.style.cssText += '{STYLE}' }}")
    element.screenshot(path=FOLDER / f"{name}.png")
    page.close()


if __name__ == "__main__":
    main()
