"""The notifiers of a pipeline file: what they are told, and which mistakes are found before a run begins."""

from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from recapture.definition.pipeline import Pipeline, load
from recapture.errors import DefinitionError
from tests.recapture_airflow.conftest import LoadPlugin
from tests.worlds import World

TELL = {"file": "notes", "line": "{{ recapture.event }} {{ recapture.run }}: {{ recapture.message }}"}


@pytest.fixture(scope="module")
def plugin(load_plugin: LoadPlugin) -> ModuleType:
    return load_plugin("run_notifications")


def pipeline(home: Path, *notifications: dict[str, Any]) -> Pipeline:
    world = World(home)
    world.define()
    world.amend(notifications=notifications)
    return load(world.file)


def notify(plugin: ModuleType, monkeypatch: pytest.MonkeyPatch, notified: Pipeline, event: str) -> None:
    run = SimpleNamespace(dag_id="telemetry", run_id="manual__1")
    monkeypatch.setattr(plugin, "get_current_context", lambda: {"dag_run": run})
    plugin.notify(notified, event, "RUN", "what happened")


def test_a_notifier_is_told_its_events_with_the_run_in_its_templates(
    plugin: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    chosen = {"notifier": "tests.notes.FileNotifier", "arguments": TELL, "events": ["blocked", "recovered"]}
    notified = pipeline(tmp_path, chosen)
    for event in ("blocked", "approved", "recovered"):
        notify(plugin, monkeypatch, notified, event)
    assert Path("notes").read_text() == "blocked RUN: what happened\nrecovered RUN: what happened\n"


def test_a_notifier_that_fails_is_logged_and_the_others_are_told(
    plugin: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    lost = {"notifier": "tests.notes.FileNotifier", "arguments": {**TELL, "file": "missing/notes"}}
    notify(plugin, monkeypatch, pipeline(tmp_path, lost, {**lost, "arguments": TELL}), "blocked")
    assert Path("notes").exists()
    assert "FileNotifier did not send the notification that the run is blocked" in caplog.text


@pytest.mark.parametrize(
    ("notifier", "arguments", "reason"),
    [
        ("tests.notes.Missing", {}, "cannot be imported"),
        ("no_such_package.Notifier", {}, "cannot be imported"),
        ("pathlib.Path", {}, "is not a notifier of Airflow"),
        ("tests.notes.FileNotifier", {"text": "x"}, "does not take these arguments"),
    ],
)
def test_a_notifier_that_cannot_be_used_is_named(
    plugin: ModuleType, tmp_path: Path, notifier: str, arguments: dict[str, Any], reason: str
) -> None:
    notified = pipeline(tmp_path, {"notifier": notifier, "arguments": arguments})
    with pytest.raises(DefinitionError, match=rf"telemetry\.yaml: notifications\.0: {notifier} {reason}"):
        plugin.notifiers_of(notified)
