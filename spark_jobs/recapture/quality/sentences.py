"""The sentences about an expectation: one if it holds, another if it does not, with shares and the rows that fail."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from recapture.pages.page import share
from recapture.process.wording import counted
from recapture.quality.suites import Expectation, columns_of

ITEMS = {"metrics": ("slice and partition", "slices and partitions"), "aggregates": ("row", "rows")}
"""What is judged, in the singular and in the plural, by asset."""
EXAMPLES = 3
"""Largest number of rows or values that a sentence shows."""
_KEYS = {"slice_start": "slice", "input": "input", "partition": "partition"}
"""What an example of metrics names first, and the words for it."""
_IN_UTC = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+\+00:00")
_WORDED = (
    *("batch_id", "row_condition", "column", "column_list", "column_A", "column_B", "min_value", "max_value"),
    *("value_set", "mostly", "strict_min", "strict_max", "since", "until"),
)
"""Arguments that have their own wording, and those that are not shown."""


def title(expectation: Expectation) -> str:
    """Return what is expected: the description in the suite, or else the type and its arguments."""
    if expectation.description:
        return expectation.description
    arguments = ", ".join(f"{name} {_value(value)}" for name, value in expectation.kwargs.items())
    return f"{expectation.type.replace('_', ' ')}: {arguments}"


def success(expectation: Expectation, evaluation: Mapping[str, Any], examples: Sequence[object]) -> str:
    """Return what was expected and observed. The arguments are those of `finding`."""
    return f"{title(expectation)} ({finding(expectation, evaluation, examples)})"


def failure(
    expectation: Expectation, kwargs: Mapping[str, Any], evaluation: Mapping[str, Any], examples: Sequence[object]
) -> str:
    """Return what is wrong: as the suite or Recapture's own expectation says it, or else what is not met.

    `kwargs` are the arguments with the values of parameters. The other arguments are those of `finding`.
    """
    found = finding(expectation, evaluation, examples)
    own = (evaluation.get("details") or {}).get("failure")
    if expectation.failure is None and own is not None:
        return f"{own}: {found}"
    limits = expected(kwargs) if expectation.description else ""
    lead = expectation.failure or f"not met: {title(expectation)}"
    return f"{lead} ({limits} expected): {found}" if limits else f"{lead}: {found}"


def finding(expectation: Expectation, evaluation: Mapping[str, Any], examples: Sequence[object]) -> str:
    """Return the number and share of rows that fail, with examples, or the observed value of whole columns.

    `evaluation` is the result of Great Expectations for an expectation that could be evaluated. The details of
    Recapture's own expectations name other items than rows, and say how many could not be judged. `examples` are rows
    or values that are not as expected.
    """
    unexpected = evaluation.get("unexpected_count")
    if unexpected is None:
        return f"observed {_value(evaluation['observed_value'])}" if "observed_value" in evaluation else "no details"
    details = evaluation.get("details") or {}
    if is_unjudged(evaluation):
        return f"not judged: {details['why_unjudged']}"
    words = (details["item"],) if "item" in details else ITEMS[expectation.asset]
    unjudged = f"; {details['unjudged']:,} not judged: {details['why_unjudged']}" if "unjudged" in details else ""
    return f"{failed_items(unexpected, evaluation['element_count'], words, examples)}{unjudged}"


def failed_items(failed: int, judged: int, words: tuple[str, ...], examples: Sequence[object]) -> str:
    """Return how many of the judged items fail, with examples; `words` name an item and, if need be, several."""
    items = counted(judged, *words)
    if not failed:
        return f"true for {'all ' * (judged > 1)}{items}"
    such_as = f", such as {'; '.join(map(example_text, examples[:EXAMPLES]))}" if examples else ""
    return f"{failed:,} of {items} ({share(failed, judged)}){such_as}"


def distinct_examples(values: Iterable[Any]) -> list[Any]:
    """Return the first distinct values, as many as a sentence has."""
    examples: list[Any] = []
    for value in values:
        if value not in examples:
            examples.append(value)
    return examples[:EXAMPLES]


def is_unjudged(evaluation: Mapping[str, Any]) -> bool:
    """Return whether one of Recapture's own expectations could judge nothing."""
    return not evaluation.get("element_count") and "unjudged" in (evaluation.get("details") or {})


def expected(kwargs: Mapping[str, Any]) -> str:
    """Return the arguments of an expectation in words."""
    columns = ", ".join(map(str, columns_of(kwargs)))
    least, most, values, mostly = (kwargs.get(name) for name in ("min_value", "max_value", "value_set", "mostly"))
    parts: list[str] = []
    if least is not None:
        parts.append(f"{'more than' if kwargs.get('strict_min') else 'at least'} {_value(least)}")
    if most is not None:
        parts.append(f"{'less than' if kwargs.get('strict_max') else 'at most'} {_value(most)}")
    if values:
        parts.append(f"{'one of ' * (len(values) > 1)}{', '.join(map(_value, values))}")
    if mostly is not None and mostly != 1:
        parts.append(f"in at least {share(mostly, 1)} of the rows")
    parts += [
        f"{name.replace('_', ' ')} {_value(value)}" for name, value in kwargs.items() if name not in _WORDED and value
    ]
    if kwargs.get("row_condition"):
        parts.append(f"where {_value(kwargs['row_condition'])}")
    return ": ".join(filter(None, [columns, ", ".join(parts)])) if parts else ""


def example_text(example: object) -> str:
    """Return a row or a value that is not as expected: a row by its keys, then by its other columns."""
    if not isinstance(example, Mapping):
        return _value(example)
    keys = [f"{word} {_value(example[name])}" for name, word in _KEYS.items() if name in example]
    others = [_named(name, value) for name, value in example.items() if name not in _KEYS]
    return ", ".join([*keys, *others])


def _named(name: str, value: object) -> str:
    if name.endswith("_share") and isinstance(value, int | float):
        return f"{share(value, 1)} {name.removesuffix('_share').replace('_', ' ')}"
    return f"{name} {_value(value)}"


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        return str(value["$PARAMETER"]) if "$PARAMETER" in value else json.dumps(value, default=str)
    if isinstance(value, list | tuple):
        return ", ".join(map(_value, value))
    if isinstance(value, str):
        return f"{value.removesuffix('+00:00')}Z" if _IN_UTC.fullmatch(value) else value
    return value_text(value)


def value_text(value: Any, digits: int = 7) -> str:
    """Return a value of a row as a string; a float has at most this number of significant digits."""
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return f"{value:.{digits}g}"
    if hasattr(value, "isoformat"):
        return str(value.isoformat()).replace("+00:00", "Z")
    return json.dumps(value, default=str)
