"""The DAGs on a real scheduler with Azurite: a backfill of Airflow's own, a user of the calendar, and updates.

One Airflow serves all tests. It runs a copy of the DAGs with three pipelines: that of the sample, with credentials in a
connection; one of CSV blobs, without Spark; and one that updates keep up to date. A second DAG bundle has two more.
"""

import json
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, expect

from embedded.airflow import USER, Airflow
from embedded.azurite import KEY
from embedded.main import PIPELINE, START, sample_storage
from recapture.definition.pipeline import load
from recapture.keep.waiting import Waiting
from recapture.run.plan import preview
from recapture.run.status import status
from recapture.table.delta import OpenTable, Table
from recapture.table.publications import SCHEMA
from recapture.tools.sample import world
from tests.e2e import team_bundle as team
from tests.e2e.calendar_steps import (
    approve,
    approved_run,
    new_page,
    requested,
    rolled_back,
    shown_report,
    sign_in,
    signed_in_page,
    stage,
)
from tests.e2e.late_blob import DAILY, UPDATE, UPDATED, UpdatedWorld, events, updated_world, wait_until
from tests.formats.test_published import archive, defined
from tests.leaks import Watch, spellings
from tests.paths import ROOT
from tests.worlds import HOUR, QUICK_START, TEN, published

TOGETHER = "together__2026-03-01T00:00:00Z__2026-03-02T00:00:00Z__1"
"""Run of the sample pipeline that computes what Airflow's backfill asks for."""
READER = "reader"
"""Name of an account that may only see."""
DEFINITION = ROOT / "dags" / "pipelines" / f"{PIPELINE}.yaml"


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


@dataclass(frozen=True)
class Site:
    """A running Airflow, and what it works with."""

    airflow: Airflow
    connection_string: str
    """Credentials of the sample's storage. Airflow has them in a connection only."""
    home: Path
    """Folder of Airflow's files."""
    databases: Path
    """Folder of its database."""
    csv: Path
    """Pipeline file of the CSV blobs."""
    notes: Path
    """File of the notifications of their pipeline."""
    lineage: Path
    """File of the events for OpenLineage."""
    updated: UpdatedWorld
    team: team.TeamBundle
    watch: Watch

    @property
    def reader_password(self) -> str:
        passwords: dict[str, str] = json.loads((self.home / "passwords.json").read_text())
        return passwords[READER]


