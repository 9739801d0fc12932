"""The calendar as a page: what it shows, that it is usable without a mouse, and that names in it do nothing."""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, Route

from recapture.errors import DefinitionError
from recapture.run.slice_state import State
from recapture.run_files.changes import Changes
from recapture.table.publications import ShownEntry
from recapture.time_model import ticks
from recapture.tools.coverage import calendar
from recapture.tools.coverage.activity import DagRun, RunState
from recapture.tools.coverage.calendar import Access, Range, calendar_page, chosen_range
from recapture.tools.coverage.reading import Coverage
from recapture.tools.coverage.states import SliceState

HOUR = ticks.from_seconds(3600)
MARCH = date(2026, 3, 1)
FIRST = ticks.from_datetime(datetime(2026, 3, 1, 6, tzinfo=UTC))
FIRST_RANGE = Range(FIRST, FIRST + HOUR)
RUN = "20260301T060000Z-20260301T070000Z-0123456789ab"
SITE = "http://airflow.test"
ALLOWED = dict.fromkeys(("backfill", "rollback", "check"))


def state(hour: int, state: State = State.PUBLISHED, **values: Any) -> SliceState:
    """Return the state of the slice so many hours after the first."""
    start = FIRST + hour * HOUR
    run, quality = values.pop("run", RUN), values.pop("quality", "passed")
    entry = ShownEntry(run=run, quality=quality, input_events=5, late_events=1)
    return SliceState(start, start + HOUR, state, entry, **values)


def rendered(*states: SliceState, chosen: Range | None = None, asks_for_approval: bool = False, **shown: Any) -> str:
    """Return the calendar of March; `shown` has its actions, problem, metrics and audits."""
    access = Access("", "/recapture", ALLOWED | shown.get("actions", {}), asks_for_approval)
    coverage = Coverage(states, Changes(), shown.get("problem"))
    metrics, audits = shown.get("metrics", {}), shown.get("audits", {})
    return calendar_page("telemetry", ["telemetry"], coverage, MARCH, chosen, metrics, HOUR, access, audits).decode()


def test_every_state_has_a_sign_of_its_own() -> None:
    assert set(calendar.SIGNS) == set(calendar.KINDS) == set(State)
    assert len(set(calendar.SIGNS.values())) == len(State)


def test_a_chosen_slice_shows_a_watermark_as_a_time_and_leaves_out_what_is_0() -> None:
    metrics = {"WatermarkSeconds": 1_795_528_666.746, "InputEvents": 5.0, "EarlyInputEvents": 0.0}
    text = rendered(state(0), chosen=FIRST_RANGE, metrics=metrics)
    facts = re.findall(r'<dt class="mono">(.*?)</dt><dd>(.*?)</dd>', text)
    assert facts == [("InputEvents", "5"), ("WatermarkSeconds", "2026-11-24T13:57:46.746000Z")]


def test_a_day_shows_the_state_that_needs_attention_most_and_counts_all() -> None:
    text = rendered(state(0), state(1, State.WARNINGS), state(2, State.BLOCKED), state(3))
    assert 'aria-label="1 March: 1 blocked, 1 published with warnings, 2 published"' in text


