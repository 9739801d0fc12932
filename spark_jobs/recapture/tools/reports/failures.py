"""What failed or warned in the audits of a report: what was expected and observed, rows, and what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from recapture.definition.sections import Output
from recapture.quality.audit import Audit, Evidence, JsonResult, Result
from recapture.quality.sentences import expected, value_text
from recapture.quality.suites import SEVERITIES, columns_of
from recapture.storage import open_container
from recapture.table.files import read_slice_table
from recapture.tools.events.row_command import row_command
from recapture.tools.reports.sources import RunSource, Source

_OF_UNUSABLE = (
    *("events_can_be_used", "expect_share_of_malformed_events_to_be_at_most", "malformed", "invalid_timestamp"),
)
"""What fails if events cannot be used, as in _HINTS."""
MAX_ROWS = 20
"""Largest number of rows that are shown of an expectation."""
MAX_FAILURES = 40
"""Largest number of expectations that are shown."""
MAX_PASSED = 500
"""Largest number of expectations that are listed as passed."""
_UNUSABLE = "see the reasons under Quarantine; correct CREATE TABLE, the casts of the query, or the sender"
_HINTS = {
    "archive_has_no_holes": "restore the missing blobs and backfill again; the section Capture lists the holes",
    "no_published_event_is_lost": "restore the missing blobs and backfill again",
    "expect_capture_to_be_complete": "wait until Capture has written the rest, then run the slices again",
    "whole": "restore the damaged blobs, which the quarantine names, and backfill again",
    "expect_sequence_gaps_to_be_at_most": (
        "look for blobs with the missing sequence numbers, restore them and backfill again"
    ),
    "events_can_be_used": _UNUSABLE,
    "expect_share_of_malformed_events_to_be_at_most": _UNUSABLE,
    "malformed": _UNUSABLE,
    "invalid_timestamp": "see the reasons under Quarantine; correct the field of TIMESTAMP BY, or the sender",
    "expect_share_of_late_events_to_be_at_most": (
        "compare late tolerances with recapture advise; the job's own is eventsLateArrivalMaxDelayInSeconds"
    ),
    "events_of_every_key_reach_the_query": "the section Who shows what happened to the events of these senders",
    "verdicts_equal_the_metrics": "the run files are damaged: plan the run again",
    "DuplicateEvents": "look for blobs that were copied, unless senders repeat events; duplicates change no row",
}
"""What to do if the metrics are not as expected: by the column of the expectation, or by its type if it has none.

