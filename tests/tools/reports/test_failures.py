"""What a report says about expectations that passed, and about those that could not be judged."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from recapture.quality.audit import Audit, Evidence, Result, Validation
from recapture.run_files.contents import Audited
from recapture.tools.reports.failures import failures

NO_OUTPUT = SimpleNamespace(query=SimpleNamespace(outputs=()))
"""A pipeline whose rows no command explains."""


def run_with(name: str, audit: Audit) -> SimpleNamespace:
    return SimpleNamespace(id=name, audited=Audited(audit.verdict, "", "", audit))


def test_what_could_not_be_judged_did_not_pass() -> None:
    proved = Result("mine", "rows", "expect_it", "critical", True, None, None, "it is so (true for all 3 rows)")
    unproved = replace(proved, sentence="as usual (not judged: fewer than 5 earlier days published)", proved=False)
    audit = Audit("passed", (proved, unproved), parameters={"rows": {"max_late": 0.1}})
    source: Any = SimpleNamespace(pipeline=NO_OUTPUT, runs={"one": run_with("one", audit)})
    assert failures(source) == {
        "counts": {"critical": 0, "warning": 0, "info": 0, "unjudged": 1},
        "failed": [],
        "more": 0,
        "passed": 1,
        "passed_checks": [{"suite": "mine", "judged": "rows", "title": "it is so", "runs": 1}],
        "more_passed": 0,
        "unjudged": ["as usual (not judged: fewer than 5 earlier days published)"],
        "parameters": ["max_late=0.1 (rows)"],
    }


def test_a_report_counts_the_checks_that_passed_and_are_not_listed() -> None:
    passed = [Result("mine", "rows", "expect_it", "critical", True, None, None, f"rule {n}") for n in range(503)]
    source: Any = SimpleNamespace(pipeline=NO_OUTPUT, runs={"one": run_with("one", Audit("passed", (*passed,)))})
    found = failures(source)
    assert (found["passed"], len(found["passed_checks"]), found["more_passed"]) == (503, 500, 3)


def test_a_report_counts_the_checks_that_failed_or_were_not_judged_and_are_not_listed() -> None:
    failed = Result("mine", "rows", "expect_it", "warning", False, None, None, "")
    results = [replace(failed, sentence=f"rule {number}") for number in range(42)]
    results += [replace(failed, severity="critical", sentence="one"), replace(failed, severity="info", sentence="two")]
    results += [replace(failed, success=True, proved=False, sentence=f"as usual {number}") for number in range(41)]
    source: Any = SimpleNamespace(pipeline=NO_OUTPUT, runs={"one": run_with("one", Audit("failed", (*results,)))})
    found = failures(source)
    assert found["counts"] == {"critical": 1, "warning": 42, "info": 1, "unjudged": 41}
    assert (len(found["failed"]), found["more"], len(found["unjudged"])) == (40, 4, 40)


def test_an_expectation_that_failed_in_several_runs_is_shown_once_with_the_counts_of_all() -> None:
    config = {"type": "expect_it", "description": "no event is malformed", "kwargs": {"column": "malformed"}}

    def run(name: str, unexpected: int) -> SimpleNamespace:
        result = Result("run_metrics", "metrics", "expect_it", "info", False, [], unexpected, "it is not so")
        rows = [{"malformed": 1, "partition": f"{name} {number}"} for number in range(unexpected)]
        details = {"element_count": 32, "unexpected_count": unexpected, "partial_unexpected_index_list": rows}
        evaluation = {"expectation_config": config, "result": details}
        validation = Validation("run_metrics", "metrics", [evaluation])
        return run_with(name, Audit("passed", (result,), validations=(validation,)))

    source: Any = SimpleNamespace(
        pipeline=NO_OUTPUT, runs={name: run(name, count) for name, count in (("old", 30), ("new", 2))}
    )
    [failure] = failures(source)["failed"]
    assert (failure["runs"], failure["unexpected"], failure["of"]) == (2, 32, 64)
    assert failure["columns"] == ["partition", "malformed"]
    assert [row[0] for row in failure["rows"]] == ["new 0", "new 1", *(f"old {number}" for number in range(18))]


def test_a_built_in_check_shows_its_evidence() -> None:
    rows = tuple({"slice_start": "2026-03-01T10:00:00Z", "partition": str(number), "whole": False} for number in "01")
    evidence = Evidence(("whole",), "whole: true", "The blob is quarantined.", 32, rows)
    damaged = Result("run_metrics", "metrics", "expect_it", "warning", False, list(rows), 2, "blobs are damaged")
    few = Result("run_metrics", "metrics", "expect_many", "critical", False, 1, None, "slices were not counted")
    noted = Evidence(expected="at least 2", notes="A run that read nothing")
    audit = Audit("failed", (replace(damaged, evidence=evidence), replace(few, evidence=noted)))
    source: Any = SimpleNamespace(pipeline=NO_OUTPUT, runs={"one": run_with("one", audit)})
    first, second = failures(source)["failed"]
    assert (first["expected"], first["observed"], first["of"]) == ("at least 2", "1", None)
    assert (first["hint"], first["rows"]) == ("A run that read nothing", [])
    assert (second["expected"], second["observed"], second["unexpected"], second["of"]) == ("whole: true", None, 2, 32)
    assert second["hint"] == "restore the damaged blobs, which the quarantine names, and backfill again"
    assert second["columns"] == ["slice_start", "partition", "whole"]
    assert second["rows"] == [["2026-03-01T10:00:00Z", "0", "false"], ["2026-03-01T10:00:00Z", "1", "false"]]
