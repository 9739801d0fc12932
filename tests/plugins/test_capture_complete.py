"""The sensor's range, and its trigger."""

import asyncio
import importlib.util
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType

import pytest

from spark_jobs import errors
from tests.worlds import World

ROOT = Path(__file__).resolve().parents[2]
SIX = datetime(2026, 3, 1, 6, tzinfo=UTC)
TWELVE = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("AIRFLOW_HOME", str(tmp_path_factory.mktemp("airflow")))
        spec = importlib.util.spec_from_file_location("capture_complete", ROOT / "plugins" / "capture_complete.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["capture_complete"] = module
        spec.loader.exec_module(module)
    return module


def test_a_run_without_params_takes_its_data_interval(plugin: ModuleType) -> None:
    assert plugin.chosen_range({"from": None, "to": None}, SIX, TWELVE) == (SIX, TWELVE)


def test_params_win_over_the_data_interval(plugin: ModuleType) -> None:
    params = {"from": "2026-03-01T06:00:00Z", "to": "2026-03-01T13:00:00+01:00"}
    assert plugin.chosen_range(params, TWELVE, TWELVE) == (SIX, TWELVE)


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({}, "no data interval"),
        ({"from": "2026-03-01T06:00:00Z"}, "`to` is missing"),
        ({"to": "2026-03-01T06:00:00Z"}, "`from` is missing"),
        ({"from": "2026-03-01T06:00:00Z", "to": "2026-03-01T06:00:00Z"}, "empty"),
        ({"from": "2026-03-01T07:00:00Z", "to": "2026-03-01T06:00:00Z"}, "empty"),
        ({"from": "six", "to": "2026-03-01T06:00:00Z"}, "ISO 8601"),
    ],
)
def test_a_run_that_names_no_range_is_refused_with_a_reason(
    plugin: ModuleType, params: dict[str, str], reason: str
) -> None:
    with pytest.raises(errors.DefinitionError, match=reason):
        plugin.chosen_range(params, None, None)


def test_an_empty_data_interval_is_refused(plugin: ModuleType) -> None:
    with pytest.raises(errors.DefinitionError, match="empty"):
        plugin.chosen_range({}, SIX, SIX)


def test_the_trigger_is_made_again_from_what_it_serializes(plugin: ModuleType) -> None:
    path, arguments = plugin.CaptureCompleteTrigger("p.yaml", SIX.isoformat(), TWELVE.isoformat(), 5.0).serialize()
    assert path == "capture_complete.CaptureCompleteTrigger"
    assert plugin.CaptureCompleteTrigger(**arguments).serialize() == (path, arguments)


def test_a_trigger_that_cannot_look_says_why(plugin: ModuleType, tmp_path: Path) -> None:
    missing = tmp_path / "gone.yaml"
    trigger = plugin.CaptureCompleteTrigger(str(missing), SIX.isoformat(), TWELVE.isoformat(), 0.01)

    async def first() -> dict[str, str]:
        return (await anext(trigger.run())).payload

    event = asyncio.run(first())
    assert "gone.yaml" in event["error"]


def test_the_sensor_raises_what_the_trigger_could_not_do(plugin: ModuleType) -> None:
    sensor = plugin.CaptureCompleteSensor(task_id="wait", definition="p.yaml")
    with pytest.raises(errors.RunError, match="out of reach"):
        sensor.resume({}, {"error": "out of reach"})


def test_the_trigger_says_how_far_capture_has_got_until_nothing_is_missing(
    plugin: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each partition, one that never spoke as well; a blob behind the last slice ends the wait."""
    now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    world = World(tmp_path)
    world.put("0", now - timedelta(minutes=10))
    world.put("1", now - timedelta(hours=30))
    pipeline = world.define(eventsLateArrivalMaxDelayInSeconds=7200)
    start, end = (instant.isoformat() for instant in (now - timedelta(hours=1), now))
    trigger = plugin.CaptureCompleteTrigger(str(pipeline.definition), start, end, 0.2)

    looked = threading.Event()
    look = plugin._completeness

    def watched(*arguments: object) -> object:
        found = look(*arguments)
        looked.set()
        return found

    monkeypatch.setattr(plugin, "_completeness", watched)

    async def fired() -> dict[str, object]:
        async def arrive() -> None:
            await asyncio.to_thread(looked.wait)
            for partition in ("0", "1"):
                world.put(partition, now + timedelta(hours=3))

        arriving = asyncio.create_task(arrive())
        event = await anext(trigger.run())
        await arriving
        return event.payload

    assert asyncio.run(fired()) == {"range": {"from": start, "to": end}}
    text = capsys.readouterr().out
    written = f"{now - timedelta(minutes=10):%Y-%m-%dT%H:%M:%SZ}"
    assert f"waiting for the archive: partition 0: written up to {written}; the newest blob has the time " in text
    assert "waiting for the archive: partition 1: no blob was found; slice " in text
    assert f"partition 1: written up to {now + timedelta(hours=3):%Y-%m-%dT%H:%M:%SZ}; " in text
