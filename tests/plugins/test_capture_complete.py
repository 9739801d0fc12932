"""The range of the sensor, and its trigger."""

import asyncio
import base64
import importlib
import importlib.util
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from azure.core.pipeline.transport import HttpTransport
from azure.storage.blob import ContainerClient

from embedded.azurite import KEY, Azurite
from embedded.process import free_port
from recapture import errors
from tests.plugins.conftest import LoadPlugin
from tests.worlds import TELEMETRY, World

SIX = datetime(2026, 3, 1, 6, tzinfo=UTC)
TWELVE = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECONDS = 120
CONNECTION_STRING = "AZURE_STORAGE_CONNECTION_STRING"


@pytest.fixture(scope="module")
def plugin(load_plugin: LoadPlugin) -> ModuleType:
    return load_plugin("capture_complete")


@pytest.mark.parametrize(
    ("params", "interval"),
    [
        ({"from": None, "to": None}, (SIX, TWELVE)),
        ({"from": "2026-03-01T06:00:00Z", "to": "2026-03-01T13:00:00+01:00"}, (TWELVE, TWELVE)),
    ],
)
def test_a_run_takes_its_params_or_else_its_data_interval(
    plugin: ModuleType, params: dict[str, str], interval: tuple[datetime, datetime]
) -> None:
    assert plugin.range_of_dag_run(params, *interval) == (SIX, TWELVE)


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
        plugin.range_of_dag_run(params, None, None)


def test_a_run_of_airflows_backfill_computes_its_own_slice_and_no_other_range(plugin: ModuleType) -> None:
    own = {"from": SIX.isoformat(), "to": TWELVE.isoformat()}
    for params in ({}, own):
        assert plugin.range_of_dag_run(params, SIX, TWELVE, is_backfill=True) == (SIX, TWELVE)
    other = {"from": "2026-03-01T00:00:00Z", "to": "2026-03-01T06:00:00Z"}
    with pytest.raises(errors.DefinitionError, match="contradict Airflow's backfill"):
        plugin.range_of_dag_run(other, SIX, TWELVE, is_backfill=True)
    sensor = plugin.CaptureCompleteSensor(task_id="wait", file="p.yaml")
    run = SimpleNamespace(data_interval_start=SIX, data_interval_end=TWELVE, run_type="backfill")
    with pytest.raises(errors.DefinitionError, match="backfill again without `from` and `to`"):
        sensor.execute({"dag_run": run, "params": other})


def test_an_empty_data_interval_is_refused(plugin: ModuleType) -> None:
    with pytest.raises(errors.DefinitionError, match="empty"):
        plugin.range_of_dag_run({}, SIX, SIX)


def test_the_trigger_is_restored_from_its_serialized_form(plugin: ModuleType) -> None:
    path, arguments = plugin.CaptureCompleteTrigger("p.yaml", SIX.isoformat(), TWELVE.isoformat(), 5.0).serialize()
    assert path == "capture_complete.CaptureCompleteTrigger"
    assert plugin.CaptureCompleteTrigger(**arguments).serialize() == (path, arguments)


def fired(trigger: Any, *meanwhile: Callable[[], object]) -> dict[str, Any]:
    """Return the payload of the trigger's event, while these calls run one after the other in another thread."""

    async def both() -> dict[str, Any]:
        async def run_calls() -> None:
            for call in meanwhile:
                await asyncio.to_thread(call)

        event, _ = await asyncio.gather(anext(trigger.run()), run_calls())
        payload: dict[str, Any] = event.payload
        return payload

    return asyncio.run(both())


