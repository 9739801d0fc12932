"""A body may be anything. It is quarantined byte for byte, and what shows it shows printable characters."""

import gzip
import json
from pathlib import Path

import pytest

from recapture.quality.slice_checks import Example, explanation
from tests.commands import FIRST_HOUR, Command, unprintable
from tests.worlds import World, at, body, lenient, published

BODIES = {
    "null": None,
    "empty": b"",
    "blank": b" \r\n",
    "zero byte": b"\0",
    "not UTF-8": b"\xff\xfe\xfd",
    "UTF-16": '{"deviceId": "a"}'.encode("utf-16"),
    "surrogate in UTF-8": b'{"\xed\xa0\x80": 1}',
    "NUL in a string": b'{"deviceId": "a\0b"}',
    "very long": b"x" * 3_000_000,
    "very long name": b'{"' + b"x" * 3_000_000 + b'": 1}',
    "Avro file": b"Obj\x01\x04\x16avro.schema\x02{}\x00" + bytes(16),
    "gzip": gzip.compress(b"{}", mtime=0),
    "name of a lone surrogate": b'{"\\ud800": 1}',
    "name of an escape": b'{"\\u001b]0;owned\\u0007\\u001b[2J": 1}',
    "name that forges a line": b'{"a\\r\\naudit passed": 1}',
    "name that turns the line": '{"\u202e\u2066abc": 1}'.encode(),
    "name of C1": b'{"\\u009b2J": 1}',
    "escape": b"\x1b]0;owned\x07\x1b[2J",
    "line breaks": b"a\r\naudit passed\n",
    "markup": b"[red]<script>alert(1)</script>:cat:",
    "JSON null": b"null",
    "array": b"[]",
    "number": b"1" * 5000,
    "string": b'"text"',
    "not a number": b'{"deviceId": NaN}',
    "deep": b"[" * 100_000,
    "deep record": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "trailing brace": b'{"deviceId": "a"}}',
    "two documents": b"{}{}",
}
"""Bodies that no query can read, by what is wrong with them."""
TYPED = """\
CREATE TABLE telemetry (deviceId nvarchar(max), eventTime datetime);
SELECT System.Timestamp() AS windowEnd, deviceId, COUNT(*) AS events
INTO aggregates FROM telemetry TIMESTAMP BY eventTime GROUP BY deviceId, TumblingWindow(minute, 5)"""


@pytest.fixture
def world(tmp_path: Path) -> World:
    """An hour with one event that a query can read, and one of every other kind. The first has a null body."""
    world = World(tmp_path)
    world.put("0", at(6), [*BODIES.values(), body("a", at(5))])
    world.put("0", at(90))
    world.define(TYPED)
    return world


@pytest.mark.parametrize("kind", BODIES)
@pytest.mark.parametrize("verdict", ["malformed", "invalid_timestamp"])
def test_the_audit_explains_every_body_in_one_short_line(kind: str, verdict: str) -> None:
    text = explanation(Example(verdict, "the reason", BODIES[kind]))
    assert text.startswith("the reason; ")
    assert text.isprintable()
    assert len(text) < 1000


@pytest.mark.parametrize(
    ("kind", "advice"),
    [
        ("null", "the event has no body: its sender must send bytes"),
        ("empty", "the body is empty: check the sender"),
    ],
)
def test_the_audit_says_what_to_do_about_an_event_without_a_body(kind: str, advice: str) -> None:
    assert advice in explanation(Example("malformed", "no body", BODIES[kind]))


def test_null_bodies_stop_a_run_with_one_line(world: World, capfd: pytest.CaptureFixture[str]) -> None:
    printed = Command(capfd).printable("backfill", world.file, *FIRST_HOUR, "--master", "local[1]", code=1)
    assert printed.splitlines()[-1].startswith("recapture: run 20240301T100000Z-")
    assert "29 malformed of 30 events (96.7 %): no body; the event has no body" in printed


def test_bodies_of_every_kind_are_quarantined_byte_for_byte_and_shown_as_printable_characters(
    world: World, capfd: pytest.CaptureFixture[str]
) -> None:
    world.define(TYPED, quality=lenient(world))
    printed = Command(capfd).printable("backfill", world.file, *FIRST_HOUR, "--master", "local[1]", "--json")
    metrics = json.loads(printed)["metrics"]
    assert metrics["malformed"] + metrics["invalid_timestamp"] == len(BODIES)
    quarantined = published(world.home / "table_quarantine", "sequence_number")
    assert [row["body"] for row in quarantined] == list(BODIES.values())
    Command(capfd).printable("status", world.file)
    Command(capfd).printable("report", world.file, *FIRST_HOUR, "--out", world.home / "range.html")
    for command in ("infer", "advise", "backfill"):
        Command(capfd).printable(command, world.file, *FIRST_HOUR)
    for page in world.home.rglob("*.html"):
        assert unprintable(page.read_text()) == ""
    json.loads(world.home.joinpath("range.json").read_bytes())
