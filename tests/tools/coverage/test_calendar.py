"""The calendar as a page: what it shows, that it is usable without a mouse, and that names in it do nothing."""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, Route, expect

from recapture.errors import DefinitionError
from recapture.quality.audit import Audit, Result
from recapture.run.slice_state import State
from recapture.run_files.changes import Changes
from recapture.run_files.work import Request
from recapture.table.publications import ShownEntry
from recapture.time_model import ticks
from recapture.tools.coverage.activity import DagRun, RunState
from recapture.tools.coverage.calendar import Shown, Summary, audited_runs, calendar_page, pipelines_page
from recapture.tools.coverage.chosen import MOST_APART, failures
from recapture.tools.coverage.marks import KINDS, SIGNS, STEPS, Access, why
from recapture.tools.coverage.ranges import Range, chosen_range
from recapture.tools.coverage.reading import Coverage
from recapture.tools.coverage.states import SliceState

HOUR = ticks.from_seconds(3600)
MARCH = date(2026, 3, 1)
FIRST = ticks.from_datetime(datetime(2026, 3, 1, 6, tzinfo=UTC))
FIRST_RANGE = Range(FIRST, FIRST + HOUR)
RUN = "20260301T060000Z-20260301T070000Z-0123456789ab"
SITE = "http://airflow.test"
ALLOWED = dict.fromkeys(("request", "backfill", "rollback", "check"))


def state(hour: int, state: State = State.PUBLISHED, **values: Any) -> SliceState:
    """Return the state of the slice so many hours after the first."""
    start = FIRST + hour * HOUR
    run, quality = values.pop("run", RUN), values.pop("quality", "passed")
    entry = ShownEntry(run=run, quality=quality, input_events=5, late_events=1)
    return SliceState(start, start + HOUR, state, entry, **values)


def rendered(*states: SliceState, chosen: Range | None = None, **shown: Any) -> str:
    """Return the calendar of March; `shown` has its actions, problems, metrics, audits, requests and more."""
    actions, waiting = ALLOWED | shown.get("actions", {}), shown.get("waiting")
    access = Access("", "/recapture", actions, shown.get("asks_for_approval", False), waiting)
    coverage = Coverage(states, Changes(), shown.get("requests", ()), shown.get("problems", ()))
    choice = Shown(shown.get("month", MARCH), chosen, shown.get("metrics", {}))
    pipelines, audits = shown.get("pipelines", ["telemetry"]), shown.get("audits", {})
    return calendar_page("telemetry", pipelines, coverage, choice, HOUR, access, audits).decode()


def test_every_state_has_a_sign_of_its_own_and_a_next_step() -> None:
    assert set(SIGNS) == set(KINDS) == set(STEPS) == set(State)
    assert len(set(SIGNS.values())) == len(State)
    assert all(step.endswith(".") for step in STEPS.values())


def test_a_state_leads_to_its_slices_and_the_page_then_chooses_only_these() -> None:
    slices = [state(0), state(1, State.MISSING, run=None), state(2), state(3, State.BLOCKED, run=None), state(4)]
    slices.append(state(5, State.MISSING, run=None))
    text = rendered(*slices)
    bounds = "month=2026-03&amp;from=2026-03-01T07%3A00%3A00Z&amp;to=2026-03-01T12%3A00%3A00Z"
    assert f'<a href="?{bounds}&amp;state=missing#chosen">2 missing</a>' in text
    assert f'<a href="?{bounds}&amp;state=blocked&amp;state=missing#chosen">Choose the slices that need' in text
    chosen = chosen_range("2026-03-01T06:00:00Z", "2026-03-01T13:00:00Z", HOUR, ["missing"])
    assert chosen is not None
    narrow = chosen.narrowed(slices)
    assert narrow == Range(FIRST + HOUR, FIRST + 6 * HOUR, (State.MISSING,))
    text = rendered(*slices, chosen=narrow)
    assert "<b>1 March, 07:00 to 12:00, only missing</b>" in text
    assert re.findall(r'class="cell \w+ chosen".*?data-from="(.*?)"', text) == [
        "2026-03-01T07:00:00Z",
        "2026-03-01T11:00:00Z",
    ]
    assert 'data-only="2026-03-01T07:00:00Z,2026-03-01T11:00:00Z"' in text
    assert "Backfill: choose slices that are next to each other, or request these." in text
    gone = chosen_range("2026-03-01T06:00:00Z", "2026-03-01T13:00:00Z", HOUR, ["failed"])
    assert gone is not None
    text = rendered(*slices, chosen=gone.narrowed(slices))
    assert "<li>No slice of this range is in this state now: choose others.</li>" in text
    assert re.findall(r'data-dialog="(\w+)"( disabled)?', text) == [(name, " disabled") for name in ALLOWED]


