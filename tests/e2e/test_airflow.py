"""The DAGs on a real scheduler with Azurite: Airflow's own backfill of two hours, with credentials in a connection.

A browser leads from the calendar to the report, starts a backfill, approves the run that its audit stopped, rolls it
back, and requests it for later.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from playwright.sync_api import Browser, FrameLocator, Page, expect

from embedded.airflow import USER, Airflow
from embedded.azurite import KEY
from embedded.main import PIPELINE, START, sample_storage
from recapture.definition.pipeline import load
from recapture.run.plan import preview
from recapture.run.status import status
from recapture.table.delta import OpenTable, Table
from recapture.table.publications import SCHEMA
from tests.formats.test_published import archive, defined
from tests.leaks import Watch, spellings
from tests.paths import ROOT
from tests.worlds import HOUR, QUICK_START, TEN

TOGETHER = "together__2026-03-01T00:00:00Z__2026-03-02T00:00:00Z__1"
"""Run of the sample pipeline that computes what Airflow's backfill asks for."""
READER = "reader"
"""Name of an account that may only see."""
DEFINITION = ROOT / "dags" / "pipelines" / f"{PIPELINE}.yaml"


@pytest.fixture
def storage_environment() -> Iterator[dict[str, str]]:
    """Yield the environment of a sample world in Azurite, and restore the environment afterwards."""
    before = dict(os.environ)
    try:
        with sample_storage() as (_, env):
            yield env
    finally:
        os.environ.clear()
        os.environ.update(before)


@pytest.fixture
def databases() -> Iterator[Path]:
    """A folder for the database that its server can enter, which does not run as root."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page of its own session. Airflow's own pages raise errors without a network, as they load scripts from it."""
    with browser.new_context() as context:
        yield context.new_page()


def csv_pipeline(home: Path) -> Path:
    """Write an archive of CSV blobs, and a pipeline file for it in the DAG folder; return the file.

    Its rows are computed without Spark.
    """
    archive(home, "CSV")
    defined(home, "CSV")
    written = json.loads((home / "telemetry.yaml").read_text())
    written |= {"name": "csv", "engine": "processes"}
    written["input"]["container"], written["output"]["table"] = (
        (home / name).as_uri() for name in ("archive", "table")
    )
    no_rows = {"type": "expect_table_row_count_to_be_between", "description": "no row", "kwargs": {"max_value": 0}}
    pipelines = home / "dags" / "pipelines"
    (pipelines / "strict.json").write_text(json.dumps({"name": "strict", "expectations": [no_rows]}))
    line = "{{ recapture.event }}: {{ recapture.message }}"
    notification = {"notifier": "tests.notes.FileNotifier", "arguments": {"file": str(home / "notes"), "line": line}}
    path = pipelines / "csv.yaml"
    path.write_text(
        json.dumps(
            written
            | {"quality": {"suite": "strict.json"}, "approval": {"wait_hours": 1}, "notifications": [notification]}
        )
    )
    return path


def sign_in(page: Page, airflow: Airflow) -> None:
    page.goto(airflow.url)
    page.get_by_label("Username").fill(USER)
    page.get_by_label("Password").fill(airflow.password)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("link", name="Coverage").click()


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
    approve(page, airflow, run)
    airflow.wait("csv", run)
    return run


def approve(page: Page, airflow: Airflow, run: str) -> None:
    """Approve the run. If the scheduler has not noted yet that the task waits, Airflow retries it, so approve again."""
    page.goto(f"{airflow.url}/dags/csv/runs/{run}/tasks/approval/required_actions")
    page.get_by_role("textbox").last.fill("the rows are wanted")
    page.get_by_role("button", name="Approve").click()
    if airflow.wait_for_task("csv", run, "approval", "success", "up_for_retry") == "up_for_retry":
        airflow.wait_for_task("csv", run, "approval", "awaiting_input")
        approve(page, airflow, run)


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


def require_rights(airflow: Airflow, reader_password: str) -> None:
    """Check that nobody sees a page without an account, and that a viewer cannot start anything."""
    calendar = f"/recapture/csv/?from={TEN:%Y-%m-%dT%H:%M:%SZ}&to={TEN + HOUR:%Y-%m-%dT%H:%M:%SZ}"
    with httpx.Client(base_url=airflow.url, trust_env=False) as client:
        assert client.get(calendar).status_code == HTTPStatus.UNAUTHORIZED
        token = client.post("/auth/token", json={"username": READER, "password": reader_password}).json()
        client.headers["Authorization"] = f"Bearer {token['access_token']}"
        text = client.get(calendar).text
        assert text.count("you may not start runs of the DAG csv") == 4
        request = {"from": f"{TEN:%Y-%m-%dT%H:%M:%SZ}", "to": f"{TEN + HOUR:%Y-%m-%dT%H:%M:%SZ}"}
        assert client.post("/recapture/csv/requests", json=request).status_code == HTTPStatus.FORBIDDEN
        body: dict[str, Any] = {"logical_date": None, "conf": {}}
        assert client.post("/api/v2/dags/csv.rollback/dagRuns", json=body).status_code == HTTPStatus.FORBIDDEN


