"""What runs took is written down, and tells what another run will take."""

import json
from pathlib import Path

import pytest

from recapture.definition.pipeline import load
from recapture.definition.sections import Prices
from recapture.errors import DefinitionError
from recapture.run.cost import line, predict, runs_to_read, sentence
from recapture.run_files.cost import Cost
from recapture.storage import open_container
from recapture.storage.took import Took
from recapture.storage.use import Use, used
from recapture.table.publications import ShownEntry
from tests.commands import FIRST_HOUR, Command
from tests.worlds import World, one_event


def took(size: int, seconds: float, use: Use | None = None) -> Cost:
    """Return the cost of a run that read so many bytes."""
    cpu = None if use is None else 2 * seconds
    return Cost("processes", 2, "digest", 1, size, size, {"audit": Took(seconds, cpu, use)})


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ([(1, 7), (2, 9), (10, 25)], (5, 2)),
        ([(4, 12), (4, 12)], (0, 3)),
        ([(1, 5), (2, 5)], (5, 0)),
        ([(1, 9), (2, 6)], (7.02, 0)),
        ([(1, 1), (2, 3)], (0, 1.2)),
        ([(3, 0), (4, 0)], (0, 0)),
        ([(0, 6)], (6, 0)),
    ],
)
def test_a_line_has_the_smallest_relative_errors_and_is_nowhere_negative(
    points: list[tuple[float, float]], expected: tuple[float, float]
) -> None:
    def error(fixed: float, slope: float) -> float:
        return sum(((fixed + slope * x) / y - 1) ** 2 for x, y in points if y)

    fixed, slope = line(points)
    assert (fixed, slope) == pytest.approx(expected, abs=0.4)
    assert min(fixed, slope) >= 0
    if len({x for x, _ in points}) > 1:
        nearby = [(max(0, fixed + a / 100), max(0, slope + b / 100)) for a in (-1, 0, 1) for b in (-1, 0, 1)]
        assert error(fixed, slope) <= min(error(*other) for other in nearby) + 1e-12


def test_what_a_run_takes_follows_from_runs_of_two_lengths() -> None:
    runs = [took(100, 12, Use(reads=100, read_bytes=100)), took(200, 22, Use(reads=200, read_bytes=200))]
    predicted = predict(runs, {"bytes": 1000, "blobs": 1000, "slices": 24})
    assert predicted["seconds"] == pytest.approx(102)
    assert predicted["cpu_seconds"] == pytest.approx(204)
    assert predicted["reads"] == pytest.approx(1000)
    assert predict([*runs, took(100, 12)], {"bytes": 1, "blobs": 1, "slices": 1})["cpu_seconds"] is None


def test_an_estimate_reads_the_newest_runs_of_each_length() -> None:
    def entry(hour: int, hours: int, at: str) -> ShownEntry:
        return ShownEntry(run=f"20240301T{hour:02}0000Z-20240301T{hour + hours:02}0000Z-{hour:012x}", published=at)

    short = [entry(hour, 1, f"2024-03-02T{hour:02}:00:00Z") for hour in range(9)]
    long = entry(10, 6, "2024-03-01T00:00:00Z")
    runs = runs_to_read([*short, long, ShownEntry()])
    assert runs == [run.run for run in (*short[:4:-1], long)]


def test_a_run_records_what_it_took_and_the_plan_tells_what_it_will_take(tmp_path: Path, command: Command) -> None:
    world = one_event(tmp_path, hours=2)
    world.define()
    world.amend(prices={"currency": "USD", "machine_hour": 3600.0, "read_10000": 10_000.0})
    assert command.json("plan", world.file, *FIRST_HOUR)["estimate"] is None
    result = command.json("backfill", world.file, *FIRST_HOUR)
    cost = result["cost"]
    assert [*cost["stages"]] == ["order_and_aggregate", "audit", "publish"]
    assert cost["reads"] >= 1
    assert cost["read_bytes"] >= sum(path.stat().st_size for path in world.capture.rglob("*10/07*"))
    assert cost["money"] == pytest.approx(cost["seconds"] + cost["reads"])
    report = json.loads(Path(result["report"].removeprefix("file://")).with_suffix(".json").read_text())
    assert report["cost"] == cost
    assert "The run took " in Path(result["report"].removeprefix("file://")).read_text()
    estimate = command.json("plan", world.file, *FIRST_HOUR)["estimate"]
    assert {name: estimate[name] for name in ("seconds", "cpu_seconds", "reads", "writes")} == pytest.approx(
        {name: cost[name] for name in ("seconds", "cpu_seconds", "reads", "writes")}
    )
    assert (estimate["runs"], estimate["same_definition"], estimate["currency"]) == (1, True, "USD")
    assert "a backfill will take about " in command.text("plan", world.file, *FIRST_HOUR)


def test_the_storage_counts_requests_and_bytes(tmp_path: Path) -> None:
    container, before = open_container(tmp_path.as_uri()), used()
    container.write("a", b"abc")
    assert container.read_current("a") == b"abc"
    assert container.read_current("b") is None
    list(container.list())
    assert used() - before == Use(reads=1, writes=1, lists=1, read_bytes=3, written_bytes=3)


def test_a_cost_is_told_in_a_sentence() -> None:
    cost = {"seconds": 90, "cores": 2, "cpu_seconds": None, "reads": None, "money": None}
    assert sentence(cost) == "1 min 30 s on 2 cores"
    known = {"cpu_seconds": 120.0, "reads": 5.2, "writes": 1, "lists": 1, "read_bytes": 2e9, "written_bytes": 1e3}
    told = sentence(cost | known | {"money": 0.1234, "currency": "EUR"})
    assert told == "1 min 30 s on 2 cores, 2 min of CPU, 2.0 GB read and 1.0 kB written, 7 requests, 0.12 EUR"


@pytest.mark.parametrize("price", [-1, True, "cheap"])
def test_a_price_is_a_number_that_is_not_negative(tmp_path: Path, price: object) -> None:
    world = World(tmp_path)
    world.define()
    world.amend(prices={"machine_hour": 2})
    assert load(world.file).prices == Prices(machine_hour=2)
    world.amend(prices={"machine_hour": price})
    with pytest.raises(DefinitionError, match="machine_hour"):
        load(world.file)
