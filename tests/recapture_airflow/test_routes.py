"""The pages that Airflow serves: what a damaged file or a wrong address leads to, and the headers of every response."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from recapture import cli
from recapture.definition.pipeline import load
from recapture.keep.requests import requests_of
from tests.dialogue import dialogue
from tests.paths import ROOT
from tests.worlds import World, at, steady

TEN, ELEVEN, NOON = (f"2024-03-01T{hour}:00:00Z" for hour in (10, 11, 12))
RUN = "20240301T100000Z-20240301T110000Z-0123456789ab"
LONG = "x" * 5_000
SERVER = """
import json, os, sys
from datetime import UTC, datetime
from pathlib import Path

answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

import airflow.models
import structlog
from airflow import settings
from airflow.api_fastapi.app import init_auth_manager
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from airflow.api_fastapi.core_api.security import get_user
from airflow.models.base import Base
from airflow.dag_processing.collection import update_dag_parsing_results_in_db
from airflow.dag_processing.processor import DagFileParseRequest, _parse_file
from airflow.models.dagbundle import DagBundleModel
from airflow.models.dagrun import DagRun
from airflow.utils.session import create_session
from fastapi import FastAPI, Request
from fastapi.testclient import TestClient

airflow.models.import_all_models()
Base.metadata.create_all(settings.engine)
folder = Path(sys.argv[1])
file = folder / "team.py"
request = DagFileParseRequest(file=str(file), bundle_path=folder, bundle_name="team")
parsed = _parse_file(request, structlog.get_logger())
with create_session() as session:
    session.add(DagBundleModel(name="team"))
    session.flush()
    errors = {("team", name): error for name, error in parsed.import_errors.items()}
    files = {("team", "team.py"), *errors}
    update_dag_parsing_results_in_db(
        "team", None, parsed.serialized_dags, errors, None, set(), session, files_parsed=files
    )
    conf = {"from": "0206-03-01T10:00:00Z", "to": "9999-03-01T10:00:00Z"}
    began = datetime(2020, 1, 1, tzinfo=UTC)
    session.add(DagRun("telemetry", run_id="wrong", conf=conf, run_type="manual", state="failed", run_after=began))

from recapture_airflow import coverage_routes
from recapture_airflow.coverage_routes import pages
from recapture.tools.coverage import states

class Clock(datetime):
    @classmethod
    def now(cls, timezone):
        return datetime(2024, 3, 8, tzinfo=timezone)

coverage_routes.datetime = Clock
states.MOST_UNPUBLISHED = 24 * 31
app = FastAPI()
init_auth_manager(app)
app.mount("/recapture", pages)

async def user(request: Request):
    return SimpleAuthManagerUser(username="ada", role=request.headers.get("role", "ADMIN"))

pages.dependency_overrides[get_user] = user
client = TestClient(app, raise_server_exceptions=False, follow_redirects=False)
for line in sys.stdin:
    method, address, headers, body = json.loads(line)
    answer = client.request(method, address, headers=headers, content=body)
    print(json.dumps([answer.status_code, dict(answer.headers), answer.text]), file=answers, flush=True)
"""
"""Serves the pages with Airflow's own database and rights, to a user who may do everything unless a header says less.

The DAG processor has read a DAG file and stored what it defines. The server itself cannot read the pipeline files.

It is a week after the runs, and the calendar has a month of slices at most, so that every page is quick.
"""


@dataclass(frozen=True)
class Page:
    status: int
    headers: dict[str, str]
    text: str


Get = Callable[[str], Page]
Send = Callable[..., Page]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A published hour, and one that its audit stopped because events are malformed; the pipeline file is a DAG's."""
    world = steady(tmp_path_factory.mktemp("airflow") / "dags" / "pipelines", hours=2, partitions=1)
    for number in range(25, 36):
        world.put("0", at(-60 + 5 * number), [b"{"] * 6, 6 * number)
    world.define()
    for start, end, code in ((TEN, ELEVEN, 0), (ELEVEN, NOON, 1)):
        assert cli.main(["backfill", str(world.file), "--from", start, "--to", end]) == code
    return world


