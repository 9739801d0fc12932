"""Publishing: one commit a table replaces exactly the slices of a run, or takes them back."""

import json
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from embedded.azurite import Azurite
from spark_jobs import publish
from spark_jobs.errors import DefinitionError, RunError
from spark_jobs.publish import Change, Holding, Note
from spark_jobs.query.model import AsaType, OutputColumn
from spark_jobs.runs import parquet
from spark_jobs.storage import delta_storage_options, delta_table_uri, open_container

OUTPUT = (OutputColumn("device", AsaType.TEXT), OutputColumn("events", AsaType.BIGINT))
NINE, TEN, ELEVEN = (f"2024-03-01T{hour:02}:00:00Z" for hour in (9, 10, 11))


@dataclass(frozen=True)
class Table:
    """A place for a table, and the calls that these tests make."""

    url: str

    @property
    def described(self) -> publish.Table:
        return publish.Table(self.url, OUTPUT)

    def stage(self, slice_start: str, **counts: int) -> Holding:
        """Write a file of one row for each device, which are its input too; nobody sees it yet."""
        rows = pa.table({"device": list(counts), "events": pa.array(counts.values(), pa.int64())})
        content = parquet(rows)
        path = f"slice_start={slice_start.replace(':', '').replace('-', '')}/{uuid.uuid4().hex}.parquet"
        open_container(self.url).create(path, content)
        return Holding(slice_start, path, len(content), rows.num_rows, f"input of {counts}")

    def publish(self, *holdings: Holding, run: str = "run", quality: str = "passed") -> Change:
        metrics = {holding.slice_start: {"InputEvents": 7} for holding in holdings}
        return publish.publish(self.described, holdings, Note(run, quality, "manifest digest", "query digest", metrics))

    def rollback(self, *slices: str) -> None:
        publish.rollback([self.described], slices, "rollback")

    def open(self) -> DeltaTable:
        return DeltaTable(delta_table_uri(self.url), storage_options=delta_storage_options(self.url))

    def rows(self) -> dict[str, dict[str, int]]:
        """What a reader sees: by slice, events by device."""
        reader = QueryBuilder().register("t", self.open())
        read = pa.table(
            reader.execute("SELECT slice_start, device, events FROM t ORDER BY slice_start, device").read_all()
        )
        found: dict[str, dict[str, int]] = {}
        for row in read.to_pylist():
            found.setdefault(f"{row['slice_start']:%Y-%m-%dT%H:%M:%SZ}", {})[row["device"]] = row["events"]
        return found


