"""The events that made a row of a published table."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from recapture.definition.pipeline import Pipeline
from recapture.errors import DefinitionError
from recapture.model import AsaType, OutputColumn
from recapture.process.wording import did_you_mean
from recapture.query.merges import WINDOW_END, WINDOW_ID
from recapture.query.model import CompiledInput, CompiledOutput
from recapture.query.plan.expressions import column as plan_column
from recapture.run.slices import slice_length
from recapture.time_model import ticks
from recapture.time_model.slices import Slice
from recapture.tools.events.event import json_types, json_value
from recapture.tools.events.explain import Explainer
from recapture.tools.events.groups import Grouping, Keys, groupings_of
from recapture.tools.events.plans import SlicePlan
from recapture.tools.events.reading import InputToSearch

EARLIEST = ticks.UNIX_EPOCH
"""Earliest end of a window whose row is looked for: no archive has older events."""
_NULL = "NULL"
"""How a key that is NULL is written."""


@dataclass(frozen=True)
class Lineage:
    """A row, and the events that made it."""

    pipeline: Pipeline
    grouping: Grouping
    plan: SlicePlan
    end: int
    """End of the row's window, in ticks."""
    row: dict[str, Any] | None
    """Published columns in JSON types; None if there is no such row."""
    why: str | None
    """Why there is no such row; None if there is one."""
    events: pa.Table
    """Events of the group, with `reading.SCHEMA`."""

    @property
    def warnings(self) -> list[str]:
        """Warnings, one sentence each."""
        if self.plan.note is None:
            return []
        return [f"slice {ticks.to_text(self.plan.slice.start)}: {self.plan.note}; this is what a run would give now"]

    @property
    def summary(self) -> dict[str, Any]:
        """The lineage in JSON types."""
        return {
            "pipeline": self.pipeline.name,
            "output": self.grouping.output.alias,
            "window": {
                "start": ticks.to_text(self.end - self.grouping.window.window.size),
                "end": ticks.to_text(self.end),
                "slice_start": ticks.to_text(self.plan.slice.start),
                "published_by": self.plan.published_by,
            },
            "row": self.row,
            "why": self.why,
            "events": json_types(self.events),
            "warnings": [*self.pipeline.warnings, *self.warnings],
        }


def lineage(explainer: Explainer, row: str, alias: str | None) -> Lineage:
    """Return the events that made a row, NAME=VALUE,… of its window end and all its keys.

    `alias` is the output; None for the only one. Raise DefinitionError if the text does not name a row, or if events
    cannot be followed through the query of the output yet; other errors are those of `reading.read_events`.
    """
    pipeline = explainer.pipeline
    output = _output(pipeline, alias)
    groupings = [(read, grouping) for read in pipeline.query.inputs for grouping in groupings_of(output, read.view)]
    _require_followed(pipeline, output, groupings)
    values = _values(row, output)
    compiled, grouping = _chosen(groupings, values)
    end, keys = _place(grouping, values)
    if not EARLIEST <= end <= ticks.from_datetime(explainer.now):
        raise DefinitionError("--row: the window must end after 1970 and not in the future")
    hopping = grouping.window.window
    if (end - hopping.offset) % hopping.hop:
        raise DefinitionError(f"--row: no window of the query ends at {ticks.to_text(end)}")
    length = slice_length(pipeline)
    start = (end - 1) // length * length
    (plan,) = explainer.plans.of(compiled.alias, [Slice(start, start + length)])
    rows, events = explainer.group(InputToSearch.of(pipeline, compiled), plan, grouping, keys)
    times = events["system_timestamp"]
    is_inside = pc.and_(pc.greater(times, end - hopping.size), pc.less_equal(times, end))
    made = next((made for made in rows if made.end == end), None)
    why = "no event is in this window with these keys" if made is None else None
    if made is not None and not made.is_published:
        why = "a condition on the group, such as HAVING, drops the row"
    columns = None if made is None or why else {name: json_value(value) for name, value in made.columns.items()}
    return Lineage(pipeline, grouping, plan, end, columns, why, events.filter(is_inside))


def _output(pipeline: Pipeline, alias: str | None) -> CompiledOutput:
    outputs = {output.alias.lower(): output for output in pipeline.query.outputs}
    known = [output.alias for output in outputs.values()]
    if alias is None and len(outputs) > 1:
        raise DefinitionError(f"the query writes to several outputs: choose one with --output: {', '.join(known)}")
    if alias is not None and alias.lower() not in outputs:
        advice = did_you_mean(alias, known) or f"choose one of {', '.join(known)}"
        raise DefinitionError(f"--output {alias}: the query has no output of this name; {advice}")
    return outputs[alias.lower()] if alias is not None else next(iter(outputs.values()))