@pytest.fixture(scope="module")
def send(world: World) -> Iterator[Send]:
    folder = world.home.parent
    (folder / "team.py").write_text("from recapture_airflow import RecaptureDags\nRecaptureDags('pipelines')\n")
    (world.home / "broken.yaml").write_text("name: broken\n")
    variables = {
        "AIRFLOW__CORE__DAGS_FOLDER": str(folder.parent / "nothing"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{folder.parent}/airflow.db",
        "PYTHONPATH": str(ROOT / "spark_jobs"),
    }
    with dialogue(SERVER, folder.parent, str(folder), **variables) as ask:

        def send(method: str, address: str, body: str | None = None, **headers: str) -> Page:
            return Page(*ask([method, f"/recapture{address}", headers, body]))

        yield send


@pytest.fixture(scope="module")
def get(send: Send) -> Get:
    return lambda address: send("GET", address)


def post(send: Send, address: str, body: Any, **headers: str) -> tuple[int, Any]:
    """Send JSON as the calendar does, or with other headers; return the status and the answer."""
    page = send("POST", address, json.dumps(body), **{"content-type": "application/json", **headers})
    return page.status, json.loads(page.text)


@pytest.fixture
def damaged(world: World) -> Iterator[Callable[[str, bytes], str]]:
    """Write other bytes to a run file, by the start of its run, until the end of the test; return the id of the run."""
    before: dict[Path, bytes | None] = {}

    def damage(name: str, content: bytes, start: str = TEN) -> str:
        run = run_of(world, start)
        path = world.table / "_recapture" / (name if name == "changed.json" else f"{run}/{name}")
        before[path] = path.read_bytes() if path.exists() else None
        path.write_bytes(content)
        return run

    yield damage
    for path, content in before.items():
        path.unlink() if content is None else path.write_bytes(content)


def run_of(world: World, start: str) -> str:
    (run,) = world.table.glob(f"_recapture/{start.replace('-', '').replace(':', '')}-*")
    return run.name


def slice_address(start: str, end: str) -> str:
    return f"/telemetry/?from={quote(start)}&to={quote(end)}"


ADDRESSES = [
    *("/", "/telemetry/", "/other/", "/nothing", "/telemetry", "//", "/telemetry/runs/", "/telemetry/dag-runs/"),
    *(f"/telemetry/?month={month}" for month in ("9999-12", "0001-01", "1-1", "2026-13", "-1", "", "%00", LONG)),
    *(f"/telemetry/?month=2026-01&month={month}" for month in ("9999-12", "1969-12", "2970-01", "2969-12", "1970-01")),
    *("/telemetry/?month[]=2026-01", "/telemetry/?month=٢٠٢٦-01", "/telemetry/?month=2026-01%0d%0aSet-Cookie:x"),
    slice_address("0001-01-01T00:00:00Z", "9999-12-31T23:00:00Z"),
    slice_address("1970-01-01T00:00:00Z", "2969-12-31T23:00:00Z"),
    slice_address("0001-01-01T00:00:00+23:00", "9999-12-31T23:00:00-23:00"),
    slice_address(TEN, TEN),
    slice_address(ELEVEN, TEN),
    slice_address("-5", LONG),
    slice_address("2024-W09-5", "\0"),
    slice_address(TEN, "\ud800".encode("utf-8", "surrogatepass").decode("latin-1")),
    *(
        "/telemetry/?from=%ff%fe&to=%ff",
        f"/telemetry/?from={TEN}",
        f"/telemetry/?to={TEN}&to={ELEVEN}",
        "/telemetry/?from=",
    ),
    *(f"{slice_address(TEN, ELEVEN)}&state={state}" for state in ("", "%00", "%ff", LONG, "missing&state=x")),
    *(f"/{name}/" for name in ("%00", "%2e%2e%2f", "%2F", "a%0db", "‮", LONG)),
    *(
        f"/telemetry/runs/{run}/{file}"
        for run in (RUN, "99999999T999999Z-99999999T999999Z-0123456789ab", "x", "..", "%00", LONG, RUN + "%0d")
        for file in (
            "",
            "dag-run",
            "report.html",
            "audit.json",
            "manifest.json",
            "staged.json",
            "%2e%2e%2fx",
            "%00",
            LONG,
        )
    ),
    *(f"/telemetry/dag-runs/{run}" for run in ("wrong", "x", "a/b/../c", "%00", "%ff", LONG, "?month=1")),
    *(f"/{dag}/dag-runs/wrong" for dag in ("telemetry.check", "other", "%00", LONG, ".", "telemetry.")),
]
"""Addresses that a browser, a person or a scanner may send."""


def test_no_address_makes_the_server_fail_and_every_response_has_the_headers(get: Get) -> None:
    for address in ADDRESSES:
        page = get(address)
        assert page.status < 500, address[:100]
        assert page.headers.get("x-content-type-options") == "nosniff", address[:100]
        assert page.headers["cache-control"] == "no-store", address[:100]
        assert page.headers["content-security-policy"] == "frame-ancestors 'self'", address[:100]
        assert len(page.text) < 400_000, address[:100]
        assert LONG not in page.text, address[:100]


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("/telemetry/?month=9999-12", "the month is &#39;9999-12&#39;: the calendar shows the years 1970 to 2969"),
        (slice_address("0001-01-01T00:00:00Z", NOON), "From is &#39;0001-01-01T00:00:00Z&#39;: the calendar shows"),
        (slice_address(TEN, "9999-12-31T23:00:00Z"), "To is &#39;9999-12-31T23:00:00Z&#39;: the calendar shows"),
        ("/telemetry/runs/99999999T999999Z-99999999T999999Z-0123456789ab/", "is not the id of a run"),
    ],
)
def test_a_wrong_address_is_explained(get: Get, address: str, sentence: str) -> None:
    page = get(address)
    assert (page.status, sentence in page.text) == (400, True), page.text


