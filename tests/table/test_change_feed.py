"""Delta's change data feed at the grain of rows: each commit says which rows it inserts, updates and deletes."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from embedded.azurite import Azurite
from recapture.run.publish import warnings
from recapture.storage.folder import FolderContainer
from recapture.table import change_feed, publish
from recapture.table.delta import PROPERTIES
from tests.table import strangers
from tests.table.feeds import COLUMNS, Feed, require_true_feed, shared_comparisons
from tests.table.publishing import ELEVEN, NINE, TEN, on_azurite, together

BEFORE = [(5, "a", 1.0), (5, "b", 2.0), (5, "c", 3.0)]
AFTER = [(5, "a", 1.0), (5, "b", 9.0), (5, "d", 4.0)]
DIFFERENCE = [
    ("update_preimage", NINE, 5, "b", 2.0),
    ("update_postimage", NINE, 5, "b", 9.0),
    ("delete", NINE, 5, "c", 3.0),
    ("insert", NINE, 5, "d", 4.0),
]


@pytest.fixture
def feed(tmp_path: Path) -> Feed:
    return Feed(tmp_path.as_uri())


def folder_of(feed: Feed) -> Path:
    return Path(feed.table_url.removeprefix("file://"))


def change_files(feed: Feed) -> list[list[str]]:
    """Return the change files that each commit names."""
    actions = strangers.actions_of(folder_of(feed))
    return [[action["cdc"]["path"] for action in commit if "cdc" in action] for commit in actions]


@pytest.mark.parametrize("storage", ["folder", "azure"])
def test_a_replacement_tells_only_the_rows_that_differ(
    storage: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = Feed(tmp_path.as_uri())
    if storage == "azure":
        azurite: Azurite = request.getfixturevalue("azurite")
        monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", azurite.connection_string)
        feed = Feed(on_azurite(azurite).url)
    feed.publish({NINE: BEFORE})
    feed.publish({NINE: AFTER})
    assert feed.changes() == DIFFERENCE
    require_true_feed(feed)


def test_a_rollback_tells_the_way_back(feed: Feed) -> None:
    feed.publish({NINE: BEFORE})
    feed.publish({NINE: AFTER})
    feed.rollback()
    assert feed.changes() == [
        ("update_preimage", NINE, 5, "b", 9.0),
        ("update_postimage", NINE, 5, "b", 2.0),
        ("insert", NINE, 5, "c", 3.0),
        ("delete", NINE, 5, "d", 4.0),
    ]


def test_first_rows_and_a_rollback_to_nothing_need_no_change_files(feed: Feed) -> None:
    feed.publish({NINE: BEFORE})
    assert feed.changes() == [("insert", NINE, *row) for row in BEFORE]
    feed.rollback()
    assert feed.changes() == [("delete", NINE, *row) for row in BEFORE]
    assert change_files(feed) == [[], [], []]


def test_a_commit_that_replaces_one_slice_tells_the_rows_of_all_its_slices(feed: Feed) -> None:
    feed.publish({NINE: BEFORE, ELEVEN: BEFORE})
    feed.publish({NINE: AFTER, TEN: BEFORE, ELEVEN: []})
    others = [("insert", TEN, *row) for row in BEFORE] + [("delete", ELEVEN, *row) for row in BEFORE]
    assert sorted(feed.changes()) == sorted([*DIFFERENCE, *others])


def test_the_same_rows_in_another_file_are_not_in_the_feed(feed: Feed) -> None:
    feed.publish({NINE: BEFORE, TEN: BEFORE})
    feed.publish({NINE: BEFORE[::-1]})
    assert feed.changes() == []
    feed.publish({NINE: AFTER, TEN: BEFORE[::-1]})
    assert feed.changes() == DIFFERENCE
    require_true_feed(feed)


def test_rows_that_nothing_tells_apart_are_deleted_and_inserted_by_their_number(feed: Feed) -> None:
    feed.publish({NINE: [(5, "a", 1.0)] * 3 + [(5, "a", 2.0)]})
    feed.publish({NINE: [(5, "a", 1.0)] + [(5, "a", 3.0)] * 2})
    assert feed.changes() == [
        *[("delete", NINE, 5, "a", 1.0)] * 2,
        ("delete", NINE, 5, "a", 2.0),
        *[("insert", NINE, 5, "a", 3.0)] * 2,
    ]


def test_rows_without_times_and_strings_are_deleted_and_inserted(tmp_path: Path) -> None:
    feed = Feed(tmp_path.as_uri(), pa.schema([("events", pa.int64()), ("is_alarm", pa.bool_())]))
    feed.publish({NINE: [(1, True), (2, False)]})
    feed.publish({NINE: [(1, True), (3, False)]})
    assert feed.changes() == [("delete", NINE, 2, False), ("insert", NINE, 3, False)]


def test_null_and_nan_are_values_like_others(feed: Feed) -> None:
    nan = float("nan")
    feed.publish({NINE: [(5, None, nan), (5, "a", None), (6, None, None)]})
    feed.publish({NINE: [(5, None, nan), (5, "a", 1.0), (6, None, 2.0)]})
    assert feed.changes() == [
        ("update_preimage", NINE, 5, "a", None),
        ("update_postimage", NINE, 5, "a", 1.0),
        ("update_preimage", NINE, 6, None, None),
        ("update_postimage", NINE, 6, None, 2.0),
    ]


def test_a_table_without_the_property_gets_no_change_files(tmp_path: Path) -> None:
    feed = Feed(tmp_path.as_uri(), is_on=False)
    feed.publish({NINE: BEFORE})
    feed.publish({NINE: AFTER})
    assert change_files(feed) == [[], [], []]
    assert not (folder_of(feed) / "_change_data").exists()


@pytest.mark.parametrize("by", ["pipeline", "another program"])
def test_the_feed_of_an_existing_table_begins_when_it_is_turned_on(tmp_path: Path, by: str) -> None:
    feed = Feed(tmp_path.as_uri(), is_on=False)
    feed.publish({NINE: BEFORE})
    if by == "another program":
        strangers.set_property(folder_of(feed), "delta.enableChangeDataFeed", "true")
    else:
        feed = Feed(tmp_path.as_uri())
    feed.publish({NINE: AFTER})
    assert feed.changes() == DIFFERENCE
    protocol = feed.delta().protocol()
    assert (protocol.min_reader_version, protocol.min_writer_version) == (1, 4)
    versions = feed.delta().version()
    feed.publish({NINE: AFTER})
    assert feed.delta().version() == versions


def test_a_commit_names_change_files_as_the_protocol_says(feed: Feed) -> None:
    feed.publish({NINE: BEFORE})
    feed.publish({NINE: AFTER})
    commit = strangers.actions_of(folder_of(feed))[-1]
    (change,) = (action["cdc"] for action in commit if "cdc" in action)
    file = folder_of(feed) / change["path"]
    assert change == {
        "path": change["path"],
        "partitionValues": {"slice_start": "2024-03-01 09:00:00"},
        "size": file.stat().st_size,
        "dataChange": False,
    }
    assert change["path"].startswith("_change_data/slice_start=20240301T090000Z/00000000000000000002-")
    (removed,) = (action["remove"] for action in commit if "remove" in action)
    assert removed["path"] in {action["add"]["path"] for action in strangers.actions_of(folder_of(feed))[1][1:]}
    strangers.require_protocol(folder_of(feed))


def test_a_table_with_a_feed_keeps_checkpoints_like_others(feed: Feed) -> None:
    interval = int(str(PROPERTIES["delta.checkpointInterval"]))
    for number in range(interval):
        feed.publish({NINE: [(5, "a", float(number))]})
    (checkpoint,) = (folder_of(feed) / "_delta_log").glob("*.checkpoint.parquet")
    assert int(checkpoint.name.partition(".")[0]) == interval - 1
    require_true_feed(feed)


def test_publishers_of_different_slices_at_the_same_time_write_one_feed(feed: Feed) -> None:
    feed.publish({NINE: BEFORE, TEN: BEFORE, ELEVEN: BEFORE})
    outcomes = together(*(lambda start=start: feed.publish({start: AFTER}) for start in (NINE, TEN, ELEVEN)))
    assert all(isinstance(outcome, publish.Outcome) for outcome in outcomes), outcomes
    require_true_feed(feed)


def test_the_feed_goes_on_over_a_query_that_gains_and_loses_a_column(feed: Feed) -> None:
    feed.publish({NINE: BEFORE, TEN: BEFORE})
    wide = replace(feed, columns=COLUMNS.append(pa.field("alarms", pa.int64())))
    wide.publish({NINE: [(5, "a", 1.0, 7), (5, "b", 2.0, None), (5, "c", 3.0, None)]})
    assert wide.changes() == [
        ("update_preimage", NINE, 5, "a", 1.0, None),
        ("update_postimage", NINE, 5, "a", 1.0, 7),
    ], "a row whose new column is NULL did not change"
    narrow = replace(feed, columns=COLUMNS.remove(2))
    narrow.publish({TEN: [(5, "a"), (5, "c")]})
    assert wide.changes() == [
        ("update_preimage", TEN, 5, "a", 1.0, None),
        ("update_postimage", TEN, 5, "a", None, None),
        ("delete", TEN, 5, "b", 2.0, None),
        ("update_preimage", TEN, 5, "c", 3.0, None),
        ("update_postimage", TEN, 5, "c", None, None),
    ]
    narrow.rollback(NINE, TEN)
    require_true_feed(wide, *range(3, wide.delta().version() + 1))
    whole = pa.table(wide.delta().load_cdf().read_all())
    assert whole.num_rows == sum(len(wide.changes(version)) for version in range(wide.delta().version() + 1))


@pytest.mark.parametrize("stranger", ["append", "compact", "update"])
def test_rows_of_another_program_are_compared_too(feed: Feed, stranger: str) -> None:
    feed.publish({TEN: BEFORE})
    table = folder_of(feed)
    if stranger == "update":
        DeltaTable(str(table)).update({"events": "0"}, predicate="device = 'b'")
    else:
        strangers.STRANGERS[stranger](table)
    outcome = feed.publish({TEN: AFTER})
    assert outcome.whole_in_feed == {}
    require_true_feed(feed, feed.delta().version())


@pytest.mark.parametrize("stranger", ["lose_file", "flip_bytes", "delete_with_vector"])
def test_rows_that_cannot_be_compared_are_reported(feed: Feed, stranger: str) -> None:
    feed.publish({TEN: [*BEFORE, (5, "e", 1.0)], ELEVEN: BEFORE})
    strangers.STRANGERS[stranger](folder_of(feed))
    outcome = feed.publish({TEN: AFTER})
    assert outcome.whole_in_feed == {"rows": [TEN]}
    assert any("consumers must read these slices again" in warning for warning in warnings(outcome))
    assert change_files(feed)[-1] == []
    assert feed.publish({TEN: BEFORE}).whole_in_feed == {}


class KilledError(BaseException):
    """The process was killed: nothing catches this."""


@contextmanager
def killed(at: int | None) -> Iterator[Iterator[int]]:
    """Kill the process before or after a request to the storage that writes, None for never; yield their numbers."""
    requests = itertools.count(1)

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def request(*arguments: Any, **options: Any) -> Any:
            if next(requests) == at:
                raise KilledError
            result = call(*arguments, **options)
            if next(requests) == at:
                raise KilledError
            return result

        return request

    with pytest.MonkeyPatch.context() as patch:
        for owner, names in ((FolderContainer, ("create", "write")), (DeltaTable, ("create_write_transaction",))):
            for name in names:
                patch.setattr(owner, name, counted(getattr(owner, name)))
        yield requests


def test_a_replacement_that_is_killed_at_any_request_and_repeated_has_a_true_feed(
    feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_feed, "comparisons", shared_comparisons)
    feed.publish({NINE: BEFORE, TEN: BEFORE})
    for at in itertools.count(1):
        rows = [(5, "a", float(at)), (5, "b", 2.0)]
        with killed(at) as requests, suppress(KilledError):
            feed.publish({NINE: rows, TEN: rows})
        feed.publish({NINE: rows, TEN: rows})
        require_true_feed(feed, feed.delta().version())
        if next(requests) <= at:
            break
    assert at > 10
    require_true_feed(feed)
