"""Other programs that write to the tables: what status says, what the next run does, and what a reader then reads.

Strangers use the API of delta-rs. Commits of Databricks, with deletion vectors, are written by hand.
"""

import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from recapture.definition.pipeline import Pipeline
from recapture.errors import DefinitionError, RunError
from recapture.execute.processes.compute import compute
from recapture.execute.processes.workers import workers
from recapture.run.plan import plan_run
from recapture.run.rollback import rollback
from recapture.run.status import status
from recapture.run_files.computed import read_computed
from recapture.run_files.contents import AUDIT
from recapture.run_files.planned import PlannedRun
from recapture.tools.reports.changes import changes
from recapture.tools.reports.document import document
from recapture.tools.reports.sources import of_range, of_run
from tests.commands import Command
from tests.stages import audit, publish, staged_rows
from tests.table import strangers
from tests.table.strangers import STRANGERS
from tests.worlds import TEN, World, at, body, published, steady

SLICES = ["2024-03-01T10:00:00Z", "2024-03-01T11:00:00Z"]
Backfill = Callable[[Pipeline], PlannedRun]


@pytest.fixture(scope="module")
def backfill(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backfill]:
    """Run every stage of the two hours, as the command does."""
    with workers(1) as processes:

        def call(pipeline: Pipeline) -> PlannedRun:
            run = plan_run(pipeline, TEN, at(120))
            compute(processes, run, tmp_path_factory.mktemp("scratch"))
            audit(run)
            publish(run)
            return run

        yield call


@pytest.fixture(scope="module")
def archive(backfill: Backfill, tmp_path_factory: pytest.TempPathFactory) -> World:
    """Two published hours, and a copy of their tables."""
    world = steady(tmp_path_factory.mktemp("foreign"), hours=2, partitions=1)
    backfill(world.define())
    for table in world.home.glob("table*"):
        shutil.copytree(table, world.home / "published" / table.name)
    return world


@pytest.fixture
def world(archive: World) -> Iterator[World]:
    """The two hours as they were published. A late blob of a test is removed after it."""
    for table in archive.home.glob("table*"):
        shutil.rmtree(table)
    shutil.copytree(archive.home / "published", archive.home, dirs_exist_ok=True)
    blobs = set(archive.capture.rglob("*.avro"))
    yield archive
    for blob in set(archive.capture.rglob("*.avro")) - blobs:
        blob.unlink()


def another(world: World) -> None:
    """Let a late blob arrive, so that the next run is another one; no number is missing for it."""
    world.put("0", at(20), [body("late", at(18))], 96, opened=at(14))


def same(world: World) -> None:
    """Leave the archive as it is, so that the next run is the same one."""


def read(world: World) -> list[dict[str, Any]]:
    return published(world.table, "slice_start, 1, 2")


def staged(run: PlannedRun) -> list[dict[str, Any]]:
    rows = staged_rows(run, run.pipeline.outputs[0])
    order = ["slice_start", *rows.column_names[:2]]
    sorted_rows: list[dict[str, Any]] = rows.sort_by([(name, "ascending") for name in order]).to_pylist()
    return sorted_rows


def problems(world: World) -> list[tuple[str, str, list[str]]]:
    """Return what status says is wrong: the table, the problem and the slices."""
    return [
        (problem["table"].rsplit("/", 1)[-1], problem["problem"], problem["slices"])
        for problem in status(world.define())["problems"]
    ]


@pytest.mark.parametrize("then", [same, another])
@pytest.mark.parametrize(
    ("stranger", "problem"),
    [
        ("append", "holds rows that another program added"),
        ("compact", "holds other rows"),
        ("z_order", "holds other rows"),
        ("delete_rows", "holds other rows"),
        ("delete_slice", "holds nothing"),
        ("update", "holds other rows"),
        ("overwrite", "holds other rows"),
        ("restore", "holds nothing"),
        ("lose_log", "holds nothing"),
        ("delete_with_vector", "lacks rows that another program deleted"),
        ("lose_file", "has lost a file, perhaps to a vacuum"),
        ("empty_file", "has an empty file"),
        ("truncate_file", "has a file of the wrong size"),
        ("flip_bytes", None),  # status compares sizes only
        ("checkpoint_and_clean", None),
        ("vacuum", None),
        ("lose_run_files", None),
        ("feed_changes", None),
    ],
)
def test_status_sees_what_another_program_did_and_the_next_run_restores_what_is_published(
    world: World,
    backfill: Backfill,
    stranger: str,
    problem: str | None,
    then: Callable[[World], None],
) -> None:
    before = read(world)
    STRANGERS[stranger](world.table)
    said = [(table, what) for table, what, slices in problems(world) if SLICES[0] in slices]
    assert said == ([] if problem is None else [("table", problem)])
    then(world)
    run = backfill(world.define())
    assert problems(world) == []
    assert read(world) == staged(run)
    assert (read(world) == before) == (then is same)
    strangers.require_protocol(world.table)


def test_the_command_says_what_is_wrong_and_what_to_do(world: World, command: Command) -> None:
    strangers.append(world.table)
    printed = command.text("status", world.file).splitlines()
    (row,) = (line for line in printed if SLICES[0] in line and "│" in line)
    assert [cell.strip() for cell in row.split("│")[1:4]] == [SLICES[0], "problem", "published"]
    assert [line for line in printed if line.startswith("problem:")] == [
        f"problem: {world.table.as_uri()} holds rows that another program added: slice {SLICES[0]}; backfill again, or "
        "repeat an interrupted backfill or rollback, to restore what is published"
    ]


