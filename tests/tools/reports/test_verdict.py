"""The verdict of a report: its sentence, and the advice that follows from the other sections."""

from typing import Any

import pytest

from recapture.quality.suites import SEVERITIES
from recapture.time_model.metrics import VERDICTS
from recapture.tools.reports.verdict import verdict


def report(**changed: Any) -> dict[str, Any]:
    """Return the sections of a report on an hour in which 1,000 events were on time, with some changes."""
    totals = {**dict.fromkeys(VERDICTS, 0), "on_time": 1000, "DuplicateEvents": 0, **changed.pop("totals", {})}
    late = totals.pop("LateInputEvents", totals["late_adjusted"] + totals["late_dropped"])
    totals |= {"InputEvents": sum(totals.values()), "LateInputEvents": late}
    timing = {
        "alias": "telemetry",
        "over": [],
        "judged": totals["InputEvents"] - totals["DuplicateEvents"],
        "late": late,
        "out_of_order": totals["out_of_order_adjusted"] + totals["out_of_order_dropped"],
        "latest_seconds": 5_040.0,
        **changed.pop("timing", {}),
    }
    slices = {"total": 1, "passed": 1, "passed with warnings": 0, "unpublished": 0, "first_unpublished": None}
    slices |= dict.fromkeys(("blocked", "published provisionally", "stale", "outdated", "cannot be checked"), 0)
    standing = {"differing": {}, "other_engine": 0, "checked": {"at": CHECKED}, "covers": True, "problems": []}
    return {
        "kind": "run",
        "from": "2026-03-01T10:00:00Z",
        "to": "2026-03-01T11:00:00Z",
        "definition": {"file": "/pipelines/fleet.yaml"},
        "quarantine": {"reasons": []},
        "keys": [],
        "quality": "passed",
        "published": True,
        "staged": False,
        "runs": [{"run": "RUN"}],
        "approvals": [],
        "slice_hours": 1,
        "slices": slices | changed.pop("slices", {}),
        "standing": standing | changed.pop("standing", {}),
        "ledger": {"totals": totals},
        "failures": failed(),
        "timing": [timing],
        "warnings": [],
        **changed,
    }


def failed(*failures: dict[str, Any]) -> dict[str, Any]:
    counts = {severity: sum(failure["severity"] == severity for failure in failures) for severity in SEVERITIES}
    return {"counts": counts, "failed": list(failures), "unjudged": []}


CHECKED = "2026-03-02T03:00:00Z"
FAILURE = {
    "severity": "critical",
    "sentence": "rooms are too warm: 3 of 4 rows (75 %)",
    "title": "no room is too warm",
    "hint": "cool down",
    "cause": 9,
    "of_unusable": False,
}


