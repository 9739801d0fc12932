"""The runs of a backfill wait until the run of their neighbours has ended, or does not exist any more."""

import asyncio
import importlib
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import pytest

from tests.recapture_airflow.conftest import LoadPlugin

RUN = "together__2024-03-01T00:00:00Z__2024-03-02T00:00:00Z__1"


@pytest.fixture(scope="module")
def plugin(load_plugin: LoadPlugin) -> ModuleType:
    return load_plugin("neighbour_trigger")


class Airflow:
    """What Airflow answers about a DAG run that goes through these states, one for each look; None is deleted."""

    def __init__(self, *states: str | None) -> None:
        self.states = list(states)

    def send(self, message: Any) -> Any:
        from airflow.sdk.execution_time.comms import DRCount

        assert (message.dag_id, message.run_ids) == ("telemetry", [RUN])
        is_there = self.states[0] in (message.states or ("queued", "running", "success", "failed"))
        if message.states is None and len(self.states) > 1:
            self.states.pop(0)
        return DRCount(count=int(is_there))


@pytest.mark.parametrize(
    ("states", "ended"),
    [
        (["queued", "running", "success"], "success"),
        (["running", "failed"], "failed"),
        (["running", None], "deleted"),
        ([None], "deleted"),
    ],
)
def test_the_event_says_how_the_run_ended_or_that_it_was_deleted(
    plugin: ModuleType, monkeypatch: pytest.MonkeyPatch, states: Sequence[str | None], ended: str
) -> None:
    airflow = Airflow(*states)
    monkeypatch.setattr("airflow.sdk.execution_time.task_runner.SUPERVISOR_COMMS", airflow, raising=False)
    trigger = plugin.DagRunEnded("telemetry", RUN, 0.001)
    events = asyncio.run(_events(trigger))
    assert [event.payload for event in events] == [{"run_id": RUN, "state": ended}]
    assert len(airflow.states) == 1, "it looked until the last state"


def test_a_triggerer_makes_the_same_trigger_again(plugin: ModuleType) -> None:
    from airflow.triggers.base import BaseTrigger

    path, arguments = plugin.DagRunEnded("telemetry", RUN, 20).serialize()
    module, _, name = path.rpartition(".")
    made = getattr(importlib.import_module(module), name)(**arguments)
    assert isinstance(made, BaseTrigger)
    assert made.serialize() == (path, arguments)


async def _events(trigger: Any) -> list[Any]:
    return [event async for event in trigger.run()]
