"""The rows that an event affects, for every kind of query: those of a whole slice that are others without the event."""

import json
from collections import Counter
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from recapture.definition.pipeline import Pipeline
from recapture.evaluate.bounds import SliceBounds
from recapture.evaluate.statement import SliceEvaluation
from recapture.query.model import UNANCHORED_COLUMN, CompiledQuery
from recapture.time_model import ticks
from recapture.time_model.slices import Slice
from recapture.tools.events.affected import AffectedRows, ProcessedEvent
from recapture.tools.events.event import json_value
from recapture.tools.events.plans import Plans
from recapture.tools.events.room import Room
from recapture.tools.events.slice_events import SliceSources
from tests.tools.events.lineage_kinds import KINDS
from tests.tools.events.test_lineage import DECLARED
from tests.worlds import HOUR, TEN, World, at

LATER = TEN + 1000 * HOUR
START = ticks.from_datetime(TEN)
SLICE = Slice(START, START + ticks.from_seconds(3600))
ASKED = 5
"""Number of events that are asked for."""


def sources(pipeline: Pipeline, query: CompiledQuery) -> SliceSources:
    """Return what the query reads in the whole slice."""
    return SliceSources(pipeline, Plans(pipeline, LATER), query, SLICE, SLICE, {}, Room(1_000_000, ""))


def rows(query: CompiledQuery, events: pa.Table) -> Counter[tuple[Any, ...]]:
    """Return the rows of the whole slice."""
    bounds = SliceBounds(SLICE.start, SLICE.end, query.python_functions)
    table = SliceEvaluation(bounds, lambda view: events, lambda view: pa.table({})).rows(query.outputs[0])
    columns = [table[name].to_pylist() for name in table.column_names if name != UNANCHORED_COLUMN]
    return Counter(zip(*columns, strict=True))


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if "places" not in kind.query])
def test_the_rows_that_events_affect_are_those_of_the_whole_slice_that_are_others_without_them(
    name: str, tmp_path: Path
) -> None:
    random, world = Random(name), World(tmp_path)
    for number, time in enumerate(sorted(random.sample(range(-40, 240), 24))):
        event = {"id": number, "k": random.choice("aabc"), "n": random.randint(1, 5), "list": [number]}
        world.put("0", TEN + timedelta(seconds=time / 8), [json.dumps(event).encode()], first=number)
    world.put("0", at(90))
    query = DECLARED.partition("CREATE TABLE places")[0] + KINDS[name].query.replace("INTO out", "INTO aggregates")
    pipeline = world.define(query)
    unaggregated = pipeline.compile(pipeline.job.query, in_tasks=False)
    (read,), (output,) = unaggregated.inputs, unaggregated.outputs
    slice_events = sources(pipeline, unaggregated).events[read.view]
    events = slice_events.rows
    judged = slice_events.with_roles(np.ones(len(events), np.int8)).to_pylist()
    asked = sorted(random.sample(range(len(events)), ASKED))
    whole = rows(unaggregated, events)
    affected = AffectedRows(
        pipeline,
        Plans(pipeline, LATER),
        [ProcessedEvent("telemetry", judged[place]["system_timestamp"], view_at(events, place)) for place in asked],
    )
    affects_rows = False
    for place in asked:
        others = events.take(pa.array(np.delete(np.arange(len(events)), place)))
        made = affected.of(judged[place], output.alias)
        shown = Counter(json.dumps(row["row"]) for row in made if row["slice_start"] == ticks.to_text(SLICE.start))
        names = [column.name for column in output.columns]
        expected = (whole - rows(unaggregated, others)).elements()
        assert shown == Counter(json.dumps(in_json(dict(zip(names, row, strict=True)))) for row in expected)
        affects_rows |= bool(shown)
    assert affects_rows


def view_at(events: pa.Table, place: int) -> pa.RecordBatch:
    (batch,) = events.slice(place, 1).combine_chunks().to_batches()
    return batch


def in_json(row: dict[str, Any]) -> dict[str, Any]:
    return {name: json_value(value) for name, value in row.items()}