@pytest.mark.parametrize(
    ("changed", "level", "sentence"),
    [
        ({}, "good", "You can trust this hour: every check passed, and the rows are published."),
        (
            {"failures": failed() | {"unjudged": ["as usual (not judged: no earlier rows)"]}},
            "good",
            "You can trust this hour: every check that could be judged passed, and the rows are published.",
        ),
        (
            {"slices": {"total": 3}},
            "good",
            "You can trust these 3 slices: every check passed, and the rows are published.",
        ),
        ({"slice_hours": 24}, "good", "You can trust this day: every check passed, and the rows are published."),
        (
            {"quality": "passed with warnings", "failures": failed(FAILURE | {"severity": "warning"})},
            "warning",
            "Use this hour with care: the audit gave 1 warning; the rows are published.",
        ),
        (
            {"totals": {"late_dropped": 1000}},
            "warning",
            "Use this hour with care: every check passed and the rows are published, "
            "but only 50 % of the events are on time.",
        ),
        (
            {"quality": "failed", "published": False},
            "bad",
            "Do not trust this hour: the audit stopped the run, and nothing was published.",
        ),
        (
            {"published": False},
            "warning",
            "No table holds this run: it passed its audit, but it was not published, or its slices were published by "
            "another run or rolled back since.",
        ),
        (
            {"published": False, "staged": True},
            "warning",
            "This run is staged: it passed its audit, and waits for a person who publishes or discards it.",
        ),
        (
            {"published": False, "staged": True, "failures": failed(FAILURE | {"severity": "warning"})},
            "warning",
            "This run is staged: it passed its audit with 1 warning, and waits for a person who publishes or discards "
            "it.",
        ),
        (
            {"kind": "range", "slices": {"total": 24, "passed": 23, "passed with warnings": 1}},
            "warning",
            "Use this range with care: 23 of 24 slices passed every check; 1 passed with warnings.",
        ),
        (
            {"kind": "range", "slices": {"total": 24, "passed": 22, "unpublished": 2, "first_unpublished": "T"}},
            "bad",
            "Do not trust all of this range: 2 slices are not published. 22 of 24 slices passed every check.",
        ),
        (
            {"quality": "failed", "approvals": [{"by": "Ada", "at": "T", "reason": "a test drive", "slices": 1}]},
            "warning",
            "Use this hour with care: the audit stopped the run, and Ada approved 1 slice on T: a test drive",
        ),
        (
            {"kind": "range"},
            "good",
            "You can trust this range: 1 of 1 slice passed every check. What these slices read was last compared with "
            f"the archive at {CHECKED}.",
        ),
        (
            {"kind": "range", "standing": {"covers": False, "other_engine": 1}},
            "good",
            "You can trust this range: 1 of 1 slice passed every check. The archive has not been compared with what "
            "all of these slices read: run recapture check. 1 slice was computed by another version of Recapture.",
        ),
        (
            {"kind": "range", "slices": {"total": 24, "passed": 21, "stale": 3}},
            "bad",
            "Do not trust all of this range: 3 slices are stale, as blobs were added, modified or deleted since they "
            f"were read (last check: {CHECKED}). 21 of 24 slices passed every check.",
        ),
        (
            {"kind": "range", "slices": {"total": 24, "passed": 23, "published provisionally": 1}},
            "bad",
            "Do not trust all of this range: 1 slice is provisional, published before Capture had written everything. "
            "23 of 24 slices passed every check.",
        ),
        (
            {"kind": "range", "slices": {"total": 24, "passed": 21, "blocked": 2, "unpublished": 1}},
            "bad",
            "Do not trust all of this range: 1 slice is not published; the audit stopped the last run of 2 slices. "
            "21 of 24 slices passed every check.",
        ),
        (
            {
                "kind": "range",
                "slices": {"total": 24, "passed": 3, "outdated": 21},
                "standing": {"differing": {"query": 21, "policies": 4}},
            },
            "warning",
            "Use this range with care: 21 slices were computed or judged with another query or policies than the "
            "pipeline has now. 3 of 24 slices passed every check and are not outdated.",
        ),
        (
            {"kind": "range", "slices": {"outdated": 1}, "standing": {"differing": {"unknown": 1}}},
            "warning",
            "Use this range with care: 1 slice was computed or judged by an earlier version of Recapture, which did "
            "not record its definition. 1 of 1 slice passed every check and is not outdated.",
        ),
    ],
)
def test_the_sentence_says_whether_the_slices_can_be_trusted(
    changed: dict[str, Any], level: str, sentence: str
) -> None:
    result = verdict(report(**changed))
    assert (result["level"], result["sentence"]) == (level, sentence)


def test_the_events_are_summed_up_in_a_sentence() -> None:
    counted = report(totals={"late_adjusted": 10, "early_dropped": 5, "malformed": 1, "DuplicateEvents": 7})
    assert verdict(counted)["events"] == (
        "1,023 events arrived, 7 of them duplicates. The other 1,016: 98.4 % on time, 10 adjusted (1 %), "
        "5 dropped (0.5 %), 1 quarantined (< 0.1 %)."
    )
    assert verdict(report(totals={"on_time": 0}))["events"] == "No event arrived."


def test_late_events_whose_verdict_is_out_of_order_are_summed_up_as_late() -> None:
    ferry = report(totals={"late_adjusted": 3, "out_of_order_adjusted": 97, "LateInputEvents": 60})
    assert verdict(ferry)["events"] == (
        "1,100 events arrived: 90.9 % on time, 100 adjusted (9.1 %). 60 events were late (5.5 %); 57 of them count as "
        "out of order, because they were both."
    )


