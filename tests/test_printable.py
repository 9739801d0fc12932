"""What devices and blobs are called never steers a terminal, and never looks like a line of its own."""

import json
import logging
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recapture import printing
from recapture.errors import AuditError, DamagedBlobError, RunError
from recapture.execute.processes.compute import compute
from recapture.execute.processes.workers import workers
from recapture.printable import message, one_line, printable
from recapture.process import log
from recapture.run.plan import plan_run
from recapture.tools.infer.inference import infer
from tests.commands import FIRST_HOUR, Command
from tests.stages import audit
from tests.tools.advise.runs import fleet
from tests.worlds import World, at, lenient

NAMES = (
    "\x1b]0;owned\x07\x1b[2J",
    "a\r\nforged\nforged",
    "\u202eabc\u2066",
    "\x9b31m",
    "[red]:cat:[/]",
    "a\0b",
)
"""Names that steer a terminal, forge a line, turn the line round, or are markup."""


@given(text=st.text())
def test_nothing_but_line_feeds_and_tabs_is_left_of_control_characters(text: str) -> None:
    assert "".join(printable(text).split()).isprintable() or not text.isprintable()
    assert not any(
        character in one_line(text) for character in "\x00\x07\x1b\x7f\x9b\r\n\t\u200e\u202a\u202e\u2066\u2069"
    )
    assert all(line.startswith("  ") for line in message(text).split("\n")[1:])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("温度　계, ок", "温度　계, ок"),
        ("a\r\nb\tc", "a\\r\\nb\\tc"),
        ("\x7f\u200b\U000e0001", "\\u007f\\u200b\\udb40\\udc01"),
        ("\x1b[2J \x9b \u202e \u2028 \ud800", "\\u001b[2J \\u009b \\u202e \\u2028 \\ud800"),
    ],
)
def test_characters_that_are_seen_stay_and_others_are_escaped(text: str, shown: str) -> None:
    assert one_line(text) == shown


@given(value=st.dictionaries(st.text(), st.text()))
def test_json_with_escaped_characters_is_the_same_document(value: dict[str, str]) -> None:
    assert json.loads(printable(json.dumps(value, ensure_ascii=False, indent=2))) == value


def test_a_message_of_a_log_is_one_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "LOGGER", logging.Logger("recapture"))
    log.enable()
    log.LOGGER.info("blob %s", "a\r\n2026-03-01T10:00:00Z INFO recapture: audit passed\x1b[2J")
    assert capsys.readouterr().err.count("\n") == 1


def test_a_message_of_a_log_may_be_an_object(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "LOGGER", logging.Logger("recapture"))
    monkeypatch.setenv("RECAPTURE_LOG_FORMAT", "json")
    log.enable()
    log.LOGGER.warning("blob %s", 'a"\r\nb')
    (line,) = capsys.readouterr().err.splitlines()
    logged = json.loads(line)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", logged.pop("time"))
    assert logged == {"level": "WARNING", "logger": "recapture", "message": 'blob a"\r\nb'}


@pytest.mark.parametrize("name", NAMES)
def test_an_error_and_a_warning_cannot_forge_another(capsys: pytest.CaptureFixture[str], name: str) -> None:
    printing.print_error(printing.error_console(), name)
    printing.print_warnings(printing.console(), [name])
    captured = capsys.readouterr()
    assert captured.err == f"recapture: {message(name)}\n"
    assert captured.out == f"warning: {message(name)}\n"


@pytest.fixture
def world(tmp_path: Path) -> World:
    """An hour of devices with such names. The clock of the first is ahead."""
    world = World(tmp_path)
    fleet(world, dict.fromkeys(NAMES, -0.2) | {NAMES[0]: 121})
    world.put("0", at(90))
    world.define()
    return world


