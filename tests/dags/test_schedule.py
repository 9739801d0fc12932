"""Which slices the schedule computes, and in which order: Airflow's own scheduler, on a simulated clock."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.dags.conftest import REPOSITORY
from tests.dialogue import Ask, dialogue
from tests.paths import ROOT

Simulate = Callable[..., Any]
SCRIPT = Path(__file__).with_name("simulated_schedule.py")
CAPTURE = 300
"""Capture interval of the pipeline, in seconds."""
DAY = 24
BEGIN = 10.5
"""Hour at which the DAG is unpaused. The newest slice that has ended is that of hour 9."""


@pytest.fixture(scope="module")
def simulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    with dialogue([str(SCRIPT)], tmp_path_factory.mktemp("airflow"), **REPOSITORY) as ask:
        yield ask


@pytest.fixture
def simulate(simulator: Ask, tmp_path: Path) -> Simulate:
    """Simulate a scenario of a pipeline with a late tolerance in seconds."""

    def run(tolerance: int = 0, begin: float = BEGIN, pipeline: dict[str, Any] | None = None, **scenario: Any) -> Any:
        folder = tmp_path / "dags"
        shutil.copytree(ROOT / "dags", folder, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
        file = folder / "pipelines" / "telemetry.yaml"
        sections = yaml.safe_load(file.read_text())
        sections["job"]["eventsLateArrivalMaxDelayInSeconds"] = tolerance
        file.write_text(yaml.safe_dump(sections | (pipeline or {})))
        wait = (tolerance + CAPTURE) / 3600
        return simulator({"folder": str(folder), "begin": begin, "wait": wait, **scenario})

    return run


def slices(answer: dict[str, Any], kind: str = "scheduled") -> list[float]:
    """Return the starts of the slices that runs of a type computed, in order."""
    return sorted(start for start, _, run in answer["slots"] if run == kind)


@pytest.mark.parametrize("tolerance", [0, 2 * 3600, 6 * 3600, 20 * DAY * 3600])
def test_every_slice_runs_once_whatever_the_late_tolerance(simulate: Simulate, tolerance: int) -> None:
    wait = tolerance // 3600
    answer = simulate(tolerance, end=BEGIN + wait + DAY, step=1, parse=12)
    assert slices(answer) == list(range(9, 9 + DAY))
    assert answer["waiting"] == list(range(9 + DAY, 9 + DAY + wait))


def test_an_outage_of_the_scheduler_loses_no_slice(simulate: Simulate) -> None:
    answer = simulate(end=24, down=[[12.1, 17.2]])
    assert slices(answer) == list(range(9, 23))


def test_after_an_outage_the_newest_slice_runs_first(simulate: Simulate) -> None:
    answer = simulate(end=30, down=[[12.1, 17.4]], slot=0.5)
    assert [start for start, hour, _ in answer["slots"] if 17 < hour < 19] == [16, 15, 17, 14]
    assert slices(answer) == list(range(9, 29))


def test_a_pause_of_a_week_loses_no_slice_and_delays_no_new_one(simulate: Simulate) -> None:
    resumed = 12 + 7 * DAY
    answer = simulate(begin=9.5, end=resumed + 40.5, paused=[[12, resumed]], slot=0.15, step=0.5, parse=6)
    assert slices(answer) == list(range(8, resumed + 39))
    delays = [hour - start - 1 for start, hour, _ in answer["slots"] if start >= resumed]
    assert max(delays) <= 1


def test_a_dag_that_is_unpaused_for_the_first_time_begins_with_the_newest_slice(simulate: Simulate) -> None:
    answer = simulate(begin=290.5, end=304, paused=[[290, 300.1]], step=0.5)
    assert slices(answer) == [299, 300, 301, 302]


def test_a_backfill_of_history_does_not_move_the_beginning_of_the_schedule(simulate: Simulate) -> None:
    """The backfill comes before the first scheduled run, so its runs are the only ones that Airflow knows then."""
    answer = simulate(begin=290.5, end=304, paused=[[290, 300.1]], backfills=[[291, 3, 5]], step=0.5)
    assert slices(answer, "backfill") == [3, 4, 5]
    assert slices(answer) == [299, 300, 301, 302]


def test_a_backfill_of_newer_slices_does_not_hide_those_that_wait_for_their_runs(simulate: Simulate) -> None:
    answer = simulate(end=24, down=[[12.1, 18.2]], backfills=[[18.1, 15, 16]])
    assert slices(answer, "backfill") == [15, 16]
    assert slices(answer) == [slice_ for slice_ in range(9, 23) if slice_ not in (15, 16)]


def test_a_backfill_that_includes_the_newest_slice_does_not_stop_the_schedule(simulate: Simulate) -> None:
    answer = simulate(begin=0.5, end=24, paused=[[0, 15.1]], backfills=[[14.9, 3, 13]])
    assert slices(answer, "backfill") == list(range(3, 14))
    assert slices(answer) == list(range(14, 23))


def test_the_calendar_learns_the_runs_and_the_first_slice_of_the_schedule(simulate: Simulate) -> None:
    answer = simulate(3600, end=14, backfills=[[11, 3, 3]], paused=[[13.5, 14]])
    runs = [[3, "success"], *([hour, "success"] for hour in (9, 10, 11)), [12, "running"]]
    assert sorted(answer["runs"]) == runs
    assert (answer["first"], answer["paused"]) == (9, True)
    new = simulate(begin=290.5, end=292, paused=[[290, 300]], backfills=[[291, 3, 3]])
    assert (new["first"], new["paused"]) == (None, True)


def test_a_pipeline_may_say_where_its_schedule_begins(simulate: Simulate) -> None:
    answer = simulate(pipeline={"schedule": {"start": "2026-03-01T02:00:00Z"}}, end=16)
    assert slices(answer) == list(range(2, 15))
    answer = simulate(pipeline={"schedule": {"start": "2026-03-01T13:00:00Z"}}, end=16)
    assert slices(answer) == [13, 14]


def test_a_backfill_of_a_day_does_not_delay_the_live_slice(simulate: Simulate) -> None:
    answer = simulate(begin=40.5, end=60, backfills=[[41, 3, 26]], slot=0.4)
    assert slices(answer) == list(range(39, 59))
    assert slices(answer, "backfill") == list(range(3, 27))
    delays = [hour - start - 1 for start, hour, run in answer["slots"] if run == "scheduled" and start > 40]
    assert max(delays) <= 0.75, "at most the run that holds the slot comes before"


def test_the_slot_of_spark_goes_to_the_newest_slice_and_last_to_backfills(
    simulator: Ask,
) -> None:
    runs = [["backfill", 3], ["manual", 50], ["scheduled", 97], ["backfill", 99], ["scheduled", 98]]
    order = simulator({"folder": str(ROOT / "dags"), "slots": runs})
    assert [run.partition("__")[0] for run in order] == ["scheduled", "scheduled", "manual", "backfill", "backfill"]
    assert [run[-14:-12] for run in order] == ["03", "02", "03", "04", "04"]