def test_the_list_of_pipelines_has_those_that_airflow_stores_and_the_error_of_a_file_that_it_cannot_load(
    get: Get,
) -> None:
    page = get("/")
    assert page.status == 200
    assert '<a href="/recapture/telemetry/">' in page.text
    assert "broken.yaml:1: input is missing: add it" in page.text
    assert "broken_pipeline" not in page.text


def test_the_calendar_and_the_trend_lead_to_each_other(get: Get) -> None:
    assert '<a href="/recapture/telemetry/trend">Trend</a>' in get("/telemetry/").text
    trend = get("/telemetry/trend")
    assert trend.status == 200
    assert '<a href="/recapture/telemetry/">Calendar</a>' in trend.text
    assert f"In the newest slice, {ELEVEN}, 1 check failed." in trend.text, "the audit stopped its run"


def test_a_chosen_slice_has_a_field_that_leads_to_the_events_of_a_row(get: Get) -> None:
    """The page asks again for what does not tell a row from others."""
    chosen = get(slice_address(TEN, ELEVEN)).text
    assert '<form class="range" action="/recapture/telemetry/explain">' in chosen
    assert f'value="slice_start={TEN},"' in chosen
    assert "<button>Explain</button>" in get("/telemetry/explain").text
    page = get(f"/telemetry/explain?row={quote(f'slice_start={TEN},windowEnd=2024-03-01T10:30Z,deviceId=device-0-1')}")
    assert page.status == 200
    assert "The row was made of " in page.text
    assert "Events that decide" in page.text
    page = get(f"/telemetry/explain?row={quote(f'slice_start={TEN}')}")
    assert (page.status, "36 rows have these values: add windowEnd" in page.text) == (400, True)
    assert get(f"/telemetry/explain?row={LONG}").status == 400


