"""The verdict of a report: its sentence, and the advice that follows from the other sections."""

from typing import Any

import pytest

from recapture.ordering.profile import DISORDER_BOUNDS, LATENESS_BOUNDS
from recapture.reports.verdict import verdict
from recapture.time_model.metrics import VERDICTS


def bins(bounds: tuple[int, ...], **events: int) -> list[dict[str, Any]]:
    """Return the bins of a histogram; `events` has the number of events under the upper bound of their bin."""
    edges = [None, *bounds, None]
    return [
        {"above": edges[index], "up_to": edges[index + 1], "events": events.get(f"to_{edges[index + 1]}", 0)}
        for index in range(len(edges) - 1)
    ]


def report(**changed: Any) -> dict[str, Any]:
    """Return the sections of a report on an hour in which 1,000 events were on time, with some changes."""
    totals = {**dict.fromkeys(VERDICTS, 0), "on_time": 1000, "DuplicateEvents": 0, **changed.pop("totals", {})}
    late = totals.pop("LateInputEvents", totals["late_adjusted"] + totals["late_dropped"])
    totals |= {"InputEvents": sum(totals.values()), "LateInputEvents": late}
    timing = {
        "alias": "telemetry",
        "over": [],
        "late_seconds": 5.0,
        "out_of_order_seconds": 0.0,
        "early_keys": [],
        "lateness": bins(LATENESS_BOUNDS, to_1=1000),
        "disorder": bins(DISORDER_BOUNDS, to_0=1000),
        **changed.pop("timing", {}),
    }
    slices = {"total": 1, "passed": 1, "passed with warnings": 0, "unpublished": 0, "first_unpublished": None}
    slices |= dict.fromkeys(("blocked", "stale", "outdated"), 0)
    standing = {"differing": {}, "other_engine": 0, "checked": {"at": CHECKED}, "covers": True}
    return {
        "kind": "run",
        "quality": "passed",
        "published": True,
        "approvals": [],
        "slice_hours": 1,
        "slices": slices | changed.pop("slices", {}),
        "standing": standing | changed.pop("standing", {}),
        "ledger": {"totals": totals},
        "failures": {"failed": [], "unjudged": []},
        "timing": [timing],
        "warnings": [],
        **changed,
    }


def failed(*failures: dict[str, Any]) -> dict[str, Any]:
    return {"failed": list(failures), "unjudged": []}


CHECKED = "2026-03-02T03:00:00Z"
FAILURE = {"severity": "critical", "sentence": "too warm (3 of 4 rows fail)", "title": "too warm", "hint": "cool down"}


@pytest.mark.parametrize(
    ("changed", "level", "sentence"),
    [
        ({}, "good", "You can trust this hour: every check passed, and the rows are published."),
        (
            {"failures": {"failed": [], "unjudged": ["as usual (not judged: no earlier rows)"]}},
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
            "You can use this hour with care: published with 1 warning.",
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
            {"kind": "range", "slices": {"total": 24, "passed": 23, "passed with warnings": 1}},
            "warning",
            "You can use this range with care: 23 of 24 slices passed every check, 1 with warnings.",
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
            "You can trust this range: 1 of 1 slice passed every check. Their blobs were last compared with what was "
            f"read at {CHECKED}.",
        ),
        (
            {"kind": "range", "standing": {"covers": False, "other_engine": 1}},
            "good",
            "You can trust this range: 1 of 1 slice passed every check. No check has compared all of their blobs with "
            "what was read: run recapture check to do so. 1 slice was computed by another version of Recapture.",
        ),
        (
            {"kind": "range", "slices": {"total": 24, "passed": 21, "stale": 3}},
            "bad",
            "Do not trust all of this range: 3 slices are stale, as blobs were added, modified or deleted since they "
            f"were read (last check: {CHECKED}). 21 of 24 slices passed every check.",
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
            "Use this range with care: 21 slices were computed or judged with another query and policies than the "
            "pipeline has now. 3 of 24 slices passed every check and are not outdated.",
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
        "1,100 events arrived: 90.9 % on time, 100 adjusted (9.1 %). 60 events were late (5.5 %); of these, 57 count "
        "as out of order, because they were that, too."
    )


def test_what_failed_is_a_reason_and_its_hint_is_advice() -> None:
    note = FAILURE | {"severity": "info", "sentence": "a note", "hint": "nothing"}
    result = verdict(report(quality="failed", published=False, failures=failed(FAILURE, note)))
    assert result["reasons"] == ["too warm (3 of 4 rows fail)"]
    assert result["advice"] == [
        "too warm: cool down",
        "correct the data, the pipeline file or the suite, then run the slices again; the same input fails again",
    ]


def test_advice_names_the_tolerance_that_leaves_nearly_all_events_as_they_are() -> None:
    late = bins(LATENESS_BOUNDS, to_1=900, to_600=99, to_86400=1)
    behind = bins(DISORDER_BOUNDS, to_0=900, to_30=100)
    assert verdict(report(timing={"lateness": late, "disorder": behind}))["advice"] == [
        "eventsLateArrivalMaxDelayInSeconds is 5: with 600, 99.9% of the events would not be late, and a slice would "
        "be complete 9 min 55 s later",
        "eventsOutOfOrderMaxDelayInSeconds is 0: with 30, 99.9% of the events would not be out of order",
    ]


def test_a_tolerance_that_suffices_and_one_that_asa_does_not_take_are_not_proposed() -> None:
    enough = {"late_seconds": 600.0, "lateness": bins(LATENESS_BOUNDS, to_600=1000)}
    too_far = {"disorder": bins(DISORDER_BOUNDS, to_0=500, to_900=500)}
    assert verdict(report(timing=enough | too_far))["advice"] == []


def test_the_advice_for_a_range_with_many_events_out_of_order_is_over() -> None:
    behind = {"out_of_order_dropped": 1000}
    [advice] = verdict(report(kind="range", totals=behind))["advice"]
    assert advice.startswith("50 % of the events are out of order: if clocks run ahead, TIMESTAMP BY … OVER")
    assert verdict(report(kind="range", totals=behind, timing={"over": ["deviceId"]}))["advice"] == []


def test_advice_names_devices_whose_clocks_are_ahead() -> None:
    [advice] = verdict(report(totals={"early_dropped": 2}, timing={"early_keys": ["device-006"]}))["advice"]
    assert advice == (
        "2 events are too far ahead of the arrival and dropped: correct the clocks of the devices, such as those of "
        "device-006"
    )
