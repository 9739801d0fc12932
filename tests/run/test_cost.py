"""What runs took is written down, and tells what another run will take."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recapture.definition.pipeline import load
from recapture.definition.sections import Prices
from recapture.errors import DefinitionError
from recapture.run.cost import sentence
from recapture.run.estimate import parts, predict, runs_to_read
from recapture.run_files.cost import Cost
from recapture.storage import open_container
from recapture.storage.took import Took
from recapture.storage.use import Use, used
from recapture.table.publications import ShownEntry
from tests.commands import FIRST_HOUR, Command
from tests.worlds import World, one_event


def took(slices: int, seconds: float, use: Use | None = None) -> Cost:
    """Return the cost of a run of so many slices, each with 100 bytes in 100 blobs."""
    cpu = None if use is None else 2 * seconds
    return Cost("processes", 2, "digest", slices, 100 * slices, 100 * slices, {"audit": Took(seconds, cpu, use)})


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ([(1, 7), (2, 9), (10, 25)], (5, 2)),
        ([(4, 12), (4, 12)], (0, 3)),
        ([(4, 11), (4, 13)], (0, 3)),
        ([(1, 5), (2, 5)], (5, 0)),
        ([(1, 9), (2, 6)], (7.5, 0)),
        ([(1, 1), (2, 3)], (0, 1.25)),
        ([(3, 0), (4, 0)], (0, 0)),
        ([(1, 100), (1, 102), (2, 199), (2, 201)], (2, 99)),
    ],
)
def test_a_run_has_a_part_by_itself_if_runs_of_two_lengths_show_it(
    points: list[tuple[float, float]], expected: tuple[float, float]
) -> None:
    slices, taken = np.array(points, np.float64).T
    assert parts(slices[:, np.newaxis], taken) == pytest.approx(np.array(expected), rel=1e-3)


UNEQUAL = np.array([(900, 1), (1100, 1), (1900, 2), (3300, 3), (40_000, 24)], np.float64)
"""Bytes and slices of runs that differ in length and in size."""


def test_runs_that_had_nothing_to_do_have_a_part_of_their_own() -> None:
    assert parts(np.zeros((2, 2)), np.array([4.0, 6.0])) == pytest.approx(np.array([5, 0, 0]))
    assert parts(np.zeros((1, 1)), np.array([0.0])) == pytest.approx(np.zeros(2))


@given(truth=st.tuples(*[st.integers(0, 1000)] * 3))
def test_parts_that_are_known_exactly_are_told_apart(truth: tuple[int, ...]) -> None:
    run, byte, slice_ = truth
    found = parts(UNEQUAL, run + UNEQUAL @ np.array([byte, slice_]))
    assert found @ [1, 7000, 8] == pytest.approx(run + 7000 * byte + 8 * slice_, rel=1e-4)


def test_estimates_are_as_often_too_large_as_too_small() -> None:
    random = np.random.default_rng(7)
    lengths = np.array([1, 1, 1, 1, 2, 2, 12], np.float64)
    work = np.column_stack([1e9 * lengths, lengths])
    noises = random.uniform(0.7, 1.3, (200, len(lengths)))
    estimates = np.array([parts(work, (10 + 5 * lengths) * noise) @ [1, 8e9, 8] for noise in noises])
    assert estimates.mean() == pytest.approx(50, rel=0.03)
    assert 80 < np.count_nonzero(estimates > 50) < 120


def test_few_short_runs_tell_what_a_longer_one_takes_within_a_fifth() -> None:
    random = np.random.default_rng(7)
    work = np.array([(39, 1), (75, 1), (124, 2), (124, 2)], np.float64)
    noises = np.exp(random.normal(0, 0.07, (200, len(work))))
    estimates = np.array([parts(work, (25 + work[:, 0]) * noise) @ [1, 266, 6] for noise in noises])
    assert np.count_nonzero(abs(estimates / (25 + 266) - 1) < 0.2) > 190


def test_what_a_run_takes_follows_from_runs_of_two_lengths() -> None:
    runs = [took(1, 12, Use(reads=100, read_bytes=100)), took(2, 22, Use(reads=200, read_bytes=200))]
    work = {"bytes": 1000, "blobs": 1000, "slices": 10, "prefixes": 1}
    predicted = predict(runs, work)
    assert predicted["seconds"] == pytest.approx(102)
    assert predicted["cpu_seconds"] == pytest.approx(204)
    assert predicted["reads"] == pytest.approx(1000)
    assert predict([*runs, took(1, 12)], work)["cpu_seconds"] is None


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
    assert {name: estimate[name] for name in ("seconds", "cpu_seconds", "reads", "writes", "lists")} == pytest.approx(
        {name: cost[name] for name in ("seconds", "cpu_seconds", "reads", "writes", "lists")}
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
    actual = sentence(cost | known | {"money": 0.1234, "currency": "EUR"})
    assert actual == "1 min 30 s on 2 cores, 2 min of CPU, 2.0 GB read and 1.0 kB written, 7 requests, 0.12 EUR"


@pytest.mark.parametrize("price", [-1, True, "cheap"])
def test_a_price_is_a_number_that_is_not_negative(tmp_path: Path, price: object) -> None:
    world = World(tmp_path)
    world.define()
    world.amend(prices={"machine_hour": 2})
    assert load(world.file).prices == Prices(machine_hour=2)
    world.amend(prices={"machine_hour": price})
    with pytest.raises(DefinitionError, match="machine_hour"):
        load(world.file)
