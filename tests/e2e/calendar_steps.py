"""What a user of the calendar does in a browser, in Airflow's interface."""

from datetime import datetime
from urllib.parse import quote, unquote

from playwright.sync_api import Browser, FrameLocator, Page, expect

from embedded.airflow import USER, Airflow
from embedded.main import PIPELINE
from tests.worlds import HOUR, TEN

STILL = """\
const style = new CSSStyleSheet();
style.replaceSync("*, *::before, *::after { animation: none !important; transition: none !important; }");
document.adoptedStyleSheets = [style];
"""
"""Stops what moves in Airflow's interface, such as the signs of running tasks: it is drawn without a graphics card."""


def new_page(browser: Browser) -> Page:
    page = browser.new_page()
    page.set_default_timeout(60_000)
    page.add_init_script(STILL)
    return page


def signed_in_page(browser: Browser, airflow: Airflow) -> Page:
    """Return a page of a user who has signed in before."""
    page = new_page(browser)
    page.context.add_cookies([{"name": "_token", "value": airflow.token, "url": airflow.url}])
    return page


def sign_in(page: Page, airflow: Airflow) -> None:
    page.goto(airflow.url)
    page.get_by_label("Username").fill(USER)
    page.get_by_label("Password").fill(airflow.password)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("link", name="Coverage").click()


def leave(page: Page) -> None:
    """Close Airflow's interface, which asks for news and draws all the time, until the page goes somewhere else."""
    page.goto("about:blank")


def act(calendar: FrameLocator, action: str) -> str:
    """Press a button of the calendar, confirm, and return the id of the run that Airflow started."""
    calendar.get_by_role("button", name=f"{action}…").click()
    calendar.get_by_role("dialog").get_by_role("button", name=action, exact=True).click()
    run: str = calendar.get_by_role("status").get_by_role("link").inner_text()
    return run


def choose(calendar: FrameLocator) -> None:
    """Choose the first hour of the CSV pipeline."""
    expect(calendar.get_by_role("heading", name="Coverage of csv")).to_be_visible(timeout=60_000)
    calendar.get_by_role("textbox", name="From").fill(f"{TEN:%Y-%m-%dT%H:%M:%SZ}")
    calendar.get_by_role("textbox", name="To").fill(f"{TEN + HOUR:%Y-%m-%dT%H:%M:%SZ}")
    calendar.get_by_role("button", name="Choose").click()
    expect(calendar.get_by_role("button", name="Backfill…")).to_be_visible(timeout=60_000)


def shown_report(page: Page) -> str:
    """Lead from the calendar to the report of the slice that Airflow's backfill published; return its text."""
    calendar = page.frame_locator("iframe")
    expect(calendar.get_by_role("listitem").filter(has_text=PIPELINE).first).to_contain_text(
        "2 published", timeout=60_000
    )
    calendar.get_by_role("link", name="telemetry").click()
    calendar.get_by_role("link", name="1 March, 06:00 to 07:00: published", exact=True).click()
    calendar.get_by_role("link", name="Report of the run").click()
    report = calendar.frame_locator("iframe")
    expect(report.get_by_role("heading", name="Definition")).to_be_visible()
    text: str = report.locator("body").inner_text()
    calendar.get_by_role("link", name="These slices in the calendar").click()
    return text


def approved_run(page: Page, airflow: Airflow) -> str:
    """Start a backfill in the calendar and approve its run, which the audit stops; return the id of the DAG run."""
    calendar = page.frame_locator("iframe")
    calendar.get_by_role("link", name="csv").click()
    choose(calendar)
    run = act(calendar, "Backfill")
    airflow.wait_for_task("csv", run, "approval", "awaiting_input")
    choose(calendar)
    cell = calendar.get_by_role("link", name="1 March, 10:00 to 11:00: awaiting a decision", exact=True)
    expect(cell).to_be_visible(timeout=60_000)
    expect(calendar.get_by_role("listitem").filter(has_text="no row")).to_be_visible()
    question = calendar.get_by_role("link", name="Answer under Required Actions").get_attribute("href")
    assert question == f"/dags/csv/runs/{quote(run, safe='')}/tasks/approval/required_actions"
    assert calendar.get_by_role("button", name="Roll back…").is_disabled()
    approve(page, airflow, "csv", run, "the rows are wanted")
    airflow.wait("csv", run)
    return run