class Looks:
    """Count the looks at the archive, and let a test wait for the next one."""

    def __init__(self, plugin: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self._look = plugin._completeness
        self._ended = threading.Semaphore(0)
        monkeypatch.setattr(plugin, "_completeness", self)

    def __call__(self, *arguments: object) -> object:
        self.count += 1
        try:
            return self._look(*arguments)
        finally:
            self._ended.release()

    def wait(self) -> None:
        """Return when one more look has ended."""
        assert self._ended.acquire(timeout=SECONDS)


@pytest.fixture
def looks(plugin: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Looks:
    monkeypatch.setattr(HttpTransport, "sleep", lambda transport, seconds: None)
    return Looks(plugin, monkeypatch)


@dataclass(frozen=True)
class Archive:
    """An archive that is complete for an hour, in an emulator that is not running yet."""

    azurite: Azurite
    file: Path
    start: datetime

    @property
    def range(self) -> dict[str, str]:
        return {"from": self.start.isoformat(), "to": (self.start + timedelta(hours=1)).isoformat()}

    def trigger(self, plugin: ModuleType) -> Any:
        return plugin.CaptureCompleteTrigger(str(self.file), *self.range.values(), 0.1)

    def start_again(self) -> None:
        self.azurite.__enter__()


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Archive]:
    azurite = Azurite(tmp_path / "log", tmp_path / "blobs", free_port())
    start = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=9)
    with azurite:
        client = ContainerClient.from_connection_string(azurite.connection_string, "capture")
        client.create_container()
        client.upload_blob(f"contoso/telemetry/0/{start:%Y/%m/%d/%H/%M/%S}.avro", b"")
    world = World(tmp_path)
    world.define()
    world.amend(input=TELEMETRY | {"container": f"{azurite.url}/capture"})
    monkeypatch.setenv(CONNECTION_STRING, azurite.connection_string)
    yield Archive(azurite, world.file, start)
    azurite.__exit__(None, None, None)


def test_a_wait_outlasts_a_storage_that_is_down(
    plugin: ModuleType, archive: Archive, looks: Looks, capsys: pytest.CaptureFixture[str]
) -> None:
    event = fired(archive.trigger(plugin), looks.wait, looks.wait, looks.wait, archive.start_again)
    assert event == {"range": archive.range}
    warning = f"still waiting: cannot list {archive.azurite.url}/capture"
    assert capsys.readouterr().out.count(warning) == looks.count - 1 >= 3


