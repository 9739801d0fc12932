"""The events that made any row of any kind of query: they alone give the row, and without one of them it is another."""

import json
from collections import Counter
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recapture.evaluate.bounds import SliceBounds
from recapture.execute.shared_keys import keys_of_column
from recapture.formats.event_hubs import CaptureInput
from recapture.model import InputMetadata
from recapture.ordering.order import schema
from recapture.query.compile import compile_query
from recapture.query.model import CompiledQuery
from recapture.tools.events.lineage import roles_of_sources
from recapture.tools.events.roles import Role
from recapture.tools.events.traced_tables import TracedTables
from tests.draws import slow
from tests.evaluate.relations import START
from tests.oracle_windows import Event
from tests.tools.events.lineage_kinds import KINDS, LENGTH, VERSIONS, Kind, Row, seconds

DECLARED = """
CREATE TABLE telemetry (id bigint, k nvarchar(max), n bigint, list array);
CREATE TABLE places (k nvarchar(max), place nvarchar(max));
"""
MOST_ROWS = 6
"""Number of rows that are explained for each kind of query in one world."""


@cache
def compiled(query: str) -> CompiledQuery:
    inputs: dict[str, InputMetadata | None] = {"telemetry": CaptureInput.metadata}
    declared = DECLARED.partition("CREATE TABLE places")[0]
    if "places" in query:
        inputs, declared = inputs | {"places": None}, DECLARED
    return compile_query(
        declared + query,
        inputs=inputs,
        output_aliases=["out"],
        in_tasks=False,
    )


@st.composite
def worlds(draw: st.DrawFn) -> list[Event]:
    """Draw events of a minute and of some seconds before, in arrival order."""
    times = sorted(draw(st.lists(st.integers(-20, 120), min_size=5, max_size=14)))
    return [
        Event(
            START + seconds(time / 2),
            {
                "id": number,
                "k": draw(st.sampled_from(["a", "a", "b", None])),
                "n": draw(st.integers(1, 5)),
                "list": draw(st.lists(st.integers(0, 9), max_size=2)),
            },
        )
        for number, time in enumerate(times)
    ]


def traced(query: CompiledQuery, events: list[Event]) -> TracedTables:
    """Return the tables of a query over events."""
    (read,), (output,) = query.inputs, query.outputs
    rows = [
        {**event.payload, "list": json.dumps(event.payload["list"])}
        | {"_partition": "0", "_slice_start": START, "_slice_end": START + LENGTH}
        | {"_system_timestamp": event.time, "_arrival": event.time}
        for event in events
    ]
    columns = schema(read)
    views = {read.view: pa.Table.from_pylist([{name: row[name] for name in columns.names} for row in rows], columns)}
    for reference in query.references:
        ends = [start for start, _ in VERSIONS[1:]] + [2**63 - 1]
        versions = [
            {"_valid_from": start, "_valid_until": end, "k": k, "place": place}
            for (start, places), end in zip(VERSIONS, ends, strict=True)
            for k, place in places.items()
        ]
        views[reference.view] = pa.Table.from_pylist(versions)
    return TracedTables(output.plan, SliceBounds(START, START + LENGTH), views.__getitem__)


def published(query: CompiledQuery, tables: TracedTables) -> list[tuple[int, Row]]:
    """Return the rows of the output in the slice, each with its place."""
    rows = tables.of(tables.tables.output.name).rows.to_pylist()
    names = [column.name for column in query.outputs[0].columns]
    made = [(place, tuple(_value(row[name]) for name in names)) for place, row in enumerate(rows)]
    return [(place, row) for place, row in made if START < row[0] <= START + LENGTH]


def _value(value: Any) -> Any:
    """Return a value as the oracle has it: of CollectTop, the values."""
    if isinstance(value, str) and value.startswith("["):
        return tuple(each["value"] for each in json.loads(value))
    return int(value) if isinstance(value, str) and value.isdecimal() else value


@pytest.mark.parametrize("name", KINDS)
@slow(8)
@given(events=worlds())
def test_the_named_events_alone_give_the_row_and_without_one_of_them_it_is_another(
    name: str, events: list[Event]
) -> None:
    kind = KINDS[name]
    query = compiled(kind.query)
    tables = traced(query, events)
    rows = published(query, tables)
    assert Counter(row for _, row in rows) == Counter(map(tuple, kind.oracle(events)))
    for place, row in rows[:: max(1, len(rows) // MOST_ROWS)]:
        columns = [column.name for column in query.outputs[0].columns]
        roles = roles_of_sources(tables, np.array([place]), columns)
        event_roles = next(row_roles for view, row_roles in roles.items() if "telemetry" in view)
        require_exact(kind, row, events, event_roles)
        require_same_of_piece(query, events, row, event_roles)
        if "k" in columns and keys_of_column(query, query.outputs[0], "k"):
            require_same_of_key(query, events, row[columns.index("k")], row, event_roles)


def require_same_of_key(
    query: CompiledQuery, events: list[Event], key: str | None, row: Row, roles: np.ndarray
) -> None:
    """Fail unless the events with the key of a row alone give the row, with the same roles."""
    has_key = np.array([event.payload["k"] == key for event in events])
    tables = traced(query, [event for event in events if event.payload["k"] == key])
    place = next(place for place, other in published(query, tables) if other == row)
    (key_roles,) = roles_of_sources(
        tables, np.array([place]), [column.name for column in query.outputs[0].columns]
    ).values()
    assert key_roles.tolist() == roles[has_key].tolist()
    assert not roles[~has_key].any()


def require_same_of_piece(query: CompiledQuery, events: list[Event], row: Row, roles: np.ndarray) -> None:
    """Fail unless the events that are needed for the time of a row alone give the row, with the same roles."""
    (read,), piece = query.inputs, SliceBounds(row[0] - 1, row[0])
    is_needed = read.needs(np.array([event.time for event in events]), piece.start, piece.end)
    needed = [event for event, needs in zip(events, is_needed, strict=True) if needs]
    tables = replace(traced(query, needed), bounds=piece)
    place = next(place for place, other in published(query, tables) if other == row)
    (piece_roles,) = (
        row_roles
        for view, row_roles in roles_of_sources(
            tables, np.array([place]), [column.name for column in query.outputs[0].columns]
        ).items()
        if "telemetry" in view
    )
    assert piece_roles.tolist() == roles[is_needed].tolist()
    assert not roles[~is_needed].any()


def require_exact(kind: Kind, row: Row, events: list[Event], roles: np.ndarray) -> None:
    """Fail unless the named events, and those that decide, give the row, and do not without one that decides."""
    named = [event for event, role in zip(events, roles, strict=True) if role]
    assert row in kind.oracle(named)
    assert row in kind.oracle([event for event, role in zip(events, roles, strict=True) if role >= Role.TIMING])
    number = kind.oracle(named).count(row)
    for event, role in zip(events, roles, strict=True):
        others = [other for other in named if other is not event]
        if role == Role.DECIDING and kind.oracle(others).count(row) >= number:
            assert kind.may_stay(event, others)