def test_a_range_is_not_trusted_if_a_slice_cannot_be_checked_or_counts_are_lost() -> None:
    slices = {"total": 24, "passed": 23, "cannot be checked": 1}
    unchecked = verdict(report(kind="range", slices=slices))
    assert (unchecked["level"], unchecked["sentence"]) == (
        "warning",
        "Use this range with care: 1 slice cannot be compared with the archive any more. "
        "23 of 24 slices passed every check.",
    )
    totals = report()["ledger"]["totals"] | {"InputEvents": None}
    lost = verdict(report(kind="range", slices={"total": 24, "passed": 24}, ledger={"totals": totals}))
    assert (lost["level"], lost["sentence"]) == (
        "warning",
        "Use this range with care: 24 of 24 slices passed every check, but the counts of some events are lost.",
    )


def test_a_range_whose_table_another_program_changed_is_not_to_be_trusted() -> None:
    problem = {"table": "file:///t", "problem": "holds other rows", "slices": ["S", "T"], "remedy": "backfill again"}
    changed = verdict(report(kind="range", slices={"total": 24, "passed": 24}, standing={"problems": [problem]}))
    assert (changed["level"], changed["advice"]) == ("bad", ["backfill again"])
    assert changed["sentence"] == (
        "Do not trust all of this range: file:///t holds other rows (2 slices, the first S). "
        "24 of 24 slices passed every check."
    )


def test_what_failed_is_a_reason_and_its_hint_is_advice() -> None:
    note = FAILURE | {"severity": "info", "sentence": "a note", "hint": "nothing"}
    result = verdict(report(quality="failed", published=False, failures=failed(FAILURE, note)))
    assert result["reasons"] == ["rooms are too warm: 3 of 4 rows (75 %)"]
    assert result["advice"] == [
        "so that no room is too warm: cool down",
        "correct the data, the pipeline file or the suite, then run the slices again; the same input fails again",
    ]


def test_advice_names_the_cause_first_and_what_may_follow_from_it_after_it() -> None:
    late = FAILURE | {"title": "devices have their windows", "hint": "late events are moved", "severity": "warning"}
    unusable = FAILURE | {
        "title": "few events are malformed",
        "hint": "see Quarantine",
        "cause": 4,
        "of_unusable": True,
    }
    reasons = [{"verdict": "malformed", "reason": "temperature is not a float: a record", "rows": 5012, "examples": []}]
    document = report(
        quality="failed", published=False, failures=failed(late, unusable), quarantine={"reasons": reasons}
    )
    assert verdict(document)["advice"][:3] == [
        "5,012 events are quarantined as malformed (temperature is not a float: a record): correct CREATE TABLE, the "
        "query, or the sender",
        "so that few events are malformed: see Quarantine",
        "so that devices have their windows: late events are moved",
    ]


def test_advice_on_tolerances_has_counts_and_the_command_that_compares_both_together() -> None:
    counts = {"late_adjusted": 60, "out_of_order_adjusted": 40, "LateInputEvents": 60}
    assert verdict(report(totals=counts))["advice"] == [
        "of the events, 60 were late (the latest by 1 h 24 min) and 40 were out of order: to count how many would be "
        "on time with other tolerances, or with another key after OVER, run recapture advise fleet.yaml --from "
        "2026-03-01T10:00:00Z --to 2026-03-01T11:00:00Z"
    ]
    (only_disorder,) = verdict(report(totals={"out_of_order_adjusted": 40}))["advice"]
    assert only_disorder.startswith("of the events, 40 were out of order: ")
    assert verdict(report(totals={"on_time": 10_000, "late_adjusted": 5}))["advice"] == []


def test_advice_names_devices_whose_clocks_are_ahead() -> None:
    early = {"name": "early", "keys": [{"key": None, "count": 9}, {"key": "device-006", "count": 2}]}
    keys = [{"troubles": [early, {"name": "late", "keys": [{"key": "device-009", "count": 7}]}]}]
    [advice] = verdict(report(totals={"early_dropped": 2}, keys=keys))["advice"]
    assert advice == (
        "2 events were dropped, because their times are too far ahead of the arrival: correct the clocks of the "
        "devices, such as device-006 (2)"
    )


def test_checks_with_the_same_remedy_have_one_advice() -> None:
    also = FAILURE | {"title": "no room is too cold", "cause": 10}
    again = FAILURE | {"severity": "warning"}
    advice = verdict(report(quality="failed", failures=failed(FAILURE, again, also)))["advice"]
    assert [text for text in advice if "cool down" in text] == [
        "so that no room is too warm, and no room is too cold: cool down"
    ]
