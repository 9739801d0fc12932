"""The index: a search that leaves blobs out gives the same answer as one that reads all of them."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recapture.definition.pipeline import Pipeline, load
from recapture.execute.stage import _input_tasks
from recapture.execute.tasks import run_task
from recapture.run.plan import plan_run
from recapture.table.publications import ShownEntry
from recapture.tools.events.conditions import Selection, condition
from recapture.tools.events.find import inputs_of, range_of
from recapture.tools.events.index import index_for
from recapture.tools.events.reading import EventsRead, InputToSearch, read_events
from tests.commands import Command
from tests.draws import slow
from tests.run.made_worlds import Made, made, put
from tests.worlds import HOUR, TELEMETRY, TEN, World, at, body, published, steady

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


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Two hours of two partitions, each with its own devices, published with an index."""
    world = steady(tmp_path)
    world.define(inputs=[INDEXED])
    return world


TWO_HOURS = ("--from", "2024-03-01T10:00Z", "--to", "2024-03-01T12:00Z")
A_DEVICE = (*TWO_HOURS, "--where", "deviceId=device-0-1")


def without_index(world: World, command: Command, *arguments: object) -> Any:
    """Return what a command answers if the pipeline file has no index."""
    indexed = world.sections()["input"]
    world.amend(input=TELEMETRY)
    answered = command.json(*arguments)
    world.amend(input=indexed)
    return answered


def read(found: Any) -> tuple[int, dict[str, int]]:
    """Return how many blobs were skipped, and why the others were read."""
    (input_,) = found["inputs"]
    return input_["index"]["skipped_blobs"], input_["index"]["read_because"]


def test_find_and_explain_skip_the_blobs_that_do_not_hold_the_key(world: World, command: Command) -> None:
    assert "index for find and explain: deviceId" in command.text("plan", world.file, *TWO_HOURS)
    command.run("backfill", world.file, *TWO_HOURS)
    found = command.json("find", world.file, *A_DEVICE)
    assert read(found) == (24, {"may_hold": 24, "not_noted": 25})
    assert found["events"] == without_index(world, command, "find", world.file, *A_DEVICE)["events"] != []
    last = command.text("find", world.file, *A_DEVICE).splitlines()[-1]
    assert last.startswith("the index on deviceId: skipped 24 blobs (")
    assert last.endswith(" bytes); read 24 that may hold the key, 25 that no published run has noted")
    explained = command.json("explain", world.file, *A_DEVICE)
    assert read(explained)[0] == 24
    assert explained["events"] == without_index(world, command, "explain", world.file, *A_DEVICE)["events"]
    end = next(row["windowEnd"] for row in published(world.table) if row["deviceId"] == "device-0-1")
    row = ("explain", world.file, "--row", f"windowEnd={end.isoformat()},deviceId=device-0-1")
    made = command.json(*row)
    assert read(made)[0] > 0
    assert {**made, "inputs": None} == {**without_index(world, command, *row), "inputs": None}


def test_a_blob_that_changed_is_read_and_so_are_all_after_another_definition(world: World, command: Command) -> None:
    command.run("backfill", world.file, *TWO_HOURS)
    world.put("1", at(10 + 1 / 60), [body("device-0-1", at(9))], 1000, at(5 + 1 / 60))
    found = command.json("find", world.file, *A_DEVICE)
    assert read(found)[1] == {"changed": 1, "may_hold": 24, "not_noted": 25}
    assert [event["blob"] for event in found["events"] if event["partition"] == "1"]
    world.amend(job=world.sections()["job"] | {"eventsLateArrivalMaxDelayInSeconds": 60})
    assert read(command.json("find", world.file, *A_DEVICE))[1] == {"not_noted": 25, "other_definition": 48}


def test_an_index_that_a_search_cannot_use_says_why(world: World, command: Command) -> None:
    found = command.json("find", world.file, *TWO_HOURS, "--where", "temperature=20")
    assert found["inputs"][0]["index"]["not_used_because"] == "no condition names one of its keys, spelt alike"
    explained = command.json("explain", world.file, *TWO_HOURS, "--event", "0/100")
    because = explained["inputs"][0]["index"]["not_used_because"]
    assert because.startswith("each deviceId has a watermark of its own (OVER), and no condition names it")


