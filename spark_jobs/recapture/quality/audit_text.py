"""The text of an audit: the verdict, and one line per expectation."""

from recapture.printable import one_line
from recapture.quality.audit import Audit, Result

_MARKS = {"critical": "FAILED", "warning": "WARNING", "info": "INFO"}
_ORDER = (*_MARKS.values(), "SKIPPED", "ok")
"""Marks of the lines, in order."""


def text(audit: Audit) -> str:
    """Return the verdict, the parameters of each suite, then one line per expectation, those that failed first.

    The line has its mark, its suite, what it judged, and its sentence. Values from events cannot break it.
    """
    width = max(len(f"{result.suite} {result.judged}") for result in audit.results)
    parameters = (
        f"parameters of {alias}: {' '.join(f'{name}={value}' for name, value in values.items())}"
        for alias, values in audit.parameters.items()
    )
    results = sorted(audit.results, key=lambda result: _ORDER.index(_mark(result)))
    lines = (f"audit {audit.verdict}", *parameters, *(_line(result, width) for result in results))
    return "\n".join(map(one_line, lines))


def reason(audit: Audit) -> str:
    """Return the sentences of all failed critical expectations in one line; empty if there are none."""
    blocking = [result for result in audit.results if not result.success and result.severity == "critical"]
    return one_line("; ".join(f"{result.suite}: {result.sentence}" for result in blocking))


def _line(result: Result, width: int) -> str:
    return f"{_mark(result):<7}  {f'{result.suite} {result.judged}':<{width}}  {result.sentence}"


def _mark(result: Result) -> str:
    return ("ok" if result.proved else "SKIPPED") if result.success else _MARKS[result.severity]
