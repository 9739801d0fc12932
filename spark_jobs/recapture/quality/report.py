"""An audit in words: one line for each expectation."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from recapture.quality.audit import Audit, Result
from recapture.quality.suites import Expectation

_MARKS = {"critical": "BLOCKS", "warning": "warns", "info": "notes"}


def title(expectation: Expectation) -> str:
    """What is expected: the suite's own description, else the type and its arguments."""
    if expectation.description:
        return expectation.description
    arguments = ", ".join(f"{name} {_value(value)}" for name, value in expectation.kwargs.items())
    return f"{expectation.type.replace('_', ' ')} ({arguments})"


def finding(found: Mapping[str, Any], observed: object) -> str:
    """What was found, from the result of an expectation that was evaluated."""
    unexpected = found.get("unexpected_count")
    if unexpected is None:
        return f"found {_value(observed)}" if "observed_value" in found else "no more is said"
    rows = f"{found['element_count']:,} row{'' if found['element_count'] == 1 else 's'}"
    if not unexpected:
        return f"so in all {rows}"
    examples = f", such as {_value(observed)}" if observed else ""
    return f"not so in {unexpected:,} of {rows}{examples}"


def text(audit: Audit) -> str:
    """The verdict, then one line for each expectation: its mark, suite, what it judged, and its sentence."""
    width = max(len(f"{result.suite} {result.judged}") for result in audit.results)
    return "\n".join((f"audit {audit.verdict}", *(_line(result, width) for result in audit.results)))


def reason(audit: Audit) -> str:
    """Why the audit blocks, in one line; empty when it does not."""
    blocking = [result for result in audit.results if not result.success and result.severity == "critical"]
    return "; ".join(f"{result.suite}: {result.sentence}" for result in blocking)


def _line(result: Result, width: int) -> str:
    mark = "ok" if result.success else _MARKS[result.severity]
    return f"{mark:<6}  {f'{result.suite} {result.judged}':<{width}}  {result.sentence}"


def _value(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(_value, value))
    if isinstance(value, Mapping):
        if "$PARAMETER" in value:
            return str(value["$PARAMETER"])
        return " ".join(f"{key}={_value(item)}" for key, item in value.items())
    return value if isinstance(value, str) else json.dumps(value)
