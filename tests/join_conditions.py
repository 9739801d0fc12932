"""Conditions of ON besides time, as the oracle of JOINs takes them."""

from tests.oracle_joins import Row
from tests.oracle_windows import Event


def always(row: Row, event: Event) -> bool:
    return True


def same_key(row: Row, event: Event) -> bool:
    """a.k = …, which is false for NULL."""
    [first, *_] = row.events
    return first is not None and first.payload["k"] is not None and first.payload["k"] == event.payload["k"]


def other_id(row: Row, event: Event) -> bool:
    """a.id < b.id OR a.x > b.x"""
    [first, *_] = row.events
    assert first is not None
    x, y = first.payload["x"], event.payload["x"]
    return first.payload["id"] < event.payload["id"] or (x is not None and y is not None and x > y)
