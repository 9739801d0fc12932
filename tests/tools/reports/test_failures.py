"""What a report says about expectations that passed, and about those that could not be judged."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from recapture.quality.audit import Audit, Result, Validation
from recapture.run_files.contents import Audited
from recapture.tools.reports.failures import failures


def run_with(name: str, audit: Audit) -> SimpleNamespace:
    return SimpleNamespace(id=name, audited=Audited(audit.verdict, "", "", audit))


def test_what_could_not_be_judged_did_not_pass() -> None:
    proved = Result("mine", "rows", "expect_it", "critical", True, None, None, "it is so (true for all 3 rows)")
    unproved = replace(proved, sentence="as usual (not judged: fewer than 5 earlier days published)", proved=False)
    audit = Audit("passed", (proved, unproved), parameters={"rows": {"max_late": 0.1}})
    source: Any = SimpleNamespace(runs={"one": run_with("one", audit)})
    assert failures(source) == {
        "failed": [],
        "more": 0,
        "passed": 1,
        "unjudged": ["as usual (not judged: fewer than 5 earlier days published)"],
        "parameters": ["max_late=0.1 (rows)"],
    }


def test_an_expectation_that_failed_in_several_runs_is_shown_once_with_the_counts_of_all() -> None:
    config = {"type": "expect_it", "description": "no event is malformed", "kwargs": {"column": "malformed"}}

    def run(name: str, unexpected: int) -> SimpleNamespace:
        result = Result("run_metrics", "metrics", "expect_it", "info", False, [], unexpected, "it is not so")
        rows = [{"malformed": 1, "partition": f"{name} {number}"} for number in range(unexpected)]
        details = {"element_count": 32, "unexpected_count": unexpected, "partial_unexpected_index_list": rows}
        evaluation = {"expectation_config": config, "result": details}
        validation = Validation("run_metrics", "metrics", [evaluation])
        return run_with(name, Audit("passed", (result,), validations=(validation,)))

    source: Any = SimpleNamespace(runs={name: run(name, count) for name, count in (("old", 30), ("new", 2))})
    [failure] = failures(source)["failed"]
    assert (failure["runs"], failure["unexpected"], failure["of"]) == (2, 32, 64)
    assert failure["columns"] == ["partition", "malformed"]
    assert [row[0] for row in failure["rows"]] == ["new 0", "new 1", *(f"old {number}" for number in range(18))]
