"""The oracle's windows, against Microsoft's figures and real output of the ASA runtime, and its sums."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.time_model.ticks import from_datetime, from_seconds
from tests.oracle import Event, Outcome, windows

VECTORS = Path(__file__).resolve().parents[2] / "shared" / "vectors"


def vector(name: str) -> dict[str, Any]:
    path = VECTORS / name
    if not path.exists():
        pytest.skip(f"shared/vectors/{name} is not beside this repository")
    content: dict[str, Any] = json.loads(path.read_text())
    return content


def placed(time: int, **payload: Any) -> Outcome:
    """An event that ended up at `time`."""
    return Outcome(Event("0", time, 0, time, payload=payload), "on_time", time)


def test_hopping_windows_reproduce_what_the_asa_runtime_put_out() -> None:
    run = vector("golden_asa_taxi/run1.json")
    outcomes = [placed(from_datetime(datetime.fromisoformat(time)), place=place) for time, place in run["events"]]
    rows = windows(outcomes, from_seconds(60), from_seconds(5), keys=("place",))
    expected = {(from_datetime(datetime.fromisoformat(end)), place): count for end, place, count in run["expected"]}
    assert {identity: row["count"] for identity, row in rows.items()} == expected


@pytest.mark.parametrize(("window", "hop"), [("tumbling", 10), ("hopping", 5)])
def test_the_figures_of_tumbling_and_hopping_windows(window: str, hop: int) -> None:
    figure = vector("windows/tumbling_hopping_figures.json")
    outcomes = [placed(int(event["t"] * 10), label=int(event["label"])) for event in figure["input"]]
    rows = windows(outcomes, 10 * figure[window]["size"], 10 * hop, values=("label",), start=50, end=300)
    expected = {(10 * box["end"],): [int(label) for label in box["labels"]] for box in figure[window]["expected"]}
    assert {identity: row["members"]["label"] for identity, row in rows.items()} == expected


def test_the_end_of_a_window_belongs_to_it_and_its_start_does_not() -> None:
    rows = windows([placed(10), placed(11), placed(20)], size=10)
    assert {identity: row["count"] for identity, row in rows.items()} == {(10,): 1, (20,): 2}


def test_an_offset_moves_the_ends() -> None:
    assert set(windows([placed(10), placed(14)], size=10, offset=3)) == {(13,), (23,)}


def test_only_the_ends_in_the_slice_are_rows() -> None:
    outcomes = [placed(10), placed(20), placed(30)]
    assert set(windows(outcomes, size=10, start=10, end=20)) == {(20,)}


def test_aggregates_ignore_null_and_null_is_a_group() -> None:
    outcomes = [placed(1, key=None, x=1), placed(2, key=None, x=None), placed(3, key="a", x=None)]
    rows = windows(outcomes, size=10, keys=("key",), values=("x",))
    assert {name: rows[10, None][name] for name in ("count", "count_of", "sum", "avg", "min", "max")} == {
        "count": 2,
        "count_of": {"x": 1},
        "sum": {"x": 1},
        "avg": {"x": 1.0},
        "min": {"x": 1},
        "max": {"x": 1},
    }
    assert rows[10, "a"]["count"] == 1
    assert rows[10, "a"]["sum"] == rows[10, "a"]["avg"] == rows[10, "a"]["min"] == {"x": None}
