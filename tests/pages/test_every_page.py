"""Every kind of page in a browser: it fits any window, in light and in dark, and everybody can use it."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route

from recapture.quality.audit import Evidence, Result
from recapture.run.slice_state import State
from recapture.run_files.changes import Changes
from recapture.run_files.files import RunFiles
from recapture.run_files.work import Request
from recapture.storage import open_container
from recapture.table.publications import ShownEntry
from recapture.time_model import ticks
from recapture.time_model.metrics import COUNTS, WATERMARK_DELAY
from recapture.tools.advise.page import page as advice_page
from recapture.tools.compare.page import page as comparison_page
from recapture.tools.coverage.activity import DagRun, RunState
from recapture.tools.coverage.calendar import Shown, Summary, calendar_page, message_page, pipelines_page
from recapture.tools.coverage.marks import Access
from recapture.tools.coverage.ranges import Range
from recapture.tools.coverage.reading import Coverage
from recapture.tools.coverage.run_page import run_page
from recapture.tools.coverage.states import SliceState
from recapture.tools.diff.page import page as difference_page
from recapture.tools.events.page import Form, explain_page
from recapture.tools.reports.document import document
from recapture.tools.reports.page import page as report_page
from recapture.tools.reports.trend import trend_document
from recapture.tools.reports.trend_page import trend_page
from recapture.tools.reports.trend_source import Trend, TrendSlice
from tests.browser import Axe
from tests.pages.documents import COMPARISON, DIFFERENCE, ROW, TREATED
from tests.tools.advise.runs import PLAIN, advised, fleet
from tests.tools.reports.samples import made_source
from tests.worlds import World

SITE = "http://airflow.test"
NAVIGATION = 64
"""Width of Airflow's navigation next to a page, in pixels."""
NARROW, WIDE = 390, 1280
HOUR = ticks.from_seconds(3600)
FIRST = ticks.from_datetime(datetime(2026, 3, 1, 6, tzinfo=UTC))
RUN = "20260301T060000Z-20260301T070000Z-0123456789ab"
LONG = "https://account.blob.core.windows.net/container/" + "x" * 80


def states() -> list[SliceState]:
    """Return a slice in each state, one that is blocked on the next day, and one of the next month."""
    hours = {**dict(enumerate(State)), 24: State.BLOCKED, 24 * 40: State.PUBLISHED}
    dag_run = DagRun(
        *("telemetry", "manual__1", RunState.FAILED, FIRST, FIRST + 24 * HOUR, FIRST), failed_tasks=("plan",)
    )
    return [
        SliceState(
            FIRST + hour * HOUR,
            FIRST + (hour + 1) * HOUR,
            state,
            ShownEntry(run=RUN, quality="passed", input_events=5, late_events=1),
            blocked_run=RUN if state is State.BLOCKED else None,
            dag_run=dag_run,
        )
        for hour, state in hours.items()
    ]


def calendar(chosen: Range) -> bytes:
    """Return a calendar with everything on it."""
    request = Request("a", "ada", FIRST, FIRST + 2 * HOUR, FIRST, FIRST)
    failed = Request(
        *("b", "ada", FIRST, FIRST + 2 * HOUR, FIRST, FIRST), ended=FIRST, failed={"2026-03-01T07:00:00Z": LONG}
    )
    coverage = Coverage(tuple(states()), Changes(), (request, failed), (f"{LONG} is damaged",))
    disabled = dict.fromkeys(("request", "rollback", "check")) | {"backfill": "you may not start runs."}
    access = Access("", "/recapture", disabled, True, "The DAG is paused.")
    pipelines, metrics = ["telemetry", "other"], {"InputEvents": 5.0, "LateInputEvents": 1.0}
    audits = {RUN: ["28.7 % of the events are malformed, such as partition 3", "no row"]}
    shown = Shown(date(2026, 3, 1), chosen, metrics)
    return calendar_page("telemetry", pipelines, coverage, shown, HOUR, access, audits)


def list_of_pipelines() -> bytes:
    summaries = [Summary("telemetry", states()), Summary("other", problem=f"{LONG} cannot be read"), Summary("new")]
    return pipelines_page(summaries, [f"{LONG}/broken.yaml:1: input is missing: add it"], "/recapture")


def report(home: Path) -> bytes:
    """Return the report of two hours with checks in every state. Its pictures are in tests of reports of real runs."""
    evidence = Evidence(("whole",), "whole: true", "The blob is quarantined.", 32, ({"partition": "0", "blob": LONG},))
    facts: list[Any] = [("critical", False), ("warning", False), ("info", False), ("critical", True)]
    results = [
        Result("suite", "metrics", f"check_{n}", severity, success, None, 1, "blobs are damaged", "no blob is damaged")
        for n, (severity, success) in enumerate(facts)
    ]
    results.append(Result("suite", "metrics", "check", "critical", True, None, None, "not judged", "x", False))
    results.append(
        Result("other", "metrics", "check", "warning", False, None, 1, "gone", "none is gone", True, evidence)
    )
    source = made_source(home, hours=2, partitions=2, results=results)
    return report_page(document(source))


