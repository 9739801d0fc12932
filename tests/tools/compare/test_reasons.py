"""Which of several guesses is the reason of a difference, and which rows a downtime explains."""

import math
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from recapture.model import AsaType, OutputColumn
from recapture.table.row_changes import comparisons
from recapture.tools.compare.live import LIVE_ROWS, SLICE
from recapture.tools.compare.reasons import Compared, Reasons
from recapture.tools.compare.trials import likely_offsets
from recapture.tools.compare.words import DOWNTIME, SEPARATOR
from tests.worlds import at

COLUMNS = (
    OutputColumn("end", AsaType.DATETIME),
    OutputColumn("device", AsaType.STRING),
    OutputColumn("n", AsaType.BIGINT),
)
SCHEMA = pa.schema(
    [(SLICE, pa.int64()), ("end", pa.timestamp("us", tz="UTC")), ("device", pa.string()), ("n", pa.int64())]
)
Rows = Mapping[tuple[int, str], int]
"""Values of n, by the minute in which a window ends, and the device."""


class Live:
    """A live job's rows against ours."""

    def __init__(self, connection: Any, live: Rows, ours: Rows, key: tuple[str, ...] = ("end", "device")) -> None:
        self._connection = connection
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {LIVE_ROWS} AS {self._query('live', live)}")
        self.reasons = Reasons(connection, Compared(COLUMNS, key), self._query("ours", ours))

    def guess(self, reason: str, rows: Rows, *guessed: str, shift: int = 0, since: datetime | None = None) -> None:
        """Try a combination that has these rows."""
        self.reasons.explain(reason, self._query("tried_rows", rows), [0], "end", since, frozenset(guessed), shift)

    def found(self) -> dict[tuple[int, str], str | None]:
        """Return the reason of each difference."""
        rows = self._connection.sql('SELECT "end", device, reason FROM reasons').fetchall()
        return {((end - at(0)) // timedelta(minutes=1), device): reason for end, device, reason in rows}

    def _query(self, name: str, rows: Rows) -> str:
        values = [{SLICE: 0, "end": at(minute), "device": device, "n": n} for (minute, device), n in rows.items()]
        self._connection.register(name, pa.Table.from_pylist(values, SCHEMA))
        return f"SELECT * FROM {name}"


@pytest.fixture
def connection() -> Iterator[Any]:
    with comparisons("reasons") as connection:
        yield connection


def test_no_number_is_close_to_nan_or_to_infinity(connection: Any) -> None:
    close = Compared((OutputColumn("x", AsaType.FLOAT),), ()).close("live", "ours")
    values = (20.15, 20.150000001, 1e308, -1e308, math.inf, -math.inf, math.nan, None)
    connection.register("v", pa.table({"x": values}))
    pairs = connection.sql(f"SELECT live.x, ours.x FROM v AS live, v AS ours WHERE {close}").fetchall()
    assert sorted(map(str, pairs)) == sorted(map(str, [*zip(values, values, strict=True), values[:2], values[1::-1]]))


def test_of_guesses_with_as_many_causes_the_one_that_explains_most_rows_is_the_reason(connection: Any) -> None:
    ours = {(1, "a"): 0, (1, "b"): 0, (1, "c"): 0}
    live = Live(connection, {(1, "a"): 1, (1, "b"): 1, (1, "c"): 1}, ours)
    live.guess("restart", ours | {(1, "a"): 1}, "restart")
    live.guess("enqueued", ours | {(1, "a"): 1, (1, "b"): 1}, "enqueued")
    live.guess(f"query{SEPARATOR}enqueued", {(1, "a"): 1, (1, "b"): 1, (1, "c"): 1}, "enqueued")
    live.reasons.choose_guesses()
    assert live.found() == {(1, "a"): "enqueued", (1, "b"): "enqueued", (1, "c"): f"query{SEPARATOR}enqueued"}


def test_deadlines_with_which_more_of_the_live_rows_are_explained_come_before_fewer_causes(connection: Any) -> None:
    ours = {(1, device): 0 for device in "abcde"}
    rows = {(1, "a"): 1, (1, "b"): 1, (1, "c"): 1, (1, "d"): 1}
    live = Live(connection, rows, ours)
    live.guess("wrong cuts", {(1, "a"): 1, (1, "b"): 0, (1, "c"): 0, (1, "d"): 1}, "wrong", shift=7)
    live.guess("right cuts", {(1, "a"): 0, (1, "b"): 0, (1, "c"): 0, (1, "d"): 0}, "right", shift=5)
    both = f"late{SEPARATOR}right cuts"
    live.guess(both, {(1, "a"): 1, (1, "b"): 1, (1, "c"): 1, (1, "d"): 0}, "right", shift=5)
    live.reasons.choose_guesses()
    assert live.found() == {
        (1, "a"): both,
        (1, "b"): both,
        (1, "c"): both,
        (1, "d"): "wrong cuts",
        (1, "e"): "right cuts",
    }


def test_sessions_that_were_cut_end_at_the_same_distance_from_a_multiple() -> None:
    assert likely_offsets(10, [3, 13, 27, 45, 41]) == [3, 13]
    assert likely_offsets(10, [3, 13, 27, 47, 67, 45]) == [7, 17, 3, 13]
    assert likely_offsets(10, [45, 3]) == [3, 13, 5, 15]
    assert likely_offsets(10, [10, 20]) == [10]
    assert likely_offsets(10, []) == []


def test_a_row_that_lacks_has_the_guess_that_another_row_confirms(connection: Any) -> None:
    ours = {(1, "a"): 0, (1, "b"): 0}
    live = Live(connection, {(1, "b"): 1}, ours)
    live.guess("wrong cuts", {(1, "b"): 0}, "wrong")
    live.guess("right cuts", {(1, "b"): 0}, "right")
    live.guess(f"query{SEPARATOR}right cuts", {(1, "b"): 1}, "right")
    assert live.found() == {(1, "a"): "right cuts", (1, "b"): f"query{SEPARATOR}right cuts"}


def test_a_guess_that_nothing_confirms_comes_last(connection: Any) -> None:
    live = Live(connection, {}, {(1, "a"): 0})
    live.guess("enqueued", {}, "enqueued")
    assert live.found() == {(1, "a"): None}
    live.reasons.choose_guesses()
    assert live.found() == {(1, "a"): "enqueued"}


@pytest.mark.parametrize("contradicted", [{(1, "c"): 1}, {(1, "c"): 0, (1, "d"): 0}], ids=["value", "row"])
def test_a_guess_is_a_reason_only_if_fewer_rows_differ_with_it_alone_or_with_other_causes(
    connection: Any, contradicted: dict[tuple[int, str], int]
) -> None:
    ours = {(1, "a"): 0, (1, "b"): 0, (1, "c"): 0}
    live = Live(connection, {(1, "a"): 1, (1, "b"): 1, (1, "c"): 0}, ours)
    live.guess("enqueued", {(1, "a"): 1, (1, "b"): 0} | contradicted, "enqueued")
    live.reasons.choose_guesses()
    assert live.found() == {(1, "a"): None, (1, "b"): None}
    both = f"query{SEPARATOR}enqueued"
    live.guess(both, {(1, "a"): 0, (1, "b"): 1, (1, "c"): 0}, "enqueued")
    live.reasons.choose_guesses()
    assert live.found() == {(1, "a"): "enqueued", (1, "b"): both}


def test_rows_that_a_guess_lacks_because_they_end_before_a_restart_do_not_contradict_it(connection: Any) -> None:
    ours = {(1, "a"): 0, (2, "a"): 0, (5, "a"): 0}
    live = Live(connection, ours | {(5, "a"): 1}, ours)
    live.guess("restart", {(5, "a"): 1}, "restart", since=at(3))
    assert live.found() == {(5, "a"): "restart"}


def test_a_restart_explains_nothing_if_the_end_of_a_window_is_not_in_the_key(connection: Any) -> None:
    live = Live(connection, {(5, "a"): 1}, {(5, "a"): 0}, key=("device",))
    live.guess("restart", {(5, "a"): 1}, "restart", since=at(3))
    assert live.reasons.open_slices() == [0]


def test_a_downtime_explains_rows_that_end_after_the_last_one_that_the_live_job_wrote(connection: Any) -> None:
    ours = {(minute, device): 0 for minute in range(1, 7) for device in "ab"}
    lacking = {(2, "a"), (3, "a"), (4, "a"), (4, "b"), (5, "a"), (5, "b")}
    live = Live(connection, {key: n for key, n in ours.items() if key not in lacking}, ours)
    live.reasons.explain_missing("end", [(at(1), at(6))])
    assert live.found() == {key: DOWNTIME if key[0] > 3 else None for key in lacking}
