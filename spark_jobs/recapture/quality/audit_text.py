"""The text of an audit: the verdict, and one line per expectation."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from recapture.printable import one_line
from recapture.quality.audit import Audit, Result
from recapture.quality.suites import Expectation
from recapture.wording import counted

_MARKS = {"critical": "FAILED", "warning": "WARNING", "info": "INFO"}


def title(expectation: Expectation) -> str:
    """Return what is expected: the description in the suite, or else the type and its arguments."""
    if expectation.description:
        return expectation.description
    arguments = ", ".join(f"{name} {_value(value)}" for name, value in expectation.kwargs.items())
    return f"{expectation.type.replace('_', ' ')}: {arguments}"


def finding(evaluation: Mapping[str, Any], observed: object) -> str:
    """Return the number of rows that fail, with examples, or the observed value of an expectation on whole columns.

    `evaluation` is the result of Great Expectations for an expectation that could be evaluated. The details of
    Recapture's own expectations name other items than rows, and say how many could not be judged.
    """
    unexpected = evaluation.get("unexpected_count")
    if unexpected is None:
        return f"observed {_value(observed)}" if "observed_value" in evaluation else "no details"
    details = evaluation.get("details") or {}
    if is_unjudged(evaluation):
        return f"not judged: {details['why_unjudged']}"
    rows = counted(evaluation["element_count"], details.get("item", "row"))
    unjudged = f"; {details['unjudged']:,} not judged: {details['why_unjudged']}" if "unjudged" in details else ""
    if not unexpected:
        return f"true for all {rows}{unjudged}"
    examples = f", such as {_value(observed)}" if observed else ""
    return f"{unexpected:,} of {rows} {'fails' if unexpected == 1 else 'fail'}{examples}{unjudged}"


def is_unjudged(evaluation: Mapping[str, Any]) -> bool:
    """Return whether one of Recapture's own expectations could judge nothing."""
    return not evaluation.get("element_count") and "unjudged" in (evaluation.get("details") or {})


def text(audit: Audit) -> str:
    """Return the verdict, the parameters of each suite, then one line per expectation.

    The line has its mark, its suite, what it judged, and its sentence. Values from events cannot break it.
    """
    width = max(len(f"{result.suite} {result.judged}") for result in audit.results)
    parameters = (f"parameters of {alias}: {_value(values)}" for alias, values in audit.parameters.items())
    lines = (f"audit {audit.verdict}", *parameters, *(_line(result, width) for result in audit.results))
    return "\n".join(map(one_line, lines))


def reason(audit: Audit) -> str:
    """Return the sentences of all failed critical expectations in one line; empty if there are none."""
    blocking = [result for result in audit.results if not result.success and result.severity == "critical"]
    return one_line("; ".join(f"{result.suite}: {result.sentence}" for result in blocking))


def _line(result: Result, width: int) -> str:
    mark = ("ok" if result.proved else "SKIPPED") if result.success else _MARKS[result.severity]
    return f"{mark:<7}  {f'{result.suite} {result.judged}':<{width}}  {result.sentence}"


def _value(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(_value, value))
    if isinstance(value, Mapping):
        if "$PARAMETER" in value:
            return str(value["$PARAMETER"])
        return " ".join(f"{key}={_value(item)}" for key, item in value.items())
    return value if isinstance(value, str) else json.dumps(value)
