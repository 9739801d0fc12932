"""The example DAG that makes requests of messages in a queue. Its task has the events of Airflow's trigger."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from recapture.definition.pipeline import load
from recapture.keep.requests import requests_of
from tests.paths import ROOT
from tests.recapture_airflow.conftest import LoadPlugin
from tests.worlds import World

MESSAGE = {"id": "1", "pipeline": "telemetry", "from": "2024-03-01T10:00Z", "to": "2024-03-01T11:00Z", "by": "deploy"}


@pytest.fixture(scope="module")
def example(load_plugin: LoadPlugin) -> ModuleType:
    """The file of the example, without a queue: it then has no DAG, and needs no provider."""
    load_plugin("backfill_tasks")
    file = ROOT / "dags" / "examples" / "requests_by_message.py"
    spec = importlib.util.spec_from_file_location("requests_by_message", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_run_makes_the_requests_of_all_messages_since_the_last_one_each_once(
    example: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.providers.common.compat.sdk import AirflowFailException

    world = World(tmp_path)
    world.define()
    monkeypatch.setattr(example, "PIPELINES", tmp_path)

    def make(*messages: str) -> Any:
        events = [
            SimpleNamespace(extra={"from_trigger": True, "payload": {"message": message, "queue": "requests"}})
            for message in messages
        ]
        return example.make_requests.function(triggering_asset_events={"recapture_requests": events})

    first, second = json.dumps(MESSAGE), json.dumps(MESSAGE | {"id": "2"})
    with pytest.raises(AirflowFailException, match="no request was made for the message nonsense: it is not JSON"):
        make(first, "nonsense", second)
    made = requests_of(load(world.file))
    assert [request["by"] for request in made] == ["deploy", "deploy"]
    assert make(first, second) == made == requests_of(load(world.file))