def test_a_dag_run_of_absurd_years_leaves_the_calendar_as_it_is(get: Get) -> None:
    page = get(slice_address(TEN, ELEVEN))
    assert page.status == 200
    assert "10:00 to 11:00: published" in page.text
    assert "<b>failed</b>" in page.text


DAMAGE = (b"", b"{", b"\xff\xfe", b"[" * 100_000, b"null", b"[]", b'{"format": 3}', b'{"format": 3, "content": [1]}')


@pytest.mark.parametrize("content", DAMAGE)
def test_a_damaged_record_of_the_checks_is_named_and_no_slice_counts_as_good(
    get: Get, damaged: Callable[..., str], content: bytes
) -> None:
    assert '10:00 to 11:00: published"' in get("/telemetry/?month=2024-03").text
    damaged("changed.json", content)
    page = get("/telemetry/?month=2024-03")
    assert page.status == 200
    assert "changed.json" in page.text
    assert "10:00 to 11:00: cannot be checked" in page.text
    assert "11:00 to 12:00: blocked" in page.text


@pytest.mark.parametrize("content", DAMAGE)
def test_a_damaged_audit_is_named_on_the_calendar_and_on_the_page_of_the_run(
    get: Get, damaged: Callable[..., str], content: bytes
) -> None:
    run = damaged("audit.json", content, ELEVEN)
    page = get(slice_address(ELEVEN, NOON))
    assert page.status == 200
    assert f"audit.json of run {run}" in page.text
    page = get(f"/telemetry/runs/{run}/")
    assert page.status == 200
    assert f"audit.json of run {run}" in page.text
    assert "passed its audit" not in page.text


@pytest.mark.parametrize("content", DAMAGE)
def test_a_damaged_approval_is_named(get: Get, damaged: Callable[..., str], content: bytes) -> None:
    run = damaged("approval.json", content, ELEVEN)
    page = get(f"/telemetry/runs/{run}/")
    assert page.status == 200
    assert f"approval.json of run {run}" in page.text


@pytest.mark.parametrize("content", DAMAGE)
def test_a_damaged_link_to_the_dag_run_is_named(get: Get, damaged: Callable[..., str], content: bytes) -> None:
    run = damaged("dag_run.json", content)
    page = get(f"/telemetry/runs/{run}/dag-run")
    assert page.status == 502
    assert f"dag_run.json of run {run}" in page.text


def test_a_damaged_file_of_metrics_is_named(get: Get, world: World) -> None:
    (path,) = (world.home / "table_metrics").glob("slice_start=20240301T100000Z/*.parquet")
    content = path.read_bytes()
    assert "InputEvents" in get(slice_address(TEN, ELEVEN)).text
    path.write_bytes(content[:-1])
    try:
        page = get(slice_address(TEN, ELEVEN))
    finally:
        path.write_bytes(content)
    assert page.status == 200
    assert f"{path.name} in {path.parents[1].as_uri()} is gone or damaged" in page.text


@pytest.mark.parametrize("name", ["report.html", "manifest.json", "report.json"])
def test_a_damaged_report_or_manifest_is_shown_as_it_is_without_rights(
    get: Get, damaged: Callable[..., str], name: str
) -> None:
    run = damaged(name, b"\xff<script>alert(1)</script>")
    assert get(f"/telemetry/runs/{run}/").status == 200
    page = get(f"/telemetry/runs/{run}/{name}")
    assert page.status == (404 if name == "report.json" else 200)
    assert page.status == 404 or page.headers["content-security-policy"].startswith("sandbox allow-downloads; default")


REQUESTS = "/telemetry/requests"
TEN_TO_NOON = {"from": TEN, "to": NOON}


