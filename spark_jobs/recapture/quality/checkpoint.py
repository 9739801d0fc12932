"""Running suites on the run's metrics and on the aggregates of its outputs; the results become one verdict."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

from recapture.errors import DefinitionError
from recapture.quality import evaluation, report
from recapture.quality.audit import Audit, Result, Verdict
from recapture.quality.metrics import derive
from recapture.quality.rows import Rows
from recapture.quality.suites import Expectation, Suite, built_in, require_installed

if TYPE_CHECKING:
    import pandas as pd
    from great_expectations.data_context.data_context.ephemeral_data_context import EphemeralDataContext
    from great_expectations.expectations.expectation import Expectation as LoadedExpectation

_EXAMPLES = 3


def check(suites: Iterable[Suite]) -> None:
    """Let Great Expectations check the values of arguments too. Raise DefinitionError, also if it is not installed.

    With a suite this imports it, which takes 6 to 10 s.
    """
    require_installed()
    _loaded(suites)


def audit(
    metrics: pd.DataFrame,
    aggregates: Mapping[str, Rows],
    suites: Mapping[str, Suite],
    *,
    run_start: datetime,
    run_end: datetime,
    slice_count: int,
    of_slices: Sequence[Result] = (),
) -> Audit:
    """Run the built-in suite and those of the outputs on a run's metrics and on the rows that it would publish.

    `metrics` has the columns of quality.metrics.COLUMNS, a row for each slice and partition; `aggregates` by the
    output's alias has those that its suite, if `suites` has one for it, was loaded with. Outputs that share a suite
    have what it says of the metrics judged once. `of_slices` are results of other checks, which count as these do.
    Times without a zone are UTC; `run_start` and `run_end` are aware.
    An expectation that could not be evaluated fails as critical. On a frame without rows only the expectations on the
    table itself are judged. Raises DefinitionError for a suite, RunError for metrics that lack a column.
    """
    distinct = [built_in()]
    for suite in suites.values():
        if suite not in distinct:
            distinct.append(suite)
    loaded = _loaded([*distinct, *suites.values()])
    of_run = _in_utc(derive(metrics))
    parameters = {"run_start": run_start, "run_end": run_end, "slice_count": slice_count}
    context = _context()
    results: list[Result] = []
    validations: list[dict[str, Any]] = []

    def judge(suite: Suite, judged: str, rows: pd.DataFrame | Rows) -> None:
        asset, count = ("aggregates", rows.count) if isinstance(rows, Rows) else ("metrics", len(rows))
        declared = [expectation for expectation in suite.expectations if expectation.asset == asset]
        judgeable = [loaded[id(each)] for each in declared if count or _judges_no_rows(each)]
        if isinstance(rows, Rows):
            outcomes = evaluation.on_rows(context, rows, judgeable, parameters)
        else:
            outcomes = evaluation.on_frame(context, rows, judgeable, parameters, ("slice_start", "partition"))
        by_id = {id(each): outcome for (each, _), outcome in zip(judgeable, outcomes, strict=True)}
        results.extend(_result(suite.name, judged, each, by_id.get(id(each))) for each in declared)
        if judgeable:
            validations.append({"suite_name": suite.name, "judged": judged, "results": outcomes})

    for suite in distinct:
        judge(suite, "metrics", of_run)
        if suite is distinct[0]:
            results.extend(of_slices)
    for alias, suite in suites.items():
        judge(suite, alias, aggregates[alias])
    verdict = _verdict(results)
    kept = {"verdict": verdict, "results": [asdict(result) for result in results], "validations": validations}
    return Audit(verdict, tuple(results), kept)


def _loaded(suites: Iterable[Suite]) -> dict[int, evaluation.Loaded]:
    """By the id of each expectation."""
    return {id(each): (each, _load(each)) for suite in suites for each in suite.expectations}


def _verdict(results: Collection[Result]) -> Verdict:
    failed = {result.severity for result in results if not result.success}
    if "critical" in failed:
        return "failed"
    return "passed with warnings" if "warning" in failed else "passed"


def _judges_no_rows(expectation: Expectation) -> bool:
    """Whether the expectation has something to say about a frame without rows."""
    return expectation.type.startswith("expect_table_") or expectation.type == "expect_column_to_exist"


def _in_utc(frame: pd.DataFrame) -> pd.DataFrame:
    naive = frame.select_dtypes("datetime").columns
    return frame.assign(**{column: frame[column].dt.tz_localize("UTC") for column in naive})


def _context() -> EphemeralDataContext:
    """A context in memory that reports to nobody and draws no progress bars."""
    import great_expectations as gx
    from great_expectations.data_context.types.base import (
        DataContextConfig,
        InMemoryStoreBackendDefaults,
        ProgressBarsConfig,
    )

    logging.getLogger("great_expectations").setLevel(logging.WARNING)
    config = DataContextConfig(
        store_backend_defaults=InMemoryStoreBackendDefaults(),
        progress_bars=ProgressBarsConfig(globally=False),
        analytics_enabled=False,
    )
    return gx.get_context(project_config=config, mode="ephemeral")


def _load(declared: Expectation) -> LoadedExpectation:
    from great_expectations.exceptions.exceptions import GreatExpectationsError
    from great_expectations.expectations.expectation_configuration import ExpectationConfiguration
    from great_expectations.expectations.metadata_types import FailureSeverity

    try:
        return ExpectationConfiguration(
            type=declared.type,
            kwargs=dict(declared.kwargs),
            severity=FailureSeverity(declared.severity),
            description=declared.description,
            notes=declared.notes,
            meta={"asset": declared.asset},
        ).to_domain_obj()
    except (GreatExpectationsError, TypeError, ValueError) as error:
        raise DefinitionError(f"{declared.where}: {_one_line(error)}") from None


def _one_line(error: Exception) -> str:
    details = getattr(error, "errors", None)
    if not callable(details):
        return " ".join(str(error).split())
    return "; ".join(
        ": ".join((*(str(step) for step in detail["loc"] if step != "__root__"), detail["msg"])) for detail in details()
    )


def _result(suite: str, judged: str, expectation: Expectation, outcome: Mapping[str, Any] | None) -> Result:
    title = report.title(expectation)
    if outcome is None:
        sentence = f"{title}: no rows to judge"
        return Result(suite, judged, expectation.type, expectation.severity, True, None, None, sentence)
    problem = _exception(outcome["exception_info"])
    found = outcome["result"]
    unexpected = found.get("unexpected_count")
    observed = found.get("observed_value") if unexpected is None else _examples(found)
    return Result(
        suite,
        judged,
        expectation.type,
        expectation.severity if problem is None else "critical",
        outcome["success"] is True and problem is None,
        observed,
        unexpected,
        f"{title}: {report.finding(found, observed) if problem is None else f'could not be evaluated: {problem}'}",
    )


def _examples(found: Mapping[str, Any]) -> list[Any]:
    examples: list[Any] = []
    where = "partial_unexpected_index_list" if "unexpected_index_column_names" in found else "partial_unexpected_list"
    for value in found.get(where) or ():
        if value not in examples:
            examples.append(value)
    return examples[:_EXAMPLES]


def _exception(info: object) -> str | None:
    """What was raised during the evaluation: Great Expectations keeps one exception, or one for each failed metric."""
    if not isinstance(info, Mapping):
        return None
    if info.get("raised_exception"):
        return " ".join(str(info.get("exception_message")).split())
    return next(filter(None, map(_exception, info.values())), None)
