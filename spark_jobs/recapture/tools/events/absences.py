"""What a query looked for and did not find, although a row depends on it: an absence has no events to name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recapture.evaluate.bounds import SliceBounds
from recapture.evaluate.conditions import parts_of, side_of
from recapture.evaluate.values import evaluated
from recapture.model import kind_name
from recapture.query.plan.analytics import EarlierValue
from recapture.query.plan.expressions import Expr, columns_of
from recapture.query.plan.joins import JoinedTable, Lookup, side_column
from recapture.time_model import ticks
from recapture.tokens import text_of
from recapture.tools.events.event import json_value
from recapture.tools.events.histories import LookedAt

_TIME = "_system_timestamp"
Int64s = NDArray[np.int64]


@dataclass(frozen=True)
class Absence:
    """Rows that were looked for and not found."""

    by: str
    """What looked for them, such as LEFT JOIN."""
    table: str
    """Input, reference data or step without such rows."""
    times: tuple[tuple[str, int], ...]
    """Bounds of their System.Timestamps, in ticks: `from` and `until` inclusive, `after` exclusive."""
    keys: tuple[tuple[str, Any], ...]
    """Columns with the values that the rows would have, in JSON types."""
    which: str = "no row"
    more: str = ""
    """What else they would have to fulfil."""

    @property
    def json_types(self) -> dict[str, Any]:
        """The absence in JSON types, and as a sentence."""
        times = {name: ticks.to_text(time) for name, time in self.times}
        range_ = "".join(f" {name} {time}" for name, time in times.items())
        keys = " and ".join(f"{name} {'NULL' if value is None else value}" for name, value in self.keys)
        text = f"{self.by} found {self.which} of {self.table}{range_}" + (f" with {keys}" if keys else "") + self.more
        return {"by": self.by, "table": self.table, **times, "keys": dict(self.keys), "text": text}


def of_join(
    table: JoinedTable, number: int, sides: Sequence[pa.Table], places: Sequence[int | None], bounds: SliceBounds
) -> Absence:
    """Return what a LEFT JOIN did not find for a joined row.

    `number` is that of the side without a row, and `places` has the place of the row of each side in its table.
    """
    join, side = table.joins[number - 1], table.sides[number]
    on = parts_of(join.condition, number)
    times = [None if place is None else rows[_TIME][place].as_py() for rows, place in zip(sides, places, strict=False)]
    lows = [
        time + bound.low for bound in on.bounds if bound.low is not None and (time := times[bound.side]) is not None
    ]
    highs = [
        time + bound.high for bound in on.bounds if bound.high is not None and (time := times[bound.side]) is not None
    ]
    if isinstance(join, Lookup):
        lows = highs = [max(time for time in times[:number] if time is not None)]
    range_ = [*([("from", max(lows))] if lows else []), *([("until", min(highs))] if highs else [])]
    keys = []
    for earlier, new in on.keys:
        row = _joined_row(earlier, sides, places)
        if row is not None:
            keys.append((_name(new, number), _value(row, earlier, bounds)))
    compared = set[str]().union(*(_fields(new, number) for _, new in on.keys))
    is_all = on.rest is None or _fields(on.rest, number) <= compared
    more = "" if is_all else ", that also meets the other conditions of ON"
    return Absence("LEFT JOIN", _shown(side.table), tuple(range_), tuple(keys), more=more)


def of_history(looked_at: LookedAt, place: int, table: str, rows: pa.Table, bounds: SliceBounds) -> Absence | None:
    """Return what an analytic function did not find for a row of a table; None if it found enough."""
    range_ = looked_at.missing(place)
    if range_ is None:
        return None
    function = looked_at.function
    row = rows.slice(place, 1)
    keys = tuple((_name(key, None), _value(row, key, bounds)) for key in function.history.keys)
    by, which, more = "ISFIRST", "no row", ", before this one"
    if isinstance(function, EarlierValue):
        by = "LAG" if function.steps else "LAST"
        which = f"fewer than {function.steps} rows" if function.steps > 1 else which
        more = more if function.steps else ""
    if function.history.when is not None:
        more += ", for which WHEN is true"
    after, last = range_
    return Absence(by, _shown(table), (("after", after), ("until", last)), keys, which, more)


def _joined_row(expression: Expr, sides: Sequence[pa.Table], places: Sequence[int | None]) -> pa.Table | None:
    """Return the columns of a joined row that an expression reads; None if a side has no row, or not this column."""
    columns: dict[str, pa.ChunkedArray] = {}
    for name in columns_of(expression):
        number = side_of(name)
        inner, place = name.removeprefix(side_column(number, "")), places[number]
        if place is None or inner not in sides[number].column_names:
            return None
        columns[name] = sides[number][inner].slice(place, 1)
    return pa.table(columns) if columns else None


def _value(row: pa.Table, expression: Expr, bounds: SliceBounds) -> Any:
    (values,) = evaluated(row, [expression], bounds)
    value = json_value(values[0].as_py())
    return text_of(value) if isinstance(value, str) else value


def _name(expression: Expr, side: int | None) -> str:
    """Return the name of the only field that a key reads."""
    fields = sorted(_fields(expression, side))
    return fields[0] if len(fields) == 1 else "a computed key"


def _fields(expression: Expr, side: int | None) -> set[str]:
    """Return the fields of a row, or of a side's rows, that an expression reads; their types are no fields."""
    prefix = "" if side is None else side_column(side, "")
    names = {name.removeprefix(prefix) for name in columns_of(expression) if name.startswith(prefix)}
    return names - set(map(kind_name, names))


def _shown(table: str) -> str:
    return "a step" if table.startswith("step ") else table.removeprefix("input ").removeprefix("reference ")


def in_json_types(absences: Sequence[Absence]) -> tuple[Mapping[str, Any], ...]:
    """Return absences in JSON types, each once."""
    return tuple(absence.json_types for absence in dict.fromkeys(absences))