def test_a_request_is_made_in_the_name_of_the_user_listed_and_cancelled(send: Send, get: Get, world: World) -> None:
    status, made = post(send, REQUESTS, TEN_TO_NOON | {"at": "2030-01-01T06:30", "reason": "new <thresholds>"})
    assert (status, made["state"], made["by"], made["at"]) == (201, "waiting", "ada", "2030-01-01T06:30:00Z")
    assert requests_of(load(world.file)) == [made]
    page = get("/telemetry/").text
    assert f'id="request-{made["id"]}"' in page
    assert "new &lt;thresholds&gt;" in page
    status, cancelled = post(send, f"{REQUESTS}/{made['id']}/cancel", {})
    assert (status, cancelled["state"], cancelled["cancelled_by"]) == (200, "cancelled", "ada")
    status, refused = post(send, f"{REQUESTS}/{made['id']}/cancel", {})
    assert (status, refused["detail"]) == (
        400,
        f"request {made['id']} is cancelled already, by ada at {cancelled['ended']}",
    )


def test_slices_in_a_state_are_chosen_and_some_slices_of_a_range_are_requested(
    send: Send, get: Get, world: World
) -> None:
    page = get(f"{slice_address(TEN, NOON)}&state=blocked").text
    assert "<b>1 March, 11:00 to 12:00, only blocked</b>" in page
    assert "Which events made a row?" in page, "one slice is chosen"
    assert get(f"{slice_address(TEN, NOON)}&state=lost").status == 400
    status, made = post(send, REQUESTS, TEN_TO_NOON | {"only": ELEVEN})
    assert (status, made["slices"], made["only"]) == (201, 1, [ELEVEN])
    assert requests_of(load(world.file))[-1] == made
    assert "1 slice of 1 March, 10:00 to 12:00" in get("/telemetry/").text


@pytest.mark.parametrize(
    ("address", "body", "sentence"),
    [
        (REQUESTS, TEN_TO_NOON | {"only": "ten"}, "`only` has a start that is not a time"),
        (REQUESTS, TEN_TO_NOON | {"only": NOON}, f"{NOON} is not the start of a slice of the range"),
        (REQUESTS, {}, "`from` is missing; `to` is missing"),
        (REQUESTS, [], "it is not a JSON object"),
        (REQUESTS, TEN_TO_NOON | {"by": "eve"}, "the key 'by' is unknown"),
        (REQUESTS, TEN_TO_NOON | {"at": "soon"}, "`at` is 'soon': write an ISO 8601 time"),
        (REQUESTS, TEN_TO_NOON | {"to": "2024-03-01T11:30:00Z"}, "is not on a slice border"),
        (REQUESTS, TEN_TO_NOON | {"to": "9999-03-01T11:00:00Z"}, "lies in the future"),
        (REQUESTS, TEN_TO_NOON | {"reason": LONG * 3}, "shorten the reason"),
        ("/other/requests", TEN_TO_NOON, "Airflow has loaded no pipeline named"),
        (f"{REQUESTS}/0000/cancel", {}, "there is no request 0000 for telemetry"),
    ],
)
def test_a_request_that_cannot_be_made_or_cancelled_is_explained(
    send: Send, world: World, address: str, body: Any, sentence: str
) -> None:
    before = requests_of(load(world.file))
    status, answer = post(send, address, body)
    assert 400 <= status < 500
    assert sentence in answer["detail"]
    assert requests_of(load(world.file)) == before


@pytest.mark.parametrize(
    "headers",
    [
        {"content-type": "application/x-www-form-urlencoded"},
        {"content-type": "text/plain"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"role": "VIEWER"},
    ],
)
def test_neither_another_site_nor_a_user_who_may_not_start_runs_makes_or_cancels_a_request(
    send: Send, world: World, headers: dict[str, str]
) -> None:
    _, made = post(send, REQUESTS, TEN_TO_NOON)
    before = requests_of(load(world.file))
    for address, body in ((REQUESTS, TEN_TO_NOON), (f"{REQUESTS}/{made['id']}/cancel", {})):
        status, _ = post(send, address, body, **headers)
        assert status == 403
    assert requests_of(load(world.file)) == before
