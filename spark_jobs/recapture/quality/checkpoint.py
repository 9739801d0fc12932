"""The audit of a run: evaluate the suites on its metrics and on the rows of its outputs, and return one verdict."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from recapture.errors import DefinitionError
from recapture.quality import built_in_checks, evaluation, sentences
from recapture.quality.audit import Audit, JsonResult, Result, Validation, Verdict
from recapture.quality.loading import create_context, load_great_expectations
from recapture.quality.metrics import COLUMNS, derive
from recapture.quality.rows import Rows
from recapture.quality.signatures import BOUNDS
from recapture.quality.suites import Expectation, RunParameters, Suite, columns_of, require_installed

if TYPE_CHECKING:
    import pandas as pd
    from great_expectations.expectations.expectation import Expectation as LoadedExpectation


def require_valid_arguments(suites: Iterable[Suite]) -> None:
    """Raise DefinitionError if Great Expectations rejects the value of an argument, or is not installed.

    If there is a suite, this imports Great Expectations, which takes 1 to 4 s.
    """
    require_installed()
    _pairs(suites)


def audit(
    metrics: Sequence[Mapping[str, Any]],
    aggregates: Mapping[str, Rows],
    suites: Mapping[str, Suite],
    run: RunParameters,
    *,
    slice_results: Sequence[Result] = (),
    earlier_metrics: pd.DataFrame | None = None,
    provisional: bool = False,
) -> Audit:
    """Return the audit of a run's metrics and of the rows that it would publish.

    The built-in checks judge the metrics. The suite of an output judges the metrics and the rows of the output, with
    Great Expectations, which is imported only if there is a suite. A suite that several outputs share judges the
    metrics once. An expectation that cannot be evaluated fails as critical. Without rows, only the expectations on the
    table itself and those with a history are judged. Raise DefinitionError if Great Expectations rejects an argument in
    a suite, and RunError if the metrics lack a column.

    Args:
        metrics: one row per slice and partition of an input, with the fields of `quality.metrics.COLUMNS`. Times
            without a zone are UTC. Other fields are not judged.
        aggregates: the rows of each output that has a suite, by alias, with the columns that the suite was loaded with.
        slice_results: the results of other checks, which count towards the verdict.
        earlier_metrics: the metrics of slices that were published before, for expectations with a history.
        provisional: whether slices may be published before Capture has written everything.
    """
    results = [*built_in_checks.results(metrics, run.slice_count, provisional=provisional), *slice_results]
    if not suites:
        return Audit(_verdict(results), tuple(results))
    import pandas as pd

    distinct: list[Suite] = []
    for suite in suites.values():
        if suite not in distinct:
            distinct.append(suite)
    several_inputs = len({row.get("input") for row in metrics}) > 1
    identifying_columns = ("slice_start", *["input"] * several_inputs, "partition")
    run_metrics = derive(pd.DataFrame(metrics, columns=None if metrics else list(COLUMNS)))
    for column in run_metrics.select_dtypes("datetime"):
        run_metrics[column] = run_metrics[column].dt.tz_localize("UTC")
    known_metrics = run_metrics if earlier_metrics is None else pd.concat([earlier_metrics, run_metrics])
    pairs = _pairs(suites.values())
    context = create_context()
    validations: list[Validation] = []

    def evaluate_metrics(
        judgeable: Sequence[evaluation.ExpectationPair], parameters: Mapping[str, object]
    ) -> list[JsonResult]:
        found: dict[int, JsonResult] = {}
        for with_history, frame in ((False, run_metrics), (True, known_metrics)):
            group = [pair for pair in judgeable if evaluation.has_history(pair[0]) is with_history]
            evaluated = evaluation.evaluate_frame(context, frame, group, parameters, identifying_columns)
            found |= {id(declared): result for (declared, _), result in zip(group, evaluated, strict=True)}
        return [found[id(declared)] for declared, _ in judgeable]

    def judge(suite: Suite, judged: str, rows: Rows | None) -> None:
        """Judge the rows of an output, or the metrics if there are none."""
        parameters = {**run._asdict(), **suite.parameters}
        asset, count = ("metrics", len(metrics)) if rows is None else ("aggregates", rows.count)
        declared = [expectation for expectation in suite.expectations if expectation.asset == asset]
        judgeable = [pairs[id(expectation)] for expectation in declared if count or _judges_no_rows(expectation)]
        if rows is None:
            json_results = evaluate_metrics(judgeable, parameters)
        else:
            json_results = evaluation.evaluate_rows(context, rows, judgeable, parameters)
        by_id = {id(expectation): result for (expectation, _), result in zip(judgeable, json_results, strict=True)}
        results.extend(
            _result(suite.name, judged, expectation, by_id.get(id(expectation)), rows) for expectation in declared
        )
        if judgeable:
            validations.append(Validation(suite.name, judged, json_results))

    for suite in distinct:
        judge(suite, "metrics", None)
    for alias, suite in suites.items():
        judge(suite, alias, aggregates[alias])
    return Audit(
        verdict=_verdict(results),
        results=tuple(results),
        parameters={alias: dict(suite.parameters) for alias, suite in suites.items() if suite.parameters},
        history=_history(earlier_metrics, {alias: aggregates[alias] for alias in suites}),
        validations=tuple(validations),
    )


def _history(earlier_metrics: pd.DataFrame | None, aggregates: Mapping[str, Rows]) -> dict[str, list[str]]:
    """Return the starts of the published slices that the run was compared with, by what was judged."""
    starts = {alias: [file.slice_start.isoformat() for file in rows.history] for alias, rows in aggregates.items()}
    if earlier_metrics is not None:
        starts["metrics"] = [str(start) for start in earlier_metrics["slice_start"].drop_duplicates()]
    return {judged: slices for judged, slices in starts.items() if slices}


def _pairs(suites: Iterable[Suite]) -> dict[int, evaluation.ExpectationPair]:
    """Return each expectation with its object in Great Expectations, by the id of the expectation."""
    return {id(declared): (declared, load_expectation(declared)) for suite in suites for declared in suite.expectations}


def _verdict(results: Collection[Result]) -> Verdict:
    failed = {result.severity for result in results if not result.success}
    if "critical" in failed:
        return "failed"
    return "passed with warnings" if "warning" in failed else "passed"


def _judges_no_rows(expectation: Expectation) -> bool:
    """Return whether the expectation can judge a frame without rows."""
    return (
        expectation.type.startswith("expect_table_")
        or expectation.type == "expect_column_to_exist"
        or evaluation.has_history(expectation)
    )


def load_expectation(declared: Expectation) -> LoadedExpectation:
    """Return the object of Great Expectations. Raise DefinitionError if it rejects the value of an argument."""
    load_great_expectations()
    from great_expectations.exceptions.exceptions import GreatExpectationsError
    from great_expectations.expectations.expectation_configuration import ExpectationConfiguration
    from great_expectations.expectations.metadata_types import FailureSeverity

    import recapture.quality.expectations  # noqa: F401, the import registers Recapture's own

    try:
        return ExpectationConfiguration(
            type=declared.type,
            kwargs={**declared.kwargs, **(BOUNDS if evaluation.has_history(declared) else {})},
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


def _result(
    suite: str, judged: str, expectation: Expectation, json_result: Mapping[str, Any] | None, rows: Rows | None
) -> Result:
    title = sentences.title(expectation)
    if json_result is None:
        sentence = f"{title} (no rows to judge)"
        return Result(
            *(suite, judged, expectation.type, expectation.severity, True, None, None, sentence, title), proved=False
        )
    problem = _exception(json_result["exception_info"])
    details = json_result["result"]
    unexpected = details.get("unexpected_count")
    observed = details.get("observed_value") if unexpected is None else _examples(details)
    succeeded = json_result["success"] is True and problem is None
    if problem is not None:
        sentence = f"{title}: could not be evaluated: {problem}"
    else:
        examples = (_keyed_examples(rows, expectation, details) if rows and unexpected else None) or observed or []
        if succeeded:
            sentence = sentences.success(expectation, details, examples)
        else:
            kwargs = json_result["expectation_config"]["kwargs"]
            sentence = sentences.failure(expectation, kwargs, details, examples)
    return Result(
        suite,
        judged,
        expectation.type,
        expectation.severity if problem is None else "critical",
        succeeded,
        observed,
        unexpected,
        sentence,
        title,
        proved=problem is None and not sentences.is_unjudged(details),
    )


def _keyed_examples(rows: Rows, expectation: Expectation, details: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the first rows that are not as expected, with what may be their keys; none if their places are unknown."""
    places = [place for place in details.get("partial_unexpected_index_list") or () if isinstance(place, int)]
    judged = [name for name in map(str, columns_of(expectation.kwargs)) if name in rows.schema.names]
    return rows.at(places[: sentences.EXAMPLES], [*rows.key_columns, *judged])


def _examples(details: Mapping[str, Any]) -> list[Any]:
    """Return the first distinct unexpected values, with slice, input and partition for metrics."""
    with_index = "unexpected_index_column_names" in details
    values = details.get("partial_unexpected_index_list" if with_index else "partial_unexpected_list")
    return sentences.distinct_examples(values or ())


def _exception(info: object) -> str | None:
    """Return the message of the first exception during the evaluation, of which each metric may have one; or None."""
    if not isinstance(info, Mapping):
        return None
    if info.get("raised_exception"):
        return " ".join(str(info.get("exception_message")).split())
    return next(filter(None, map(_exception, info.values())), None)
