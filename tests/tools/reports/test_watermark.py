"""The watermark picture: the illustrations of Microsoft's pages, point by point, and what a picture leaves out."""

import json
import tempfile
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from recapture.query.model import CompiledInput
from recapture.time_model import ticks
from recapture.time_model.policies import Policies
from recapture.time_model.ticks import from_datetime, from_seconds
from recapture.tools.reports.watermark import Picture, Point, picture
from tests.ordering.tasks import BY_DEVICE, PLAIN, POLICIES, TEN, only, put
from tests.paths import VECTORS
from tests.tools.reports.samples import sampled

VECTOR: dict[str, dict[str, Any]] = json.loads((VECTORS / "time_policy.json").read_text())
VERDICTS = {
    "ok": "on_time",
    "early_dropped": "early_dropped",
    "late": "late_adjusted",
    "out_of_order": "out_of_order_adjusted",
}
START = from_datetime(TEN)


def at_ten(text: str) -> datetime:
    """Return hh:mm:ss of a published example in the hour from ten: the pages print clock times only."""
    time = datetime.fromisoformat(f"2024-01-01T{text}")
    return TEN + timedelta(minutes=time.minute, seconds=time.second)


def drawn(vector: dict[str, Any]) -> list[Picture]:
    """Order the events of a published example as a run does, and return the picture of each scope."""
    policy = vector["policy"]
    early = policy["early_seconds"]
    policies = Policies(
        out_of_order_tolerance=from_seconds(policy["out_of_order_seconds"]),
        late_tolerance=from_seconds(policy["late_seconds"]),
        early_window=None if early is None else from_seconds(early),
        adjust=policy["action"] == "adjust",
    )
    with tempfile.TemporaryDirectory() as home:
        by_arrival: dict[datetime, list[tuple[int, bytes]]] = {}
        for number, (time, arrival, device, *_) in enumerate(vector["events"], 1):
            body = {"eventTime": at_ten(time).isoformat(), "deviceId": device or "device"}
            by_arrival.setdefault(at_ten(arrival), []).append((number, json.dumps(body).encode()))
        for arrival, events in by_arrival.items():
            put(Path(home), arrival, events)
        query: CompiledInput = PLAIN if policy["over"] is None else BY_DEVICE
        _, counters = only(Path(home), query, policies)
    [row] = counters.profile.table("telemetry", "0").to_pylist()
    keys = sorted({event["key"] for event in row["sample"]}, key=str)
    pictures = [picture([e for e in row["sample"] if e["key"] == key], policies, by_blob=True) for key in keys]
    return [scope_picture for scope_picture in pictures if scope_picture is not None]


def points(pictures: list[Picture]) -> list[Point]:
    return sorted((point for picture in pictures for point in picture.points), key=lambda point: point.number)


@pytest.mark.parametrize("name", VECTOR)
def test_every_point_of_a_published_example_is_where_the_page_says(name: str) -> None:
    suffix = {"adjust": "adjusted", "drop": "dropped"}[VECTOR[name]["policy"]["action"]]
    expected = [
        (
            from_datetime(at_ten(arrival)),
            from_datetime(at_ten(time)),
            VERDICTS[outcome].replace("adjusted", suffix),
            None if system_timestamp is None else from_datetime(at_ten(system_timestamp)),
        )
        for time, arrival, _, outcome, system_timestamp, _ in VECTOR[name]["events"]
    ]
    shown = [(p.arrival, p.time, p.verdict, p.system_timestamp) for p in points(drawn(VECTOR[name]))]
    assert shown == expected


@pytest.mark.parametrize("name", [name for name in VECTOR if name.startswith("illustration")])
def test_the_watermark_of_an_illustration_is_where_the_page_says(name: str) -> None:
    pictures = drawn(VECTOR[name])
    expected = [from_datetime(at_ten(watermark)) for *_, watermark in VECTOR[name]["events"]]
    for scope_picture in pictures:
        assert scope_picture.one_watermark
        watermark = None
        for point in scope_picture.points:
            watermark = watermark if point.watermark is None else point.watermark
            assert watermark == expected[point.number - 1]
            assert point.x == point.arrival


def test_the_bounds_of_an_illustration_are_its_windows() -> None:
    [shown] = drawn(VECTOR["illustration1_adjust"])
    assert (shown.late_bound, shown.early_bound) == (-from_seconds(300), from_seconds(300))
    [unbounded] = drawn(VECTOR["illustration2_no_early"])
    assert unbounded.early_bound is None
    assert shown.outside == unbounded.outside == 0


def event(arrival: float, time: float | None, number: int = 0, key: str | None = None) -> dict[str, Any]:
    """Return a sampled event that is on time, with seconds after ten."""
    instant = None if time is None else START + int(time * ticks.TICKS_PER_SECOND)
    verdict = "malformed" if time is None else "on_time"
    return sampled(START + int(arrival * ticks.TICKS_PER_SECOND), instant, verdict, number, key=key)


def shown(events: list[dict[str, Any]], policies: Policies = POLICIES, by_blob: bool = True) -> Picture:
    drawing = picture(events, policies, by_blob=by_blob)
    assert drawing is not None
    return drawing


def test_events_of_one_blob_are_spread_in_their_order_before_the_next_arrival() -> None:
    drawing = shown([event(900, 500, 3), event(600, 550, 2), event(600, 500, 1), event(600, 580, 0), event(2000, 0, 4)])
    assert [point.number for point in drawing.points] == [0, 1, 2, 3, 4]
    xs = [(point.x - START) / ticks.TICKS_PER_SECOND for point in drawing.points]
    assert xs == pytest.approx([600, 705, 810, 900, 2000])


def test_events_of_the_only_arrival_are_spread_over_a_minute() -> None:
    drawing = shown([event(600, 550, 1), event(600, 500, 2)])
    assert [point.x - point.arrival for point in drawing.points] == [0, from_seconds(60)]


def test_events_with_arrivals_of_their_own_are_drawn_at_their_arrival() -> None:
    drawing = shown([event(600, 550, 1), event(600, 500, 2), event(900, 500, 3)], by_blob=False)
    assert [point.x for point in drawing.points] == [point.arrival for point in drawing.points]


def test_a_time_that_is_far_away_does_not_stretch_the_axis() -> None:
    near = [event(second, second - 2 - second % 3, second) for second in range(1, 40)]
    drawing = shown([*near, event(700, -(10**9), 42), event(800, 10**9, 43)], by_blob=False)
    assert drawing.outside == 2
    assert -from_seconds(5) < drawing.lowest < -from_seconds(4)
    assert 0 < drawing.highest < from_seconds(1)


def test_events_of_a_slice_are_all_shown_even_if_they_are_only_seconds_late() -> None:
    strict = Policies(0, from_seconds(5), from_seconds(300), adjust=True)
    drawing = shown([event(second, second - 0.5, second) for second in range(1, 3600, 10)], strict, by_blob=False)
    assert len(drawing.points) == 360
    assert drawing.end - drawing.start > from_seconds(3500)
    assert drawing.highest - drawing.lowest < from_seconds(2)


def test_events_of_several_keys_have_no_common_watermark() -> None:
    assert not shown([event(600, 550, 1, "a"), event(700, 600, 2, "b")]).one_watermark


def test_events_without_a_time_alone_have_no_picture() -> None:
    assert picture([event(600, None)], POLICIES, by_blob=True) is None