def test_the_report_of_a_range_does_not_trust_rows_that_another_program_changed(world: World) -> None:
    STRANGERS["update"](world.table)
    content = document(of_range(world.define(), None, None))
    assert content["verdict"]["level"] == "bad"
    assert f"{world.table.as_uri()} holds other rows (" in content["verdict"]["sentence"]


def test_rows_of_slices_that_nothing_publishes_are_seen_and_stay(world: World, backfill: Backfill) -> None:
    for slice_start in ("2024-03-01 12:00:00", "2024-03-01 10:07:31.5"):
        strangers.append(world.table, slice_start)
    strangers.append(world.table, None)
    unpublished = ["2024-03-01T10:07:31.500000Z", "2024-03-01T12:00:00Z", "null"]
    for _ in range(2):
        assert problems(world) == [("table", "holds rows, but nothing is published", unpublished)]
        backfill(world.define())


def test_a_lost_metrics_table_is_seen_and_written_again(world: World, backfill: Backfill) -> None:
    before = published(world.home / "table_metrics", "slice_start, metric, partition")
    STRANGERS["lose_table"](world.home / "table_metrics")
    assert problems(world) == [("table_metrics", "holds nothing", SLICES)]
    backfill(world.define())
    assert problems(world) == []
    assert published(world.home / "table_metrics", "slice_start, metric, partition") == before


def test_a_column_that_another_program_added_stays_and_holds_null(world: World, backfill: Backfill) -> None:
    before = read(world)
    strangers.add_column(world.table)
    another(world)
    backfill(world.define())
    assert problems(world) == []
    rows = read(world)
    assert len(rows) > len(before)
    assert {row["more"] for row in rows} == {None}


def test_a_table_that_became_append_only_is_refused_before_anything_is_computed(
    world: World, backfill: Backfill
) -> None:
    before = read(world)
    strangers.set_property(world.table, "delta.appendOnly", "true")
    ((table, problem, slices),) = problems(world)
    assert (table, slices) == ("table", [])
    assert problem.endswith(
        "/table is append-only, so its slices cannot be replaced: unset its property delta.appendOnly, or publish to "
        "another table"
    )
    another(world)
    runs = sorted(path.name for path in world.table.glob("_recapture/*"))
    with pytest.raises(DefinitionError) as raised:
        backfill(world.define())
    assert str(raised.value) == problem
    assert sorted(path.name for path in world.table.glob("_recapture/*")) == runs
    assert read(world) == before
    strangers.set_property(world.table, "delta.appendOnly", "false")
    assert staged(backfill(world.define())) == read(world) != before


@pytest.mark.parametrize("then", [same, another])
@pytest.mark.parametrize("stranger", ["lose_table", "lose_log", "restore"])
def test_slices_whose_publications_are_lost_are_seen_and_published_anew_without_their_past(
    world: World, backfill: Backfill, stranger: str, then: Callable[[World], None]
) -> None:
    STRANGERS[stranger](world.home / "table_publications")
    assert status(world.define())["slices"] == []
    lost = "holds rows, but nothing is published"
    assert problems(world) == [("table", lost, SLICES), ("table_metrics", lost, SLICES)]
    then(world)
    run = backfill(world.define())
    assert problems(world) == []
    assert read(world) == staged(run)
    rollback(world.define(), TEN, at(120))
    assert read(world) == []


@pytest.mark.parametrize("then", [same, another])
@pytest.mark.parametrize(
    ("stranger", "problem"),
    [("lose_file", "has lost a file, perhaps to a vacuum"), ("empty_file", "has an empty file")],
)
def test_a_slice_whose_entry_is_lost_can_be_forgotten_and_published_anew(
    world: World, backfill: Backfill, stranger: str, problem: str, then: Callable[[World], None]
) -> None:
    before, publications = read(world), world.home / "table_publications"
    STRANGERS[stranger](publications)
    assert problems(world) == [("table_publications", problem, SLICES[:1])]
    then(world)
    with pytest.raises(
        RunError, match=rf"the entry of slice {SLICES[0]}: restore the file, or delete the row of the slice and"
    ):
        backfill(world.define())
    assert read(world) == before
    STRANGERS["delete_slice"](publications)
    assert [slice_["slice_start"] for slice_ in status(world.define())["slices"]] == SLICES[1:]
    run = backfill(world.define())
    assert problems(world) == []
    assert read(world) == staged(run)


def test_an_entry_that_a_deletion_vector_hides_is_seen_and_shown_again(world: World, backfill: Backfill) -> None:
    publications = world.home / "table_publications"
    before = published(publications, "slice_start")
    strangers.delete_with_vector(publications, (0,))
    assert problems(world) == [("table_publications", "lacks rows that another program deleted", SLICES[:1])]
    backfill(world.define())
    assert problems(world) == []
    assert published(publications, "slice_start") == before


def test_two_entries_of_a_slice_are_seen_and_refused(world: World, backfill: Backfill) -> None:
    strangers.append(world.home / "table_publications")
    seen = ("table_publications", "holds rows that another program added", SLICES[:1])
    assert seen in problems(world)
    with pytest.raises(RunError, match=rf"has 2 entries for slice {SLICES[0]}, .*; restore its previous version"):
        backfill(world.define())


@pytest.mark.parametrize("stranger", ["lose_file", "empty_file", "flip_bytes"])
def test_a_report_does_not_compare_rows_with_a_lost_or_damaged_file(
    world: World, backfill: Backfill, stranger: str
) -> None:
    STRANGERS[stranger](world.table)
    another(world)
    run = backfill(world.define())
    source = of_run(run, read_computed(run.files), run.files.read(AUDIT), ())
    (output,) = changes(source)["outputs"]
    assert (output["slices"]["unreadable"], output["slices"]["equal"]) == (1, 1)
