"""Evaluate expectations with Great Expectations, even on more rows than fit into one pandas frame.

The result is the one that Great Expectations returns for one frame with all rows. There are five ways to get it:

* An expectation that judges each row separately is evaluated on one frame after the other, and the counts are added.
* An expectation that rows are unique is evaluated in the same way, on frames that keep equal keys together.
* An expectation on the names or the types of the columns is evaluated on a frame without rows.
* An expectation with a history is evaluated on the rows of earlier slices and all rows, with the columns that it needs.
* Every other expectation is evaluated on all rows, with only the columns that it names.
"""

from __future__ import annotations

import ast
import copy
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal, cast

from recapture.errors import RunError
from recapture.quality.audit import JsonResult
from recapture.quality.signatures import SIGNATURES
from recapture.quality.suites import Expectation, columns_of

if TYPE_CHECKING:
    import pandas as pd
    from great_expectations.core.expectation_validation_result import ExpectationValidationResult
    from great_expectations.data_context.data_context.ephemeral_data_context import EphemeralDataContext
    from great_expectations.expectations.expectation import Expectation as LoadedExpectation

    from recapture.quality.rows import Rows

_SUMMARY: dict[str, object] = {"result_format": "SUMMARY"}
_SHOWN = 20
"""Number of unexpected values that Great Expectations returns in a summary."""
_BY_ROW = frozenset(
    {
        "expect_column_pair_values_a_to_be_greater_than_b",
        "expect_column_pair_values_to_be_equal",
        "expect_column_pair_values_to_be_in_set",
        "expect_column_value_lengths_to_be_between",
        "expect_column_value_lengths_to_equal",
        "expect_column_values_to_be_between",
        "expect_column_values_to_be_dateutil_parseable",
        "expect_column_values_to_be_in_set",
        "expect_column_values_to_be_json_parseable",
        "expect_column_values_to_be_null",
        "expect_column_values_to_be_of_type",
        "expect_column_values_to_match_json_schema",
        "expect_column_values_to_match_regex",
        "expect_column_values_to_match_regex_list",
        "expect_column_values_to_match_strftime_format",
        "expect_column_values_to_not_be_in_set",
        "expect_column_values_to_not_be_null",
        "expect_column_values_to_not_match_regex",
        "expect_column_values_to_not_match_regex_list",
        "expect_multicolumn_sum_to_equal",
        "expect_multicolumn_values_to_be_equal",
        "expect_select_column_values_to_be_unique_within_record",
    }
)
_BY_KEY = frozenset({"expect_column_values_to_be_unique", "expect_compound_columns_to_be_unique"})
_BY_SCHEMA = frozenset(
    {
        "expect_column_to_exist",
        "expect_column_type_to_be",
        "expect_table_column_count_to_be_between",
        "expect_table_column_count_to_equal",
        "expect_table_columns_to_match_ordered_list",
        "expect_table_columns_to_match_set",
    }
)

ExpectationPair = tuple[Expectation, "LoadedExpectation"]
"""Expectation as declared in a suite, and its object in Great Expectations."""


def evaluate_frame(
    context: EphemeralDataContext,
    frame: pd.DataFrame,
    pairs: Sequence[ExpectationPair],
    parameters: Mapping[str, object],
    identifying_columns: Sequence[str] = (),
) -> list[JsonResult]:
    """Return each expectation's result for one frame. Examples include the values of the `identifying_columns`."""
    names = {"unexpected_index_column_names": [*identifying_columns]} if identifying_columns else {}
    results = _results(context, frame, pairs, parameters, _SUMMARY | names)
    return [_json(result) for result in results]