@pytest.fixture(scope="module")
def statsd() -> Iterator[socket.socket]:
    """A server of StatsD. Its packets wait until they are read."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        yield server


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, statsd: socket.socket) -> Iterator[Site]:
    """Start Airflow on three pipelines. Whatever it does for the tests, no secret may leak."""
    before = dict(os.environ)
    # The server of the database does not run as root: it has to be able to enter its folder.
    databases = Path(tempfile.mkdtemp())
    databases.chmod(0o711)
    try:
        with sample_storage(world(START, 2)) as (_, environment):
            connection_string = environment.pop("AZURE_STORAGE_CONNECTION_STRING")
            del os.environ["AZURE_STORAGE_CONNECTION_STRING"]
            checkout, homes = tmp_path_factory.mktemp("checkout"), tmp_path_factory.mktemp("airflow")
            shutil.copytree(ROOT / "dags", checkout / "dags", ignore=shutil.ignore_patterns("__pycache__", "examples"))
            shutil.copytree(ROOT / "expectations", checkout / "expectations")
            csv = csv_pipeline(checkout)
            lineage = checkout / "lineage"
            updated = updated_world(tmp_path_factory.mktemp("updated"), checkout / "dags")
            environment |= {
                "AIRFLOW__CORE__DAGS_FOLDER": str(checkout / "dags"),
                "AIRFLOW__API__AUTO_REFRESH_INTERVAL": "20",
                "AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT": "300",
                "AIRFLOW__DAG_PROCESSOR__DAG_FILE_PROCESSOR_TIMEOUT": "300",
                "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "600",
                "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin,{READER}:viewer",
                "AIRFLOW__OPENLINEAGE__EXECUTION_TIMEOUT": "300",
                "AIRFLOW__CORE__TASK_SUCCESS_OVERTIME": "300",
                "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(
                    {"type": "file", "log_file_path": str(lineage), "append": True}
                ),
                "AIRFLOW__METRICS__STATSD_ON": "True",
                "AIRFLOW__METRICS__STATSD_HOST": "127.0.0.1",
                "AIRFLOW__METRICS__STATSD_PORT": str(statsd.getsockname()[1]),
                "AIRFLOW__METRICS__METRICS_ALLOW_LIST": "recapture.newest_slice_end",
                "JAVA_TOOL_OPTIONS": QUICK_START,
                "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "spark_jobs")]),
            }
            with (
                team.team_bundle(tmp_path_factory.mktemp("team")) as bundle,
                Watch(spellings(KEY), homes, lasting=[databases]) as watch,
                Airflow(environment | bundle.environment, schedule=True, homes=homes, databases=databases) as airflow,
            ):
                airflow.connect(
                    "recapture_storage", conn_type="wasb", extra=json.dumps({"connection_string": connection_string})
                )
                notes = checkout / "notes"
                yield Site(
                    airflow, connection_string, homes / "1", databases, csv, notes, lineage, updated, bundle, watch
                )
            assert watch.leaks == set()
    finally:
        os.environ.clear()
        os.environ.update(before)
        shutil.rmtree(databases)


def require_rights(airflow: Airflow, reader_password: str) -> None:
    """Check that nobody sees a page without an account, and that a viewer cannot start anything."""
    calendar = f"/recapture/csv/?from={TEN:%Y-%m-%dT%H:%M:%SZ}&to={TEN + HOUR:%Y-%m-%dT%H:%M:%SZ}"
    with httpx.Client(base_url=airflow.url, timeout=60, trust_env=False) as client:
        assert client.get(calendar).status_code == HTTPStatus.UNAUTHORIZED
        token = client.post("/auth/token", json={"username": READER, "password": reader_password}).json()
        client.headers["Authorization"] = f"Bearer {token['access_token']}"
        text = client.get(calendar).text
        assert text.count("you may not start runs of the DAG csv") == 4
        request = {"from": f"{TEN:%Y-%m-%dT%H:%M:%SZ}", "to": f"{TEN + HOUR:%Y-%m-%dT%H:%M:%SZ}"}
        assert client.post("/recapture/csv/requests", json=request).status_code == HTTPStatus.FORBIDDEN
        body: dict[str, Any] = {"logical_date": None, "conf": {}}
        assert client.post("/api/v2/dags/csv.rollback/dagRuns", json=body).status_code == HTTPStatus.FORBIDDEN


def told(site: Site, dag: str) -> dict[str, dict[str, list[str]]]:
    """Return the datasets of the last event of each task of a DAG that ended well, as `NAMESPACE NAME`."""
    datasets: dict[str, dict[str, list[str]]] = {}
    for line in site.lineage.read_text().splitlines():
        event = json.loads(line)
        parent, _, task = event["job"]["name"].partition(".")
        if (parent, event["eventType"]) == (dag, "COMPLETE") and task:
            datasets[task] = {
                kind: [f"{dataset['namespace']} {dataset['name']}" for dataset in event[kind]]
                for kind in ("inputs", "outputs")
                if event[kind]
            }
    return datasets


def require_lineage(site: Site) -> None:
    """Check that the tasks of a run told OpenLineage what they read and wrote."""
    emulator = "@127.0.0.1:"
    for dag, container in ((PIPELINE, "abfss://"), ("csv", "file ")):
        tasks = told(site, dag)
        read, table = tasks["publish"]["inputs"], tasks["publish"]["outputs"]
        assert [len(read), len(table)] == [1, 1]
        assert all(name.startswith(container) for name in (*read, *table))
        assert (emulator in read[0]) == (dag == PIPELINE)
        assert tasks["plan"] == tasks["order_and_aggregate"] == {"inputs": read}
        assert tasks["audit"] == tasks["report"] == {"inputs": table}
    assert not any(spelling in site.lineage.read_bytes() for spelling in spellings(KEY))


def newest_ends(statsd: socket.socket) -> set[str]:
    """Return what tasks sent as the ends of the newest slices, as lines of StatsD."""
    lines = set()
    with suppress(BlockingIOError):
        while True:
            lines.add(statsd.recv(1024, socket.MSG_DONTWAIT).decode())
    return lines


def test_a_native_backfill_publishes_two_slices_by_one_run(
    site: Site, browser: Browser, statsd: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    airflow, watch = site.airflow, site.watch
    airflow.unpause(PIPELINE)
    slices = airflow.backfill(PIPELINE, START.isoformat(), (START + HOUR).isoformat())
    for run in slices:
        airflow.wait(PIPELINE, run)
    report = airflow.result(PIPELINE, TOGETHER, "report")
    airflow.unpause("csv")
    page = new_page(browser)
    sign_in(page, airflow)
    text = shown_report(page)
    csv_run = approved_run(page, airflow)
    csv_report = airflow.result("csv", csv_run, "report")
    restored = rolled_back(page, airflow)
    request = requested(page)
    require_rights(airflow, site.reader_password)
    page.goto(f"{airflow.url}/dags/{PIPELINE}")
    page.get_by_role("button", name="Trigger").first.click()
    expect(page.get_by_text("Start of the range, exclusive")).to_be_visible()
    expect(page.get_by_text("Empty: the run computes the slice of its data interval").first).to_be_visible()
    page.close()
    log = airflow.log(PIPELINE, TOGETHER, {"task_id": "plan", "try_number": 1}, lines=1000)

    assert report["run"] in log, "the api-server reads the logs from the disk"
    assert not any(words in log for words in ("Request URL", "Skipping registering"))
    assert watch.leaks == set()
    assert {str(site.home / name) for name in ("postgres.log", "scheduler.log")} < watch.checked
    assert any(path.startswith(str(site.databases)) and "/data/pg_wal/" in path for path in watch.checked)
    assert any("org.apache.spark.deploy.SparkSubmit" in line for line in watch.checked)
    assert any("recapture.execute.spark.daemon" in line for line in watch.checked)
    assert "127.0.0.1" in watch.listening
    assert watch.listening <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"}
    private = [site.home / name for name in ("airflow.cfg", "logs")]
    assert [path.stat().st_mode & 0o077 for path in private] == [0, 0]
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", site.connection_string)

    require_lineage(site)
    gauge = "airflow.recapture.newest_slice_end_timestamp_seconds"
    ends = {f"{gauge}.{PIPELINE}": START + 2 * HOUR, f"{gauge}.csv": TEN + HOUR}
    assert newest_ends(statsd) == {f"{name}:{end.timestamp()}|g" for name, end in ends.items()}
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
    blocked, approved = site.notes.read_text().splitlines()
    assert blocked.startswith(f"blocked: run {csv_report['run']} was stopped by its audit")
    assert approved == f"approved: {USER} approved run {csv_report['run']}: the rows are wanted"
    assert csv_report["run"] == preview(load(site.csv), TEN, TEN + HOUR).run, (
        "each of its tasks has a hash seed of its own"
    )

    pipeline = load(DEFINITION)
    published = status(pipeline)["slices"]
    assert [(slice_["slice_start"][11:13], slice_["finished"]) for slice_ in published] == [("06", True), ("07", True)]
    assert all(slice_["rows"] > 0 for slice_ in published)
    (planned,) = preview(pipeline, START, START + HOUR).slices
    held = OpenTable(Table(pipeline.outputs[0].publications_table, SCHEMA)).slices()
    digest = held["2026-03-01T06:00:00Z"]["digest"]
    assert planned.digest == digest, "a slice that Airflow computed with another is the slice alone"


def test_a_late_blob_reaches_the_daily_table(site: Site) -> None:
    """Updates find it, and a consumer of their events computes its day again."""
    airflow, updated = site.airflow, site.updated
    first, second = updated.slices
    airflow.unpause(DAILY)
    airflow.unpause(UPDATE)
    wait_until(lambda: sum(updated.daily().values()) == 2, airflow)
    new = dict(events(airflow))
    assert set(new) == {first, second}
    assert (new[first]["new"], new[first]["revised"]) == ([first, second], [])
    assert new[first]["audit"].startswith("passed")

    updated.put_late_blob()
    airflow.trigger(UPDATE, {})
    wait_until(lambda: updated.daily().get((first[:10], "late")) == 1, airflow)
    partition, revised = events(airflow)[-1]
    assert (partition, revised["new"], revised["revised"]) == (first, [], [first])
    assert sum(updated.daily().values()) == 3


def test_a_staged_run_waits_unseen_until_a_person_approves_it_without_a_reason(site: Site, browser: Browser) -> None:
    airflow, updated = site.airflow, site.updated
    airflow.unpause(UPDATED)
    airflow.pause(UPDATE)
    before = published(updated.world.table)
    updated.put_late_blob("staged", 40)
    page = signed_in_page(browser, airflow)
    dag_run = stage(page, airflow, UPDATED, updated.first, updated.first + HOUR)
    airflow.wait_for_task(UPDATED, dag_run, "approval", "awaiting_input")
    (waiting,) = Waiting(load(updated.world.file)).runs()
    assert published(updated.world.table) == before
    page.goto(f"{airflow.url}/dags/{UPDATED}/runs/{dag_run}/plugin/recapture-run")
    tab = page.frame_locator("iframe")
    expect(tab.get_by_role("link", name="Answer under Required Actions")).to_be_visible(timeout=60_000)
    expect(tab.frame_locator("iframe").get_by_text("This run is staged: it passed its audit")).to_be_visible()
    approve(page, airflow, UPDATED, dag_run)
    airflow.wait(UPDATED, dag_run)
    page.close()
    assert airflow.result(UPDATED, dag_run, "report")["run"] == waiting.run
    new = [row for row in published(updated.world.table) if row not in before]
    assert "staged" in {row["deviceId"] for row in new}


def test_definitions_in_a_variable_and_at_an_address_are_computed_asked_about_and_checked(site: Site) -> None:
    airflow, bundle = site.airflow, site.team
    bundle.define(airflow, site.home)
    team.unpause(airflow)
    fetched = airflow.trigger(team.FETCHED, team.RANGE)
    asked = team.asked_run(airflow)
    team.approve(airflow, asked, "the row is wanted")
    airflow.wait(team.FETCHED, fetched)
    assert published(bundle.table(team.STORED)) == published(bundle.table(team.FETCHED)) != []
    report = airflow.result(team.APPROVAL, asked, "report")
    assert report["quality"]["approval"]["reason"] == "the row is wanted"

    bundle.put_late_blob()
    check = airflow.trigger(team.CHECK, team.RANGE)
    airflow.wait(team.CHECK, check)
    assert "2024-03-01T10:00:00Z" in str(airflow.result(team.CHECK, check, "check"))
