"""A backfill publishes the rows that the simulated live job wrote, except where the truth says otherwise."""

from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from recapture.definition.pipeline import load
from recapture.execute.processes.workers import Workers
from recapture.run_files.computed import read_computed
from tests.live_job.case import Arrival, Case, Kind, draw, in_range, live_rows
from tests.live_job.faults import (
    FAULTS,
    ArchivedTwice,
    Fault,
    LateBlob,
    MissingPartition,
    draw_fault,
    draw_faults,
    inject,
)
from tests.live_job.files import row_of, write_archive, write_case
from tests.live_job.truth import both, differences
from tests.live_job.windows import Row
from tests.live_job.world import RANGE_END, RANGE_START
from tests.worlds import staged

KINDS: tuple[Kind, ...] = ("tumbling", "hopping", "filtered")
ARRIVALS: tuple[Arrival, ...] = ("BlobLastModified", "BlobLastModified", "EventEnqueuedUtcTime")
IN_THE_ARCHIVE = (ArchivedTwice.name, LateBlob.name, MissingPartition.name)
"""Names of the faults that change what a backfill reads. The others change what the live job writes."""


def drawn(seed: int) -> Case:
    """Return the case of a seed, with a query and an arrival time by turns."""
    return draw(seed, KINDS[seed % 3], ARRIVALS[seed // 3 % 3])


def backfilled(engine: "SparkSession | Workers", file: Path) -> list[Row]:
    """Return the rows that a backfill of the range stages."""
    run = staged(engine, load(file), RANGE_START, RANGE_END)
    (output,) = run.pipeline.outputs
    files = [
        file.parent / "table" / staged_file.path for staged_file in read_computed(run.files).staged_of(output.alias)
    ]
    return [row_of(record) for path in files for record in pq.read_table(path).to_pylist()]


def require_truth(case: Case, faults: list[Fault], rows: list[Row]) -> None:
    """Fail unless a backfill's rows differ from those of the live job exactly as the truth says."""
    sides = both(live_rows(inject(case, faults)), rows)
    assert {identity: pair for identity, pair in sides.items() if pair[0] != pair[1]} == {
        difference.identity: (difference.live, difference.archived) for difference in differences(case, faults)
    }


@pytest.mark.parametrize("seed", range(20))
def test_without_faults_the_rows_are_equal_and_a_fault_of_the_job_changes_those_that_the_truth_names(
    processes: Workers, tmp_path: Path, seed: int
) -> None:
    case = drawn(seed)
    rows = backfilled(processes, write_case(tmp_path, case))
    assert Counter(rows) == Counter(in_range(live_rows(case)))
    for name in FAULTS:
        fault = draw_fault(name, case, seed)
        if fault is not None and name not in IN_THE_ARCHIVE:
            require_truth(case, [fault], rows)


@pytest.mark.parametrize("seed", [20, 23, 24, 25])
@pytest.mark.parametrize("name", IN_THE_ARCHIVE)
def test_a_fault_of_the_archive_changes_the_rows_that_the_truth_names(
    processes: Workers, tmp_path: Path, name: str, seed: int
) -> None:
    case = drawn(seed)
    fault = draw_fault(name, case, seed)
    assert fault is not None
    require_truth(case, [fault], backfilled(processes, write_case(tmp_path, inject(case, [fault]))))


@pytest.mark.parametrize("seed", range(6))
def test_several_faults_change_the_rows_that_the_truth_names(processes: Workers, tmp_path: Path, seed: int) -> None:
    case = drawn(seed + 30)
    faults = draw_faults(case, seed, count=5)
    require_truth(case, faults, backfilled(processes, write_case(tmp_path, inject(case, faults))))


def test_with_enqueued_times_nothing_differs_once_a_late_blob_has_come(processes: Workers, tmp_path: Path) -> None:
    case = draw(1, "tumbling", "EventEnqueuedUtcTime")
    late = LateBlob("0", RANGE_START, RANGE_END)
    changed = inject(case, [late])
    file = write_case(tmp_path, changed)
    require_truth(case, [late], backfilled(processes, file))
    write_archive(tmp_path, changed.written_later)
    assert Counter(backfilled(processes, file)) == Counter(in_range(live_rows(changed)))


def test_sessions_are_equal_too(spark: SparkSession, processes: Workers, tmp_path: Path) -> None:
    engines: list[SparkSession | Workers] = [spark, processes, processes]
    for seed, engine in enumerate(engines):
        case = draw(seed, "session")
        home = tmp_path / str(seed)
        home.mkdir()
        rows = backfilled(engine, write_case(home, case))
        assert Counter(rows) == Counter(in_range(live_rows(case)))
        fault = draw_fault("other deadline", case, seed)
        assert fault is not None
        require_truth(case, [fault], rows)
