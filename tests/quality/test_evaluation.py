"""Rows that are judged in parts give the results of one frame of all rows, for every expectation."""

import math
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recapture.quality import checkpoint, suites
from recapture.quality.audit import JsonResult
from recapture.quality.evaluation import ExpectationPair, evaluate_frame, evaluate_rows
from recapture.quality.loading import create_context
from recapture.quality.signatures import SIGNATURES
from recapture.quality.suites import Expectation
from tests.draws import examples
from tests.quality.staging import SLICE_START, in_files

if TYPE_CHECKING:
    from great_expectations.data_context.data_context.ephemeral_data_context import EphemeralDataContext

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
PARAMETERS = {"run_start": NOON - timedelta(hours=1), "run_end": NOON, "slice_count": 2}

whole_numbers = st.integers(-2, 2)
floats = st.sampled_from([0.0, -0.0, 0.1, 0.7, -1.5, 1e300, math.inf, -math.inf, math.nan])
texts = st.sampled_from(["", "a", "b", "ab", "2026-03-01", "[1]", "Ångström"])
COLUMNS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "i": (pa.int64(), whole_numbers),
    "j": (pa.int64(), whole_numbers),
    "x": (pa.float64(), floats),
    "y": (pa.float64(), st.floats(-4, 4)),
    "s": (pa.string(), texts),
    "t": (pa.string(), texts),
    "f": (pa.bool_(), st.booleans()),
    "w": (pa.timestamp("us", "UTC"), st.integers(-9, 9).map(lambda part: NOON + timedelta(minutes=part / 7))),
    "d": (pa.decimal128(5, 1), st.integers(-3, 3).map(lambda part: Decimal(part) / 2)),
}


@st.composite
def tables(draw: st.DrawFn, most: int = 30) -> pa.Table:
    """Draw up to `most` rows. A column has no nulls, some, or nothing else."""
    count = draw(st.integers(1, most))
    columns = {}
    for name, (kind, values) in COLUMNS.items():
        choice = draw(st.sampled_from([values, values | st.none(), values | st.none(), st.none()]))
        columns[name] = pa.array(draw(st.lists(choice, min_size=count, max_size=count)), kind, from_pandas=False)
    return pa.table(columns)


def of(column: str, **kwargs: object) -> dict[str, object]:
    return {"column": column, **kwargs}


def pair(first: str, second: str, **kwargs: object) -> dict[str, object]:
    return {"column_A": first, "column_B": second, **kwargs}


def several(*columns: str, **kwargs: object) -> dict[str, object]:
    return {"column_list": [*columns], **kwargs}


