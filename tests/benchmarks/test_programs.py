"""The programs that a backfill is compared with run by themselves, and their use is measured."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import guard, performance, usage
from benchmarks.performance import RECAPTURE
from benchmarks.run import require_same, rows_of
from benchmarks.usage import Usage
from benchmarks.world import World
from tests.paths import ROOT

SMALL = World(3001, hours=1, devices=7, codec="deflate")
RANGE = ("2026-03-01T00:00:00Z", "2026-03-01T01:00:00Z")


def test_the_hand_written_programs_compute_the_same(tmp_path: Path) -> None:
    SMALL.make(tmp_path / "archive")
    rows = []
    for program in ("polars_program", "duckdb_program"):
        out = tmp_path / f"{program}.parquet"
        command = [sys.executable, "-m", f"benchmarks.{program}", str(tmp_path / "archive"), str(out), *RANGE]
        subprocess.run(command, check=True, cwd=ROOT)
        rows.append(rows_of(out, SMALL.end))
    require_same(*rows)
    assert 0.98 * SMALL.events < sum(events for _, _, events, _ in rows[0]) <= SMALL.events


def test_a_world_is_always_the_same_and_made_once(tmp_path: Path) -> None:
    def contents(folder: str) -> dict[str, tuple[float, int]]:
        files = (tmp_path / folder).rglob("*.avro")
        return {str(file.relative_to(tmp_path / folder)): (file.stat().st_mtime, file.stat().st_size) for file in files}

    SMALL.make(tmp_path / "first")
    SMALL.make(tmp_path / "second")
    assert contents("first") == contents("second")
    assert len(contents("first")) == SMALL.blob_count
    next((tmp_path / "first").rglob("*.avro")).unlink()
    SMALL.make(tmp_path / "first")
    assert len(contents("first")) == SMALL.blob_count - 1


def test_the_use_of_a_program_covers_its_processes(tmp_path: Path) -> None:
    child = "import time; data = b'x' * 80_000_000; time.sleep(0.5)"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    used = usage.run([sys.executable, "-c", parent], tmp_path)
    assert used.peak_bytes > 80_000_000
    assert used.seconds > 0.5
    assert (used.worker_bytes, used.shuffled_bytes, used.spilled_bytes) == (0, 0, 0)


def test_a_program_that_fails_is_an_error_with_its_output(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="no such world"):
        usage.run([sys.executable, "-c", "raise SystemExit('no such world')"], tmp_path)


def test_the_table_has_ratios_of_medians(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(performance, "DOCS", tmp_path)
    rounds = [
        {RECAPTURE: Usage(10, 20, 2**21, 2**20, 2**22, 0), "peer": Usage(seconds, 5, 2**20, 0, 0, 0)}
        for seconds in (1, 5, 30)
    ]
    measured = performance.medians(iter(rounds))
    assert performance.table(measured).splitlines()[2:] == [
        "| recapture backfill | 1.00 | 1.00 | 2 | 1 | 4 | 0 |",
        "| peer | 0.50 | 0.25 | 1 | 0 | 0 | 0 |",
    ]
    performance.write({"1 million": measured, "5 million": measured})
    assert (tmp_path / "results.md").read_text().count("| peer | 0.50 |") == 2
    assert "million events" in (tmp_path / "seconds.svg").read_text()


def test_a_stage_above_its_limit_is_slower_than_before() -> None:
    assert guard.slower(dict.fromkeys(guard.LIMITS, 0.01)) == []
    assert guard.slower({**guard.LIMITS, "order": guard.LIMITS["order"] + 0.01}) == ["order"]
