"""Analytic functions of ASAQL, each with what the oracle gives."""

from collections.abc import Callable
from typing import Any

from recapture.time_model.ticks import TICKS_PER_SECOND
from tests.oracle_analytics import (
    Over,
    Payload,
    aggregate,
    collect_top_of_history,
    field,
    is_first,
    lag,
    last,
    top_of_history,
)
from tests.oracle_windows import Event

LENGTH = 10 * TICKS_PER_SECOND
LIMIT = "LIMIT DURATION(second, 10)"
X = field("x")


def n_is_positive(payload: Payload) -> bool:
    return payload["n"] is not None and payload["n"] > 0


def minus_id(payload: Payload) -> int:
    return -payload["id"]


ALL, KEYED = Over(LENGTH), Over(LENGTH, ("k",))
MET, KEYED_MET = Over(LENGTH, when=n_is_positive), Over(LENGTH, ("k", "n"), n_is_positive)

VALUES: dict[str, Callable[[list[Event]], list[Any]]] = {
    f"LAG(id) OVER ({LIMIT})": lambda events: lag(events, ALL, field("id")),
    f"LAG(x, 2) OVER (PARTITION BY k {LIMIT})": lambda events: lag(events, KEYED, X, 2),
    f"LAG(id, 1, -id) OVER ({LIMIT} WHEN n > 0)": lambda events: lag(events, MET, field("id"), 1, minus_id),
    f"LAG(x, 3, 0.5) OVER (PARTITION BY k, n {LIMIT} WHEN n > 0)": lambda events: lag(
        events, KEYED_MET, X, 3, lambda _: 0.5
    ),
    f"LAG(x, 2) OVER (PARTITION BY k, n {LIMIT} WHEN n > 0)": lambda events: lag(events, KEYED_MET, X, 2),
    f"LAST(x, 0.5) OVER ({LIMIT} WHEN n > 0)": lambda events: last(events, MET, X, lambda _: 0.5),
    f"LAST(id) OVER (PARTITION BY k {LIMIT})": lambda events: last(events, KEYED, field("id")),
    "ISFIRST(second, 10)": lambda events: is_first(events, LENGTH),
    "ISFIRST(second, 10) OVER (PARTITION BY k WHEN n > 0)": lambda events: is_first(
        events, LENGTH, ("k",), n_is_positive
    ),
    f"COUNT(*) OVER ({LIMIT})": lambda events: aggregate(events, ALL, "COUNT"),
    f"COUNT(x) OVER ({LIMIT} WHEN n > 0)": lambda events: aggregate(events, MET, "COUNT", X),
    f"SUM(n) OVER (PARTITION BY k {LIMIT})": lambda events: aggregate(events, KEYED, "SUM", field("n")),
    f"AVG(x) OVER ({LIMIT})": lambda events: aggregate(events, ALL, "AVG", X),
    f"MIN(x) OVER (PARTITION BY k, n {LIMIT} WHEN n > 0)": lambda events: aggregate(events, KEYED_MET, "MIN", X),
    f"MAX(n) OVER (PARTITION BY k {LIMIT})": lambda events: aggregate(events, KEYED, "MAX", field("n")),
    f"Collect(x) OVER (PARTITION BY k {LIMIT})": lambda events: aggregate(events, KEYED, "COLLECT", X),
    f"Collect(id) OVER ({LIMIT} WHEN n > 0)": lambda events: aggregate(events, MET, "COLLECT", field("id")),
    f"TopOne(id) OVER (PARTITION BY k ORDER BY x DESC, n {LIMIT})": lambda events: top_of_history(
        events, KEYED, "id", ("x", "DESC"), ("n", "ASC")
    ),
    f"TopOne(x) OVER (ORDER BY n {LIMIT} WHEN n > 0)": lambda events: top_of_history(events, MET, "x", ("n", "ASC")),
    f"CollectTop(2, x) OVER (ORDER BY n DESC {LIMIT})": lambda events: collect_top_of_history(
        events, ALL, 2, "x", ("n", "DESC")
    ),
    f"CollectTop(3, id) OVER (PARTITION BY k, n ORDER BY x {LIMIT} WHEN n > 0)": lambda events: collect_top_of_history(
        events, KEYED_MET, 3, "id", ("x", "ASC")
    ),
}
"""Analytic functions, each with what the oracle gives for events in order."""