BY_PANDAS = {"condition_parser": "pandas"}
IS_B = {"type": "comparison", "column": {"name": "s"}, "operator": "==", "parameter": "b"}
HAS_I = {"type": "nullity", "column": {"name": "i"}, "is_null": False}
BINS = {"bins": [-4, 0, 4], "weights": [0.5, 0.5]}
QUANTILES = {"quantiles": [0.1, 0.5], "value_ranges": [[-1, 0], [None, 2]]}
VALUES: dict[str, list[dict[str, object]]] = {
    "expect_column_distinct_values_to_be_in_set": [of(c, value_set=[1, "a"]) for c in "ixsfwd"],
    "expect_column_distinct_values_to_contain_set": [of(c, value_set=[1, "a"]) for c in "ixsf"],
    "expect_column_distinct_values_to_equal_set": [of(c, value_set=[1, "a"]) for c in "iys"],
    "expect_column_kl_divergence_to_be_less_than": [
        of("y", partition_object=BINS, threshold=0.2),
        of("s", partition_object={"values": ["a", "b"], "weights": [0.5, 0.5]}, threshold=0.2),
    ],
    "expect_column_max_to_be_between": [of(c, max_value=1) for c in "ixsfd"] + [of("w", max_value=NOON.isoformat())],
    "expect_column_mean_to_be_between": [of(c, min_value=0) for c in "ixyfd"],
    "expect_column_median_to_be_between": [of(c, min_value=0) for c in "ixyd"],
    "expect_column_min_to_be_between": [of(c, min_value=0) for c in "ixsfd"],
    "expect_column_most_common_value_to_be_in_set": [of(c, value_set=[1, "a"], ties_okay=True) for c in "ixsf"],
    "expect_column_pair_values_a_to_be_greater_than_b": [
        pair("i", "j", or_equal=True, mostly=0.6),
        pair("x", "y", ignore_row_if="either_value_is_missing"),
        pair("s", "t", ignore_row_if="neither"),
        pair("i", "y", row_condition=HAS_I),
    ],
    "expect_column_pair_values_to_be_equal": [
        pair("i", "j", mostly=0.5),
        pair("s", "t", ignore_row_if="neither"),
        pair("w", "slice_start", ignore_row_if="either_value_is_missing"),
    ],
    "expect_column_pair_values_to_be_in_set": [pair("i", "s", value_pairs_set=[[1, "a"], [2, "b"]], mostly=0.1)],
    "expect_column_proportion_of_non_null_values_to_be_between": [of(c, min_value=0.5) for c in "xsw"],
    "expect_column_proportion_of_unique_values_to_be_between": [of(c, max_value=0.5) for c in "ixsfw"],
    "expect_column_quantile_values_to_be_between": [of(c, quantile_ranges=QUANTILES) for c in "iy"],
    "expect_column_stdev_to_be_between": [of(c, max_value=1) for c in "ixyd"],
    "expect_column_sum_to_be_between": [of(c, max_value=1) for c in "ixyfd"],
    "expect_column_to_exist": [of("i", column_index=0), of("k")],
    "expect_column_type_to_be": [of(c, type_=kind) for c, kind in zip("iixfs", ("int64", "float64") * 3, strict=False)],
    "expect_column_unique_value_count_to_be_between": [of(c, max_value=3) for c in "ixsfwd"],
    "expect_column_value_lengths_to_be_between": [of(c, min_value=1, max_value=2, mostly=0.7) for c in "sif"],
    "expect_column_value_lengths_to_equal": [of("s", value=1)],
    "expect_column_value_z_scores_to_be_less_than": [of(c, threshold=1, double_sided=True) for c in "iy"],
    "expect_column_values_to_be_between": [
        of("i", min_value=0, mostly=0.5),
        of("x", max_value=1, strict_max=True),
        of("w", min_value={"$PARAMETER": "run_start"}, max_value={"$PARAMETER": "run_end"}),
        of("s", min_value=0),
        of("d", min_value=0),
        of("y", min_value=0, row_condition="i > 0 and s in ['a', 'b']", **BY_PANDAS),
        of("i", min_value=0, row_condition="j > j.mean()", **BY_PANDAS),
        of("i", min_value=0, row_condition="i in j", **BY_PANDAS),
        of("i", min_value=0, row_condition="absent > 0", **BY_PANDAS),
        of("i", min_value=0, row_condition="index > 3 or `y` < 0", **BY_PANDAS),
        of("i", min_value=0, row_condition={"type": "and", "conditions": [IS_B, HAS_I]}),
        of("i", min_value=0, row_condition={"type": "pass_through", "pass_through_filter": "y > y.median()"}),
    ],
    "expect_column_values_to_be_dateutil_parseable": [of("s", mostly=0.1), of("i")],
    "expect_column_values_to_be_decreasing": [of("i", mostly=0.5), of("w"), of("s")],
    "expect_column_values_to_be_in_set": [of(c, value_set=[1, 0.1, "a", True], mostly=0.2) for c in "ijxsfwd"],
    "expect_column_values_to_be_increasing": [of("i", strictly=True, mostly=0.4), of("y"), of("slice_start")],
    "expect_column_values_to_be_json_parseable": [of("s", mostly=0.2), of("i")],
    "expect_column_values_to_be_null": [of(c, mostly=0.5) for c in "ixsfw"],
    "expect_column_values_to_be_of_type": [of(c, type_=kind) for c in "ixsfw" for kind in ("int", "str", "bool")],
    "expect_column_values_to_be_unique": [of(c, mostly=0.3) for c in "ixsfwd"] + [of("y", row_condition=HAS_I)],
    "expect_column_values_to_match_json_schema": [of("s", json_schema={"type": "array"})],
    "expect_column_values_to_match_regex": [of("s", regex="^a", mostly=0.4), of("i", regex="1")],
    "expect_column_values_to_match_regex_list": [of("s", regex_list=["^a", "b$"], match_on="all")],
    "expect_column_values_to_match_strftime_format": [of(c, strftime_format="%Y-%m-%d") for c in "si"],
    "expect_column_values_to_not_be_in_set": [of(c, value_set=[1, "a"], mostly=0.9) for c in "ixsf"],
    "expect_column_values_to_not_be_null": [of(c, mostly=0.5) for c in "ixsfwd"] + [of("i", row_condition=IS_B)],
    "expect_column_values_to_not_be_outliers": [of(c, method=m, multiplier=1.0) for c in "iy" for m in ("std", "iqr")],
    "expect_column_values_to_not_match_regex": [of("s", regex="b", mostly=0.4)],
    "expect_column_values_to_not_match_regex_list": [of("s", regex_list=["b", "1"])],
    "expect_compound_columns_to_be_unique": [
        several("i", "s", mostly=0.5),
        several("x", "f"),
        several("w", "s", "y", ignore_row_if="any_value_is_missing"),
        several("i", "j", ignore_row_if="never", row_condition="f == True", **BY_PANDAS),
    ],
    "expect_multicolumn_sum_to_equal": [several("i", "j", sum_total=1, mostly=0.1), several("i", "s", sum_total=1)],
    "expect_multicolumn_values_to_be_equal": [several("i", "j"), several("s", "t", ignore_row_if="never")],
    "expect_select_column_values_to_be_unique_within_record": [
        several("i", "j", "y"),
        several("s", "t", ignore_row_if="any_value_is_missing"),
    ],
    "expect_column_values_to_be_near_earlier_days": [of("y", key_columns=["s"], min_days=1, mostly=0.5), of("i")],
    "expect_column_values_to_vary": [of("i", key_columns=["s", "f"], min_rows=2), of("w", min_rows=1)],
    "expect_table_row_count_to_be_near_earlier_days": [{}],
    "expect_table_windows_to_be_complete": [of("w", key_columns=["s"], hop_seconds=60 / 7, mostly=0.1)],
    "expect_table_column_count_to_be_between": [{"max_value": 9}],
    "expect_table_column_count_to_equal": [{"value": 10}],
    "expect_table_columns_to_match_ordered_list": [{"column_list": [*COLUMNS, "slice_start"]}, {"column_list": ["i"]}],
    "expect_table_columns_to_match_set": [{"column_set": ["i", "s"], "exact_match": False}],
    "expect_table_row_count_to_be_between": [
        {"min_value": {"$PARAMETER": "slice_count"}, "max_value": 9},
        {"max_value": 3, "row_condition": "i > 0", **BY_PANDAS},
    ],
    "expect_table_row_count_to_equal": [{"value": 2}, {"value": 1, "row_condition": IS_B}],
}