Causes come before what may follow from them: an event that is missing or unusable leads to missing rows.
"""


def failures(source: Source) -> dict[str, Any]:
    """Return the failed expectations of the audits, the most severe first, the unjudged, and the user's parameters.

    `counts` are those of all expectations; of many, not all are listed.
    """
    failed: dict[tuple[Any, ...], list[_Failed]] = {}
    passed = 0
    passed_in: dict[tuple[str, str, str], set[str]] = {}
    unjudged: dict[str, None] = {}
    parameters: dict[str, None] = {}
    for run in source.runs.values():
        if run.audited is None:
            continue
        audit = run.audited.audit
        for alias, values in audit.parameters.items():
            parameters |= {f"{name}={value_text(value)} ({alias})": None for name, value in values.items()}
        for result, evaluation in _with_evaluations(audit):
            if result.success and not result.proved:
                unjudged[result.sentence] = None
            elif result.success:
                passed += 1
                check = (result.suite, result.judged, _Failed(run, result, evaluation).title)
                passed_in.setdefault(check, set()).add(run.id)
            else:
                failure = _Failed(run, result, evaluation)
                failed.setdefault(failure.expectation, []).append(failure)
    groups = sorted(failed.values(), key=lambda group: (SEVERITIES.index(group[0].result.severity), group[0].cause))
    severities = Counter(group[0].result.severity for group in groups)
    return {
        "counts": {severity: severities[severity] for severity in SEVERITIES} | {"unjudged": len(unjudged)},
        "failed": [_failure(source, group) for group in groups[:MAX_FAILURES]],
        "more": max(len(groups) - MAX_FAILURES, 0),
        "passed": passed,
        "passed_checks": [
            {"suite": suite, "judged": judged, "title": title, "runs": len(runs)}
            for (suite, judged, title), runs in passed_in.items()
        ][:MAX_PASSED],
        "more_passed": max(len(passed_in) - MAX_PASSED, 0),
        "unjudged": list(unjudged)[:MAX_FAILURES],
        "parameters": list(parameters),
    }


@dataclass(frozen=True)
class _Failed:
    """An expectation that failed in the audit of one run."""

    run: RunSource
    result: Result
    evaluation: JsonResult | None
    """Result of Great Expectations; None for a built-in check."""

    @property
    def config(self) -> Mapping[str, Any]:
        return {} if self.evaluation is None else self.evaluation["expectation_config"]

    @property
    def kwargs(self) -> Mapping[str, Any]:
        return self.config.get("kwargs") or {}

    @property
    def details(self) -> Mapping[str, Any]:
        return {} if self.evaluation is None else self.evaluation["result"]

    @property
    def evidence(self) -> Evidence:
        """Columns, expectation, notes and number of rows: of a built-in check, or from Great Expectations' result."""
        return self.result.evidence or Evidence(
            tuple(map(str, columns_of(self.kwargs))),
            expected(self.kwargs),
            self.config.get("notes"),
            self.details.get("element_count"),
        )

    @property
    def observed(self) -> object:
        """Value of whole columns; None if each row was judged."""
        has_evidence = self.result.evidence is not None and self.result.unexpected_count is None
        return self.result.observed if has_evidence else self.details.get("observed_value")

    @property
    def title(self) -> str:
        """What is expected. In an audit of an earlier version, the sentence begins with it."""
        return str(self.result.title or self.config.get("description") or self.result.sentence.partition(" (")[0])

    @property
    def subject(self) -> str | None:
        """Key of the expectation in _HINTS; None for an expectation on rows."""
        if self.result.judged not in ("metrics", "slices"):
            return None
        columns = self.evidence.columns
        return columns[0] if len(columns) == 1 else self.result.expectation

    @property
    def cause(self) -> int:
        """Place in the order of causes: a failure may follow from one with a lower number."""
        return next((number for number, subject in enumerate(_HINTS) if subject == self.subject), len(_HINTS))

    @property
    def expectation(self) -> tuple[Any, ...]:
        """Identity of the expectation, the same in the audits of several runs."""
        result = self.result
        place = (result.severity, result.suite, result.judged, result.expectation)
        return (*place, self.title, self.evidence.columns)


def _with_evaluations(audit: Audit) -> Iterator[tuple[Result, JsonResult | None]]:
    """Yield the results of an audit, each with Great Expectations' own result if it has one."""
    evaluations = {
        (validation.suite_name, validation.judged): list(validation.results) for validation in audit.validations
    }
    for result in audit.results:
        remaining = evaluations.get((result.suite, result.judged), [])
        matches = remaining and remaining[0]["expectation_config"]["type"] == result.expectation
        yield result, remaining.pop(0) if matches else None


