"""What the audit of sound metrics says without Great Expectations is what Great Expectations says."""

import json
import subprocess
import sys
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
    metrics = derive(metrics)
    pairs = [(declared, checkpoint.load_expectation(declared)) for declared in BUILT_IN]
    context = checkpoint.create_context()
    expected = evaluate_frame(context, metrics, pairs, {"slice_count": slice_count}, identifying)
    found = sound_results(BUILT_IN, metrics, slice_count, identifying)
    is_sound = all(result["success"] and not result["result"].get("unexpected_count") for result in expected)
    assert (found is not None) == is_sound
    assert found is None or json.dumps(found) == json.dumps(expected)


@pytest.mark.parametrize("column", ["InputEvents", "malformed", "SequenceGaps", "complete", "partition"])
def test_metrics_with_a_missing_value_are_not_sound(metrics: pd.DataFrame, column: str) -> None:
    identifying = ["slice_start", "partition"]
    sound = derive(metrics)
    assert sound_results(BUILT_IN, sound, 2, identifying) is not None
    missing = sound.astype({column: object if column in ("complete", "partition") else float})
    missing.loc[0, column] = None
    assert sound_results(BUILT_IN, derive(missing), 2, identifying) is None


def test_metrics_of_no_slice_are_not_sound(metrics: pd.DataFrame) -> None:
    assert sound_results(BUILT_IN, derive(metrics)[:0], 0, ["slice_start", "partition"]) is None


def test_every_expectation_of_the_built_in_suite_is_known(metrics: pd.DataFrame) -> None:
    results = sound_results(BUILT_IN, derive(metrics), 2, ["slice_start", "partition"])
    assert results is not None
    assert [result["expectation_config"]["type"] for result in results] == [declared.type for declared in BUILT_IN]


def test_the_audit_of_a_sound_run_without_suites_does_not_import_great_expectations() -> None:
    code = """
import sys
from datetime import UTC, datetime
import pandas as pd
from recapture.quality import checkpoint
from tests.quality.conftest import RUN
from tests.quality import conftest
metrics = conftest.metrics.__wrapped__()
audited = checkpoint.audit(metrics, {}, {}, **RUN)
assert audited.verdict == "passed", audited
assert "great_expectations" not in sys.modules
checkpoint.audit(metrics.assign(SequenceGaps=1), {}, {}, **RUN)
assert "great_expectations" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
