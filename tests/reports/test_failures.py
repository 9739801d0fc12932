"""What a report says about expectations that passed, and about those that could not be judged."""

from types import SimpleNamespace
from typing import Any

from recapture.reports.failures import failures


def test_what_could_not_be_judged_did_not_pass() -> None:
    result = {"suite": "mine", "judged": "rows", "expectation": "expect_it", "severity": "critical", "success": True}
    results = [
        result | {"proved": True, "sentence": "it is so (true for all 3 rows)"},
        result | {"proved": False, "sentence": "as usual (not judged: fewer than 5 earlier days published)"},
    ]
    audit = {"json": {"results": results, "validations": [], "parameters": {"rows": {"max_late": 0.1}}}}
    source: Any = SimpleNamespace(runs={"one": SimpleNamespace(id="one", audit=audit)})
    assert failures(source) == {
        "failed": [],
        "more": 0,
        "passed": 1,
        "unjudged": ["as usual (not judged: fewer than 5 earlier days published)"],
        "parameters": ["max_late=0.1 (rows)"],
    }
