"""Give each difference between the rows of a live job and other rows a reason.

The rows of a slice that have the same key are compared together. A difference is explained if it is gone when the
duplicates of the live job are removed and floats may differ in their last digits, or when the rows are computed under
another assumption.
"""

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from recapture.model import AsaType, OutputColumn
from recapture.table.row_changes import parts_of, quoted
from recapture.tools.compare.live import LIVE_ROWS, SLICE
from recapture.tools.compare.words import DIGITS, DOWNTIME, DUPLICATES, HOLE, SEPARATOR, UNEXPLAINED, causes

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

FEWEST_ENDS = 3
"""Smallest number of successive times for which the live job wrote no row, and we have rows, in a downtime."""
LAST_DIGITS = 1e-9
"""Largest difference of two floats, relative to the larger one, that is in their last digits only."""


@dataclass(frozen=True)
class Compared:
    """The columns of a comparison."""

    columns: tuple[OutputColumn, ...]
    """Columns that both sides have."""
    key: tuple[str, ...]
    """Those of them that identify a row."""

    @property
    def names(self) -> str:
        """All columns, in SQL."""
        return ", ".join([SLICE, *(quoted(column.name) for column in self.columns)])

    @property
    def keys(self) -> list[str]:
        """Columns of the key with the slice, in SQL."""
        return [SLICE, *map(quoted, self.key)]

    def same_key(self, left: str, right: str) -> str:
        """Return the condition that two rows have the same key."""
        return " AND ".join(f"{left}.{name} IS NOT DISTINCT FROM {right}.{name}" for name in self.keys)

    def close(self, left_rows: str, right_rows: str) -> str:
        """Return the condition that two rows differ in the last digits of floats only."""
        conditions = ["true"]
        for column in self.columns:
            if column.name in self.key:
                continue
            left, right = f"{left_rows}.{quoted(column.name)}", f"{right_rows}.{quoted(column.name)}"
            equal = f"{left} IS NOT DISTINCT FROM {right}"
            if column.type is AsaType.FLOAT:
                largest = f"greatest(abs({left}), abs({right}))"
                are_finite = f"isfinite({left}) AND isfinite({right})"  # in SQL, NaN <= NaN is true
                is_close = f"{are_finite} AND abs({left} - {right}) <= {LAST_DIGITS} * {largest}"
                equal = f"({equal} OR coalesce({is_close}, false))"
            conditions.append(equal)
        return " AND ".join(conditions)