def test_a_wait_outlasts_a_refusal_that_is_lifted(
    plugin: ModuleType,
    archive: Archive,
    looks: Looks,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    right = archive.azurite.connection_string
    monkeypatch.setenv(CONNECTION_STRING, right.replace(KEY, base64.b64encode(b"another").decode()))
    archive.start_again()
    event = fired(archive.trigger(plugin), looks.wait, lambda: monkeypatch.setenv(CONNECTION_STRING, right))
    assert event == {"range": archive.range}
    assert capsys.readouterr().out.count("still waiting: not authorised to list") == looks.count - 1 >= 1


def test_a_missing_container_ends_the_wait_after_a_while(
    plugin: ModuleType, archive: Archive, looks: Looks, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive.start_again()
    ContainerClient.from_connection_string(archive.azurite.connection_string, "capture").delete_container()
    monkeypatch.setattr(plugin, "SETUP_SECONDS", 0.25)
    event = fired(archive.trigger(plugin))
    assert looks.count == 3
    with pytest.raises(errors.SetupError, match=r"/capture does not exist: create it, or correct the url$"):
        plugin.CaptureCompleteSensor(task_id="wait", file="p.yaml").resume({}, event)


def test_another_fault_between_refusals_restarts_their_time_limit(
    plugin: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused, down = errors.SetupError("no right"), errors.RunError("out of reach")
    ends: list[Exception] = [refused, refused, down, refused, refused, refused]

    def look(*arguments: object) -> object:
        raise ends.pop(0)

    monkeypatch.setattr(plugin, "_completeness", look)
    monkeypatch.setattr(plugin, "SETUP_SECONDS", 0.025)
    trigger = plugin.CaptureCompleteTrigger("p.yaml", SIX.isoformat(), TWELVE.isoformat(), 0.01)
    assert fired(trigger) == {"error": "no right", "type": "SetupError"}
    assert ends == []


def test_a_mistake_in_the_definition_ends_the_wait_and_is_never_retried(plugin: ModuleType, tmp_path: Path) -> None:
    trigger = plugin.CaptureCompleteTrigger(str(tmp_path / "gone.yaml"), SIX.isoformat(), TWELVE.isoformat(), 0.01)
    event = fired(trigger)
    with pytest.raises(errors.DefinitionError, match=r"gone\.yaml: the pipeline file cannot be read") as ended:
        plugin.CaptureCompleteSensor(task_id="wait", file="p.yaml").resume({}, event)
    tasks = importlib.import_module("backfill_tasks")
    decision = tasks.RETRY_POLICY.evaluate(ended.value, 1, 2)
    assert decision.action == tasks.RetryAction.FAIL


@pytest.mark.parametrize(("hours", "pause"), [(-3, 60), (0.5, 60), (6, 360), (480, 3600)])
def test_a_slice_that_cannot_be_complete_for_days_is_looked_at_once_an_hour(
    plugin: ModuleType, monkeypatch: pytest.MonkeyPatch, hours: float, pause: float
) -> None:
    """With a late tolerance of 20 days, 480 runs wait at the same time."""
    looks = [
        SimpleNamespace(waiting=("more",), not_before=datetime.now(UTC) + timedelta(hours=hours)),
        SimpleNamespace(waiting=(), partitions=()),
    ]
    pauses = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(plugin, "_completeness", lambda *arguments: looks.pop(0))
    monkeypatch.setattr(plugin.asyncio, "sleep", sleep)
    trigger = plugin.CaptureCompleteTrigger("p.yaml", SIX.isoformat(), TWELVE.isoformat())
    assert asyncio.run(anext(trigger.run())).payload == {"range": {"from": SIX.isoformat(), "to": TWELVE.isoformat()}}
    assert pauses == [pytest.approx(pause, abs=0.1)]


def test_a_mistake_in_the_code_ends_the_wait(plugin: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def look(*arguments: object) -> object:
        raise ValueError("a mistake")

    monkeypatch.setattr(plugin, "_completeness", look)
    trigger = plugin.CaptureCompleteTrigger("p.yaml", SIX.isoformat(), TWELVE.isoformat(), 0.01)
    with pytest.raises(ValueError, match="a mistake"):
        fired(trigger)


def test_the_sensor_waits_from_its_first_look_on_when_the_storage_is_down(
    plugin: ModuleType, archive: Archive, looks: Looks
) -> None:
    from airflow.sdk.exceptions import TaskDeferred

    sensor = plugin.CaptureCompleteSensor(task_id="wait", file=str(archive.file), timeout=3600)
    end = archive.start + timedelta(hours=1)
    run = SimpleNamespace(data_interval_start=archive.start, data_interval_end=end, run_type="scheduled")
    with pytest.raises(TaskDeferred) as deferred:
        sensor.execute({"dag_run": run, "params": {}})
    assert (deferred.value.method_name, deferred.value.timeout) == ("resume", timedelta(hours=1))
    archive.start_again()
    event = fired(deferred.value.trigger)
    assert sensor.resume({}, event) == sensor.execute({"dag_run": run, "params": {}}) == archive.range


def test_the_trigger_says_how_far_capture_has_got_until_nothing_is_missing(
    plugin: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], looks: Looks
) -> None:
    """It names every partition, also a silent one. A blob after the last slice ends the wait."""
    now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    world = World(tmp_path)
    world.put("0", now - timedelta(minutes=10))
    world.put("1", now - timedelta(hours=30))
    inputs = [TELEMETRY | {"empty_blobs": True}]
    pipeline = world.define(inputs=inputs, eventsLateArrivalMaxDelayInSeconds=7200)
    start, end = (instant.isoformat() for instant in (now - timedelta(hours=1), now))
    trigger = plugin.CaptureCompleteTrigger(str(pipeline.file), start, end, 0.2)

    def arrive() -> None:
        for partition in ("0", "1"):
            world.put(partition, now + timedelta(hours=3))

    assert fired(trigger, looks.wait, arrive) == {"range": {"from": start, "to": end}}
    text = capsys.readouterr().out
    written = (
        r"waiting for the archive: partition 0: written up to \S+Z(, by the clock)?; the newest blob has the time "
    )
    silent = r"waiting for the archive: partition 1: (written up to \S+Z, by the clock; )?no blob was found; slice "
    assert re.search(written, text)
    assert re.search(silent, text)
    assert f"partition 1: written up to {now + timedelta(hours=3):%Y-%m-%dT%H:%M:%SZ}; " in text
