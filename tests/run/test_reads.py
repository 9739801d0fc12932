"""How often a command reads its run files: the stages hand their values on."""

import re
from collections import Counter
from pathlib import Path

import pytest

from recapture import cli
from recapture.storage.folder import FolderContainer
from tests.commands import FIRST_HOUR
from tests.worlds import World, at, body

RUN = re.compile(r"_recapture/[^/]+Z-[0-9a-f]{12}/")
TASK = "telemetry/20240301T100000Z/0"
ONCE = {
    **{f"counters/{TASK}.json": 1, f"profiles/{TASK}.parquet": 1, "profile.parquet": 1},
    **{"counters/ listed": 1, "profiles/ listed": 1},
}
"""What other processes write, and the profile, which is not kept in memory; and what is listed to be removed."""


@pytest.fixture
def world(tmp_path: Path) -> World:
    """An hour with events that are quarantined."""
    world = World(tmp_path)
    world.put("0", at(12), [body("a", at(9)), body("b", at(8)), b"no JSON"])
    world.put("0", at(90))
    world.define()
    return world


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """The numbers of reads and listings of each run file in this process; workers are other processes."""
    counts: Counter[str] = Counter()
    read_current, listed = FolderContainer.read_current, FolderContainer.list

    def counted_read(container: FolderContainer, name: str) -> bytes | None:
        counts[RUN.sub("", name)] += bool(RUN.match(name))
        return read_current(container, name)

    def counted_list(container: FolderContainer, prefix: str = "") -> object:
        counts[f"{RUN.sub('', prefix)} listed"] += bool(RUN.match(prefix))
        return listed(container, prefix)

    monkeypatch.setattr(FolderContainer, "read_current", counted_read)
    monkeypatch.setattr(FolderContainer, "list", counted_list)
    return counts


def test_a_backfill_reads_no_run_file_again_except_the_quarantine(world: World, reads: Counter[str]) -> None:
    assert cli.main(["backfill", str(world.file), *FIRST_HOUR]) == 0
    assert +reads == ONCE | {f"quarantine/{TASK}.parquet": 3, "cost.json": 4}, (
        "the audit shows an event of the quarantine, the publication copies it, and the report shows examples; three "
        "stages add what they took, and the command says it"
    )


def test_a_run_that_its_audit_stops_is_reported_without_reading_what_was_just_written(
    world: World, reads: Counter[str]
) -> None:
    world.put("0", at(11), [b"no JSON"] * 50, 10)
    assert cli.main(["backfill", str(world.file), *FIRST_HOUR]) == 1
    assert +reads == ONCE | {f"quarantine/{TASK}.parquet": 2, "cost.json": 2, "approval.json": 1}


def test_the_report_of_a_range_reads_each_run_file_once(world: World, reads: Counter[str], tmp_path: Path) -> None:
    assert cli.main(["backfill", str(world.file), *FIRST_HOUR]) == 0
    reads.clear()
    assert cli.main(["report", str(world.file), *FIRST_HOUR, "--out", str(tmp_path / "report.html")]) == 0
    assert +reads == {"audit.json": 1, "manifest.json": 1, "metrics.json": 1, "profile.parquet": 1}