def evaluate_rows(
    context: EphemeralDataContext, rows: Rows, pairs: Sequence[ExpectationPair], parameters: Mapping[str, object]
) -> list[JsonResult]:
    """Return the results that `evaluate_frame` returns for one frame with all rows."""

    def evaluate(frames: Iterable[pd.DataFrame], group: Sequence[ExpectationPair]) -> dict[int, JsonResult]:
        """Return the results of a group, by the id of the expectation as declared."""
        by_frame = [_results(context, frame, group, parameters, _SUMMARY) for frame in frames]
        return {
            id(declared): _combine(parts)
            for (declared, _), parts in zip(group, zip(*by_frame, strict=True), strict=True)
        }

    results: dict[int, JsonResult] = {}
    by_row = [
        (declared, expectation)
        for declared, expectation in pairs
        if declared.type in _BY_ROW and _is_by_row(declared.kwargs.get("row_condition"))
    ]
    if by_row:
        columns = {name for declared, _ in by_row for name in _needed(declared, rows.columns)}
        results |= evaluate(rows.frames(columns), by_row)
    groups: dict[_Reading, list[ExpectationPair]] = {}
    for declared, expectation in pairs:
        if id(declared) not in results:
            groups.setdefault(_Reading.of(declared, rows.columns), []).append((declared, expectation))
    for reading, group in groups.items():
        results |= evaluate(reading.frames(rows), group)
    return [results[id(declared)] for declared, _ in pairs]


@dataclass(frozen=True)
class _Reading:
    """The frames on which expectations are evaluated. Those with the same frames are evaluated together."""

    kind: Literal["history", "schema", "key", "whole"]
    columns: frozenset[str]
    """Columns that the expectations need."""
    key: tuple[str, ...] = ()
    """Columns whose equal values must be in the same frame."""

    @classmethod
    def of(cls, expectation: Expectation, names: Sequence[str]) -> _Reading:
        """Return the frames of an expectation; `names` are those of all columns."""
        columns = frozenset(_needed(expectation, names))
        if has_history(expectation):
            return cls("history", columns)
        if expectation.type in _BY_SCHEMA:
            return cls("schema", frozenset())
        if expectation.type in _BY_KEY and _is_by_row(expectation.kwargs.get("row_condition")):
            key = set(columns_of(expectation.kwargs))
            return cls("key", columns, tuple(name for name in names if name in key))
        return cls("whole", columns)

    def frames(self, rows: Rows) -> Iterator[pd.DataFrame]:
        """Yield the frames, with the columns that are needed."""
        match self.kind:
            case "history":
                yield rows.with_history(self.columns).whole({*self.columns, rows.slice_column})
            case "schema":
                yield rows.empty_frame()
            case "key":
                yield from rows.frames_by_key(self.columns, self.key)
            case "whole":
                yield rows.whole(self.columns)


def has_history(expectation: Expectation) -> bool:
    """Return whether an expectation also needs the slices that were published before the run."""
    return expectation.type in SIGNATURES and SIGNATURES[expectation.type].history is not None


def _needed(expectation: Expectation, columns: Sequence[str]) -> list[str]:
    """Return the columns that an expectation names as arguments or in the text of its row_condition."""
    named = set(columns_of(expectation.kwargs))
    texts = list(_texts(expectation.kwargs.get("row_condition")))
    return [name for name in columns if name in named or any(name in text for text in texts)]


