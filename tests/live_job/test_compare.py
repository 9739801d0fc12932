"""`recapture compare` names the reason that the truth has for every row, if it has a reason of that kind."""

from datetime import timedelta
from pathlib import Path

import pytest

from recapture.definition.pipeline import load
from recapture.execute.processes.workers import Workers
from tests.commands import Command
from tests.live_job.case import Case, Kind, draw, live_rows
from tests.live_job.faults import (
    EnqueuedArrival,
    Fault,
    LastDigits,
    MissingPartition,
    OtherQuery,
    RowOrder,
    SmallerTolerance,
    WrittenTwice,
    draw_fault,
    inject,
)
from tests.live_job.files import write_archive, write_live, write_pipeline
from tests.live_job.truth import Difference, differences
from tests.live_job.world import RANGE_END, RANGE_START
from tests.worlds import World, backfill, lenient

RANGE = ("--from", f"{RANGE_START:%Y-%m-%dT%H:%M:%SZ}", "--to", f"{RANGE_END:%Y-%m-%dT%H:%M:%SZ}")
WORDS = {
    WrittenTwice.name: "duplicates",
    LastDigits.name: "last digits",
    SmallerTolerance.name: "a late tolerance of ",
    OtherQuery.name: "the query in ",
    EnqueuedArrival.name: "arrival by enqueued time",
    MissingPartition.name: "hole in the archive",
}
"""What a reason says of a fault."""
TOGETHER: tuple[tuple[Kind, int, tuple[str, ...]], ...] = (
    ("tumbling", 0, ()),
    ("tumbling", 105, (SmallerTolerance.name, OtherQuery.name, WrittenTwice.name, RowOrder.name)),
    ("hopping", 103, (SmallerTolerance.name, EnqueuedArrival.name, LastDigits.name, RowOrder.name)),
    ("filtered", 101, (EnqueuedArrival.name, OtherQuery.name, WrittenTwice.name)),
    ("hopping", 106, (LastDigits.name, WrittenTwice.name, MissingPartition.name)),
)
"""Queries and seeds of worlds, with the faults that happen together."""


@pytest.mark.parametrize(("kind", "seed", "names"), TOGETHER)
def test_every_difference_has_a_reason_that_is_true(
    processes: Workers, command: Command, tmp_path: Path, kind: Kind, seed: int, names: tuple[str, ...]
) -> None:
    case = draw(seed, kind)
    faults = [fault for name in names if (fault := draw_fault(name, case, seed)) is not None]
    assert len(faults) == len(names)
    write(processes, tmp_path, inject(case, faults))
    found = command.json(
        "compare", tmp_path / "telemetry.yaml", *RANGE, "--live", tmp_path / "live", *settings(tmp_path, case, faults)
    )
    truth = differences(case, faults)
    assert (found["different"], bool(found["reasons"])) == (len(truth), bool(names))
    for slice_ in found["by_slice"]:
        slice_differences = [difference for difference in truth if slice_start(difference) == slice_["slice_start"]]
        assert sum(slice_["reasons"].values()) == len(slice_differences)
        for reason, count in slice_["reasons"].items():
            assert count <= sum(is_true(reason, difference) for difference in slice_differences)


def slice_start(difference: Difference) -> str:
    """Return the start of the slice (start, end] of a row, as the command prints it."""
    end, _ = difference.identity
    return f"{end - timedelta(microseconds=1):%Y-%m-%dT%H:00:00Z}"


def is_true(reason: str, difference: Difference) -> bool:
    """Return whether a set of faults that makes the difference has all faults of a reason."""
    named = {fault for fault, words in WORDS.items() if words in reason}
    return bool(named) and any(named <= faults for faults in difference.reasons)


def write(processes: Workers, home: Path, case: Case) -> None:
    """Write the archive and the live job's output, and publish the range."""
    suite = lenient(World(home))
    write_archive(home, case.archive)
    write_live(home / "live", live_rows(case), "parquet")
    file = write_pipeline(home, case, quality={"suite": suite})
    backfill(processes, load(file), RANGE_START, RANGE_END)


def settings(home: Path, case: Case, faults: list[Fault]) -> list[str]:
    """Return the options that tell the command what the live job had instead of the pipeline's settings."""
    live = inject(case, faults).live
    options = []
    if live.policy != case.policy:
        options += ["--late", str(live.policy.late.seconds)]
    if live.query != case.query:
        (home / "live.asaql").write_text(live.query.text)
        options += ["--query", str(home / "live.asaql")]
    return options