def first(text: str) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return what the page says to look at first: the states with their slices."""
    (section,) = re.findall(r'<section aria-labelledby="first">(.*?)</section>', text, re.DOTALL)
    items = re.findall(r"<b>(.*?)</b>(.*?)</li>", section, re.DOTALL)
    return [(name, re.findall(r"<a[^>]*>(.*?)</a>( and \d+ more)?", slices)) for name, slices in items]


def test_the_page_says_where_to_look_first_the_newest_slices_of_each_state() -> None:
    blocked = [state(hour, State.BLOCKED) for hour in range(1, 6)]
    text = rendered(state(0, State.WARNINGS), *blocked, state(6), state(7, State.INCOMPLETE))
    assert first(text) == [
        (
            "blocked",
            [
                ("1 March, 11:00 to 12:00", ""),
                ("1 March, 10:00 to 11:00", ""),
                ("1 March, 09:00 to 10:00", " and 2 more"),
            ],
        ),
        ("published with warnings", [("1 March, 06:00 to 07:00", "")]),
        ("capture incomplete", [("1 March, 13:00 to 14:00", "")]),
    ]


def test_outdated_slices_say_which_parts_of_the_definition_differ() -> None:
    outdated = [state(hour, State.OUTDATED, differing=(part,)) for hour, part in enumerate(("suite", "query"))]
    other_version = state(2, differing=("engine",))
    text = rendered(*outdated, other_version, chosen=Range(FIRST, FIRST + 3 * HOUR))
    assert "What differs: other query, suite." in text
    assert "2 outdated (other query, suite)" in text
    assert "<dd>other version of Recapture</dd>" in rendered(
        other_version, chosen=Range(FIRST + 2 * HOUR, FIRST + 3 * HOUR)
    )


def test_if_no_slice_needs_attention_the_page_says_so() -> None:
    assert "Every slice is published, and none needs attention." in rendered(state(0), state(1, State.APPROVED))
    assert "No run has ended yet." in rendered()


def test_a_cell_leads_to_its_slice() -> None:
    (href,) = re.findall(r'href="([^"]*)" data-from', rendered(state(0)))
    query = parse_qs(urlsplit(href.replace("&amp;", "&")).query)
    assert query == {"month": ["2026-03"], "from": ["2026-03-01T06:00:00Z"], "to": ["2026-03-01T07:00:00Z"]}


def test_the_chosen_slices_lead_to_their_runs_and_count_their_states() -> None:
    blocked = state(1, State.BLOCKED, blocked_run="20260301T070000Z-20260301T080000Z-0123456789ab")
    text = rendered(state(0), blocked, chosen=Range(FIRST, FIRST + 2 * HOUR))
    assert "1 blocked" in text
    assert "stopped by its audit" in text
    for file in ("", "dag-run", "manifest.json"):
        assert f"/recapture/telemetry/runs/{blocked.blocked_run}/{file}" in text


def dag_run(run_state: RunState, **more: Any) -> DagRun:
    return DagRun(
        "telemetry.update", "scheduled__2026-03-01T07:00:00+00:00", run_state, FIRST, FIRST + HOUR, FIRST + HOUR, **more
    )


def test_a_blocked_slice_says_which_checks_failed_and_leads_to_the_report() -> None:
    audits = {RUN: "FAILED  few events are <late>\n  (1 of 4)\npassed  the rest\nWARNING  a gap\n"}
    text = rendered(state(0, State.BLOCKED, run=None, blocked_run=RUN), chosen=FIRST_RANGE, audits=audits)
    assert "<li><code>FAILED few events are &lt;late&gt;</code></li>" in text
    assert "the rest" not in text
    assert f'<a href="/recapture/telemetry/runs/{RUN}/">Report of the run</a>' in text


def test_a_blocked_slice_says_how_a_person_can_decide() -> None:
    ended = state(0, State.BLOCKED, blocked_run=RUN, dag_run=dag_run(RunState.FAILED))
    text = rendered(ended, chosen=FIRST_RANGE)
    assert "add `approval: {}` to the pipeline file" in text
    text = rendered(ended, chosen=FIRST_RANGE, asks_for_approval=True)
    assert "Backfill its slices to be asked again." in text
    assert "required_actions" not in text


def test_a_slice_that_awaits_a_decision_leads_to_the_question() -> None:
    asking = dag_run(RunState.RUNNING, awaits_decision=True)
    slice_ = state(0, State.AWAITING, blocked_run=RUN, dag_run=asking)
    text = rendered(slice_, chosen=FIRST_RANGE, asks_for_approval=True)
    assert "A person is asked whether to publish the run." in text
    run = "scheduled__2026-03-01T07%3A00%3A00%2B00%3A00"
    assert f'href="/dags/telemetry.update/runs/{run}/tasks/approval/required_actions"' in text


def test_a_slice_whose_run_is_staged_leads_to_the_question() -> None:
    asking = dag_run(RunState.RUNNING, awaits_decision=True)
    text = rendered(state(0, State.AWAITING, run=None, dag_run=asking), chosen=FIRST_RANGE)
    assert '/tasks/approval/required_actions" target="_top">waits for an answer</a>' in text
    assert "Stopped by its audit" not in text


def test_a_failed_slice_leads_to_the_log_of_the_task_that_failed() -> None:
    failed = dag_run(RunState.FAILED, failed_tasks=("plan",))
    text = rendered(state(0, State.FAILED, run=None, dag_run=failed), chosen=FIRST_RANGE)
    run = "/dags/telemetry.update/runs/scheduled__2026-03-01T07%3A00%3A00%2B00%3A00"
    assert f'<a href="{run}" target="_top">' in text
    assert f'<a href="{run}/tasks/plan" target="_top">plan</a>' in text


def test_a_slice_that_an_update_failed_at_says_why() -> None:
    failed = [state(hour, State.FAILED, run=None, error="a <blob> is damaged") for hour in (0, 1)]
    text = rendered(*failed, chosen=Range(FIRST, FIRST + 2 * HOUR))
    assert text.count("<b>The last update failed:</b> a &lt;blob&gt; is damaged") == 1


def test_what_was_never_published_cannot_be_rolled_back(page: Page, show: Callable[[str], list[Any]]) -> None:
    show(rendered(state(0), state(1, State.MISSING, run=None), chosen=Range(FIRST, FIRST + 2 * HOUR)))
    button = page.get_by_role("button", name="Roll back…")
    assert button.is_disabled()
    reason = page.locator(f"#{button.get_attribute('aria-describedby')}").inner_text()
    assert reason == "Roll back: nothing is published for 1 of these slices."
    assert page.get_by_role("button", name="Backfill…").is_enabled()


def test_the_list_of_pipelines_counts_the_slices_in_each_state() -> None:
    slices = [state(0), state(1), state(2, State.BLOCKED)]
    pipelines = [calendar.summary("telemetry", slices), calendar.Summary("other", [], "cannot <list> it")]
    text = calendar.pipelines_page(pipelines, [], "/recapture").decode()
    assert "</span> 1 blocked</span>, " in text
    assert "</span> 2 published</span>" in text
    assert "cannot &lt;list&gt; it" in text
    assert '<a href="/recapture/telemetry/">telemetry</a>' in text


def test_markup_in_a_name_is_text() -> None:
    text = rendered(state(0, quality="<script>alert(1)</script>"), chosen=FIRST_RANGE, problem="<b>x")
    assert "<script>alert" not in text
    assert "<b>x" not in text


@pytest.mark.parametrize(
    ("from_", "to", "reason"),
    [
        ("2026-03-01T06:00:00Z", None, "To is ''"),
        ("six", "2026-03-01T07:00:00Z", "From is 'six'"),
        ("2026-03-01T06:30:00Z", "2026-03-01T07:00:00Z", "not on a slice border"),
        ("2026-03-01T07:00:00Z", "2026-03-01T07:00:00Z", "empty"),
    ],
)
def test_a_range_of_other_than_whole_slices_is_refused(from_: str, to: str | None, reason: str) -> None:
    with pytest.raises(DefinitionError, match=reason):
        chosen_range(from_, to, HOUR)


def test_an_address_without_a_range_chooses_nothing() -> None:
    assert chosen_range(None, None, HOUR) is None
    assert chosen_range("2026-03-01T06:00:00Z", "2026-03-01T08:00:00Z", HOUR) == Range(FIRST, FIRST + 2 * HOUR)


@pytest.fixture
def show(page: Page) -> Callable[[str], list[Any]]:
    """Show a page at the address of Airflow; return the bodies of the requests to its API, which answers them."""

    def show(text: str) -> list[Any]:
        requests: list[Any] = []

        def answer(route: Route) -> None:
            if "/api/" in route.request.url:
                requests.append((urlsplit(route.request.url).path, route.request.post_data_json))
                route.fulfill(json={"dag_run_id": "manual__1"})
            else:
                route.fulfill(body=text, content_type="text/html; charset=utf-8")

        page.route(f"{SITE}/**", answer)
        page.goto(f"{SITE}/recapture/telemetry/")
        return requests

    return show


def test_a_button_starts_a_run_of_the_chosen_range_after_it_was_confirmed(
    page: Page, show: Callable[[str], list[Any]]
) -> None:
    requests = show(rendered(state(0), chosen=FIRST_RANGE))
    page.get_by_role("button", name="Roll back…").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    assert requests == []
    page.get_by_role("button", name="Roll back…").click()
    page.get_by_role("dialog").get_by_role("button", name="Roll back").click()
    link = page.get_by_role("status").get_by_role("link")
    assert link.get_attribute("href") == "/dags/telemetry.rollback/runs/manual__1"
    range_ = {"from": "2026-03-01T06:00:00Z", "to": "2026-03-01T07:00:00Z"}
    assert requests == [("/api/v2/dags/telemetry.rollback/dagRuns", {"logical_date": None, "conf": range_})]


def test_a_button_that_the_reader_may_not_use_is_disabled_and_says_why(
    page: Page, show: Callable[[str], list[Any]]
) -> None:
    show(rendered(state(0), chosen=FIRST_RANGE, actions={"backfill": "you may not."}))
    button = page.get_by_role("button", name="Backfill…")
    assert button.is_disabled()
    assert page.locator(f"#{button.get_attribute('aria-describedby')}").inner_text() == "Backfill: you may not."


def test_arrow_keys_move_between_slices_and_shift_extends_the_chosen_range(
    page: Page, show: Callable[[str], list[Any]]
) -> None:
    show(rendered(*(state(hour) for hour in range(40)), chosen=FIRST_RANGE))
    cells = page.locator("#slices .cell")
    assert cells.evaluate_all("cells => cells.filter(cell => cell.tabIndex === 0).length") == 1
    cells.first.focus()
    for key in ("ArrowRight", "ArrowDown", "ArrowUp", "ArrowRight"):
        page.keyboard.press(key)
    assert page.evaluate("document.activeElement.dataset.from") == "2026-03-01T08:00:00Z"
    with page.expect_navigation():
        page.keyboard.press("Shift+Enter")
    query = parse_qs(urlsplit(page.url).query)
    assert (query["from"], query["to"]) == (["2026-03-01T06:00:00Z"], ["2026-03-01T09:00:00Z"])


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_page_has_the_theme_that_the_reader_chose_in_airflow(
    page: Page, show: Callable[[str], list[Any]], theme: str
) -> None:
    page.emulate_media(color_scheme="light" if theme == "dark" else "dark")
    page.add_init_script(f"localStorage.setItem('theme', '{theme}')")
    show(rendered(state(0)))
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", colour))) < 384) == (theme == "dark")