@pytest.fixture(params=["folder", "azure"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    """A place on each kind of storage."""
    if request.param == "folder":
        return Table((tmp_path / "table").as_uri())
    return _on_azure(request.getfixturevalue("azurite"), request.getfixturevalue("monkeypatch"))


def _on_azure(azurite: Azurite, monkeypatch: pytest.MonkeyPatch) -> Table:
    from azure.storage.blob import ContainerClient

    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", azurite.connection_string)
    name = f"test-{uuid.uuid4().hex}"
    ContainerClient.from_connection_string(azurite.connection_string, name).create_container()
    return Table(f"{azurite.url}/{name}/curated/table")


def test_one_commit_replaces_exactly_its_slices(table: Table) -> None:
    first = table.publish(*(table.stage(hour, a=1) for hour in (NINE, TEN, ELEVEN)))
    assert first == Change(table.open().version(), (NINE, TEN, ELEVEN))
    second = table.publish(table.stage(NINE, b=2), table.stage(TEN, b=3))
    assert second == Change(table.open().version(), (NINE, TEN))
    assert second.version == first.version + 1
    assert table.rows() == {NINE: {"b": 2}, TEN: {"b": 3}, ELEVEN: {"a": 1}}


def test_publishing_what_is_held_already_adds_no_version(table: Table) -> None:
    holdings = [table.stage(NINE, a=1), table.stage(TEN, a=1)]
    first = table.publish(*holdings)
    assert table.publish(*holdings) == Change(first.version, ())
    assert table.open().version() == first.version


def test_only_the_slices_that_changed_are_committed(table: Table) -> None:
    unchanged = table.stage(NINE, a=1)
    table.publish(unchanged, table.stage(TEN, a=1))
    table.publish(unchanged, table.stage(TEN, a=2))
    assert [holding.slice_start for holding in publish.history(table.url)[-1].slices] == [TEN]
    assert table.rows() == {NINE: {"a": 1}, TEN: {"a": 2}}


def test_a_slice_without_rows_replaces_the_rows_of_before(table: Table) -> None:
    table.publish(table.stage(NINE, a=1), table.stage(TEN, a=1))
    table.publish(table.stage(NINE))
    assert table.rows() == {TEN: {"a": 1}}
    assert set(publish.current(table.url)) == {NINE, TEN}


def test_a_staged_file_is_not_seen_before_the_commit(table: Table) -> None:
    table.publish(table.stage(NINE, a=1))
    held = table.open().file_uris()
    staged = table.stage(TEN, a=1)
    assert table.open().file_uris() == held
    assert table.rows() == {NINE: {"a": 1}}
    table.publish(staged)
    assert table.rows() == {NINE: {"a": 1}, TEN: {"a": 1}}


def test_rollback_gives_back_what_was_before_and_again_what_was_before_that(table: Table) -> None:
    for events in (1, 2, 3):
        table.publish(table.stage(NINE, a=events), table.stage(TEN, a=events))
    table.rollback(NINE)
    assert table.rows() == {NINE: {"a": 2}, TEN: {"a": 3}}
    table.rollback(NINE)
    assert table.rows() == {NINE: {"a": 1}, TEN: {"a": 3}}
    table.rollback(NINE)
    assert table.rows() == {TEN: {"a": 3}}
    assert list(publish.current(table.url)) == [TEN]
    with pytest.raises(RunError, match=NINE):
        table.rollback(NINE)


def test_what_was_rolled_back_can_be_published_again(table: Table) -> None:
    old, new = table.stage(NINE, a=1), table.stage(NINE, a=2)
    table.publish(old)
    table.publish(new)
    table.rollback(NINE)
    assert table.publish(old).slices == ()
    assert table.publish(new).slices == (NINE,)
    assert table.rows() == {NINE: {"a": 2}}


def test_rollback_to_a_file_that_was_removed_is_refused_and_changes_nothing(table: Table) -> None:
    before = table.stage(NINE, a=1)
    table.publish(before)
    version = table.publish(table.stage(NINE, a=2)).version
    assert before.path is not None
    open_container(table.url).delete(before.path)
    with pytest.raises(RunError, match=r"held before, is gone .* backfill the slice again"):
        table.rollback(NINE)
    assert table.open().version() == version


def test_a_slice_remembers_its_last_ten_publications(table: Table) -> None:
    for number in range(13):
        table.publish(table.stage(NINE, a=number))
    for number in range(11, 1, -1):
        table.rollback(NINE)
        assert table.rows() == {NINE: {"a": number}}
    table.rollback(NINE)
    assert publish.current(table.url) == {}, "what lies further back is not known any more"


def test_rolling_back_a_slice_that_was_never_published_is_refused_and_changes_nothing(table: Table) -> None:
    table.publish(table.stage(NINE, a=1))
    version = table.open().version()
    with pytest.raises(RunError, match=f"nothing is published for slice {TEN}"):
        table.rollback(NINE, TEN)
    assert table.open().version() == version


def test_a_query_with_other_columns_is_refused(table: Table) -> None:
    table.publish(table.stage(NINE, a=1))
    others = (OutputColumn("device", AsaType.TEXT), OutputColumn("events", AsaType.FLOAT))
    other = publish.Table(table.url, others)
    with pytest.raises(DefinitionError, match="events is long there and double here"):
        publish.require_columns(other)
    with pytest.raises(DefinitionError, match="events is long"):
        publish.publish(other, [table.stage(TEN, a=1)], Note("run", "passed", "", "", {}))
    assert table.rows() == {NINE: {"a": 1}}


def test_a_commit_tells_its_run_slices_digests_and_metrics(table: Table) -> None:
    table.publish(table.stage(NINE, a=1), run="run-1", quality="passed with warnings")
    held = table.stage(NINE, a=2)
    version = table.publish(held, run="run-2").version
    told = json.loads(table.open().history(1)[0][publish.METADATA])
    assert told["run"] == "run-2"
    assert told["manifest"] == "manifest digest"
    assert told["query"] == "query digest"
    assert told["metrics"] == {NINE: {"InputEvents": 7}}
    assert [(each["slice_start"], each["path"], each["digest"]) for each in told["slices"]] == [
        (NINE, held.path, "input of {'a': 2}")
    ]
    holding, commit = publish.current(table.url)[NINE]
    assert (commit.version, commit.run, commit.quality, holding.rows) == (version, "run-2", "passed", 1)
    assert publish.history(table.url)[0].quality == "passed with warnings"


def test_another_file_of_the_same_input_takes_the_place_of_the_first(table: Table) -> None:
    table.publish(table.stage(NINE, a=1))
    table.publish(table.stage(NINE, a=2))
    assert table.publish(table.stage(NINE, a=2)).slices == (NINE,)
    table.rollback(NINE)
    assert table.rows() == {NINE: {"a": 1}}


def test_the_log_which_says_what_slices_hold_is_kept_for_good(table: Table) -> None:
    table.publish(table.stage(NINE, a=1))
    assert table.open().metadata().configuration == publish.KEPT_LOG


@dataclass(frozen=True)
class Tables:
    """Two tables to which every run publishes, the first one first."""

    first: Table
    second: Table

    def publish(self, events: int, *only: Table) -> None:
        """Both slices with so many events; in the first table alone, where the stage was interrupted after it."""
        for each in only or (self.first, self.second):
            each.publish(each.stage(NINE, a=events), each.stage(TEN, a=events))

    def rollback(self, *slices: str) -> list[Change]:
        return publish.rollback([self.first.described, self.second.described], slices, "rollback")

    def hold(self) -> tuple[list[int], list[int]]:
        """The events of the slices in each table."""
        first, second = ([counts["a"] for counts in each.rows().values()] for each in (self.first, self.second))
        return first, second


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    return Tables(Table((tmp_path / "first").as_uri()), Table((tmp_path / "second").as_uri()))


def test_rollback_takes_all_tables_back_together(tables: Tables) -> None:
    for events in (1, 2):
        tables.publish(events)
    assert [change.slices for change in tables.rollback(NINE)] == [(NINE,), (NINE,)]
    assert tables.hold() == ([1, 2], [1, 2])


def test_rollback_of_an_interrupted_publication_takes_back_what_was_published(tables: Tables) -> None:
    tables.publish(1)
    tables.publish(2, tables.first)
    assert [change.slices for change in tables.rollback(NINE, TEN)] == [(NINE, TEN), ()]
    assert tables.hold() == ([1, 1], [1, 1])


def test_an_interrupted_rollback_is_finished_by_the_next_and_goes_no_further(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    for events in (1, 2, 3):
        tables.publish(events)
    commit = publish._commit

    def interrupted(table: publish.Table, *arguments: Any) -> Change:
        if table.url == tables.first.url:
            raise KeyboardInterrupt
        return commit(table, *arguments)

    monkeypatch.setattr(publish, "_commit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tables.rollback(NINE, TEN)
    monkeypatch.undo()
    assert tables.hold() == ([3, 3], [2, 2])
    tables.rollback(NINE, TEN)
    assert tables.hold() == ([2, 2], [2, 2])


def test_rollback_of_several_tables_changes_none_where_a_file_of_one_is_gone(tables: Tables) -> None:
    tables.publish(1)
    before = next(iter(publish.current(tables.first.url).values()))[0]
    assert before.path is not None
    tables.publish(2)
    open_container(tables.first.url).delete(before.path)
    with pytest.raises(RunError, match="is gone"):
        tables.rollback(NINE)
    assert tables.hold() == ([2, 2], [2, 2])


def test_a_table_that_was_not_there_for_the_last_publication_is_left_alone_by_its_rollback(tables: Tables) -> None:
    tables.publish(1, tables.first)
    tables.publish(2, tables.first)
    assert tables.rollback(NINE, TEN)[1] == Change(None, ())
    assert tables.first.rows() == {NINE: {"a": 1}, TEN: {"a": 1}}
    tables.publish(3)
    tables.rollback(NINE, TEN)
    assert tables.hold() == ([1, 1], [])


def together(*calls: Callable[[], Any]) -> list[Any]:
    """What these calls return, or raise, when they begin at the same moment."""
    outcomes: list[Any] = [None] * len(calls)
    barrier = threading.Barrier(len(calls))

    def call(place: int) -> None:
        barrier.wait()
        try:
            outcomes[place] = calls[place]()
        except Exception as error:
            outcomes[place] = error

    threads = [threading.Thread(target=call, args=(place,)) for place in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


def test_publishers_of_different_slices_all_land(table: Table) -> None:
    hours = [f"2024-03-01T{hour:02}:00:00Z" for hour in range(4)]
    for events in (1, 2, 3):
        staged = [table.stage(hour, a=events) for hour in hours]
        outcomes = together(*(partial(table.publish, holding) for holding in staged))
        assert [outcome.slices for outcome in outcomes] == [(hour,) for hour in hours]
        assert table.rows() == {hour: {"a": events} for hour in hours}


def test_of_two_publishers_of_the_same_slices_one_holds_them_whole(table: Table) -> None:
    for attempt in range(5):
        ours = [table.stage(NINE, ours=attempt), table.stage(TEN, ours=attempt)]
        theirs = [table.stage(NINE, theirs=attempt), table.stage(TEN, theirs=attempt)]
        outcomes = together(partial(table.publish, *ours), partial(table.publish, *theirs))
        assert [outcome.slices for outcome in outcomes] == [(NINE, TEN), (NINE, TEN)]
        assert table.rows() in (
            {NINE: {"ours": attempt}, TEN: {"ours": attempt}},
            {NINE: {"theirs": attempt}, TEN: {"theirs": attempt}},
        )


def test_two_publishers_of_the_same_run_make_one_version(table: Table) -> None:
    holdings = [table.stage(NINE, a=1), table.stage(TEN, a=1)]
    outcomes = together(*[partial(table.publish, *holdings)] * 3)
    assert sorted(outcome.slices for outcome in outcomes) == [(), (), (NINE, TEN)]
    assert table.open().version() == len(publish.history(table.url)) == 1
    assert table.rows() == {NINE: {"a": 1}, TEN: {"a": 1}}


def test_a_place_that_cannot_be_written_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    table = Table((tmp_path / "file" / "table").as_uri())
    with pytest.raises(RunError) as told:
        table.publish(Holding(NINE, "slice_start=x/y.parquet", 1, 1, ""))
    assert "\n" not in str(told.value)
    assert "file/table" in str(told.value)
