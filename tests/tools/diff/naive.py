"""The difference between two lists of rows, found one row after another, without DuckDB."""

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

Row = Mapping[str, Any]


def plain(value: Any) -> Any:
    """Return a value that is equal only to the values that count as equal to this one."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value


def naive_difference(
    before: Sequence[Row], after: Sequence[Row], columns: Mapping[str, type], key: Sequence[str]
) -> dict[str, Any]:
    """Return the counts and the columns of a difference, as its document has them.

    `columns` are those of all rows, with the types of their values.
    """
    old, new = list(before), list(after)
    for row in before:
        for other in new:
            if all(plain(row[name]) == plain(other[name]) for name in row):
                old.remove(row)
                new = [kept for kept in new if kept is not other]
                break
    pairs = []
    for row in list(old):
        same_old = [other for other in old if _same_key(row, other, key)]
        same_new = [other for other in new if _same_key(row, other, key)]
        if key and len(same_old) == len(same_new) == 1:
            pairs.append((row, same_new[0]))
    names = [name for name in columns if name not in key] if old or new else []
    return {
        "only_before": len(old) - len(pairs),
        "only_after": len(new) - len(pairs),
        "changed": len(pairs),
        "columns": [_column(name, columns[name], pairs, before, after) for name in names],
    }


def _same_key(row: Row, other: Row, key: Sequence[str]) -> bool:
    return all(plain(row[name]) == plain(other[name]) for name in key)


def _column(
    name: str, kind: type, pairs: Iterable[tuple[Row, Row]], before: Sequence[Row], after: Sequence[Row]
) -> dict[str, Any]:
    changed = [(old[name], new[name]) for old, new in pairs if plain(old[name]) != plain(new[name])]
    distances = [distance for values in changed if (distance := _distance(*values)) is not None]
    return {
        "name": name,
        "changed": len(changed),
        "largest_difference": max(distances, default=None),
        "mean_difference": sum(distances) / len(distances) if distances else None,
        "sum_before": _sum(kind, [row[name] for row in before]),
        "sum_after": _sum(kind, [row[name] for row in after]),
    }


def _distance(old: Any, new: Any) -> float | None:
    if isinstance(old, datetime) and isinstance(new, datetime):
        return abs((new - old).total_seconds())
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in (old, new)):
        return None
    distance = abs(new - old)
    return distance if math.isfinite(distance) else None


def _sum(kind: type, values: Iterable[Any]) -> float | None:
    """Return the sum of the finite numbers; None if the values are not numbers."""
    present = [value for value in values if value is not None and (kind is not float or math.isfinite(value))]
    return sum(present) if kind is int else math.fsum(present) if kind is float else None
