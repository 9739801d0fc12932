"""The examples that Microsoft published, event by event."""

import json
from datetime import datetime
from typing import Any

import pytest

from recapture.time_model.ticks import from_datetime, from_seconds
from tests.oracle import Event, Implementation, Policy, process, slice_metrics
from tests.paths import VECTORS

VECTOR: dict[str, dict[str, Any]] = json.loads((VECTORS / "time_policy.json").read_text())


@pytest.fixture(params=VECTOR)
def vector(request: pytest.FixtureRequest) -> dict[str, Any]:
    return VECTOR[request.param]


def ticks(text: str) -> int:
    """Return the ticks of hh:mm or hh:mm:ss on a fixed day: the pages print clock times only."""
    return from_datetime(datetime.fromisoformat(f"2024-01-01T{text}+00:00"))


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
        Event("0", ticks(arrival), n, ticks(time), None if over is None else (device,))
        for n, (time, arrival, device, *_) in enumerate(vector["events"])
    ]


def verdict_of(outcome: str, action: str) -> str:
    suffix = {"Adjust": "adjusted", "Drop": "dropped"}[action]
    return {
        "ok": "on_time",
        "early_dropped": "early_dropped",
        "late": f"late_{suffix}",
        "out_of_order": f"out_of_order_{suffix}",
    }[outcome]


def test_every_published_event_has_its_verdict_and_system_timestamp(
    vector: dict[str, Any], implementation: Implementation
) -> None:
    policy = policy_of(vector)
    expected = [
        (verdict_of(outcome, policy.action), None if timestamp is None else ticks(timestamp))
        for *_, outcome, timestamp, _ in vector["events"]
    ]
    assert implementation(events_of(vector), policy) == expected


@pytest.mark.parametrize("vector", [name for name in VECTOR if name.startswith("illustration")], indirect=True)
def test_every_event_of_the_illustrations_leaves_its_watermark(vector: dict[str, Any]) -> None:
    outcomes = process(events_of(vector), policy_of(vector))
    published = [ticks(watermark) for *_, watermark in vector["events"]]
    assert [outcome.watermark_after for outcome in outcomes] == published


def test_every_published_example_has_its_metrics(vector: dict[str, Any]) -> None:
    outcomes = process(events_of(vector), policy_of(vector))
    arrivals = [outcome.event.arrival for outcome in outcomes]
    metrics = slice_metrics(outcomes, min(arrivals) - 1, max(arrivals))["0"]
    assert {
        "early": metrics["EarlyInputEvents"],
        "late": metrics["LateInputEvents"],
        "out_of_order": metrics["DroppedOrAdjustedEvents"],
    } == vector["metrics"]
    assert metrics["InputEvents"] == len(outcomes)


def table(text: str) -> list[list[str]]:
    return [line.split() for line in text.strip().splitlines()]


def test_the_example_of_2017_has_its_verdicts(implementation: Implementation) -> None:
    """Late tolerance 10 minutes, out-of-order tolerance 3 minutes."""
    rows = table("""
        00:00:00  00:10:01  00:00:01  late_adjusted
        00:00:01  00:10:01  00:00:01  on_time
        00:10:00  00:10:02  00:10:00  on_time
        00:09:00  00:10:03  00:09:00  on_time
        00:06:00  00:10:04  00:07:00  out_of_order_adjusted
    """)
    events = [Event("0", ticks(arrival), n, ticks(time)) for n, (time, arrival, _, _) in enumerate(rows)]
    policy = Policy(out_of_order=from_seconds(180), late=from_seconds(600), early=from_seconds(300))
    assert implementation(events, policy) == [(verdict, ticks(timestamp)) for _, _, timestamp, verdict in rows]


def test_the_illustration_of_watermarks_has_its_verdicts(implementation: Implementation) -> None:
    """Early and late windows 5 minutes, out-of-order tolerance 2 minutes."""
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
    events = [Event("0", ticks(arrival), n, ticks(time)) for n, (time, arrival, _, _) in enumerate(rows)]
    policy = Policy(out_of_order=from_seconds(120), late=from_seconds(300), early=from_seconds(300))
    assert implementation(events, policy) == [
        (verdict, None if timestamp == "-" else ticks(timestamp)) for _, _, timestamp, verdict in rows
    ]
