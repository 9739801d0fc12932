"""The examples that Microsoft published, event by event."""

import json
from datetime import datetime
from typing import Any

import pytest

from recapture.time_model.ticks import from_datetime, from_seconds
from tests.oracle import Event, Implementation, Policy, process, slice_metrics
from tests.paths import VECTORS

VECTORS = VECTORS / "time_policy"

NAMES = (
    "example_2017",
    "illustration1_adjust",
    "illustration1_drop",
    "illustration2_no_early",
    "illustration3_substreams",
    "late_simple",
    "event_ordering_table",
)


@pytest.fixture(params=NAMES)
def vector(request: pytest.FixtureRequest) -> dict[str, Any]:
    path = VECTORS / f"{request.param}.json"
    if not path.exists():
        pytest.skip(f"shared/vectors/time_policy/{path.name} is not next to this repository")
    content: dict[str, Any] = json.loads(path.read_text())
    return content


def ticks(text: str) -> int:
    return from_datetime(datetime.fromisoformat(text))


def policy_of(vector: dict[str, Any]) -> Policy:
    policy = vector["policy"]
    early = policy["early_seconds"]
    return Policy(
        out_of_order=from_seconds(policy["out_of_order_seconds"]),
        late=from_seconds(policy["late_seconds"]),
        early=None if early is None else from_seconds(early),
        action=policy["action"].capitalize(),
    )


def events_of(vector: dict[str, Any]) -> list[Event]:
    over = vector["policy"]["over"]
    return [
        Event("0", ticks(e["arrival_time"]), e["n"], ticks(e["event_time"]), None if over is None else (e[over],))
        for e in vector["input"]
    ]


def verdict_of(expected: dict[str, Any], action: str) -> str:
    done = {"Adjust": "adjusted", "Drop": "dropped"}[action]
    return {
        "ok": "on_time",
        "early_dropped": "early_dropped",
        "late": f"late_{done}",
        "out_of_order": f"out_of_order_{done}",
    }[expected["class"]]


def test_every_published_event_has_its_verdict_and_system_timestamp(
    vector: dict[str, Any], implementation: Implementation
) -> None:
    policy = policy_of(vector)
    expected = [
        (verdict_of(row, policy.action), None if row["system_timestamp"] is None else ticks(row["system_timestamp"]))
        for row in vector["expected"]
    ]
    assert implementation(events_of(vector), policy) == expected


@pytest.mark.parametrize("vector", [name for name in NAMES if name.startswith("illustration")], indirect=True)
def test_the_watermark_after_every_event_of_the_illustrations(vector: dict[str, Any]) -> None:
    outcomes = process(events_of(vector), policy_of(vector))
    published = [ticks(row["watermark_after"]) for row in vector["expected"]]
    assert [outcome.watermark_after for outcome in outcomes] == published


def test_the_metrics_of_every_published_example(vector: dict[str, Any]) -> None:
    outcomes = process(events_of(vector), policy_of(vector))
    arrivals = [outcome.event.arrival for outcome in outcomes]
    metrics = slice_metrics(outcomes, min(arrivals) - 1, max(arrivals))["0"]
    assert {
        "early": metrics["EarlyInputEvents"],
        "late": metrics["LateInputEvents"],
        "out_of_order": metrics["DroppedOrAdjustedEvents"],
    } == vector["metrics"]
    assert metrics["InputEvents"] == len(outcomes)


def clock(text: str) -> int:
    """The ticks of hh:mm or hh:mm:ss on a day of ours: the pages print clocks only."""
    return ticks(f"2024-01-01T{text}+00:00")


def table(text: str) -> list[list[str]]:
    return [line.split() for line in text.strip().splitlines()]


def test_the_example_of_2017(implementation: Implementation) -> None:
    """Late tolerance 10 minutes, out-of-order tolerance 3 minutes (seed 000)."""
    rows = table("""
        00:00:00  00:10:01  00:00:01  late_adjusted
        00:00:01  00:10:01  00:00:01  on_time
        00:10:00  00:10:02  00:10:00  on_time
        00:09:00  00:10:03  00:09:00  on_time
        00:06:00  00:10:04  00:07:00  out_of_order_adjusted
    """)
    events = [Event("0", clock(arrival), n, clock(time)) for n, (time, arrival, _, _) in enumerate(rows)]
    policy = Policy(out_of_order=from_seconds(180), late=from_seconds(600), early=from_seconds(300))
    assert implementation(events, policy) == [(verdict, clock(timestamp)) for _, _, timestamp, verdict in rows]


def test_the_illustration_of_watermarks(implementation: Implementation) -> None:
    """Early and late windows 5 minutes, out-of-order tolerance 2 minutes (seed 001)."""
    rows = table("""
        12:07  12:07  12:07  on_time
        12:08  12:08  12:08  on_time
        12:17  12:11  -      early_dropped
        12:08  12:13  12:08  on_time
        12:19  12:16  12:19  on_time
        12:12  12:17  12:17  out_of_order_adjusted
        12:17  12:18  12:17  on_time
        12:20  12:19  12:20  on_time
        12:16  12:21  12:18  out_of_order_adjusted
        12:23  12:22  12:23  on_time
        12:22  12:24  12:22  on_time
        12:21  12:27  12:22  late_adjusted
    """)
    events = [Event("0", clock(arrival), n, clock(time)) for n, (time, arrival, _, _) in enumerate(rows)]
    policy = Policy(out_of_order=from_seconds(120), late=from_seconds(300), early=from_seconds(300))
    assert implementation(events, policy) == [
        (verdict, None if timestamp == "-" else clock(timestamp)) for _, _, timestamp, verdict in rows
    ]