def test_the_chosen_slices_lead_to_those_of_them_in_one_state_and_to_those_that_need_attention() -> None:
    slices = [state(0), state(1, State.MISSING, run=None), state(2, State.BLOCKED, run=None)]
    text = rendered(*slices, chosen=Range(FIRST, FIRST + 3 * HOUR))
    missing = (
        "?month=2026-03&amp;from=2026-03-01T07%3A00%3A00Z&amp;to=2026-03-01T08%3A00%3A00Z&amp;state=missing#chosen"
    )
    assert text.count(f'<a href="{missing}">1 missing</a>') == 2, "in the head, and among the chosen slices"
    assert ">Choose only the 2 that need attention</a>" in text
    assert 'data-only=""' in text


def test_slices_that_are_not_next_to_each_other_can_be_requested_up_to_a_number() -> None:
    slices = [state(2 * n, State.MISSING, run=None) for n in range(MOST_APART + 1)]
    text = rendered(*slices, chosen=Range(slices[0].start, slices[-1].end, (State.MISSING,)))
    assert "Request: these are more than 400 slices that are not next to each other: choose a shorter range." in text
    assert "and 381 more ranges" in text


def test_a_chosen_slice_shows_a_watermark_as_a_time_and_leaves_out_what_is_0() -> None:
    metrics = {"WatermarkSeconds": 1_795_528_666.746, "InputEvents": 5.0, "EarlyInputEvents": 0.0}
    text = rendered(state(0), chosen=FIRST_RANGE, metrics=metrics)
    facts = re.findall(r'<dt>(.*?)</dt><dd>(.*?) <span class="mono muted">(.*?)</span></dd>', text)
    assert facts == [
        ("events that arrived", "5", "InputEvents"),
        ("watermark at the end", "2026-11-24T13:57:46.746000Z", "WatermarkSeconds"),
    ]


def test_a_day_shows_the_state_that_needs_attention_most_and_counts_all() -> None:
    text = rendered(state(0), state(1, State.WARNINGS), state(2, State.BLOCKED), state(3), state(24 * 31))
    assert 'aria-label="1 March: 1 blocked, 1 published with warnings, 2 published"' in text


def first(text: str) -> list[tuple[str, list[str]]]:
    """Return what the page says to look at first: the states with the links to their slices."""
    (section,) = re.findall(r'<section aria-labelledby="first">(.*?)</section>', text, re.DOTALL)
    items = re.findall(r"<b>(.*?)</b>(.*?)</li>", section, re.DOTALL)
    return [(name, re.findall(r"<a[^>]*>(.*?)</a>", slices)) for name, slices in items]


def test_the_page_says_where_to_look_first_the_newest_slices_of_each_state() -> None:
    blocked = [state(hour, State.BLOCKED) for hour in range(1, 6)]
    text = rendered(state(0, State.WARNINGS), *blocked, state(6), state(7, State.INCOMPLETE))
    assert first(text) == [
        (
            "blocked",
            ["1 March, 11:00 to 12:00", "1 March, 10:00 to 11:00", "1 March, 09:00 to 10:00", "2 more"],
        ),
        ("published with warnings", ["1 March, 06:00 to 07:00"]),
        ("capture incomplete", ["1 March, 13:00 to 14:00"]),
    ]


def test_outdated_slices_say_which_parts_of_the_definition_differ() -> None:
    outdated = [state(hour, State.OUTDATED, differing=(part,)) for hour, part in enumerate(("suite", "query"))]
    other_version = state(2, differing=("engine",))
    text = rendered(*outdated, other_version, chosen=Range(FIRST, FIRST + 3 * HOUR))
    assert text.count("What differs: other query, suite.") == 2
    assert "by another definition than the pipeline has now: other query." in why(outdated[1], {})
    assert "<dd>other version of Recapture</dd>" in rendered(
        other_version, chosen=Range(FIRST + 2 * HOUR, FIRST + 3 * HOUR)
    )


