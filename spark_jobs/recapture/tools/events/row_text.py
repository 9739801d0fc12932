"""The values of `--row`, and the rows that have them."""

import math
import re
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recapture.errors import DefinitionError
from recapture.model import AsaType, OutputColumn
from recapture.process.wording import did_you_mean
from recapture.query.plan.relations import SLICE_START
from recapture.time_model import ticks

_NULL = "NULL"
"""How a value that is NULL is written."""
Values = Mapping[str, int | float | str | bool | None]
"""Values of columns, by name; a datetime is in ticks."""


def values_of(row: str, output: str, columns: Sequence[OutputColumn]) -> Values:
    """Return the values that a text gives to columns of an output: a=1,b=x,y => {"a": 1, "b": "x,y"}

    The column `slice_start` may be among them. Raise DefinitionError if the text does not name columns, or if a value
    is not of its column's type.
    """
    by_name = {column.name.lower(): column for column in (*columns, OutputColumn(SLICE_START, AsaType.DATETIME))}
    names = "|".join(map(re.escape, by_name))
    values = {}
    for part in re.split(rf",(?=(?:{names})=)", row, flags=re.IGNORECASE):
        name, equals, value = part.partition("=")
        if not equals:
            raise DefinitionError(
                f"--row {row} does not name a row: write it as windowEnd=2026-03-01T10:05Z,deviceId=a"
            )
        column = by_name.get(name.strip().lower())
        if column is None:
            known = [column.name for column in columns]
            advice = did_you_mean(name.strip(), known) or f"choose some of {', '.join(known)}"
            raise DefinitionError(f"--row {row}: {output} has no column {name.strip()}; {advice}")
        values[column.name] = _typed(column, value)
    return values


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


def having(rows: pa.Table, values: Values) -> NDArray[np.bool_]:
    """Return which published rows have these values."""
    has = np.ones(len(rows), np.bool_)
    for name, value in values.items():
        has &= has_value(rows[name], value)
    return has


def has_value(column: pa.ChunkedArray, value: int | float | str | bool | None) -> NDArray[np.bool_]:
    """Return which values of a published column are this one; NULL is NULL, and NaN is NaN."""
    if value is None:
        same = pc.is_null(column)
    elif isinstance(value, float) and math.isnan(value):
        same = pc.is_nan(column)
    elif pa.types.is_timestamp(column.type):
        assert isinstance(value, int)
        micros = (value - ticks.UNIX_EPOCH) // ticks.TICKS_PER_MICROSECOND
        same = pc.equal(column.cast(pa.int64()), micros)
    else:
        same = pc.equal(column, pa.scalar(value, column.type))
    return np.asarray(pc.fill_null(same, False).to_numpy())
