"""A DAG bundle next to the DAG folder. A variable of Airflow defines one of its pipelines, an https address the other.

Each publishes the same hour, with one event. The audit of the first stops the hour, and a person is asked.
"""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

from embedded.airflow import Airflow
from tests.certificates import use_tls, write_certificate
from tests.e2e.late_blob import wait_until
from tests.worlds import HOUR, TEN, World, at, body, one_event

BUNDLE = "team"
STORED, FETCHED = "stored", "fetched"
"""Names of the pipelines."""
UPDATE, APPROVAL, CHECK = (f"{STORED}.{action}" for action in ("update", "approval", "check"))
RANGE = {"from": TEN.isoformat(), "to": (TEN + HOUR).isoformat()}
SECONDS_TO_ANSWER = 3
NO_ROWS = {
    "name": "strict",
    "expectations": [
        {"type": "expect_table_row_count_to_be_between", "description": "no row", "kwargs": {"max_value": 0}}
    ],
}


@dataclass(frozen=True)
class TeamBundle:
    home: Path
    url: str
    """Address of the server of definitions."""

    @property
    def environment(self) -> dict[str, str]:
        """Variables of an Airflow that has this bundle next to its DAG folder, and trusts the server."""
        local = "airflow.dag_processing.bundles.local.LocalDagBundle"
        bundles = [
            {"name": "dags-folder", "classpath": local, "kwargs": {}},
            {"name": BUNDLE, "classpath": local, "kwargs": {"path": str(self.home / "dags")}},
        ]
        return {
            "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST": json.dumps(bundles),
            "SSL_CERT_FILE": str(self.home / "tls.pem"),
        }

    @property
    def world(self) -> World:
        return World(self.home / "world")

    def table(self, name: str) -> Path:
        return self.home / name

    def define(self, airflow: Airflow, airflow_home: Path) -> None:
        """Give Airflow the variable and the suite that its pipeline names, and write the DAG files."""
        self.world.define(eventsLateArrivalMaxDelayInSeconds=0)
        stored = self._definition(STORED) | {
            "schedule": {"since": RANGE["from"], "until": RANGE["to"], "every_minutes": 60, "quiet_minutes": 0},
            "quality": {"suite": "strict"},
            "approval": {"wait_hours": 1},
        }
        (airflow_home / "expectations").mkdir()
        (airflow_home / "expectations" / "strict.json").write_text(json.dumps(NO_ROWS))
        airflow._call("POST", "/api/v2/variables", {"key": "pipelines", "value": json.dumps(stored)})
        (self.home / "served" / "pipelines.json").write_text(json.dumps([self._definition(FETCHED)]))
        for name, source in ((STORED, "variable://pipelines"), (FETCHED, f"{self.url}/pipelines.json")):
            text = f'from recapture_airflow import RecaptureDags\n\nRecaptureDags("{source}")\n'
            (self.home / "dags" / f"{name}.py").write_text(text)

    def put_late_blob(self) -> None:
        """Write another blob of the hour."""
        self.world.put("0", at(40), [body("late", at(38))], 7)

    def _definition(self, name: str) -> dict[str, Any]:
        sections = self.world.sections()
        return sections | {
            "name": name,
            "engine": "processes",
            "input": sections["input"] | {"container": self.world.capture.as_uri()},
            "output": {"alias": "aggregates", "table": self.table(name).as_uri()},
        }


@contextmanager
def team_bundle(home: Path) -> Iterator[TeamBundle]:
    """Make the archive and an empty bundle, and serve definitions with TLS."""
    for folder in ("dags", "served"):
        (home / folder).mkdir()
    one_event(home / "world")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(home / "served"))) as server:
        url = use_tls(server, write_certificate(home / "tls.pem"))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield TeamBundle(home, url)
        server.shutdown()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing on standard error."""


def unpause(airflow: Airflow) -> None:
    """Wait until Airflow has found the files of the bundle, and unpause their DAGs: the first update begins."""

    def names() -> set[str]:
        return {dag["dag_id"] for dag in airflow._call("GET", f"/api/v2/dags?bundle_name={BUNDLE}")["dags"]}

    wait_until(lambda: {UPDATE, FETCHED} <= names(), airflow)
    for dag in (UPDATE, FETCHED):
        airflow.unpause(dag)


def asked_run(airflow: Airflow) -> str:
    """Wait until an update has asked a person about its run, and return the id of the DAG run that waits.

    A person takes a moment to answer. Meanwhile, Airflow notices that the task's process has ended.
    """

    def runs() -> list[str]:
        return [run["dag_run_id"] for run in airflow._call("GET", f"/api/v2/dags/{APPROVAL}/dagRuns")["dag_runs"]]

    wait_until(lambda: bool(runs()), airflow)
    [run] = runs()
    airflow.wait_for_task(APPROVAL, run, "approval", "awaiting_input")
    time.sleep(SECONDS_TO_ANSWER)
    return run


def approve(airflow: Airflow, run: str, reason: str) -> None:
    """Approve the run by Airflow's API. If the scheduler has not noted yet that the task waits, approve it again."""
    path = f"/api/v2/dags/{APPROVAL}/dagRuns/{quote(run, safe='')}/taskInstances/approval/-1/hitlDetails"
    airflow._call("PATCH", path, {"chosen_options": ["Approve"], "params_input": {"reason": reason}})
    if airflow.wait_for_task(APPROVAL, run, "approval", "success", "up_for_retry") == "up_for_retry":
        airflow.wait_for_task(APPROVAL, run, "approval", "awaiting_input")
        approve(airflow, run, reason)
    airflow.wait(APPROVAL, run)
