"""The index: a search that leaves blobs out gives the same answer as one that reads all of them."""

import os
import shutil
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recapture.definition.pipeline import Pipeline
from recapture.execute.stage import _input_tasks
from recapture.execute.tasks import run_task
from recapture.run.plan import plan_run
from recapture.table.publications import ShownEntry
from recapture.tools.events.conditions import Selection, condition
from recapture.tools.events.find import inputs_of, range_of
from recapture.tools.events.index import index_for
from recapture.tools.events.reading import EventsRead, InputToSearch, read_events
from tests.draws import slow
from tests.run.made_worlds import Made, made, put
from tests.worlds import HOUR, TELEMETRY, TEN, World, at

LATER = TEN + 1000 * HOUR
INDEXED = TELEMETRY | {"index": "deviceId"}


def note(pipeline: Pipeline, hours: int) -> dict[str, ShownEntry]:
    """Run the tasks of each hour, which note its blobs, and return the slices as if the runs were published."""
    shown: dict[str, ShownEntry] = {}
    for hour in range(hours):
        run = plan_run(pipeline, at(60 * hour), at(60 * hour + 60))
        for compiled in pipeline.query.inputs:
            tasks = _input_tasks(run, compiled, 1 << 40)
            for task in tasks.tasks:
                list(run_task(tasks.context, task))
        shown |= dict.fromkeys(run.slices, ShownEntry(run=run.id))
    return shown


def search(pipeline: Pipeline, where: str, shown: dict[str, ShownEntry] | None) -> EventsRead:
    """Return what a search of three hours finds, with the notes of these runs, or without any."""
    (compiled,) = inputs_of(pipeline, None)
    selection = Selection([condition(where, pipeline.section(compiled.alias).metadata)])
    index = None if shown is None else index_for(pipeline, compiled, selection.values, lambda: shown)
    source = InputToSearch.of(pipeline, compiled, selection.metadata)
    return read_events(source, selection, range_of(TEN, at(180)), LATER, index)


def answer(read: EventsRead) -> Any:
    return read.events.to_pylist(), read.unreadable, read.damaged, read.incomplete


@st.composite
def changes(draw: st.DrawFn) -> list[tuple[str, int, int]]:
    """Draw what happens to the archive after its blobs were noted: to which blob, and how."""
    kinds = st.sampled_from(("delete", "again", "later", "rewrite", "late copy"))
    return draw(st.lists(st.tuples(kinds, st.integers(0, 99), st.integers(0, 7000)), max_size=2))


def change(world: World, kind: str, number: int, minute: int) -> None:
    """Change a blob of the archive, or add another one with the same events."""
    blobs = sorted(world.capture.rglob("*.avro"))
    blob = blobs[number % len(blobs)]
    modified = blob.stat().st_mtime
    match kind:
        case "delete" if len(blobs) > 1:
            blob.unlink()
        case "again":
            os.utime(blob, (modified + 1, modified + 1))
        case "rewrite":
            other = blobs[minute % len(blobs)]
            blob.write_bytes(other.read_bytes())
            os.utime(blob, (modified, modified))
        case "later" | "late copy":
            copy = blob.with_name(f"{minute // 60:02}.avro")
            if not copy.exists():
                shutil.copy(blob, copy)
                when = at(minute / 60).timestamp() if kind == "late copy" else modified + 1
                os.utime(copy, (when, when))


@slow(24)
@given(made=made().filter(lambda made: bool(made.events)), changes=changes())
def test_whatever_happened_since_a_search_with_the_index_finds_what_one_without_it_finds(
    tmp_path_factory: pytest.TempPathFactory, made: Made, changes: list[tuple[str, int, int]]
) -> None:
    home = tmp_path_factory.mktemp("made")
    world = put(home, made)
    pipeline = world.define(made.query, inputs=[INDEXED], **made.job)
    shown = note(pipeline, made.hours)
    for kind, number, minute in changes:
        change(world, kind, number, minute)
    for where in ("deviceId=a", "deviceId=", "SequenceNumber=7"):
        assert answer(search(pipeline, where, shown)) == answer(search(pipeline, where, None))
    shutil.rmtree(home)
