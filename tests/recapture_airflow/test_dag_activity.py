"""What Airflow's database says of the slices of a pipeline."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.dialogue import Ask, dialogue
from tests.paths import ROOT
from tests.worlds import World

RUN = "20240301T100000Z-20240301T110000Z-0123456789ab"
ACTIVITY = """
import json, os, sys
from datetime import datetime
from pathlib import Path

answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

import airflow.models
from airflow import settings
from airflow.models.base import Base
from airflow.models.dag import DagModel
from airflow.models.dagbundle import DagBundleModel
from airflow.models.dagrun import DagRun
from airflow.models.taskinstance import TaskInstance
from airflow.models.xcom import XComModel
from airflow.utils.session import create_session
from sqlalchemy import event

airflow.models.import_all_models()
event.listen(settings.engine, "connect", lambda connection, _: connection.execute("PRAGMA foreign_keys = OFF"))

from recapture_airflow.airflow_versions import ASKING
from recapture_airflow.dag_activity import activity_of
from recapture.definition.pipeline import load
from recapture.time_model import ticks

def instant(text):
    return None if text is None else datetime.fromisoformat(text)

def answer(question):
    Base.metadata.drop_all(settings.engine)
    Base.metadata.create_all(settings.engine)
    with create_session() as session:
        session.add(DagBundleModel(name="dags"))
        for dag_id, is_paused in question["dags"].items():
            session.add(DagModel(dag_id=dag_id, bundle_name="dags", is_paused=is_paused, is_stale=False))
        session.flush()
        for number, run in enumerate(question["runs"]):
            bounds = [instant(text) for text in run.get("interval", (None, None))]
            session.add(
                DagRun(
                    run["dag"], run_id=run["id"], conf=run.get("conf", {}), run_type=run.get("kind", "manual"),
                    state=run["state"], run_after=instant("2024-03-02T00:00:00+00:00"),
                    logical_date=bounds[0], data_interval=None if None in bounds else bounds,
                )
            )
            session.flush()
            if "due" in run:
                values = {"dag_run_id": number + 1, "task_id": "due", "map_index": -1, "key": "return_value"}
                values |= {"dag_id": run["dag"], "run_id": run["id"], "value": run["due"]}
                session.execute(XComModel.__table__.insert().values(**values))
            for task, state in run.get("tasks", {}).items():
                values = {"task_id": task, "dag_id": run["dag"], "run_id": run["id"], "map_index": -1}
                values |= {"state": ASKING if state == "asking" else state}
                values |= {"pool": "spark", "pool_slots": 1, "priority_weight": 1}
                session.execute(TaskInstance.__table__.insert().values(**values))
    with create_session() as session:
        activity = activity_of(session, load(Path(question["file"])))
    text = lambda ticks_: None if ticks_ is None else ticks.to_text(ticks_)
    runs = [
        [run.dag_id, run.id, run.state, text(run.start), text(run.end), run.failed_tasks, run.awaits_decision]
        for run in activity.runs
    ]
    since, is_paused = text(activity.since), activity.is_paused
    return {"runs": sorted(runs), "updated": activity.is_updated, "since": since, "paused": is_paused}

for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))), file=answers, flush=True)
"""


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    path = os.pathsep.join([str(ROOT), str(ROOT / "spark_jobs"), str(ROOT / "plugins")])
    with dialogue(ACTIVITY, tmp_path_factory.mktemp("airflow"), PYTHONPATH=path) as ask:
        yield ask


def hour(number: int) -> str:
    return f"2024-03-01T{number:02}:00:00Z"


def run(dag: str, name: str, state: str, **more: Any) -> dict[str, Any]:
    return {"dag": dag, "id": name, "state": state, **more}


def test_the_calendar_learns_which_slices_runs_by_hand_updates_and_questions_are_about(
    ask: Ask, tmp_path: Path
) -> None:
    world = World(tmp_path)
    world.define()
    world.amend(approval={"wait_hours": 3}, schedule={"since": hour(6)})
    interval = ["2024-03-01T07:00:00+00:00", "2024-03-01T08:00:00+00:00"]
    runs = [
        run("telemetry", "by-hand", "running", conf={"from": hour(3), "to": hour(6)}, tasks={"plan": "asking"}),
        run("telemetry", "backfill__1", "success", kind="backfill", interval=interval),
        run("telemetry", "wrong", "failed", conf={"from": hour(3)}),
        run("telemetry.update", "idle", "success"),
        run(
            "telemetry.update",
            "busy",
            "failed",
            due={"from": hour(8), "to": hour(10), "next": None, "job": {}},
            tasks={"plan": "failed"},
        ),
        run("telemetry.approval", "asked", "running", conf={"run": RUN}, tasks={"approval": "asking"}),
        run("telemetry.approval", "by-mistake", "failed", conf={"run": "none"}),
        run("telemetry.rollback", "rolled-back", "success", conf={"from": hour(3), "to": hour(6)}),
    ]
    dags = {"telemetry": False, "telemetry.update": True, "telemetry.approval": False}
    activity = ask({"file": str(world.file), "runs": runs, "dags": dags})
    assert activity == {
        "runs": [
            ["telemetry", "backfill__1", "success", hour(7), hour(8), [], False],
            ["telemetry", "by-hand", "running", hour(3), hour(6), [], False],
            ["telemetry.approval", "asked", "running", hour(10), hour(11), [], True],
            ["telemetry.update", "busy", "failed", hour(8), hour(10), ["plan"], False],
        ],
        "updated": True,
        "since": hour(6),
        "paused": True,
    }


def test_a_pipeline_whose_dags_airflow_has_not_loaded_is_not_updated(ask: Ask, tmp_path: Path) -> None:
    world = World(tmp_path)
    world.define()
    activity = ask({"file": str(world.file), "runs": [], "dags": {}})
    assert activity == {"runs": [], "updated": False, "since": None, "paused": False}