def test_an_event_is_explained_from_the_blob_that_has_its_number(world: World, command: Command) -> None:
    query = "SELECT deviceId, temperature INTO aggregates FROM telemetry TIMESTAMP BY eventTime"
    world.define(query, inputs=[INDEXED])
    command.run("backfill", world.file, *TWO_HOURS)
    explain = ("explain", world.file, *TWO_HOURS, "--event", "0/200")
    explained = command.json(*explain)
    assert read(explained) == (23, {"may_hold": 1, "not_noted": 13})
    assert explained["events"] == without_index(world, command, *explain)["events"]


@pytest.mark.parametrize(
    "bodies",
    [
        [b'{"deviceId": "a", "n": 5.0}', b'{"deviceId": "b", "n": "5"}', b'{"deviceId": "c", "n": 50e-1}'],
        [b'{"deviceId": "a", "N": 5}', b'{"deviceId": "\\u0061", "n": {"x": 1}}', b'[{"deviceId": "b", "n": 5}]'],
        [b'{"deviceId": "a", "n": 5, "temperature": "warm"}', b'{"deviceId": "a", "n": "5'],
        [
            b'{"deviceId": "a", "n": 1e20}',
            b'{"deviceId": "b", "n": 9007199254740993.0}',
            b'{"deviceId": "c", "n": "\\uffff5"}',
        ],
    ],
    ids=["spellings", "shapes", "malformed", "large"],
)
@pytest.mark.parametrize("query", ["temperature", "n", "n, temperature + 1 AS t"])
def test_a_value_is_noted_as_a_search_reads_it(tmp_path: Path, bodies: list[bytes], query: str) -> None:
    world = World(tmp_path)
    for number, content in enumerate(bodies):
        world.put("0", at(5 + 5 * number), [content], number)
    pipeline = world.define(f"SELECT {query} INTO aggregates FROM telemetry", inputs=[TELEMETRY | {"index": ["n"]}])
    shown = note(pipeline, 1)
    for where in ("n=5", "n=5.0", 'n={"x":1}', "n=1e20", "n=9007199254740992.0", "n=\uffff5", "n=6"):
        assert answer(search(pipeline, where, shown)) == answer(search(pipeline, where, None))
    assert search(pipeline, "n=6", shown).skipped


def test_a_key_that_is_spelt_otherwise_is_looked_for_in_every_blob(tmp_path: Path) -> None:
    """Of two fields whose names differ only in case, each spelling finds its own."""
    world = World(tmp_path)
    world.put("0", at(5), [b'{"n": 1, "N": 2}'])
    query = "SELECT n INTO aggregates FROM telemetry"
    pipeline = world.define(query, inputs=[TELEMETRY | {"index": "n"}])
    shown = note(pipeline, 1)
    assert search(pipeline, "n=2", shown).skipped
    assert search(pipeline, "N=2", shown).events.num_rows == 1
    respelt = world.define(query, inputs=[TELEMETRY | {"index": "N"}])
    assert search(respelt, "N=2", shown).events.num_rows == 1


def test_an_index_changes_neither_the_run_nor_its_rows(world: World) -> None:
    run = plan_run(load(world.file), TEN, at(120))
    world.amend(input=TELEMETRY)
    assert plan_run(load(world.file), TEN, at(120)).id == run.id


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (None, "write a key such as deviceId, or remove the key"),
        ([], "write a key such as deviceId, or remove the key"),
        ("PartitionId", "PartitionId needs no index: name fields of the body, or metadata of the device"),
        ("Offset", "Offset needs no index"),
        (["deviceId", "site."], "'site.' names no field: write it as deviceId or site.id"),
        (7, "should be"),
    ],
)
def test_a_key_that_cannot_be_noted_is_refused(world: World, index: object, message: str, command: Command) -> None:
    world.amend(input=TELEMETRY | {"index": index})
    assert message in command.error("plan", world.file, *TWO_HOURS)