def test_the_head_counts_the_published_slices_and_those_that_need_attention() -> None:
    assert "2 of 2 slices are published, and none needs attention." in rendered(state(0), state(1, State.APPROVED))
    blocked = rendered(state(0), state(1, State.BLOCKED, run=None), state(2, State.INCOMPLETE, run=None))
    assert "1 of 3 slices is published, and 1 needs attention." in blocked
    assert "No run has begun yet." in rendered()


def test_the_calendar_begins_with_the_first_slice_and_ends_with_the_last() -> None:
    text = rendered(*(state(hour) for hour in (0, 24 * 3)))
    assert re.findall(r'<tr id="d(.*?)"', text) == [f"2026-03-0{day}" for day in (1, 2, 3, 4)]
    assert "January" not in text
    assert 'class="months"' not in text, "the month shows all"


def test_a_year_has_the_months_of_which_something_is_known_and_leads_to_them() -> None:
    text = rendered(state(0), state(24 * 62), month=date(2026, 5, 1))
    names = re.findall(r'<h3><a href="\?month=(.*?)#month"( aria-current="true")?>(.*?)</a>', text)
    assert [(month, name) for month, _, name in names] == [
        ("2026-03", "March"),
        ("2026-04", "April"),
        ("2026-05", "May"),
    ]
    assert "Month before" in text
    assert "Month after" not in text
    assert "Nothing is known of this month." in rendered(state(0), month=date(2025, 1, 1))


BLOCKED_WHY = "The audit stopped the run: 28.7 % of the events are malformed. 1 other check failed, too."

ASKED = "A person is asked whether to publish it."


@pytest.mark.parametrize(
    ("slice_", "sentences"),
    [
        (state(0), "Published, and the audit passed. 5 events arrived, 20 % late."),
        (state(0, State.BLOCKED, run=None, blocked_run=RUN), BLOCKED_WHY),
        (
            state(0, State.AWAITING, run=None, blocked_run=RUN),
            f"{BLOCKED_WHY} A person is asked whether to publish it.",
        ),
        (state(0, State.BLOCKED, run=None, blocked_run="gone"), State.BLOCKED.meaning),
        (state(0, State.FAILED, run=None, error="a blob\nis damaged"), "The last update failed: a blob."),
        (state(0, State.MISSING, run=None), State.MISSING.meaning),
    ],
)
def test_every_slice_says_why_it_is_in_its_state(slice_: SliceState, sentences: str) -> None:
    audits = {RUN: ["28.7 % of the events are malformed, such as partition 3", "no row"]}
    assert why(slice_, audits) == sentences
    assert f'title="{sentences}"' in rendered(slice_, audits=audits)


def test_the_audits_of_the_newest_runs_that_block_slices_of_the_month_are_explained() -> None:
    blocked = [state(hour, State.BLOCKED, run=None, blocked_run=f"run {hour}") for hour in range(12)]
    runs = [f"run {hour}" for hour in range(11, 1, -1)]
    assert audited_runs(blocked, MARCH, None) == runs
    assert audited_runs(blocked, MARCH, FIRST_RANGE) == ["run 0", *runs]
    assert audited_runs(blocked, date(2026, 4, 1), None) == []


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


def result(**values: Any) -> Result:
    fields = {
        "suite": "telemetry",
        "judged": "metrics",
        "expectation": "any",
        "observed": None,
        "unexpected_count": None,
    }
    return Result(**fields | values)


def test_a_blocked_slice_says_which_checks_failed_and_leads_to_the_report() -> None:
    results = (
        result(severity="critical", success=False, sentence="few events are <late>"),
        result(severity="critical", success=True, sentence="the rest"),
        result(severity="warning", success=False, sentence="a gap"),
    )
    audits = {RUN: failures(Audit("failed", results))}
    text = rendered(state(0, State.BLOCKED, run=None, blocked_run=RUN), chosen=FIRST_RANGE, audits=audits)
    assert "<li>few events are &lt;late&gt;</li>" in text
    assert "the rest" not in text
    assert "a gap" not in text
    assert f'<a href="/recapture/telemetry/runs/{RUN}/">Report of the run</a>' in text