def _failure(source: Source, group: Sequence[_Failed]) -> dict[str, Any]:
    """Return one expectation that failed in the audits of one or more runs; the counts are those of all runs."""
    newest = group[-1]
    result, evidence, observed = newest.result, newest.evidence, newest.observed
    rows: list[list[str]] = []
    columns: list[str] = []
    commands: list[str | None] = []
    for failure in reversed(group):
        if len(rows) < MAX_ROWS:
            failing, names = _rows(source, failure)
            if not columns or names == columns:
                columns, rows = names, [*rows, *failing][:MAX_ROWS]
                commands += _commands(source, failure, names, failing[: MAX_ROWS - len(commands)])
    counts = [failure.result.unexpected_count for failure in group]
    judged = [failure.evidence.judged for failure in group]
    return {
        "severity": result.severity,
        "title": newest.title,
        "sentence": result.sentence,
        "suite": result.suite,
        "judged": result.judged,
        "expectation": result.expectation,
        "run": newest.run.id,
        "runs": len(group),
        "expected": evidence.expected,
        "unexpected": None if None in counts else sum(counts),
        "of": None if None in judged else sum(judged),
        "observed": None if observed is None else value_text(observed),
        "columns": columns,
        "rows": rows,
        "commands": commands,
        "hint": _HINTS.get(newest.subject or "") or evidence.notes,
        "cause": newest.cause,
        "of_unusable": newest.subject in _OF_UNUSABLE,
    }


def _commands(source: Source, failed: _Failed, columns: list[str], rows: list[list[str]]) -> list[str | None]:
    """Return the command that explains each row of an output; None for rows of metrics."""
    if failed.result.judged in ("metrics", "slices"):
        return [None] * len(rows)
    texts = (dict(zip(columns, row, strict=True)) for row in rows)
    return [row_command(source.pipeline, failed.result.judged, row, failed.run.id) for row in texts]


def _rows(source: Source, failed: _Failed) -> tuple[list[list[str]], list[str]]:
    """Return up to MAX_ROWS rows that are not as expected, as texts, and the names of their columns."""
    run, result, details = failed.run, failed.result, failed.details
    column = failed.kwargs.get("column")
    if result.evidence is not None:
        shown = result.evidence.rows[:MAX_ROWS]
        return [[value_text(value) for value in row.values()] for row in shown], list(shown[0]) if shown else []
    if result.judged == "slices" or not details:
        starts = result.observed if isinstance(result.observed, list) else []
        return [[value_text(start)] for start in starts[:MAX_ROWS]], ["slice_start"] if starts else []
    indexed = details.get("partial_unexpected_index_list") or []
    values = details.get("partial_unexpected_list") or []
    if indexed and isinstance(indexed[0], Mapping):
        names = sorted(indexed[0], key=lambda name: name == column)
        return [[value_text(row.get(name)) for name in names] for row in indexed[:MAX_ROWS]], names
    output = next((output for output in source.pipeline.outputs if output.alias == result.judged), None)
    if output is not None and column is not None and values is not None and result.unexpected_count:
        rows = _rows_with(_staged(source, run, output), column, values)
        if rows is not None:
            return rows
    if values and isinstance(values[0], Mapping):
        return [[value_text(value) for value in row.values()] for row in values[:MAX_ROWS]], list(values[0])
    return [[value_text(value)] for value in values[:MAX_ROWS]], [column or "value"] if values else []


def _staged(source: Source, run: RunSource, output: Output) -> Iterator[pa.Table]:
    """Yield the rows of each file that a run staged for an output."""
    container = open_container(output.table)
    for file in run.staged:
        if file.output == output.alias and file.rows and source.run_of_slice.get(file.slice_start) == run.id:
            table = read_slice_table(container, file.path)
            if table is not None:
                yield table


def _rows_with(tables: Iterable[pa.Table], column: str, values: list[Any]) -> tuple[list[list[str]], list[str]] | None:
    """Return the first rows whose column has one of these unexpected values (null if they all are), or None."""
    present = [value for value in values if value is not None]
    rows: list[list[str]] = []
    names: list[str] = []
    for table in tables:
        try:
            unexpected = pa.array(present).cast(table.schema.field(column).type) if present else None
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, KeyError):
            return None
        matches = pc.is_null(table[column]) if unexpected is None else pc.is_in(table[column], value_set=unexpected)
        names = table.column_names
        matching = table.filter(matches).slice(0, MAX_ROWS - len(rows)).to_pylist()
        rows += [list(map(value_text, row.values())) for row in matching]
        if len(rows) >= MAX_ROWS:
            break
    return (rows, names) if rows else None