def _texts(value: object) -> Iterator[str]:
    """Yield every string in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(item)


def _is_by_row(condition: Any) -> bool:
    """Return whether a row_condition looks at one row at a time. `events > events.mean()` does not."""
    if isinstance(condition, Mapping):
        if condition.get("type") == "pass_through":
            return _is_by_row(condition.get("pass_through_filter"))
        return all(map(_is_by_row, condition.get("conditions", ())))
    if not isinstance(condition, str):
        return True
    try:
        return _is_plain(ast.parse(re.sub("`[^`]*`", "column", condition.strip()), mode="eval").body)
    except SyntaxError:
        return False


def _is_plain(node: ast.AST) -> bool:
    """Return whether an expression has only names, constants and operators that work row by row."""
    if isinstance(node, ast.List | ast.Tuple):
        return all(isinstance(item, ast.Constant) for item in node.elts)
    if isinstance(node, ast.Compare):
        compared = zip(node.ops, node.comparators, strict=True)
        if any(isinstance(op, ast.In | ast.NotIn) and isinstance(item, ast.Name) for op, item in compared):
            return False
    elif not isinstance(node, ast.BoolOp | ast.BinOp | ast.UnaryOp):
        return isinstance(node, ast.Name | ast.Constant)
    return all(_is_plain(item) for item in ast.iter_child_nodes(node) if isinstance(item, ast.expr))


def _results(
    context: EphemeralDataContext,
    frame: pd.DataFrame,
    pairs: Sequence[ExpectationPair],
    parameters: Mapping[str, object],
    result_format: Mapping[str, object],
) -> list[ExpectationValidationResult]:
    """Return the results of Great Expectations for one frame, in the order of `pairs`.

    Raise RunError if a result is missing. This bypasses the data sources of Great Expectations: validating one would
    first hash the whole frame, and would fail on results that its store cannot hold.
    """
    from great_expectations.execution_engine.pandas_execution_engine import PandasExecutionEngine
    from great_expectations.validator.validator import Validator

    engine = PandasExecutionEngine(batch_data_dict={"rows": frame})
    validator = Validator(execution_engine=engine, data_context=context)
    configurations = [copy.deepcopy(expectation.configuration) for _, expectation in pairs]
    for number, configuration in enumerate(configurations):
        configuration.id = str(number)
    results = validator.graph_validate(
        configurations=validator.process_expectations_for_validation(configurations, dict(parameters)),
        runtime_configuration={"result_format": dict(result_format)},
    )
    by_id = {result.expectation_config.id: result for result in results if result.expectation_config}
    if by_id.keys() != {str(number) for number in range(len(pairs))} or len(results) != len(pairs):
        raise RunError(f"{len(pairs)} expectations loaded, {len(results)} evaluated: the audit is not complete")
    return [by_id[str(number)] for number in range(len(pairs))]


def _combine(parts: Sequence[ExpectationValidationResult]) -> JsonResult:
    """Combine the results of several frames into the result for all rows. Every row is in exactly one frame."""
    failed = next((part for part in parts if not part.result), None)
    if failed is not None or "unexpected_count" not in parts[0].result or len(parts) == 1:
        return _json(failed or parts[0])
    details = [part.result for part in parts]
    rows, unexpected, missing = (
        sum(detail.get(name, 0) for detail in details)
        for name in ("element_count", "unexpected_count", "missing_count")
    )
    present = rows - missing
    examples = sorted(
        (
            example
            for detail in details
            for example in zip(detail["partial_unexpected_index_list"], detail["partial_unexpected_list"], strict=True)
        ),
        key=itemgetter(0),
    )[:_SHOWN]
    example_values = [value for _, value in examples]
    share = unexpected / present * 100 if present else None
    whole = copy.copy(parts[0])
    mostly = float(whole.expectation_config.kwargs.get("mostly", 1)) if whole.expectation_config else 1.0
    whole.success = not present or (float(present) - float(unexpected)) / float(present) >= mostly
    whole.result = {
        "element_count": rows,
        "unexpected_count": unexpected,
        "unexpected_percent": share,
        "partial_unexpected_list": example_values,
        **_example_counts(example_values),
        "partial_unexpected_index_list": [index for index, _ in examples],
    }
    if "missing_count" in details[0]:
        whole.result |= {
            "missing_count": missing,
            "missing_percent": missing / rows * 100 if rows else None,
            "unexpected_percent_total": unexpected / rows * 100 if rows else None,
            "unexpected_percent_nonmissing": share,
        }
    return _json(whole)


def _example_counts(example_values: Sequence[Any]) -> dict[str, Any]:
    """Return the number of times that each example occurs; empty if Great Expectations cannot count or sort them."""
    keys = [tuple(value.values()) if isinstance(value, dict) else value for value in example_values]
    try:
        counts = sorted(Counter(keys).most_common(_SHOWN), key=lambda counted: (-counted[1], counted[0]))
    except TypeError:
        return {}
    return {"partial_unexpected_counts": [{"value": value, "count": count} for value, count in counts]}


def _json(result: ExpectationValidationResult) -> JsonResult:
    return cast(JsonResult, _finite(result.to_json_dict()))


def _finite(value: Any) -> Any:
    """Return the value with NaN as null and infinities as strings, because JSON has none of them."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value
