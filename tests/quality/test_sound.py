"""For sound metrics, `sound_results` equals the results of Great Expectations."""

import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recapture.quality import checkpoint
from recapture.quality.evaluation import evaluate_frame
from recapture.quality.metrics import derive
from recapture.quality.sound import sound_results
from recapture.quality.suites import built_in
from recapture.time_model.metrics import COUNTS, VERDICTS, WATERMARK, WATERMARK_DELAY
from tests.draws import examples
from tests.quality.conftest import RUN
from tests.quality.staging import in_rows

BUILT_IN = built_in().expectations
KINDS = ("sound", "sound", "lost", "late", "malformed", "invalid", "damaged", "gap", "duplicate", "incomplete")


@st.composite
def frames(draw: st.DrawFn) -> pd.DataFrame:
    """Draw the metrics of some slices, of one or two inputs; nearly half of them are sound."""
    starts = pd.date_range("2026-03-01T10:00:00Z", periods=draw(st.integers(1, 3)), freq="h")
    inputs = draw(st.sampled_from([["in"], ["a", "b"]]))
    unsound = draw(st.sampled_from([(), (), ("late",), KINDS]))
    rows = [
        {"slice_start": start, "input": input_, "partition": partition}
        | draw(counts(draw(st.sampled_from(("sound", *unsound)))))
        for start in starts
        for input_ in inputs
        for partition in draw(st.sampled_from([["0"], ["0", "1"], ["0", "0"] if unsound else ["7"]]))
    ]
    return pd.DataFrame(rows)


@st.composite
def counts(draw: st.DrawFn, kind: str) -> dict[str, Any]:
    """Draw the counts of a row, which lacks one thing if its kind is not sound."""
    on_time, adjusted, late = (draw(st.integers(0, 5)) for _ in range(3))
    late = 2 * (on_time + adjusted) + 1 if kind == "late" else min(late, on_time + adjusted)
    row = dict.fromkeys([*COUNTS, *VERDICTS], 0)
    row |= {"on_time": on_time, "out_of_order_adjusted": adjusted, "late_adjusted": late, "LateInputEvents": late}
    row |= {"malformed": kind == "malformed", "invalid_timestamp": kind == "invalid"}
    row |= {
        "DuplicateEvents": int(kind == "duplicate"),
        "SequenceGaps": draw(st.integers(1, 3)) if kind == "gap" else 0,
    }
    row = {name: int(count) for name, count in row.items()}
    row["InputEvents"] = row["DuplicateEvents"] + sum(row[name] for name in VERDICTS) + (kind == "lost")
    return row | {WATERMARK: None, WATERMARK_DELAY: 1.5, "complete": kind != "incomplete", "whole": kind != "damaged"}


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(metrics=frames(), missing_slices=st.sampled_from([0, 0, 0, 1, -1]))
def test_sound_metrics_have_the_results_of_great_expectations(
    great_expectations: None, metrics: pd.DataFrame, missing_slices: int
) -> None:
    slice_count = metrics["slice_start"].nunique() + missing_slices
    identifying = ["slice_start", *["input"] * (metrics["input"].nunique() > 1), "partition"]
    pairs = [(declared, checkpoint.load_expectation(declared)) for declared in BUILT_IN]
    context = checkpoint.create_context()
    expected = evaluate_frame(context, derive(metrics), pairs, {"slice_count": slice_count}, identifying)
    found = sound_results(BUILT_IN, in_rows(metrics), slice_count, identifying)
    is_sound = all(result["success"] and not result["result"].get("unexpected_count") for result in expected)
    assert (found is not None) == is_sound
    assert found is None or json.dumps(found) == json.dumps(expected)


@pytest.mark.parametrize("column", ["InputEvents", "malformed", "SequenceGaps", "complete", "partition"])
def test_metrics_with_a_missing_value_are_not_sound(metrics: pd.DataFrame, column: str) -> None:
    identifying = ["slice_start", "partition"]
    first, *others = in_rows(metrics)
    assert sound_results(BUILT_IN, [first, *others], 2, identifying) is not None
    assert sound_results(BUILT_IN, [{**first, column: None}, *others], 2, identifying) is None
    assert sound_results(BUILT_IN, [{name: first[name] for name in first if name != column}], 1, identifying) is None


def test_metrics_of_no_slice_are_not_sound() -> None:
    assert sound_results(BUILT_IN, [], 0, ["slice_start", "partition"]) is None


def test_every_expectation_of_the_built_in_suite_is_known(metrics: pd.DataFrame) -> None:
    results = sound_results(BUILT_IN, in_rows(metrics), 2, ["slice_start", "partition"])
    assert results is not None
    assert [result["expectation_config"]["type"] for result in results] == [declared.type for declared in BUILT_IN]


def test_the_audit_of_a_sound_run_without_suites_imports_neither_great_expectations_nor_pandas(
    metrics: pd.DataFrame, tmp_path: Path
) -> None:
    code = """
import pickle, sys
from pathlib import Path
from recapture.quality import checkpoint
rows, run = pickle.loads(Path(sys.argv[1]).read_bytes())
audited = checkpoint.audit(rows, {}, {}, **run)
assert audited.verdict == "passed", audited
assert not {"great_expectations", "pandas"} & sys.modules.keys()
checkpoint.audit([row | {"SequenceGaps": 1} for row in rows], {}, {}, **run)
assert {"great_expectations", "pandas"} <= sys.modules.keys()
"""
    rows = [row | {"slice_start": row["slice_start"].isoformat()} for row in in_rows(metrics)]
    file = tmp_path / "run.pickle"
    file.write_bytes(pickle.dumps((rows, RUN)))
    subprocess.run([sys.executable, "-c", code, file], check=True)