class Reasons:
    """The reasons of the differences, in the table `reasons`: the key with its slice, and the reason or NULL."""

    def __init__(
        self, connection: "DuckDBPyConnection", compared: Compared, ours: str, lacks_events: str = "false"
    ) -> None:
        """Compare LIVE_ROWS with the rows of the query `ours`, which has the same columns.

        `lacks_events` is the condition, in SQL, of the keys whose rows depend on events that the archive lacks.
        """
        self.connection, self.compared, self._lacks_events = connection, compared, lacks_events
        self._guesses: list[frozenset[Any]] = []
        """What each guess assumes, in the order in which they were made: the number of a guess is its place."""
        self._possible: set[int] = set()
        """Numbers of the guesses that remove more differences than they make."""
        self._believed: set[int] = set()
        """Numbers of the guesses that a row of the live job confirms."""
        self._compare("differences", ours)
        self._execute(
            f"""
            CREATE OR REPLACE TEMP TABLE reasons AS
            SELECT {", ".join(compared.keys)}, live, ours, has_duplicates,
                CASE WHEN NOT is_open THEN {_joined("NULL", "differences")} END AS reason, false AS is_guessed
            FROM differences
            """
        )
        self._execute(
            f"""
            CREATE OR REPLACE TEMP TABLE guesses AS
            SELECT {", ".join(compared.keys)}, reason AS guess, 0 AS number, 0 AS causes, 0::BIGINT AS shift
            FROM reasons LIMIT 0
            """
        )

    def explain(
        self,
        reason: str,
        rows: str,
        slices: Sequence[int],
        time: str,
        since: datetime | None,
        guessed: frozenset[Any] = frozenset(),
        shift: int = 0,
    ) -> None:
        """Give this reason to the differences without one, in slices, that other rows, given by a query, do not have.

        The query has the rows of all `slices`, given by their numbers; of these, only rows that end after `since`
        count. `time` is the column of the end of a row's window: without it in the key, nothing can be explained since
        a time. The live job's duplicates and last digits are left out of account, and named.

        What is `guessed` is believed only if it removes more differences than it makes, and explains a row without a
        reason that the live job wrote: that a row lacks has many causes. Then earlier guesses that assume no more are
        believed, too. Every row that a guess explains is kept for `choose_guesses`. `shift` is that of the deadlines of
        sessions, in ticks; 0 if the guess assumes none.
        """
        if since is not None and time not in self.compared.key:
            return
        self._compare("tried", rows, f"WHERE {self._among(slices)}")
        same = self.compared.same_key("tried", "reasons")
        after = "true" if since is None else f"{quoted(time)} > {_instant(since)}"
        explained = (
            f"(reason IS NULL OR is_guessed) AND {self._among(slices)} AND {after} "
            f"AND NOT EXISTS (SELECT 1 FROM tried WHERE is_open AND {same})"
        )
        text = f"coalesce((SELECT {_joined(_text(reason), 'tried')} FROM tried WHERE {same}), {_text(reason)})"
        if not guessed:
            self._execute(f"UPDATE reasons SET reason = {text} WHERE reason IS NULL AND {explained}")
            return
        ((removed, confirmed),) = self._rows(
            f"SELECT count(*), count(*) FILTER (live > 0 AND reason IS NULL) FROM reasons WHERE {explained}"
        )
        ((made,),) = self._rows(
            f"SELECT count(*) FROM tried WHERE is_open AND {after} AND NOT EXISTS (SELECT 1 FROM reasons WHERE {same})"
        )
        keys, number, size = ", ".join(self.compared.keys), len(self._guesses), len(causes(reason))
        self._execute(
            f"INSERT INTO guesses SELECT {keys}, {text}, {number}, {size}, {shift} FROM reasons WHERE {explained}"
        )
        self._guesses.append(guessed)
        if removed <= made:
            return
        self._possible.add(number)
        if confirmed:
            self._believed.update(place for place, guess in enumerate(self._guesses) if guess <= guessed)
            self._choose("reason IS NULL", self._believed)

    def choose_guesses(self) -> None:
        """Give the differences that only guesses explain the best one: of the fewest causes, then of the most rows.

        A live job cuts all sessions at the same times: a guess with another shift than the likeliest comes after those
        without. The likeliest shift is the one with which most of the live job's rows are explained, alone or with
        other causes. Guesses that nothing confirms are for differences without a reason.
        """
        self._choose("is_guessed", self._believed)
        self._choose("reason IS NULL", self._possible)

    def _choose(self, condition: str, numbers: Collection[int]) -> None:
        """Give the best of the guesses of these numbers to the differences of which a condition is true."""
        if not numbers:
            return
        same = self.compared.same_key("guesses", "reasons")
        guess_keys = ", ".join(f"guesses.{name}" for name in self.compared.keys)
        self._execute(
            f"""
            UPDATE reasons SET reason = best.guess, is_guessed = true
            FROM (
                SELECT guesses.* FROM guesses JOIN (SELECT number, count(*) AS explained FROM guesses GROUP BY number)
                USING (number) JOIN reasons ON {same}
                WHERE {condition} AND number IN ({", ".join(map(str, numbers))})
                QUALIFY row_number() OVER (
                    PARTITION BY {guess_keys}
                    ORDER BY shift NOT IN (
                        0, (SELECT shift FROM guesses JOIN reasons ON {same} WHERE shift <> 0 GROUP BY shift
                            ORDER BY count(DISTINCT ({guess_keys})) FILTER (live > 0) DESC, min(number) LIMIT 1)
                    ), causes, explained DESC, number
                ) = 1
            ) AS best
            WHERE {self.compared.same_key("best", "reasons")}
            """
        )

    def explain_holes(self) -> None:
        """Give HOLE to the differences without a reason that depend on events that the archive lacks."""
        self._explain_where(HOLE, self._lacks_events)

    def explain_missing(self, time: str, downtimes: Sequence[tuple[datetime, datetime]]) -> None:
        """Give DOWNTIME to differences without a reason, if the live job wrote no row that ends in a downtime.

        Rows are written by their ends: after a row that ends in a downtime, the job has written what ended before.
        """
        if time in self.compared.key:
            for since, until in downtimes:
                ends = f"{quoted(time)} > {_instant(since)} AND {quoted(time)} < {_instant(until)}"
                written = f"SELECT max({quoted(time)}) FROM {LIVE_ROWS} WHERE {ends}"
                self._explain_where(DOWNTIME, f"live = 0 AND {ends} AND coalesce({quoted(time)} > ({written}), true)")

    def explain_downtime(self, time: str, since: datetime, until: datetime, reach: timedelta) -> None:
        """Give DOWNTIME to differences without a reason, if the live job did not run between two times.

        Rows that end after `since` can lack in its output. Rows whose windows begin before `until` can have other
        values, because the job may have started without what came before. `time` is the column of the end of a row's
        window, and `reach` the longest window.
        """
        if time in self.compared.key:
            last = _instant(until + reach)
            self._explain_where(DOWNTIME, f"{quoted(time)} > {_instant(since)} AND {quoted(time)} < {last}")

    def live_ends(self, time: str) -> list[datetime]:
        """Return the ends of the rows that only the live job has, of differences without a reason."""
        if time not in self.compared.key:
            return []
        rows = self._rows(f"SELECT {quoted(time)} FROM reasons WHERE reason IS NULL AND ours = 0")
        return [end for (end,) in rows]

    def _explain_where(self, reason: str, condition: str) -> None:
        """Give this reason to the differences without one that meet a condition; name duplicates and holes, too."""
        also = [f"CASE WHEN has_duplicates THEN {_text(DUPLICATES)} END"]
        if reason != HOLE:
            also.append(f"CASE WHEN {self._lacks_events} THEN {_text(HOLE)} END")
        self._execute(
            f"UPDATE reasons SET reason = concat_ws({_text(SEPARATOR)}, {_text(reason)}, {', '.join(also)}) "
            f"WHERE reason IS NULL AND ({condition})"
        )

    def _among(self, slices: Sequence[int]) -> str:
        return f"{SLICE} IN ({', '.join(map(str, slices))})"

    def silences(self, time: str, ours: str) -> list[tuple[datetime, datetime]]:
        """Return when the live job wrote no row for at least FEWEST_ENDS times for which we have rows.

        A silence lies between the last row before it and the first one after it. The job may also have started after
        our first rows, or stopped before our last ones. A job that wrote nothing at all has no silence.
        """
        live = [moment for (moment,) in self._rows(f"SELECT DISTINCT {quoted(time)} FROM {LIVE_ROWS} ORDER BY 1")]
        ends = [moment for (moment,) in self._rows(f"SELECT DISTINCT {quoted(time)} FROM ({ours}) ORDER BY 1")]
        if not live or not ends:
            return []
        just = timedelta(microseconds=1)
        bounds = [min(live[0], ends[0] - just), *live, max(live[-1], ends[-1] + just)]
        return [
            (after, before)
            for after, before in itertools.pairwise(bounds)
            if bisect_left(ends, before) - bisect_right(ends, after) >= FEWEST_ENDS
        ]

    def open_slices(self) -> list[int]:
        """Return the numbers of the slices with a difference that has no reason."""
        rows = self._rows(f"SELECT DISTINCT {SLICE} FROM reasons WHERE reason IS NULL ORDER BY 1")
        return [number for (number,) in rows]

    def counts(self) -> list[tuple[int, str, int, int, int]]:
        """Return slice, reason, and how many keys have rows on both sides, only live, and only ours."""
        return self._rows(
            f"SELECT {SLICE}, coalesce(reason, '{UNEXPLAINED}'), count(*) FILTER (live > 0 AND ours > 0), "
            "count(*) FILTER (ours = 0), count(*) FILTER (live = 0) FROM reasons GROUP BY ALL ORDER BY 1, 2"
        )

    def keys(self, ours: str) -> int:
        """Return the number of keys of both sides."""
        keys = ", ".join(self.compared.keys)
        return int(
            self._rows(f"SELECT count(*) FROM (SELECT {keys} FROM {LIVE_ROWS} UNION SELECT {keys} FROM ({ours}))")[0][0]
        )

    def examples(self, ours: str, limit: int) -> Iterator[tuple[str, int, str, Mapping[str, Any]]]:
        """Yield rows of the first differences of each reason: reason, slice, `live` or `ours`, and values."""
        keys, columns = ", ".join(self.compared.keys), self.compared
        self._execute(
            "CREATE OR REPLACE TEMP TABLE examples AS "
            f"SELECT *, row_number() OVER (ORDER BY reason NULLS FIRST, {keys}) AS number "
            f"FROM (SELECT *, row_number() OVER (PARTITION BY reason ORDER BY {keys}) AS place FROM reasons) "
            f"WHERE place <= {limit}"
        )
        names = [column.name for column in columns.columns]
        same = columns.same_key("examples", "side")
        selected = ", ".join(f"side.{quoted(name)}" for name in names)
        sides = " UNION ALL ".join(
            f"SELECT examples.number, coalesce(examples.reason, '{UNEXPLAINED}') AS reason, examples.{SLICE}, "
            f"'{name}' AS side, {selected} FROM examples JOIN ({rows}) AS side ON {same}"
            for name, rows in (("live", f"SELECT {columns.names} FROM {LIVE_ROWS}"), ("ours", ours))
        )
        table = self.connection.sql(f"FROM ({sides}) ORDER BY number, side").to_arrow_table()
        for row in table.to_pylist():
            yield row["reason"], row[SLICE], row["side"], {name: row[name] for name in names}

    def _compare(self, table: str, rows: str, where: str = "") -> None:
        """Make a table of the keys whose rows differ between LIVE_ROWS and a query.

        Its columns are the key, `live` and `ours` (how many rows differ on each side), `has_duplicates`, `has_digits`
        (last digits), and `is_open`: whether a difference is left without the live job's duplicates and last digits.
        """
        compared, keys = self.compared, ", ".join(self.compared.keys)
        self._execute(f"CREATE OR REPLACE TEMP VIEW other_rows AS SELECT {compared.names} FROM ({rows})")
        ((count,),) = self._rows(f"SELECT (SELECT count(*) FROM {LIVE_ROWS}) + (SELECT count(*) FROM other_rows)")
        parts = max(1, parts_of(count))
        for part in range(parts):
            self._execute(
                f"""
                CREATE OR REPLACE TEMP TABLE counted AS
                SELECT *, CASE WHEN live > ours THEN greatest(ours, 1) ELSE live END AS kept
                FROM (
                    SELECT {compared.names}, sum(is_live) AS live, sum(1 - is_live) AS ours
                    FROM (
                        SELECT {compared.names}, 1 AS is_live FROM {LIVE_ROWS}
                        UNION ALL SELECT {compared.names}, 0 FROM other_rows
                    )
                    {where}
                    GROUP BY {compared.names}
                    HAVING hash({keys}) % {parts} = {part} AND sum(is_live) <> sum(1 - is_live)
                )
                """
            )
            found = f"""
                WITH of_key AS (
                    SELECT {keys}, sum(live) AS live, sum(ours) AS ours, bool_or(live > greatest(ours, 1))
                        AS has_duplicates, sum(greatest(kept - ours, 0)) AS kept_live,
                        sum(greatest(ours - kept, 0)) AS kept_ours
                    FROM counted GROUP BY {keys}
                ), near AS (
                    SELECT DISTINCT {", ".join(f"one.{name}" for name in compared.keys)}
                    FROM counted AS one JOIN counted AS other ON {compared.same_key("one", "other")}
                    WHERE one.kept > one.ours AND other.ours > other.kept AND {compared.close("one", "other")}
                )
                SELECT *, NOT has_digits AND kept_live + kept_ours > 0 AS is_open
                FROM (
                    SELECT *, kept_live = 1 AND kept_ours = 1 AND EXISTS (
                        SELECT 1 FROM near WHERE {compared.same_key("near", "of_key")}
                    ) AS has_digits
                    FROM of_key
                )
            """
            self._execute(
                f"CREATE OR REPLACE TEMP TABLE {table} AS {found}" if not part else f"INSERT INTO {table} {found}"
            )
        self._execute("DROP TABLE IF EXISTS counted")

    def _execute(self, query: str) -> None:
        self.connection.execute(query)

    def _rows(self, query: str) -> list[Any]:
        return self.connection.sql(query).fetchall()


def ends_in(time: str, since: datetime, until: datetime) -> str:
    """Return the condition, in SQL, that a window ends after a time and not after another one."""
    return f"{quoted(time)} > {_instant(since)} AND {quoted(time)} <= {_instant(until)}"


def _joined(reason: str, table: str) -> str:
    """Return the SQL of a reason, in SQL or NULL, with what is left out of account in a table of `_compare`."""
    also = (
        f"CASE WHEN {table}.{column} THEN '{name}' END"
        for column, name in (("has_duplicates", DUPLICATES), ("has_digits", DIGITS))
    )
    return f"concat_ws({_text(SEPARATOR)}, {reason}, {', '.join(also)})"


def _instant(instant: datetime) -> str:
    return f"{_text(instant.isoformat())}::TIMESTAMPTZ"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