def test_a_blocked_slice_says_how_a_person_can_decide() -> None:
    ended = state(0, State.BLOCKED, blocked_run=RUN, dag_run=dag_run(RunState.FAILED))
    text = rendered(ended, chosen=FIRST_RANGE)
    assert "add `approval: {}` to the pipeline file" in text
    text = rendered(ended, chosen=FIRST_RANGE, asks_for_approval=True)
    assert "Backfill its slices to be asked again." in text
    assert "required_actions" not in text


def test_a_blocked_run_of_several_slices_is_divided_by_the_next_updates() -> None:
    update = dag_run(RunState.FAILED)
    several = "20260301T060000Z-20260301T080000Z-0123456789ab"
    for run, is_divided in ((several, True), (RUN, False)):
        slices = state(0, State.BLOCKED, run=None, blocked_run=run, dag_run=update)
        text = rendered(slices, chosen=FIRST_RANGE, asks_for_approval=True)
        assert ("The next updates compute its slices in shorter runs" in text) == is_divided


def test_a_slice_that_awaits_a_decision_leads_to_the_question() -> None:
    asking = dag_run(RunState.RUNNING, awaits_decision=True)
    slice_ = state(0, State.AWAITING, blocked_run=RUN, dag_run=asking)
    text = rendered(slice_, chosen=FIRST_RANGE, asks_for_approval=True)
    assert "A person is asked whether to publish the run." in text
    run = "scheduled__2026-03-01T07%3A00%3A00%2B00%3A00"
    question = f"/dags/telemetry.update/runs/{run}/tasks/approval/required_actions"
    assert text.count(question) == 1
    several = rendered(slice_, state(1), chosen=Range(FIRST, FIRST + 2 * HOUR), asks_for_approval=True)
    assert several.count(question) == 1


def test_a_slice_whose_run_is_staged_leads_to_the_question() -> None:
    asking = dag_run(RunState.RUNNING, awaits_decision=True)
    text = rendered(state(0, State.AWAITING, run=None, dag_run=asking), chosen=FIRST_RANGE)
    assert '/tasks/approval/required_actions" target="_top">Answer under Required Actions</a>' in text
    assert "Stopped by its audit" not in text


def test_a_failed_slice_leads_to_the_log_of_the_task_that_failed() -> None:
    failed = dag_run(RunState.FAILED, failed_tasks=("plan",))
    text = rendered(state(0, State.FAILED, run=None, dag_run=failed), chosen=FIRST_RANGE)
    run = "/dags/telemetry.update/runs/scheduled__2026-03-01T07%3A00%3A00%2B00%3A00"
    assert f'href="{run}" target="_top">' in text
    assert f'<a href="{run}/tasks/plan" target="_top">plan</a>' in text


def test_a_slice_that_an_update_failed_at_says_why() -> None:
    failed = [state(hour, State.FAILED, run=None, error="a <blob> is damaged") for hour in (0, 1)]
    text = rendered(*failed, chosen=Range(FIRST, FIRST + 2 * HOUR))
    assert text.count("<b>The last update failed:</b> a &lt;blob&gt; is damaged") == 1


def test_what_was_never_published_cannot_be_rolled_back(page: Page, show: Callable[..., list[Any]]) -> None:
    show(rendered(state(0), state(1, State.MISSING, run=None), chosen=Range(FIRST, FIRST + 2 * HOUR)))
    button = page.get_by_role("button", name="Roll back…")
    assert button.is_disabled()
    reason = page.locator(f"#{button.get_attribute('aria-describedby')}").inner_text()
    assert reason == "Roll back: nothing is published for 1 of these slices."
    assert page.get_by_role("button", name="Backfill…").is_enabled()