def approve(page: Page, airflow: Airflow, dag: str, run: str, reason: str | None = None) -> None:
    """Approve the run.

    If the scheduler has not noted yet that the task waits, Airflow retries the task. It then asks again, or finds the
    answer.
    """
    page.goto(f"{airflow.url}/dags/{dag}/runs/{run}/tasks/approval/required_actions")
    if reason is not None:
        page.get_by_role("textbox").last.fill(reason)
    page.get_by_role("button", name="Approve").click()
    state = airflow.wait_for_task(dag, run, "approval", "success", "up_for_retry")
    leave(page)
    if state == "up_for_retry":
        state = airflow.wait_for_task(dag, run, "approval", "awaiting_input", "success")
    if state == "awaiting_input":
        approve(page, airflow, dag, run, reason)


def stage(page: Page, airflow: Airflow, dag: str, start: datetime, end: datetime) -> str:
    """Stage a range with the trigger form of a DAG, and return the id of the DAG run."""
    page.goto(f"{airflow.url}/dags/{dag}")
    page.get_by_role("button", name="Trigger").first.click()
    form = page.get_by_role("dialog").filter(has_text="Run Parameters")
    for time in (start, end):
        form.get_by_text("Select date and time").first.click()
        page.get_by_placeholder("YYYY/MM/DD").last.fill(f"{time:%Y/%m/%d}")
        page.get_by_placeholder("HH:mm").last.fill(f"{time:%H:%M}")
        form.get_by_role("heading", name="Trigger Dag").click()
        expect(form.get_by_text(f"{time:%b %d, %Y %H:%M}")).to_be_visible()
    form.locator("label:has(input[name=element_stage]) [data-part=control]").click()
    form.get_by_test_id("trigger-dag-submit").click()
    page.wait_for_url("**/runs/**")
    run = unquote(page.url.partition("/runs/")[2].partition("/")[0])
    leave(page)
    return run


def rolled_back(page: Page, airflow: Airflow) -> dict[str, str | None]:
    """Roll the approved slice back in the calendar; return what the DAG says of the slice."""
    page.goto(f"{airflow.url}/plugin/recapture/recapture/csv/")
    calendar = page.frame_locator("iframe")
    choose(calendar)
    expect(
        calendar.get_by_role("link", name="1 March, 10:00 to 11:00: published after approval", exact=True)
    ).to_be_visible(timeout=60_000)
    run = act(calendar, "Roll back")
    airflow.wait("csv.rollback", run)
    choose(calendar)
    cell = calendar.get_by_role("link", name="1 March, 10:00 to 11:00: missing", exact=True)
    expect(cell).to_be_visible(timeout=60_000)
    (slice_,) = airflow.result("csv.rollback", run, "rollback")["rolled_back"]
    restored: dict[str, str | None] = slice_
    return restored


def requested(page: Page) -> str:
    """Request the chosen hour in the calendar for later, and cancel the request; return what the list says of it."""
    calendar = page.frame_locator("iframe")
    calendar.get_by_role("button", name="Request…").click()
    dialog = calendar.get_by_role("dialog")
    dialog.get_by_label("Not before").fill("2030-01-01T06:30")
    dialog.get_by_label("Reason").fill("new thresholds")
    dialog.get_by_role("button", name="Request", exact=True).click()
    requests = calendar.get_by_role("listitem").filter(has_text="made by")
    expect(requests).to_contain_text("waiting for the first update from 2030-01-01 06:30 on", timeout=60_000)
    expect(calendar.get_by_text("The DAG csv.update is paused: requests wait").last).to_be_visible()
    requests.get_by_role("button", name="Cancel request").click()
    expect(requests).to_contain_text("cancelled by", timeout=60_000)
    text: str = requests.inner_text()
    return text
