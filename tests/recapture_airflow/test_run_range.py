"""The range of slices that a DAG run computes."""

from datetime import UTC, datetime
from types import ModuleType

import pytest

from recapture.errors import DefinitionError
from tests.recapture_airflow.conftest import LoadPlugin

SIX = datetime(2026, 3, 1, 6, tzinfo=UTC)
TWELVE = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def plugin(load_plugin: LoadPlugin) -> ModuleType:
    return load_plugin("run_range")


@pytest.mark.parametrize(
    ("params", "interval"),
    [
        ({"from": None, "to": None}, (SIX, TWELVE)),
        ({"from": "2026-03-01T06:00:00Z", "to": "2026-03-01T13:00:00+01:00"}, (TWELVE, TWELVE)),
    ],
)
def test_a_run_takes_its_params_or_else_its_data_interval(
    plugin: ModuleType, params: dict[str, str], interval: tuple[datetime, datetime]
) -> None:
    assert plugin.range_of_dag_run(params, *interval) == (SIX, TWELVE)


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({}, "no data interval"),
        ({"from": "2026-03-01T06:00:00Z"}, "`to` is missing"),
        ({"to": "2026-03-01T06:00:00Z"}, "`from` is missing"),
        ({"from": "2026-03-01T06:00:00Z", "to": "2026-03-01T06:00:00Z"}, "empty"),
        ({"from": "2026-03-01T07:00:00Z", "to": "2026-03-01T06:00:00Z"}, "empty"),
        ({"from": "six", "to": "2026-03-01T06:00:00Z"}, "ISO 8601"),
    ],
)
def test_a_run_that_names_no_range_is_refused_with_a_reason(
    plugin: ModuleType, params: dict[str, str], reason: str
) -> None:
    with pytest.raises(DefinitionError, match=reason):
        plugin.range_of_dag_run(params, None, None)


def test_a_run_of_airflows_backfill_computes_its_own_slice_and_no_other_range(plugin: ModuleType) -> None:
    own = {"from": SIX.isoformat(), "to": TWELVE.isoformat()}
    for params in ({}, own):
        assert plugin.range_of_dag_run(params, SIX, TWELVE, is_backfill=True) == (SIX, TWELVE)
    other = {"from": "2026-03-01T00:00:00Z", "to": "2026-03-01T06:00:00Z"}
    with pytest.raises(DefinitionError, match="contradict Airflow's backfill"):
        plugin.range_of_dag_run(other, SIX, TWELVE, is_backfill=True)


def test_an_empty_data_interval_is_refused(plugin: ModuleType) -> None:
    with pytest.raises(DefinitionError, match="empty"):
        plugin.range_of_dag_run({}, SIX, SIX)