def test_the_list_of_pipelines_counts_the_slices_in_each_state_and_leads_to_the_newest() -> None:
    slices = [state(0), state(1), state(2, State.BLOCKED, run=None)]
    pipelines = [Summary("telemetry", slices), Summary("other", problem="cannot <list> it"), Summary("new")]
    text = pipelines_page(pipelines, [], "/recapture").decode()
    assert ">1 blocked</a></li>" in text
    published = "from=2026-03-01T06%3A00%3A00Z&amp;to=2026-03-01T08%3A00%3A00Z&amp;state=published#chosen"
    assert f'<a href="/recapture/telemetry/?month=2026-03&amp;{published}">2 published</a></li>' in text
    assert re.findall(r'<h2 class="plain"><a [^>]*>(.*?)</a>', text) == ["other", "telemetry", "new"], "worst first"
    assert "2 of 3 slices are published, and 1 needs attention." in text
    assert "No run has begun yet." in text
    assert "cannot &lt;list&gt; it" in text
    assert '<a href="/recapture/telemetry/">telemetry</a>' in text
    assert 'href="/recapture/telemetry/?month=2026-03&amp;from=2026-03-01T07%3A00%3A00Z' in text


def request(id: str, **values: Any) -> Request:
    fields: dict[str, Any] = {"by": "ada", "start": FIRST, "end": FIRST + 2 * HOUR, "at": FIRST, "made": FIRST}
    return Request(id=id, **fields | values)


def test_requests_are_listed_the_newest_first_with_state_person_times_and_reason() -> None:
    requests = (
        request("a", ended=FIRST + HOUR, cancelled_by="<eve>"),
        request("b", at=FIRST + 5 * HOUR, reason="new <thresholds>"),
        request("c", started=FIRST + HOUR, published={"2026-03-01T06:00:00Z": RUN}),
        request("d", started=FIRST, ended=FIRST + HOUR, failed={"2026-03-01T07:00:00Z": "a hole"}),
    )
    text = rendered(state(0), requests=requests)
    assert re.findall(r'<li id="request-(.)"', text) == ["d", "c", "b", "a"]
    items = dict(re.findall(r'<li id="request-(.)".*?>(.*?)</li>', text, re.DOTALL))
    assert "<b>cancelled</b> by &lt;eve&gt; at 2026-03-01 07:00" in items["a"]
    assert "<b>waiting</b> for the first update from 2026-03-01 11:00 on" in items["b"]
    assert "new &lt;thresholds&gt;" in items["b"]
    assert "made by ada at 2026-03-01 06:00" in items["b"]
    assert "<b>started</b> at 2026-03-01 07:00, 1 of 2 slices published" in items["c"]
    assert "1 March, 07:00 to 08:00 failed: a hole" in items["d"]
    assert [id for id, item in items.items() if "<button" in item] == ["b"]


def test_of_the_requests_that_have_ended_the_last_ten_are_listed() -> None:
    requests = tuple(request(f"{number:02}", ended=FIRST, cancelled_by="ada") for number in range(12))
    text = rendered(state(0), requests=(*requests, request("open")))
    assert re.findall(r'<li id="request-(.*?)"', text) == ["open", *(f"{number:02}" for number in range(11, 1, -1))]
    assert "And 2 that ended earlier" in text


def test_the_page_says_if_no_update_carries_out_requests() -> None:
    assert "<b>The DAG is paused.</b>" in rendered(state(0), waiting="The DAG is paused.")


def test_markup_in_a_name_is_text() -> None:
    text = rendered(state(0, quality="<script>alert(1)</script>"), chosen=FIRST_RANGE, problems=("<i>x",))
    assert "<script>alert" not in text
    assert "<i>x" not in text


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


@pytest.mark.parametrize(
    ("hours", "text"),
    [
        (1, "1 March, 06:00 to 07:00"),
        (18, "1 March, 06:00 to 00:00"),
        (19, "1 March, 06:00 to 2 March, 01:00"),
        (48, "1 March, 06:00 to 3 March, 06:00"),
    ],
)
def test_a_range_names_the_day_on_which_it_ends_unless_that_is_the_first(hours: int, text: str) -> None:
    assert Range(FIRST, FIRST + hours * HOUR).text == text


def test_a_state_that_slices_cannot_be_in_is_refused() -> None:
    with pytest.raises(
        DefinitionError, match="'lost' is not a state of slices: use one of awaiting a decision, blocked"
    ):
        chosen_range("2026-03-01T06:00:00Z", "2026-03-01T08:00:00Z", HOUR, ["lost"])