def test_a_native_backfill_publishes_two_slices_by_one_run(
    storage_environment: dict[str, str],
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    databases: Path,
    browser: Browser,
) -> None:
    connection_string = storage_environment.pop("AZURE_STORAGE_CONNECTION_STRING")
    del os.environ["AZURE_STORAGE_CONNECTION_STRING"]
    home = tmp_path_factory.mktemp("checkout")
    for folder in ("dags", "expectations"):
        shutil.copytree(ROOT / folder, home / folder, ignore=shutil.ignore_patterns("__pycache__"))
    (home / "spark_jobs").mkdir()
    shutil.copy(ROOT / "spark_jobs" / "backfill.py", home / "spark_jobs")
    csv = csv_pipeline(home)
    storage_environment |= {
        "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"),
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "600",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin,{READER}:viewer",
        "JAVA_TOOL_OPTIONS": QUICK_START,
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "spark_jobs")]),
    }
    with (
        Watch(spellings(KEY), tmp_path, databases) as watch,
        Airflow(storage_environment, schedule=False, homes=tmp_path, databases=databases) as airflow,
    ):
        airflow.connect(
            "recapture_storage", conn_type="wasb", extra=json.dumps({"connection_string": connection_string})
        )
        airflow.unpause(PIPELINE)
        slices = airflow.backfill(PIPELINE, START.isoformat(), (START + HOUR).isoformat())
        for run in slices:
            airflow.wait(PIPELINE, run)
        run = TOGETHER
        report = airflow.result(PIPELINE, run, "report")
        airflow.unpause("csv")
        page = browser.new_page()
        sign_in(page, airflow)
        text = shown_report(page)
        csv_run = approved_run(page, airflow)
        csv_report = airflow.result("csv", csv_run, "report")
        restored = rolled_back(page, airflow)
        request = requested(page)
        require_rights(airflow, json.loads((tmp_path / "1" / "passwords.json").read_text())[READER])
        page.goto(f"{airflow.url}/dags/{PIPELINE}")
        page.get_by_role("button", name="Trigger").first.click()
        expect(page.get_by_text("Start of the range, exclusive")).to_be_visible()
        expect(page.get_by_text("Empty: the run computes the slice of its data interval").first).to_be_visible()
        log = airflow.log(PIPELINE, run, {"task_id": "plan", "try_number": 1}, lines=1000)

    assert report["run"] in log, "the api-server reads the logs from the disk"
    assert not any(words in log for words in ("Request URL", "Skipping registering"))
    assert watch.leaks == set()
    assert {str(tmp_path / "1" / name) for name in ("postgres.log", "scheduler.log")} < watch.checked
    assert any(path.startswith(str(databases)) and "/data/pg_wal/" in path for path in watch.checked)
    assert any("org.apache.spark.deploy.SparkSubmit" in line for line in watch.checked)
    assert "127.0.0.1" in watch.listening
    assert watch.listening <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"}
    private = [tmp_path / "1" / name for name in ("airflow.cfg", "logs")]
    assert [path.stat().st_mode & 0o077 for path in private] == [0, 0]
    os.environ["AZURE_STORAGE_CONNECTION_STRING"] = connection_string

    assert len(slices) == 2, "one run computes both slices"
    assert [slice_["slice_start"] for slice_ in report["slices"]] == ["2026-03-01T06:00:00Z", "2026-03-01T07:00:00Z"]
    assert report["quality"]["verdict"] == "passed"
    assert report["report"].endswith(f"/_recapture/{report['run']}/report.html")

    assert "2026-03-01T06:00:00Z to 2026-03-01T08:00:00Z" in text
    assert report["run"] in text
    assert (csv_report["metrics"]["InputEvents"], csv_report["outputs"][0]["version"]) == (49, 1)
    approval = csv_report["quality"]["approval"]
    assert (approval["by"], approval["reason"]) == (USER, "the rows are wanted")
    assert (restored["taken_back"], restored["run"]) == (csv_report["run"], None)
    assert f"cancelled by {USER} at " in request
    assert "new thresholds" in request
    assert f"made by {USER} at " in request
    blocked, approved = (home / "notes").read_text().splitlines()
    assert blocked.startswith(f"blocked: run {csv_report['run']} was stopped by its audit")
    assert approved == f"approved: {USER} approved run {csv_report['run']}: the rows are wanted"
    assert csv_report["run"] == preview(load(csv), TEN, TEN + HOUR).run, "each of its tasks has a hash seed of its own"

    pipeline = load(DEFINITION)
    published = status(pipeline)["slices"]
    assert [(slice_["slice_start"][11:13], slice_["finished"]) for slice_ in published] == [("06", True), ("07", True)]
    assert all(slice_["rows"] > 0 for slice_ in published)
    (planned,) = preview(pipeline, START, START + HOUR).slices
    held = OpenTable(Table(pipeline.outputs[0].publications_table, SCHEMA)).slices()
    digest = held["2026-03-01T06:00:00Z"]["digest"]
    assert planned.digest == digest, "a slice that Airflow computed with another is the slice alone"
