"""The benchmark runs, and compares three programs that do the same work."""

from dataclasses import astuple
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from benchmarks import run
from benchmarks.world import World
from recapture.execute.processes.workers import workers

EVENTS = 3001
"""Number of events: not a multiple of the number of blobs."""
ROW: run.Row = (datetime(2026, 3, 1, 0, 5, tzinfo=UTC), "device-1", 2, 21.5)


def test_recapture_the_floor_and_plain_spark_compute_the_same(spark: SparkSession, tmp_path: Path) -> None:
    """`compare` fails if the floor reads another number of events, or plain Spark computes other rows."""
    world = World(EVENTS, hours=1, interval=timedelta(minutes=15), partitions=2)
    with workers(1) as processes:
        [rates] = run.compare(spark, processes, world, tmp_path / "archive", tmp_path, rounds=1)
    assert all(rate > 0 for rate in astuple(rates))
    compared = sum(events for _, _, events, _ in run.rows_of(tmp_path / "peer", world.end))
    assert 0.98 * EVENTS < compared <= EVENTS, "only windows before the range are left out"


@pytest.mark.parametrize(
    ("rows", "peers"),
    [
        ([], []),
        ([ROW], []),
        ([ROW], [ROW, ROW]),
        ([ROW], [(datetime(2026, 3, 1, 0, 10, tzinfo=UTC), *ROW[1:])]),
        ([ROW], [(ROW[0], "device-2", *ROW[2:])]),
        ([ROW], [(*ROW[:2], 3, ROW[3])]),
        ([ROW], [(*ROW[:3], 21.6)]),
    ],
)
def test_rows_that_differ_and_no_rows_at_all_are_an_error(rows: list[run.Row], peers: list[run.Row]) -> None:
    with pytest.raises(AssertionError, match="recapture has" if rows else "recapture has 0 rows"):
        run.require_same(rows, peers)


def test_means_may_differ_in_their_last_digits() -> None:
    run.require_same([ROW], [(*ROW[:3], ROW[3] * (1 + 1e-12))])


def test_fewer_events_than_blobs_are_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["benchmarks.run", "287"])
    with pytest.raises(SystemExit):
        run.main()
    assert capsys.readouterr().err.splitlines()[-1].endswith("give at least 288 events and 1 round")