def test_an_address_without_a_range_chooses_nothing() -> None:
    assert chosen_range(None, None, HOUR) is None
    assert chosen_range("2026-03-01T06:00:00Z", "2026-03-01T08:00:00Z", HOUR) == Range(FIRST, FIRST + 2 * HOUR)


@pytest.fixture
def show(page: Page) -> Callable[..., list[Any]]:
    """Show a page at the address of Airflow; return the bodies of its calls, which get an answer each."""

    def show(text: str, status: int = 200, **answered: Any) -> list[Any]:
        calls: list[Any] = []

        def answer(route: Route) -> None:
            if route.request.method == "POST":
                calls.append((urlsplit(route.request.url).path, route.request.post_data_json))
                route.fulfill(status=status, json={"dag_run_id": "manual__1", **answered})
            else:
                route.fulfill(body=text, content_type="text/html; charset=utf-8")

        page.route(f"{SITE}/**", answer)
        page.goto(f"{SITE}/recapture/telemetry/")
        return calls

    return show


def test_a_request_is_made_for_the_chosen_range_and_the_page_then_shows_it(
    page: Page, show: Callable[..., list[Any]]
) -> None:
    calls = show(rendered(state(0), chosen=FIRST_RANGE, requests=(request("7c1e9f02"),)), id="7c1e9f02")
    page.get_by_role("button", name="Request…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Not before").fill("2026-03-02T18:30")
    dialog.get_by_label("Reason").fill("new thresholds")
    with page.expect_navigation():
        dialog.get_by_role("button", name="Request", exact=True).click()
    asked = {"from": "2026-03-01T06:00:00Z", "to": "2026-03-01T07:00:00Z", "only": None}
    assert calls == [("/recapture/telemetry/requests", asked | {"at": "2026-03-02T18:30", "reason": "new thresholds"})]
    expect(page.locator("#request-7c1e9f02")).to_be_focused()


def test_a_request_can_be_cancelled_and_a_refusal_is_a_sentence(page: Page, show: Callable[..., list[Any]]) -> None:
    refusal = "request 7c1e9f02 started at 07:00: what it published can be rolled back"
    calls = show(rendered(state(0), requests=(request("7c1e9f02"),)), 400, detail=refusal)
    page.get_by_role("button", name="Cancel request 7c1e9f02").click()
    expect(page.get_by_role("status")).to_have_text(f"The request is not cancelled: {refusal}")
    assert calls == [("/recapture/telemetry/requests/7c1e9f02/cancel", {})]


def test_why_a_slice_is_in_its_state_is_shown_under_the_pointer_and_at_the_focus(
    page: Page, show: Callable[..., list[Any]]
) -> None:
    show(rendered(state(0), state(1, State.MISSING, run=None)))
    tip, cells = page.get_by_role("tooltip"), page.locator("#slices .cell")
    cells.nth(1).hover()
    expect(tip).to_contain_text(f"1 March, 07:00 to 08:00: missing. {State.MISSING.meaning}")
    page.keyboard.press("Escape")
    expect(tip).to_be_hidden()
    page.mouse.move(0, 0)
    cells.first.focus()
    page.keyboard.press("ArrowRight")
    expect(tip).to_contain_text("1 March, 07:00 to 08:00: missing.")


def test_a_button_starts_a_run_of_the_chosen_range_after_it_was_confirmed(
    page: Page, show: Callable[..., list[Any]]
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
    page: Page, show: Callable[..., list[Any]]
) -> None:
    show(rendered(state(0), chosen=FIRST_RANGE, actions={"backfill": "you may not."}))
    button = page.get_by_role("button", name="Backfill…")
    assert button.is_disabled()
    assert page.locator(f"#{button.get_attribute('aria-describedby')}").inner_text() == "Backfill: you may not."


def test_arrow_keys_move_between_slices_and_shift_extends_the_chosen_range(
    page: Page, show: Callable[..., list[Any]]
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
    page: Page, show: Callable[..., list[Any]], theme: str
) -> None:
    page.emulate_media(color_scheme="light" if theme == "dark" else "dark")
    page.add_init_script(f"localStorage.setItem('theme', '{theme}')")
    show(rendered(state(0)))
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", colour))) < 384) == (theme == "dark")