def run(capfd: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> str:
    """Return what a command prints, which is printable."""
    printed = Command(capfd).printable(*arguments, code=code)
    assert [line for line in printed.splitlines() if line.startswith("forged")] == []
    return printed


def test_rows_and_advice_show_names_as_printable_characters(world: World, capfd: pytest.CaptureFixture[str]) -> None:
    rows = run(capfd, "backfill", world.file, *FIRST_HOUR, "--master", "local[1]")
    assert "\\u001b]0;owned\\u0007\\u001b[2J" in rows
    assert "[red]:cat:[/]" in rows
    advice = run(capfd, "advise", world.file, *FIRST_HOUR)
    assert "warning: the clock of 1 of 6 devices is wrong: \\u001b]0;owned\\u0007\\u001b[2J is 2 min ahead" in advice
    run(capfd, "report", world.file, *FIRST_HOUR, "--out", world.home / "range.html")
    run(capfd, "suite", "init", world.file, *FIRST_HOUR)


def test_an_audit_shows_names_as_printable_characters(world: World, capfd: pytest.CaptureFixture[str]) -> None:
    kwargs = {"column": "deviceId", "value_set": ["b"]}
    only_b = {"type": "expect_column_values_to_be_in_set", "kwargs": kwargs}
    world.define(quality=world.write_suite(only_b, severities={"query_returns_rows": "info"}))
    printed = run(capfd, "backfill", world.file, *FIRST_HOUR, "--master", "local[1]", code=1)
    assert "\\u001b]0;owned" in printed


@pytest.fixture
def hostile(world: World) -> World:
    """The same hour, with such names also of fields, blobs, folders and values, and with bodies of no use."""
    bodies = [json.dumps({"eventTime": at(20).isoformat(), "deviceId": name, name: name}).encode() for name in NAMES]
    bodies += [name.encode("utf-8", "replace") for name in NAMES]
    bodies += [json.dumps({"eventTime": name, "deviceId": name}).encode() for name in NAMES]
    world.put("0", at(42), bodies, 100_000)
    for name in NAMES:
        if "\0" not in name and "/" not in name:
            stray = world.capture / "contoso" / "telemetry" / "0" / "2024/03/01/10" / f"{name}.avro"
            stray.parent.mkdir(parents=True, exist_ok=True)
            stray.write_bytes(b"not Avro")
            (world.capture / "contoso" / "telemetry" / name).mkdir()
    return world


def test_no_command_and_no_log_shows_what_a_device_wrote_as_it_is(
    hostile: World, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log.LOGGER, "handlers", [])
    file = hostile.file
    run(capfd, "plan", file, *FIRST_HOUR)
    run(capfd, "backfill", file, *FIRST_HOUR, "--master", "local[1]", "--json", code=1)
    run(capfd, "backfill", file, *FIRST_HOUR, "--master", "local[1]", "-v", code=1)
    hostile.define(quality=lenient(hostile))
    run(capfd, "backfill", file, *FIRST_HOUR, "--master", "local[1]", "-v", "--accept-loss")
    run(capfd, "status", file)
    run(capfd, "check", file, *FIRST_HOUR)
    run(capfd, "infer", file, *FIRST_HOUR)
    run(capfd, "infer", file, *FIRST_HOUR, "--json")
    run(capfd, "advise", file, *FIRST_HOUR)
    run(capfd, "report", file, *FIRST_HOUR, "--out", hostile.home / "range.html")
    run(capfd, "suite", "init", file, *FIRST_HOUR)
    run(capfd, "rollback", file, *FIRST_HOUR)


def test_no_stage_logs_what_a_device_wrote_as_it_is(hostile: World, caplog: pytest.LogCaptureFixture) -> None:
    """Airflow formats the messages in its own way."""
    caplog.set_level(logging.DEBUG, "recapture")
    pipeline = hostile.define()
    planned = plan_run(pipeline, at(0), at(60))
    with workers(1) as processes:
        compute(processes, planned, hostile.home)
    with pytest.raises(AuditError) as raised:
        audit(planned)
    infer(pipeline, at(0), at(60))
    assert str(raised.value).isprintable()
    assert len(caplog.messages) == 5
    assert [text for text in caplog.messages if not text.isprintable()] == []


def test_an_error_is_printable_wherever_it_is_shown() -> None:
    for name in NAMES:
        assert str(DamagedBlobError(name, name)) == printable(str(DamagedBlobError(name, name)))
        assert "\x1b" not in f"{RunError(name)}"