DECLARED = [
    Expectation(f"{kind} {n}", kind, "aggregates", "critical", kwargs)
    for kind, listed in VALUES.items()
    for n, kwargs in enumerate(listed)
]


def loaded(declared: list[Expectation]) -> list[ExpectationPair]:
    return [(expectation, checkpoint.load_expectation(expectation)) for expectation in declared]


@pytest.fixture(scope="module")
def context(great_expectations: None) -> "Iterator[EphemeralDataContext]":
    """A context that does not search the stack, for every decimal that it writes, for a caller that is never there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("great_expectations.util.stack", list)
        yield create_context()


def comparable(outcome: object) -> object:
    """Return an outcome without tracebacks, and without the number of the expectation in its group."""
    if isinstance(outcome, dict):
        return {key: comparable(value) for key, value in outcome.items() if key not in ("exception_traceback", "id")}
    return [comparable(value) for value in outcome] if isinstance(outcome, list) else outcome


def of_all_rows(context: "EphemeralDataContext", table: pa.Table, judged: list[ExpectationPair]) -> list[JsonResult]:
    """Return what Great Expectations says about one pandas frame."""
    start = pa.repeat(pa.scalar(SLICE_START, pa.timestamp("us", "UTC")), table.num_rows)
    return evaluate_frame(context, table.append_column("slice_start", start).to_pandas(), judged, PARAMETERS)


@pytest.mark.usefixtures("great_expectations")
def test_every_expectation_that_a_suite_may_hold_is_tested() -> None:
    refused = {kind for kind in suites.known_types() if not _is_accepted(kind)}
    metrics_kinds = {kind for kind, signature in SIGNATURES.items() if signature.asset == "metrics"}
    assert set(VALUES) == set(suites.known_types()) - refused - metrics_kinds


def _is_accepted(kind: str) -> bool:
    schema = suites.schema_of(kind)
    sources = schema["properties"]["metadata"]["properties"] if schema else {}
    return "Pandas" in sources.get("supported_data_sources", {}).get("const", ["Pandas"])


@settings(max_examples=examples(20), deadline=None)
@given(
    table=tables(),
    cut=st.integers(0, 30),
    frame_rows=st.integers(3, 12),
    declared=st.lists(st.sampled_from(DECLARED), min_size=4, max_size=8, unique_by=id),
)
def test_results_in_parts_are_those_of_all_rows_at_once(
    context: "EphemeralDataContext", table: pa.Table, cut: int, frame_rows: int, declared: list[Expectation]
) -> None:
    judged = loaded(declared)
    with tempfile.TemporaryDirectory() as folder:
        rows = in_files(Path(folder), table, (min(cut, table.num_rows),), frame_rows)
        outcomes = evaluate_rows(context, rows, judged, PARAMETERS)
    for (expectation, _), in_parts, at_once in zip(judged, outcomes, of_all_rows(context, table, judged), strict=True):
        assert comparable(in_parts) == comparable(at_once), (expectation.type, expectation.kwargs)


def test_an_earlier_slice_that_lacks_a_column_is_not_compared(tmp_path: Path) -> None:
    now = in_files(tmp_path, pa.table({"key": ["a"], "site": ["x"]}))
    wide, narrow = pa.table({"site": ["y"], "key": ["b"]}), pa.table({"key": ["c"]})
    earlier = [in_files(tmp_path, table).files[0] for table in (wide, narrow)]
    rows = replace(now, history=earlier)
    assert rows.with_history(["key", "site"]).whole(["key", "site"]).to_dict("list") == {
        "key": ["b", "a"],
        "site": ["y", "x"],
    }
    assert list(rows.with_history(["key", "slice_start"]).whole(["key"])["key"]) == ["b", "c", "a"]


def test_an_earlier_slice_that_lacks_a_column_that_is_not_needed_is_compared(tmp_path: Path) -> None:
    now = in_files(tmp_path, pa.table({"key": ["a"], "events": [1]}))
    rows = replace(now, history=in_files(tmp_path, pa.table({"key": ["b"]})).files)
    assert list(rows.with_history(["key"]).whole(["key"])["key"]) == ["b", "a"]


@pytest.mark.parametrize("statistics", [True, ["other"]])
def test_integers_are_floats_in_pandas_if_a_file_has_a_null_also_if_it_does_not_say_so(
    tmp_path: Path, statistics: bool | list[str]
) -> None:
    rows = in_files(tmp_path, pa.table({"n": [1, 2, None, 4], "other": [1, 2, 3, 4]}), (2,))
    for file in rows.files:
        pq.write_table(pq.read_table(file.path), file.path, write_statistics=statistics)
    dtypes = {name: str(dtype) for name, dtype in rows.whole(["n", "other"]).dtypes.items()}
    assert dtypes == {"n": "float64", "other": "int64"}
