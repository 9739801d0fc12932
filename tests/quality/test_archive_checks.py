"""The checks on the archive: holes and lost events, with their severities and what can be done."""

from typing import Any

import pytest

from recapture.archive.holes import Hole, Kind
from recapture.quality.archive_checks import Loss, holes_result, losses_result
from recapture.quality.audit import Result
from recapture.quality.suites import Severity
from recapture.time_model.ticks import from_datetime, parse_utc

TEN = from_datetime(parse_utc("2026-03-01T10:00:00Z"))
LOST = Hole(Kind.LOST, "telemetry", "2", TEN, events=5, first=7, last=11, start=TEN, end=TEN + 10**10)
ANEW = Hole(Kind.RECREATED, "telemetry", "0", TEN, first=0, start=TEN, end=TEN + 10**10)
PAUSED = Hole(Kind.PAUSED, "telemetry", "1", TEN, events=0, blobs=3, start=TEN, end=TEN + 10**10)
LOSS = Loss("2026-03-01T10:00:00Z", "telemetry", ("2",), 480, 240, "run", ("a.avro", "b.avro", "c.avro", "d.avro"))


def judged(*holes: Hole, severity: Severity | None = None, **known: Any) -> Result:
    return holes_result(holes, severity, **{"accepted": False, "can_be_judged": True, "name_input": False} | known)


@pytest.mark.parametrize(
    ("holes", "known", "sentence"),
    [
        ([], {}, "nothing is missing from the archive"),
        ([], {"in_gaps": 24}, "nothing is missing from the archive besides 24 sequence numbers"),
        ([], {"can_be_judged": False}, "not judged"),
        ([PAUSED], {}, "the sequence numbers continue: no event is missing"),
        (
            [Hole(Kind.QUIET, "telemetry", "2", TEN, start=TEN, end=TEN + 36_000_000_000)],
            {},
            "nothing is known to be missing from the archive (partition 2: no blob arrived from 2026-03-01T10:00:00Z "
            "to 2026-03-01T11:00:00Z; it is not known whether events are missing)",
        ),
    ],
)
def test_an_archive_that_lacks_no_known_event_passes_and_is_called_whole_only_if_it_is_known_to_be(
    holes: list[Hole], known: dict[str, Any], sentence: str
) -> None:
    result = judged(*holes, **known)
    assert (result.success, result.proved) == (True, "can_be_judged" not in known)
    assert sentence in result.sentence


@pytest.mark.parametrize(
    ("holes", "severity"), [([LOST], "critical"), ([ANEW], "warning"), ([ANEW, PAUSED, LOST], "critical")]
)
def test_the_worst_hole_decides_and_comes_first(holes: list[Hole], severity: Severity) -> None:
    result = judged(*holes)
    assert (result.success, result.severity) == (False, severity)
    assert result.sentence.startswith("the archive has holes: partition " + ("2" if LOST in holes else "0"))


def test_many_holes_are_counted() -> None:
    assert "; and 2 more holes; restore the blobs" in judged(*[LOST] * 5).sentence


def test_the_user_sets_the_severity_or_accepts_the_loss() -> None:
    assert judged(LOST, severity="info").severity == "info"
    assert judged(ANEW, severity="critical").severity == "critical"
    assert judged(LOST, accepted=True).severity == "warning"
    assert judged(LOST, severity="info", accepted=True).severity == "info"
    assert judged(LOST).sentence.endswith("to publish what is left, add --accept-loss (accept_loss in Airflow's form)")
    assert judged(LOST, accepted=True).sentence.endswith("accepted for this run")
    assert "--accept-loss" not in judged(ANEW).sentence, "the run is published without it"


def test_only_what_stops_a_run_has_to_be_accepted() -> None:
    for accepted in (False, True):
        assert "accept" not in judged(ANEW, accepted=accepted).sentence
        assert "accept" not in judged(LOST, severity="warning", accepted=accepted).sentence
        losses = losses_result([LOSS], "warning", accepted=accepted, name_input=False)
        assert losses.sentence.endswith("and 1 more; restore the blobs")


def test_a_slice_that_loses_published_events_is_named_with_its_blobs() -> None:
    result = losses_result([LOSS], None, accepted=False, name_input=False)
    assert (result.success, result.severity) == (False, "critical")
    assert (
        "in slice 2026-03-01T10:00:00Z, 240 of the 480 events of partition 2 that run run published; this run no "
        "longer reads a.avro, b.avro, c.avro and 1 more"
    ) in result.sentence
    assert losses_result([LOSS], None, accepted=True, name_input=False).severity == "warning"
    assert losses_result([], None, accepted=False, name_input=False).success


def test_a_loss_of_an_older_publication_is_known_by_its_total() -> None:
    old = Loss("2026-03-01T10:00:00Z", None, (), 480, 240, "run", None)
    assert "240 of the 480 events of all partitions that run run published" in (
        losses_result([old], None, accepted=False, name_input=True).sentence
    )
