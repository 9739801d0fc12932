"""A refused manifest says which part of the definition has changed, with the old and the new value in short."""

from pathlib import Path
from typing import Any

import pytest

from recapture.archive.definition_changes import definition_changes
from recapture.definition.digest import run_definition
from tests.worlds import COUNTS, TELEMETRY, World

TWICE = {"script": "twice.js", "output_type": "float"}
CALLS = COUNTS.replace("AVG(temperature)", "AVG(udf.twice(temperature))")
SETTINGS: dict[str, Any] = {"query": CALLS, "functions": {"twice": TWICE}}


def content(home: Path, script: str = "function main(x) { return 2 * x; }", **settings: Any) -> dict[str, Any]:
    world = World(home)
    home.joinpath("twice.js").write_text(script)
    return run_definition(world.define(**{**SETTINGS, **settings})).digest_content


@pytest.mark.parametrize(
    ("changed", "change"),
    [
        ({"eventsLateArrivalMaxDelayInSeconds": 700}, "eventsLateArrivalMaxDelayInSeconds (then 600, now 700)"),
        ({"eventsLateArrivalMaxDelayInSeconds": -1}, "eventsLateArrivalMaxDelayInSeconds (then 600, now -1)"),
        ({"eventsOutOfOrderMaxDelayInSeconds": 7}, "eventsOutOfOrderMaxDelayInSeconds (then 0, now 7)"),
        ({"eventsOutOfOrderPolicy": "Drop"}, "eventsOutOfOrderPolicy (then Adjust, now Drop)"),
        ({"early_arrival_seconds": None}, "early_arrival_seconds (then 300, now null)"),
        ({"early_policy": "Adjust"}, "early_policy (then Drop, now Adjust)"),
        (
            {"inputs": [TELEMETRY | {"arrival_time": "EventEnqueuedUtcTime"}]},
            "input telemetry, arrival_time (then BlobLastModified, now EventEnqueuedUtcTime)",
        ),
        ({"inputs": [TELEMETRY | {"max_blob_mib": 7}]}, "input telemetry, max_blob_mib (then 2048, now 7)"),
        (
            {"script": "function main(x) { return 3 * x; }"},
            "function twice, script (then function main(x) { return 2 * x; }, now function main(x) { return 3 * x; })",
        ),
    ],
)
def test_a_changed_part_is_named_with_both_values(tmp_path: Path, changed: dict[str, Any], change: str) -> None:
    assert definition_changes(content(tmp_path), content(tmp_path, **changed)) == [change]


def test_a_changed_query_is_shown_where_it_differs(tmp_path: Path) -> None:
    longer = CALLS.replace("GROUP BY", "WHERE temperature < 30 GROUP BY")
    [change] = definition_changes(content(tmp_path), content(tmp_path, query=longer))
    assert change.startswith("the query (then …")
    assert "now …" in change
    assert "WHERE [temperature] < 30" in change
    assert len(change) < 200


def test_a_function_that_is_new_or_gone_is_named(tmp_path: Path) -> None:
    plain = content(tmp_path, query=COUNTS)
    assert definition_changes(content(tmp_path), plain)[1:] == ["function twice, which is gone"]
    assert definition_changes(plain, content(tmp_path))[1:] == ["function twice, which is new"]


def test_another_engine_is_named_and_the_same_definition_has_no_changes(tmp_path: Path) -> None:
    same = content(tmp_path)
    assert definition_changes(same, content(tmp_path)) == []
    assert definition_changes(same | {"engine": "0.1"}, same | {"engine": "0.2"}) == [
        "the version of Recapture (then 0.1, now 0.2)"
    ]


def test_a_setting_of_all_inputs_is_named_once(tmp_path: Path) -> None:
    query = (
        "SELECT a.deviceId INTO aggregates FROM telemetry a TIMESTAMP BY eventTime JOIN other b TIMESTAMP BY eventTime "
        "ON a.deviceId = b.deviceId AND DATEDIFF(minute, a, b) BETWEEN 0 AND 1"
    )
    both: dict[str, Any] = {"query": query, "inputs": [TELEMETRY, TELEMETRY | {"alias": "other"}]}
    late = content(tmp_path, **both, eventsLateArrivalMaxDelayInSeconds=700)
    assert definition_changes(content(tmp_path, **both), late) == [
        "eventsLateArrivalMaxDelayInSeconds (then 600, now 700)"
    ]
