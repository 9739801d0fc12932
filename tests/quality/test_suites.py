"""Suites: what is loaded, and what is refused with its place."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from recapture.errors import DefinitionError
from recapture.quality import suites
from tests.conftest import Python
from tests.paths import ROOT

COLUMNS = ("windowEnd", "deviceId", "events", "avgTemperature", "slice_start")
NOT_NULL: dict[str, Any] = {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "events"}}
TELEMETRY = ROOT / "expectations" / "telemetry.json"
Refusal = Callable[[str], str]


@pytest.fixture
def refusal(tmp_path: Path) -> Refusal:
    """Return the one-line error for a suite file with this text."""

    def refuse(text: str) -> str:
        path = tmp_path / "mine.json"
        path.write_text(text)
        with pytest.raises(DefinitionError) as error:
            suites.load(path, COLUMNS)
        message = str(error.value)
        assert message.startswith(str(path))
        assert "\n" not in message
        return message.removeprefix(str(path))

    return refuse


def suite(*expectations: object, **keys: object) -> str:
    return json.dumps({"name": "mine", "expectations": expectations, **keys})


def load(tmp_path: Path, *expectations: object, **parameters: float) -> suites.Suite:
    path = tmp_path / "mine.json"
    path.write_text(suite(*expectations))
    return suites.load(path, COLUMNS, parameters)


def test_an_unknown_expectation_is_refused_with_the_closest_name(refusal: Refusal) -> None:
    assert refusal(suite(NOT_NULL, {"type": "expect_column_values_to_not_be_nul", "kwargs": {}})) == (
        ': expectation 2: unknown expectation "expect_column_values_to_not_be_nul"; '
        "did you mean expect_column_values_to_not_be_null?"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (suite(), "expectations must be a list with at least one"),
        ('{"name": "mine"}', "expectations must be a list with at least one"),
        ("[]", "a suite must be an object"),
        (json.dumps({"expectations": [NOT_NULL]}), "give the suite a name"),
        (suite(NOT_NULL, name="run_metrics"), 'the name "run_metrics" belongs to the built-in checks'),
        ('{\n  "name": "mine",\n  "expectations": [}\n', ":3:20: not valid JSON"),
        ('{"name": "mine", "name": "yours", "expectations": []}', 'the key "name" is given twice'),
        ('{"name": NaN}', "NaN is not a JSON number"),
    ],
)
def test_a_file_that_is_not_a_suite_is_refused(refusal: Refusal, text: str, message: str) -> None:
    assert message in refusal(text)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("absent.json", r"absent\.json: the suite file does not exist; correct the path"),
        ("pipe.json", r"the suite cannot be read: .*not a regular file"),
        ("", "cannot be read"),
    ],
)
def test_a_missing_file_a_pipe_and_a_folder_are_refused(tmp_path: Path, name: str, message: str) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(DefinitionError, match=message):
        suites.load(tmp_path / name, COLUMNS)


@pytest.mark.parametrize(
    ("expectation", "message"),
    [
        ({**NOT_NULL, "severty": "info"}, 'unknown key "severty"; did you mean severity?'),
        ({**NOT_NULL, "severity": "criticl"}, 'unknown severity "criticl"; did you mean critical?'),
        ({**NOT_NULL, "severity": None}, "unknown severity null; use critical, warning or info"),
        ({**NOT_NULL, "meta": {"aset": "metrics"}}, 'unknown key "aset"; did you mean asset?'),
        ({**NOT_NULL, "meta": {"asset": "metric"}}, 'unknown asset "metric"; did you mean metrics?'),
        ({**NOT_NULL, "meta": []}, "meta must be an object"),
        (
            {**NOT_NULL, "meta": {"failure": 1}},
            "failure must be a string that says what is true if the expectation is not met",
        ),
        ({**NOT_NULL, "kwargs": []}, "kwargs must be an object"),
        ({**NOT_NULL, "kwargs": {}}, "kwargs lacks column"),
        ({**NOT_NULL, "kwargs": {"column": "event"}}, 'the aggregates have no column "event"; did you mean events?'),
        ({**NOT_NULL, "kwargs": {"column": "zzz"}}, 'no column "zzz"; the columns are windowEnd, deviceId'),
        ({**NOT_NULL, "meta": {"asset": "metrics"}}, 'the metrics have no column "events"'),
        ({**NOT_NULL, "kwargs": {"column": "events", "mosty": 1}}, 'unknown argument "mosty"; did you mean mostly?'),
        ({**NOT_NULL, "kwargs": {"column": "events", "severity": "info"}}, 'unknown argument "severity"'),
        ({**NOT_NULL, "description": 1}, "description must be a string"),
        ({"kwargs": {}}, "give the expectation a type"),
        ("expect_column_to_exist", "an expectation must be an object"),
        (
            {"type": "unexpected_rows_expectation", "kwargs": {"unexpected_rows_query": "SELECT 1"}},
            "it judges SQL tables only",
        ),
        (
            {"type": "expect_compound_columns_to_be_unique", "kwargs": {"column_list": ["windowEnd", "device"]}},
            'no column "device"; did you mean deviceId?',
        ),
        (
            {"type": "expect_column_pair_values_to_be_equal", "kwargs": {"column_A": "events", "column_B": "b"}},
            'no column "b"',
        ),
        (
            {"type": "expect_table_row_count_to_equal", "kwargs": {"value": {"$PARAMETER": "slice_cnt"}}},
            'unknown $PARAMETER "slice_cnt"; did you mean slice_count?',
        ),
    ],
)
def test_a_mistake_in_an_expectation_is_refused_with_its_place(
    refusal: Refusal, expectation: object, message: str
) -> None:
    refused = refusal(suite(expectation))
    assert refused.startswith(": expectation 1")
    assert message in refused


NEAR: dict[str, Any] = {"type": "expect_column_values_to_be_near_earlier_days", "kwargs": {"column": "events"}}
LATE: dict[str, Any] = {"type": "expect_share_of_late_events_to_be_at_most", "kwargs": {"max_value": 0.1}}


@pytest.mark.parametrize(
    ("expectation", "message"),
    [
        ({**LATE, "kwargs": {}}, "kwargs lacks max_value"),
        ({**LATE, "kwargs": {"max_valu": 1}}, 'unknown argument "max_valu"; did you mean max_value?'),
        ({**LATE, "meta": {"asset": "aggregates"}}, "it judges the metrics only; remove asset from meta"),
        ({**NEAR, "kwargs": {"column": "event"}}, 'the aggregates have no column "event"; did you mean events?'),
        ({**NEAR, "kwargs": {"column": "events", "key_columns": ["device"]}}, "did you mean deviceId?"),
        ({**NEAR, "kwargs": {"column": "events", "key_columns": "deviceId"}}, "key_columns must be a list"),
        ({**NEAR, "kwargs": {"column": "events", "days": 0}}, "days must be an integer from 1 to 366"),
        ({**NEAR, "kwargs": {"column": "events", "since": "2026-03-01"}}, 'unknown argument "since"'),
        (
            {**LATE, "kwargs": {"max_value": {"$PARAMETER": "max_late"}}},
            'unknown $PARAMETER "max_late"; the parameters',
        ),
    ],
)
def test_a_mistake_in_one_of_recaptures_own_expectations_is_refused(
    refusal: Refusal, expectation: object, message: str
) -> None:
    assert message in refusal(suite(expectation))


def test_one_of_recaptures_own_expectations_needs_no_asset(tmp_path: Path) -> None:
    assert [expectation.asset for expectation in load(tmp_path, LATE, NEAR).expectations] == ["metrics", "aggregates"]


def test_a_parameter_of_the_users_is_known_by_its_name(tmp_path: Path) -> None:
    late = {**LATE, "kwargs": {"max_value": {"$PARAMETER": "max_late"}}}
    assert load(tmp_path, late, max_late=0.2).parameters == {"max_late": 0.2}


@pytest.mark.parametrize(
    ("name", "message"),
    [("max_lat", "no expectation uses the parameter max_lat"), ("run_end", "every run has the parameter run_end")],
)
def test_a_parameter_that_no_expectation_uses_or_that_every_run_has_is_refused(
    tmp_path: Path, name: str, message: str
) -> None:
    with pytest.raises(DefinitionError, match=message):
        load(tmp_path, LATE, **{name: 0.2})


def test_the_same_expectation_twice_is_refused_because_only_one_would_be_loaded(refusal: Refusal) -> None:
    assert "expectation 2 (expect_column_values_to_not_be_null): this repeats " in refusal(
        suite(NOT_NULL, {**NOT_NULL, "severity": "info"})
    )


def test_an_expectation_without_a_severity_is_critical(tmp_path: Path) -> None:
    assert load(tmp_path, NOT_NULL).expectations[0].severity == "critical"


def test_an_expectation_without_an_asset_judges_the_aggregates(tmp_path: Path) -> None:
    on_metrics = {**NOT_NULL, "kwargs": {"column": "late_share"}, "meta": {"asset": "metrics"}}
    assert [e.asset for e in load(tmp_path, NOT_NULL, on_metrics).expectations] == ["aggregates", "metrics"]


def test_an_expectation_about_the_columns_may_name_any(tmp_path: Path) -> None:
    loaded = load(tmp_path, {"type": "expect_column_to_exist", "kwargs": {"column": "humidity"}})
    assert len(loaded.expectations) == 1


def test_as_many_expectations_are_loaded_as_declared() -> None:
    loaded = suites.load(TELEMETRY, COLUMNS)
    assert len(loaded.expectations) == len(json.loads(TELEMETRY.read_text())["expectations"]) > 0


def test_without_great_expectations_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suites, "find_spec", lambda name: None)
    suites.schema_folder.cache_clear()
    with pytest.raises(DefinitionError, match=r"install recapture\[quality\]"):
        suites.require_installed()


def test_loading_does_not_import_great_expectations_or_pandas(python: Python) -> None:
    program = (
        f"import sys; from pathlib import Path; from recapture.quality import checkpoint, audit, suites;"
        f"suites.load(Path({str(TELEMETRY)!r}), {COLUMNS!r});"
        "print({'great_expectations', 'pandas'} & set(sys.modules))"
    )
    completed = python("-c", program)
    assert (completed.returncode, completed.stdout) == (0, b"set()\n"), completed.stderr


@pytest.mark.usefixtures("great_expectations")
def test_every_known_name_is_one_that_great_expectations_registers() -> None:
    from great_expectations.expectations.registry import list_registered_expectation_implementations

    import recapture.quality.expectations  # noqa: F401, the import registers Recapture's own

    known = set(suites.known_types())
    assert known
    assert known <= set(list_registered_expectation_implementations())
