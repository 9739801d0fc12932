"""What a report says about expectations that passed, and about those that could not be judged."""

from types import SimpleNamespace
from typing import Any

from recapture.tools.reports.failures import failures


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


def test_an_expectation_that_failed_in_several_runs_is_shown_once_with_the_counts_of_all() -> None:
    result = {"suite": "run_metrics", "judged": "metrics", "expectation": "expect_it", "severity": "info"}
    config = {"type": "expect_it", "description": "no event is malformed", "kwargs": {"column": "malformed"}}

    def run(name: str, unexpected: int) -> SimpleNamespace:
        found = result | {"success": False, "sentence": "it is not so", "observed": [], "unexpected_count": unexpected}
        rows = [{"malformed": 1, "partition": f"{name} {number}"} for number in range(unexpected)]
        details = {"element_count": 32, "unexpected_count": unexpected, "partial_unexpected_index_list": rows}
        evaluation = {"expectation_config": config, "result": details}
        validations = [{"suite_name": "run_metrics", "judged": "metrics", "results": [evaluation]}]
        return SimpleNamespace(id=name, audit={"json": {"results": [found], "validations": validations}})

    source: Any = SimpleNamespace(runs={name: run(name, count) for name, count in (("old", 30), ("new", 2))})
    [failure] = failures(source)["failed"]
    assert (failure["runs"], failure["unexpected"], failure["of"]) == (2, 32, 64)
    assert failure["columns"] == ["partition", "malformed"]
    assert [row[0] for row in failure["rows"]] == ["new 0", "new 1", *(f"old {number}" for number in range(18))]