def trend(home: Path) -> bytes:
    """Return the trend of four slices: one passed, one warned, one was stopped, and one has no run."""
    counts = dict.fromkeys(COUNTS, 0) | {WATERMARK_DELAY: 1.0, "InputEvents": 5}
    starts = [f"2026-03-01T{hour}:00:00Z" for hour in (10, 11, 12, 13)]
    slices = [TrendSlice(start, run, run, counts, 2) for start, run in zip(starts, ("a", "b", "c", None), strict=True)]
    severities: dict[str, Any] = {"a": "info", "b": "warning", "c": "critical"}
    audits = {
        run: [Result("suite", "rows", "check", severity, run == "a", None, None, "too warm", "no room is too warm")]
        for run, severity in severities.items()
    }
    return trend_page(trend_document(Trend(World(home).define(), slices, audits)), "/recapture/telemetry/")


def advice(home: Path) -> bytes:
    world = World(home)
    fleet(world, {"slow": -0.2, "fast": 121})
    return advice_page(advised(world.define(PLAIN)))


FORM = Form("telemetry", ("aggregates", "alerts"), "windowEnd=2026-03-01T10:45Z,deviceId=device-024", "aggregates")
APART = Range(FIRST, FIRST + 25 * HOUR, (State.BLOCKED, State.MISSING))
PAGES: Mapping[str, Callable[[Path], bytes]] = {
    "list of pipelines": lambda _: list_of_pipelines(),
    "a chosen slice": lambda _: calendar(Range(FIRST + 24 * HOUR, FIRST + 25 * HOUR)),
    "chosen slices that are apart": lambda _: calendar(APART),
    "run": lambda home: run_page(RunFiles(open_container(home.as_uri()), RUN), "telemetry", "/recapture", "/question"),
    "message": lambda _: message_page("This page cannot be shown", LONG, "bad", [("All pipelines", "/")]),
    "report": report,
    "trend": trend,
    "difference": lambda _: difference_page(DIFFERENCE),
    "comparison": lambda _: comparison_page(COMPARISON),
    "row": lambda _: explain_page(ROW, form=FORM),
    "question for a row": lambda _: explain_page(None, form=FORM, problem=f"{LONG} cannot be read"),
    "advice": advice,
}
"""How each kind of page is made, without a run."""


def opened(page: Page, content: bytes) -> list[str]:
    """Open a page at the address of Airflow, with all its details; return the addresses that it asked for."""
    asked: list[str] = []

    def answer(route: Route) -> None:
        asked.append(route.request.url)
        route.fulfill(body=content.decode(), content_type="text/html; charset=utf-8")

    page.route("**/*", answer)
    page.goto(f"{SITE}/recapture/page/")
    page.evaluate("document.querySelectorAll('details').forEach((details) => { details.open = true })")
    return asked


@pytest.mark.parametrize("kind", PAGES)
def test_a_page_fits_any_window_asks_nobody_and_everybody_can_use_it(page: Page, kind: str, tmp_path: Path) -> None:
    asked = opened(page, PAGES[kind](tmp_path))
    axe = Axe(page)
    for width in (NARROW - NAVIGATION, NARROW, WIDE):
        page.set_viewport_size({"width": width, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        cells = "cells => Math.max(0, ...cells.map(cell => cell.getBoundingClientRect().right))"
        assert page.locator("#slices td").evaluate_all(cells) <= width
        if width in (NARROW, WIDE):
            page.emulate_media(color_scheme="light")
            assert axe.serious_findings() == [], width
            page.emulate_media(color_scheme="dark")
            assert axe.serious_findings("color-contrast") == [], width
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0]")
    assert int(dark) < 60
    terms = page.locator("a.term").evaluate_all("terms => terms.map(term => term.getAttribute('href'))")
    assert [term for term in set(terms) if not page.locator(term).count()] == [], "a term leads to its meaning"
    assert len(asked) == 1


def test_what_is_worse_is_higher_in_a_trend_so_that_colour_is_never_the_only_sign(page: Page, tmp_path: Path) -> None:
    opened(page, trend(tmp_path))
    strip = page.get_by_role("img", name="no room is too warm")
    heights = strip.locator("span").evaluate_all("spans => spans.map(span => span.getBoundingClientRect().height)")
    assert 0 < heights[0] < heights[1] < heights[2]
    assert heights[3] == 0


def test_the_events_of_an_example_can_be_read_on_a_phone(page: Page) -> None:
    page.set_viewport_size({"width": NARROW, "height": 844})
    opened(page, comparison_page(COMPARISON))
    box = page.get_by_text(TREATED).bounding_box()
    assert box is not None
    assert 0 <= box["x"] <= box["x"] + box["width"] <= NARROW


def test_the_events_of_an_example_stand_after_its_rows_of_both_sides() -> None:
    content = comparison_page(COMPARISON).decode()
    assert re.findall(r">(live|published)</th>|<summary>(Events)", content) == [
        *(("live", ""), ("published", ""), ("", "Events")),
        ("published", ""),
    ]


def test_a_row_can_be_asked_for(page: Page) -> None:
    opened(page, explain_page(ROW, form=FORM))
    assert page.get_by_role("heading", name="it would be made of 1 event and 1 row of reference data.").is_visible()
    assert page.get_by_label("Row: its time").input_value().startswith("windowEnd=")
    assert page.get_by_role("button", name="Explain").is_visible()


def test_the_search_of_the_pipelines_finds_names_and_states(page: Page) -> None:
    opened(page, list_of_pipelines())
    search, cards = page.get_by_label("Find"), page.locator("#pipelines > li:visible h2")
    for words, found in (("", ["other", "telemetry", "new"]), ("TELE blocked", ["telemetry"]), ("lost", [])):
        search.fill(words)
        assert cards.all_inner_texts() == found
        assert page.get_by_role("status").inner_text() == f"{len(found)} of 3 pipelines"
