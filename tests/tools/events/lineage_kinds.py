"""Kinds of query, each with what the naive oracles say its rows are."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from recapture.time_model.ticks import TICKS_PER_SECOND
from tests import oracle_analytics, oracle_joins, oracle_matches, oracle_windows
from tests.evaluate.relations import START
from tests.oracle_analytics import Over, field
from tests.oracle_windows import Content, Event, Hopping, Session, Sliding, Snapshot, Window

Row = tuple[Any, ...]
"""Time of a row in ticks, then its columns."""
TEN = Hopping(10 * TICKS_PER_SECOND, 10 * TICKS_PER_SECOND)
LENGTH = 60 * TICKS_PER_SECOND
"""Length of the slice."""
VERSIONS = ((0, {"a": "A", "b": "B"}), (START + 20 * TICKS_PER_SECOND, {"a": "C", "b": "B"}))
"""Versions of reference data: the start of each, and its rows: place by k."""


@dataclass(frozen=True)
class Kind:
    """A query over events with the fields id, k and n, and its rows."""

    query: str
    oracle: Callable[[Sequence[Event]], list[Row]]
    may_stay: Callable[[Event, Sequence[Event]], bool] = lambda event, others: False
    """Whether the row may be the same without one of its deciding events, given the other named events."""


def seconds(number: float) -> int:
    return round(number * TICKS_PER_SECOND)


def values(content: Content, name: str) -> list[Any]:
    return [member.payload[name] for member in content.members]


def grouped(window: Window, *aggregates: Callable[[Content], Any], keys: Sequence[str] = ("k",)) -> Any:
    """Return the oracle of a GROUP BY: the key, and these aggregates."""

    def rows(events: Sequence[Event]) -> list[Row]:
        contents = oracle_windows.ending_in(oracle_windows.contents(events, window, keys), START, START + LENGTH)
        return [(each.end, *each.group, *(aggregate(each) for aggregate in aggregates)) for each in contents]

    return rows


def analytic(*functions: Callable[[Sequence[Event]], list[Any]], when: Callable[[Row], bool] = lambda row: True) -> Any:
    """Return the oracle of analytic functions: the id of each row, and these."""

    def rows(events: Sequence[Event]) -> list[Row]:
        ordered = oracle_analytics.in_order(events)
        columns = [function(events) for function in functions]
        made = [(event.time, event.payload["id"], *row) for event, *row in zip(ordered, *columns, strict=True)]
        return [row for row in inside(made) if when(row)]

    return rows


def matched(events: Sequence[Event]) -> list[Row]:
    """Return the ids of the first and the last of three events of a key, the last of which has the larger n."""

    def rises(event: Event, rows: oracle_matches.Rows) -> bool:
        return bool(event.payload["n"] > rows.last("A", "n"))

    conditions: dict[str, oracle_matches.Condition] = {
        "A": lambda event, rows: event.payload["n"] > 1,
        ".": lambda event, rows: True,
        "B": rises,
    }
    found = oracle_matches.matches(events, oracle_matches.Part(("A", ".", "B")), conditions, seconds(20), ("k",))
    return inside([(rows.assigned[-1][1].time, rows.first("A", "id"), rows.last("B", "id")) for rows in found])


def inside(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if START < row[0] <= START + LENGTH]


def pairs(events: Sequence[Event], outer: bool = False) -> list[oracle_joins.Row]:
    """Return the JOIN of events with those up to two seconds later whose key is the same."""

    def condition(row: oracle_joins.Row, event: Event) -> bool:
        (left,) = row.events
        return left is not None and left is not event and left.payload["k"] == event.payload["k"] is not None

    bounds = [oracle_joins.Bound(0, 0, seconds(2))]
    return oracle_joins.join(oracle_joins.rows_of(events), events, bounds, condition, outer)


def joined(events: Sequence[Event], outer: bool = False) -> list[Row]:
    """Return the ids of `pairs`."""
    rows = pairs(events, outer)
    return inside([(row.time, *(None if each is None else each.payload["id"] for each in row.events)) for row in rows])


def pairs_in_windows(events: Sequence[Event]) -> list[Row]:
    """Return the number of `pairs` in each window of ten seconds."""
    return counted([Event(row.time, {}) for row in pairs(events)])


def counted(events: Sequence[Event]) -> list[Row]:
    """Return the number of events in each window of ten seconds."""
    counts: list[Row] = grouped(TEN, count_all, keys=())(events)
    return counts


def looked_up(events: Sequence[Event]) -> list[Row]:
    """Return the place of each event whose key the version that is in force has."""
    rows = []
    for event in events:
        places = [places for start, places in VERSIONS if start <= event.time][-1]
        if event.payload["k"] in places:
            rows.append((event.time, event.payload["id"], places[event.payload["k"]]))
    return inside(rows)


def windows_again(events: Sequence[Event]) -> list[Row]:
    """Return the largest count of windows of five seconds, in windows of ten."""
    counts = grouped(Hopping(seconds(5), seconds(5)), count_all)(events)
    steps = [Event(end, {"k": k, "c": c}) for end, k, c in counts]
    largest: list[Row] = grouped(TEN, lambda each: max(values(each, "c")))(steps)
    return largest


def rises(events: Sequence[Event]) -> list[Row]:
    """Return how often n is larger than that of the event before, in windows of ten seconds."""
    before = oracle_analytics.lag(events, Over(seconds(5)), field("n"))
    rows = zip(oracle_analytics.in_order(events), before, strict=True)
    risen = [row for row, earlier in rows if earlier is not None and row.payload["n"] > earlier]
    return counted(risen)


def with_large_n(events: Sequence[Event]) -> list[Row]:
    """Return the counts of the groups whose largest n is more than three."""
    rows = grouped(TEN, count_all, lambda each: max(values(each, "n")))(events)
    return [row[:3] for row in rows if row[3] > 3]


def united(events: Sequence[Event]) -> list[Row]:
    small = [(event.time, event.payload["id"], "small") for event in events if event.payload["n"] < 3]
    return inside([*small, *((event.time, event.payload["id"], event.payload["k"]) for event in events)])


def elements(events: Sequence[Event]) -> list[Row]:
    return inside([(event.time, event.payload["id"], place) for event in events for place in event.payload["list"]])


def count_all(content: Content) -> int:
    return len(content.members)


def top(number: int) -> Callable[[Content], Any]:
    def ids(content: Content) -> Any:
        picked = oracle_windows.collect_top(content.members, number, "id", ("n", "DESC"))
        return tuple(each["value"] for each in picked)

    return ids


def same_n(event: Event, others: Sequence[Event]) -> bool:
    return any(other.payload["n"] == event.payload["n"] for other in others)


def always(event: Event, others: Sequence[Event]) -> bool:
    return True


TIME = "System.Timestamp() AS t"
LAST = "OVER (LIMIT DURATION(second, 5) WHEN n > 2)"
SELF_JOIN = (
    "FROM telemetry a {}JOIN telemetry b ON a.k = b.k AND a.id <> b.id AND DATEDIFF(second, a, b) BETWEEN 0 AND 2"
)


def of_group(select: str, window: str) -> str:
    return f"SELECT {TIME}, k, {select} INTO out FROM telemetry GROUP BY k, {window}"


KINDS = {
    "tumbling": Kind(of_group("COUNT(*) AS c", "TumblingWindow(second, 10)"), grouped(TEN, count_all)),
    "hopping": Kind(
        of_group("SUM(n) AS s, AVG(n) AS a", "HoppingWindow(second, 10, 4)"),
        grouped(
            Hopping(seconds(10), seconds(4)),
            lambda each: sum(values(each, "n")),
            lambda each: oracle_windows.average(values(each, "n")),
        ),
    ),
    "sliding": Kind(of_group("COUNT(*) AS c", "SlidingWindow(second, 3)"), grouped(Sliding(seconds(3)), count_all)),
    "sliding min": Kind(
        of_group("MIN(n) AS m", "SlidingWindow(second, 3)"),
        grouped(Sliding(seconds(3)), lambda each: min(values(each, "n"))),
        same_n,
    ),
    "snapshot": Kind(of_group("COUNT(*) AS c", "System.Timestamp()"), grouped(Snapshot(), count_all)),
    "session": Kind(
        of_group("COUNT(*) AS c", "SessionWindow(second, 3, 8)"), grouped(Session(seconds(3), seconds(8)), count_all)
    ),
    "session by key": Kind(
        of_group("COUNT(*) AS c", "SessionWindow(second, 3, 10) OVER (PARTITION BY k)"),
        grouped(Session(seconds(3), seconds(10), ("k",)), count_all),
    ),
    "min and max": Kind(
        of_group("MIN(n) AS a, MAX(n) AS b", "TumblingWindow(second, 10)"),
        grouped(TEN, lambda each: min(values(each, "n")), lambda each: max(values(each, "n"))),
        same_n,
    ),
    "count distinct": Kind(
        of_group("COUNT(DISTINCT n) AS c", "TumblingWindow(second, 10)"),
        grouped(TEN, lambda each: len(set(values(each, "n")))),
        same_n,
    ),
    "topone": Kind(
        of_group("TopOne(id) OVER (ORDER BY n DESC) AS i", "TumblingWindow(second, 10)"),
        grouped(TEN, lambda each: oracle_windows.top_one(each.members, "id", ("n", "DESC"))),
    ),
    "collecttop": Kind(
        of_group("CollectTop(2, id) OVER (ORDER BY n DESC) AS i", "TumblingWindow(second, 10)"), grouped(TEN, top(2))
    ),
    "having": Kind(
        of_group("COUNT(*) AS c", "TumblingWindow(second, 10) HAVING MAX(n) > 3"),
        lambda events: [
            row[:3] for row in grouped(TEN, count_all, lambda each: max(values(each, "n")))(events) if row[3] > 3
        ],
    ),
    "variance": Kind(
        of_group("COUNT(*) AS c, MAX(id) AS i, ROUND(VARP(n), 6) AS v", "TumblingWindow(second, 10)"),
        grouped(
            TEN,
            count_all,
            lambda each: max(values(each, "id")),
            lambda each: round(oracle_windows.variance(values(each, "n"), population=True) or 0.0, 6),
        ),
    ),
    "percentile": Kind(
        of_group("PERCENTILE_DISC(0.5) OVER (ORDER BY n) AS p, COUNT(*) AS c", "TumblingWindow(second, 10)"),
        grouped(TEN, lambda each: oracle_windows.percentile_disc(values(each, "n"), "0.5"), count_all),
    ),
    "match": Kind(
        f"SELECT {TIME}, i, j INTO out FROM telemetry MATCH_RECOGNIZE (LIMIT DURATION(second, 20) PARTITION BY k "
        "MEASURES First(A.id) AS i, Last(B.id) AS j AFTER MATCH SKIP TO NEXT ROW PATTERN (A . B) "
        "DEFINE A AS A.n > 1, B AS B.n > Max(A.n)) AS m",
        matched,
    ),
    "join": Kind(f"SELECT {TIME}, a.id AS i, b.id AS j INTO out {SELF_JOIN.format('')}", joined),
    "left join": Kind(
        f"SELECT {TIME}, a.id AS i, b.id AS j INTO out {SELF_JOIN.format('LEFT ')}",
        lambda events: joined(events, outer=True),
    ),
    "window over a join": Kind(
        f"SELECT {TIME}, COUNT(*) AS c INTO out {SELF_JOIN.format('')} GROUP BY TumblingWindow(second, 10)",
        pairs_in_windows,
    ),
    "reference data": Kind(
        f"SELECT {TIME}, telemetry.id AS i, places.place AS p INTO out "
        "FROM telemetry JOIN places ON telemetry.k = places.k",
        looked_up,
    ),
    "lag": Kind(
        f"SELECT {TIME}, id, LAG(id, 2) OVER (PARTITION BY k LIMIT DURATION(second, 9)) AS p INTO out FROM telemetry",
        analytic(lambda events: oracle_analytics.lag(events, Over(seconds(9), ("k",)), field("id"), 2)),
    ),
    "last": Kind(
        f"SELECT {TIME}, id, LAST(id) {LAST} AS p INTO out FROM telemetry",
        analytic(
            lambda events: oracle_analytics.last(
                events, Over(seconds(5), (), lambda payload: payload["n"] > 2), field("id")
            )
        ),
    ),
    "isfirst": Kind(
        f"SELECT {TIME}, id, ISFIRST(second, 10) OVER (PARTITION BY k) AS f INTO out FROM telemetry",
        analytic(lambda events: oracle_analytics.is_first(events, seconds(10), ("k",))),
        always,
    ),
    "count over": Kind(
        f"SELECT {TIME}, id, COUNT(*) OVER (PARTITION BY k LIMIT DURATION(second, 5)) AS c INTO out FROM telemetry",
        analytic(lambda events: oracle_analytics.aggregate(events, Over(seconds(5), ("k",)), "COUNT")),
    ),
    "max over": Kind(
        f"SELECT {TIME}, id, MAX(n) OVER (PARTITION BY k LIMIT DURATION(second, 5)) AS m INTO out FROM telemetry",
        analytic(lambda events: oracle_analytics.aggregate(events, Over(seconds(5), ("k",)), "MAX", field("n"))),
        same_n,
    ),
    "collecttop over": Kind(
        f"SELECT {TIME}, id, CollectTop(2, id) OVER (PARTITION BY k ORDER BY n DESC LIMIT DURATION(second, 5)) AS c "
        "INTO out FROM telemetry",
        analytic(
            lambda events: [
                tuple(each["value"] for each in ranks)
                for ranks in oracle_analytics.collect_top_of_history(
                    events, Over(seconds(5), ("k",)), 2, "id", ("n", "DESC")
                )
            ]
        ),
    ),
    "windows over windows": Kind(
        "WITH s AS (SELECT k, COUNT(*) AS c FROM telemetry GROUP BY k, TumblingWindow(second, 5)) "
        f"SELECT {TIME}, k, MAX(c) AS m INTO out FROM s GROUP BY k, TumblingWindow(second, 10)",
        windows_again,
        always,
    ),
    "window over lag": Kind(
        "WITH s AS (SELECT n, LAG(n) OVER (LIMIT DURATION(second, 5)) AS b FROM telemetry) "
        f"SELECT {TIME}, COUNT(*) AS c INTO out FROM s WHERE n > b GROUP BY TumblingWindow(second, 10)",
        rises,
        always,
    ),
    "union": Kind(
        f"SELECT {TIME}, id, 'small' AS s INTO out FROM telemetry WHERE n < 3 "
        f"UNION SELECT {TIME}, id, k AS s FROM telemetry",
        united,
    ),
    "apply": Kind(
        f"SELECT {TIME}, e.id AS i, a.ArrayValue AS v INTO out FROM telemetry e CROSS APPLY GetArrayElements(e.list) a",
        elements,
    ),
    "all columns": Kind(
        "SELECT t, id, k, n INTO out FROM (SELECT System.Timestamp() AS t, * FROM telemetry) AS s",
        lambda events: inside([(each.time, *(each.payload[name] for name in ("id", "k", "n"))) for each in events]),
    ),
}
"""Kinds of query by name."""
