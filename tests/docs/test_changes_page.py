"""The page on changes: it has every key of the pipeline file, and says what `status` shows of published slices."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from recapture.definition.pipeline import load
from recapture.run.outdated import PARTS, is_outdated, parts_of
from tests.paths import ROOT
from tests.worlds import World

QUERY = """\
SELECT System.Timestamp() AS windowEnd, SUM(udf.twice(temperature)) AS total
INTO aggregates FROM telemetry TIMESTAMP BY eventTime GROUP BY TumblingWindow(minute, 5)"""
CHANGES: dict[str, Any] = {
    "name": "other",
    "slice_hours": 2,
    "engine": "spark",
    "verdicts": "table",
    "input.container": "elsewhere",
    "input.namespace": "other",
    "input.event_hub": "other",
    "input.path": "{Namespace}/{EventHub}/{PartitionId}_{Year}_{Month}_{Day}_{Hour}_{Minute}_{Second}",
    "input.capture_interval_seconds": 600,
    "input.search_hours": 24,
    "input.partitions": 8,
    "input.empty_blobs": False,
    "input.arrival_time": "EventEnqueuedUtcTime",
    "input.on_damaged_blob": "quarantine",
    "input.index": ["deviceId"],
    "input.max_blob_mib": 17,
    "input.max_block_mib": 17,
    "job.eventsOutOfOrderPolicy": "Drop",
    "job.eventsOutOfOrderMaxDelayInSeconds": 7,
    "job.eventsLateArrivalMaxDelayInSeconds": 700,
    "job.outputErrorPolicy": "Stop",
    "job.early_arrival_seconds": 301,
    "job.early_policy": "Adjust",
    "job.query": QUERY.replace("minute, 5", "minute, 10"),
    "functions.twice.script": "thrice.js",
    "functions.twice.output_type": "bigint",
    "functions.twice.argument_types": ["float"],
    "output.table": "elsewhere",
    "output.change_feed": True,
    "quality.suite": "suite.json",
    "quality.expect_rows": False,
    "approval.wait_hours": 3,
    "schedule.every_minutes": 30,
    "schedule.since": "2026-03-01T00:00:00Z",
    "schedule.until": "2026-04-01T00:00:00Z",
    "schedule.at_most_slices": 3,
    "schedule.at_most_bytes": 3,
    "schedule.quiet_minutes": 3,
    "schedule.late_data": "mark",
    "schedule.outdated": "recompute",
    "schedule.provisional": True,
    "prices.currency": "USD",
    "prices.machine_hour": 1.5,
    "prices.read_10000": 0.005,
    "prices.write_10000": 0.05,
    "prices.list_10000": 0.05,
    "prices.read_gb": 0.01,
    "notifications": [{"notifier": "a.B"}],
}
"""A change of each key."""
UNTRIED = re.compile(
    r"(input|output)(\.alias)?|functions\.NAME(\.kind)?"  # the query changes with them
    r"|input\.(format|body_format|body_compression|body_delimiter)"  # the archive would have to change with them
    r"|(output\.)?quality\.parameters|output\.quality\..*|notifications\..*"  # there are others like them
)
"""Keys of which no change is tried."""


def keys_of(cell: str) -> list[str]:
    """Return the keys of the pipeline file in the first cell of a row."""
    return [name for name in re.findall(r"`([^`]+)`", cell) if not name.startswith("--")]


def rows() -> Iterator[tuple[list[str], str]]:
    """Yield the keys of each change, and what its slices are shown as."""
    page = (ROOT / "docs/changes.md").read_text("utf-8")
    table = page.split("## What must be recomputed", 1)[1].split("\nTo compute", 1)[0]
    for line in table.splitlines():
        if line.startswith("| `"):
            change, shown, *_ = (cell.strip() for cell in line.strip("|").split(" | "))
            yield keys_of(change), shown


def test_the_page_has_every_key_of_the_pipeline_file() -> None:
    table = (ROOT / "docs/pipeline.md").read_text("utf-8").split("| key | meaning |", 1)[1].split("\n\n", 1)[0]
    keys = {key for line in table.splitlines() for key in keys_of(line.strip("|").split("|")[0])}
    on_the_page = {key for names, _ in rows() for key in names}
    assert keys - {"input", "output", "functions.NAME"} - on_the_page == set()
    tried = {key.replace(".twice.", ".NAME.") for key in CHANGES}
    assert {key for key in on_the_page if not UNTRIED.fullmatch(key)} == tried


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    for name in ("twice", "thrice"):
        (tmp_path / f"{name}.js").write_text(f"function main(x) {{ return {name.count('w') + 1} * x; }}")
    world.write_suite({"type": "expect_column_to_exist", "kwargs": {"column": "total"}}, name="suite")
    return world


@pytest.mark.parametrize("key", CHANGES)
def test_a_change_of_a_key_makes_slices_outdated_as_the_page_says(world: World, key: str) -> None:
    before = parts_of(world.define(QUERY, functions={"twice": {"script": "twice.js", "output_type": "float"}}))
    *path, last = key.split(".")
    sections = world.sections()
    section = sections
    for name in path:
        section = section.setdefault(name, {})
    section[last] = CHANGES[key]
    world.amend(**sections)
    after = parts_of(load(world.file))
    differing = [name for name in PARTS if before[name] != after[name]]
    shown = [text for names, text in rows() if key.replace(".twice.", ".NAME.") in names]
    outdated = set()
    for text in shown:
        if text.startswith("outdated: "):
            outdated |= set(text.removeprefix("outdated: ").split(", if ")[0].split(", "))
    assert set(differing) == outdated
    assert is_outdated(differing) is bool(outdated)