def _require_followed(pipeline: Pipeline, output: CompiledOutput, groupings: Sequence[object]) -> None:
    """Raise DefinitionError unless the events of an output's rows can be named."""
    reads = pipeline.query.inputs
    because = output.not_merged_because or next((r.not_aggregated_because for r in reads), None)
    if len(output.selects) > 1:
        because = "several SELECTs write to it"
    if because is not None or not groupings:
        raise DefinitionError(
            f"the events of a row of {output.alias} cannot be named yet: {because or 'no GROUP BY writes to it'}; this "
            "works for one GROUP BY with tumbling or hopping windows over one input"
        )


def _values(row: str, output: CompiledOutput) -> dict[str, str]:
    """Return the values that a text gives to columns of an output: a=1,b=x,y => {"a": "1", "b": "x,y"}"""
    columns = {column.name.lower(): column.name for column in output.columns}
    names = "|".join(map(re.escape, columns))
    values = {}
    for part in re.split(rf",(?=(?:{names})=)", row, flags=re.IGNORECASE):
        name, equals, value = part.partition("=")
        if not equals:
            raise DefinitionError(
                f"--row {row} does not name a row: write it as windowEnd=2026-03-01T10:05Z,deviceId=a"
            )
        if name.strip().lower() not in columns:
            known = [column.name for column in output.columns]
            advice = did_you_mean(name.strip(), known) or f"choose some of {', '.join(known)}"
            raise DefinitionError(f"--row {row}: {output.alias} has no column {name.strip()}; {advice}")
        values[columns[name.strip().lower()]] = value
    return values


def _chosen(
    groupings: Sequence[tuple[CompiledInput, Grouping]], values: dict[str, str]
) -> tuple[CompiledInput, Grouping]:
    """Return the window whose name the values give; the only one if there is only one."""
    if len(groupings) == 1:
        return groupings[0]
    select = groupings[0][1].select
    ids = [column.name for column, value in select.columns if value == plan_column(WINDOW_ID)]
    known = ", ".join(str(grouping.window.id) for _, grouping in groupings)
    if not ids:
        raise DefinitionError(
            "the rows of several windows cannot be told apart: publish System.Window().Id as a column of the output"
        )
    named = [(read, grouping) for read, grouping in groupings if values.get(ids[0]) == grouping.window.id]
    if not named:
        raise DefinitionError(f"--row must name the window of the row: add {ids[0]}= and one of {known}")
    return named[0]


def _place(grouping: Grouping, values: dict[str, str]) -> tuple[int, Keys]:
    """Return the window end and the keys of the row that the values name."""
    by_value = {value: column for column, value in reversed(grouping.select.columns)}
    places = {plan_column(WINDOW_END): "its window's end, System.Timestamp()"}
    places |= {plan_column(key.name): "a key of GROUP BY" for key in grouping.keys}
    missing = [meaning for value, meaning in places.items() if value not in by_value]
    if missing:
        raise DefinitionError(
            f"the rows of {grouping.output.alias} cannot be told apart: it has no column that is {missing[0]}"
        )
    absent = [by_value[value].name for value in places if by_value[value].name not in values]
    if absent:
        raise DefinitionError(f"--row must name the end of the window and all keys: add {', '.join(absent)}")
    end, *keys = (_typed(by_value[value], values[by_value[value].name]) for value in places)
    if not isinstance(end, int):
        raise DefinitionError(f"--row: {by_value[plan_column(WINDOW_END)].name} is never NULL")
    return end, tuple(keys)


def _typed(column: OutputColumn, text: str) -> int | float | str | bool | None:
    """Return a value of a column; a datetime is in ticks. Raise DefinitionError if the text is not one."""
    if text == _NULL:
        return None
    try:
        match column.type:
            case AsaType.BIGINT:
                return int(text)
            case AsaType.FLOAT:
                return float(text)
            case AsaType.DATETIME:
                return ticks.from_datetime(ticks.parse_utc(text))
            case AsaType.BIT:
                return {"true": True, "false": False}[text.lower()]
    except (ValueError, KeyError):
        raise DefinitionError(f"--row: {column.name}={text} is not a {column.type}") from None
    return text
