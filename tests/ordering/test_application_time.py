"""The application time of events: what TIMESTAMP BY makes of an event (docs/time-model.md, section 2.2)."""

import json
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recapture.formats.bodies import Projection
from recapture.formats.json_bodies.decoder import JsonBodies
from recapture.model import (
    AsaType,
    Branch,
    Chosen,
    FirstOf,
    InputColumn,
    Instant,
    Metadata,
    MetadataColumn,
    Shifted,
    TimeExpression,
    dateadd_fields,
    time_fields,
)
from recapture.ordering.application_time import Times, metadata_of, times_of
from recapture.time_model.ticks import LARGEST, TICKS_PER_MILLISECOND, TICKS_PER_SECOND, UNIX_EPOCH

EVENT_TIME = InputColumn(("eventTime",), AsaType.DATETIME)
SENT = InputColumn(("device", "sent"), AsaType.DATETIME)
SENT_BY = InputColumn(("device", "by"), AsaType.STRING)
MILLISECONDS = InputColumn(("ms",), AsaType.BIGINT)
ENQUEUED = MetadataColumn(Metadata.EVENT_ENQUEUED)
SINCE_1970 = Shifted(TICKS_PER_MILLISECOND, MILLISECONDS, Instant(UNIX_EPOCH))
NOON = "2026-03-01T12:00:00.1234567Z"
NOON_TICKS = UNIX_EPOCH + 1_772_366_400 * TICKS_PER_SECOND + 1_234_567


def read(
    time: TimeExpression, *bodies: dict[str, Any], metadata: dict[MetadataColumn, pa.Array] | None = None
) -> Times:
    content = pa.array([json.dumps(body).encode() for body in bodies], pa.binary())
    projection = Projection(dateadd_fields(time), [*time_fields(time), *dateadd_fields(time)])
    parsed = JsonBodies().decode(content, projection)
    assert parsed.malformed.null_count == len(bodies), "the policies judge these fields"
    return times_of(time, parsed, (metadata or {}).__getitem__)


def ticks_or_reason(time: TimeExpression, **body: Any) -> int | str:
    """Return the ticks of one event, or the reason why it has none."""
    times = read(time, body)
    reason: str | None = times.reason[0].as_py()
    assert times.valid.tolist() == [reason is None]
    return int(times.ticks[0]) if reason is None else reason


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (NOON, NOON_TICKS),
        (NOON.removesuffix("Z"), NOON_TICKS),
        (None, "eventTime is missing or null"),
        ("noon", "eventTime is not a time"),
        (5, "eventTime is not a time"),
        ("", "eventTime is not a time"),
    ],
)
def test_the_text_of_a_field_is_a_time_or_gives_a_reason(value: Any, expected: int | str) -> None:
    assert ticks_or_reason(EVENT_TIME, eventTime=value) == expected


def test_a_missing_field_and_a_nested_one_are_named() -> None:
    assert ticks_or_reason(EVENT_TIME) == "eventTime is missing or null"
    assert ticks_or_reason(SENT, device={"sent": "x"}) == "device.sent is not a time"
    assert ticks_or_reason(SENT, device=5) == "device.sent is missing or null"


def test_a_fixed_time_is_that_of_every_event() -> None:
    assert read(Instant(7), {}, {}).ticks.tolist() == [7, 7]


def test_metadata_is_a_time() -> None:
    times = read(ENQUEUED, {}, {}, metadata={ENQUEUED: pa.array([5, 6])})
    assert times.ticks.tolist() == [5, 6]
    assert times.valid.all()


def test_a_property_of_the_event_is_the_text_of_a_time() -> None:
    column = MetadataColumn(Metadata.USER, "at")
    times = read(column, {}, {}, {}, metadata={column: pa.array([NOON, "x", None])})
    assert times.ticks.tolist() == [NOON_TICKS, 0, 0]
    assert times.reason.to_pylist() == [None, "@User.at is not a time", "@User.at is missing or null"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, UNIX_EPOCH),
        (-1, UNIX_EPOCH - 10_000),
        (1_772_366_400_123, UNIX_EPOCH + 17_723_664_001_230_000),
        ("1772366400123", UNIX_EPOCH + 17_723_664_001_230_000),
        (-62_135_596_800_000, 0),
        (253_402_300_799_999, LARGEST - 9_999),
        (-62_135_596_800_001, "ms gives a time outside the years 1 to 9999"),
        (253_402_300_800_000, "ms gives a time outside the years 1 to 9999"),
        (2**63 - 1, "ms gives a time outside the years 1 to 9999"),
        (-(2**63), "ms gives a time outside the years 1 to 9999"),
        (2**63, "ms is not a bigint"),
        (1.5, "ms is not a bigint"),
        ("soon", "ms is not a bigint"),
        (None, "ms is missing or null"),
    ],
)
def test_milliseconds_since_1970_are_a_time_or_give_a_reason(value: Any, expected: int | str) -> None:
    assert ticks_or_reason(SINCE_1970, ms=value) == expected


@given(amount=st.integers(-(2**63), 2**63 - 1), unit=st.sampled_from([1, 10, 10**4, 10**7, 36 * 10**9, 864 * 10**9]))
def test_an_amount_never_overflows_silently(amount: int, unit: int) -> None:
    exact = UNIX_EPOCH + amount * unit
    expected = exact if 0 <= exact <= LARGEST else "ms gives a time outside the years 1 to 9999"
    assert ticks_or_reason(Shifted(unit, MILLISECONDS, Instant(UNIX_EPOCH)), ms=amount) == expected


def test_a_field_may_be_shifted_too() -> None:
    shifted = Shifted(TICKS_PER_SECOND, MILLISECONDS, EVENT_TIME)
    assert ticks_or_reason(shifted, eventTime=NOON, ms=-2) == NOON_TICKS - 2 * TICKS_PER_SECOND
    assert ticks_or_reason(shifted, eventTime="x", ms=1) == "eventTime is not a time"
    assert ticks_or_reason(shifted, ms=1) == "eventTime is missing or null"
    assert ticks_or_reason(shifted, eventTime=NOON) == "ms is missing or null"
    twice = Shifted(TICKS_PER_SECOND, InputColumn(("s",), AsaType.BIGINT), shifted)
    assert ticks_or_reason(twice, eventTime=NOON, ms=-2, s=2) == NOON_TICKS


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"eventTime": NOON, "ms": 0}, NOON_TICKS),
        ({"eventTime": NOON, "ms": "x"}, NOON_TICKS),
        ({"ms": 5}, UNIX_EPOCH + 50_000),
        ({"eventTime": None, "ms": 5}, UNIX_EPOCH + 50_000),
        ({"eventTime": "x", "ms": 5}, "eventTime is not a time"),
        ({"ms": "x"}, "ms is not a bigint"),
        ({}, "eventTime is missing or null, ms is missing or null"),
    ],
)
def test_the_first_of_several_times_that_is_present_counts(body: dict[str, Any], expected: int | str) -> None:
    """It counts even if it is not a time: only a missing or null value is passed over."""
    assert ticks_or_reason(FirstOf((EVENT_TIME, SINCE_1970)), **body) == expected


def test_the_last_of_several_times_may_always_be_present() -> None:
    assert ticks_or_reason(FirstOf((EVENT_TIME, SENT, Instant(9)))) == 9
    assert ticks_or_reason(FirstOf((SINCE_1970, FirstOf((SENT, EVENT_TIME)))), eventTime=NOON) == NOON_TICKS


KIND = InputColumn(("kind",), AsaType.STRING)
BY_KIND = Chosen((Branch(KIND, "A", EVENT_TIME), Branch(KIND, "B", SINCE_1970), Branch(SENT_BY, "x", Instant(9))), None)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"kind": "A", "eventTime": NOON, "ms": 5}, NOON_TICKS),
        ({"kind": "B", "eventTime": NOON, "ms": 5}, UNIX_EPOCH + 50_000),
        ({"kind": "A", "ms": 5}, "eventTime is missing or null"),
        ({"kind": "B", "ms": "x"}, "ms is not a bigint"),
        ({"kind": "a", "eventTime": NOON}, "no WHEN of TIMESTAMP BY holds"),
        ({"kind": None, "eventTime": NOON, "device": {"by": "x"}}, 9),
        ({"kind": "A", "eventTime": NOON, "device": {"by": "x"}}, NOON_TICKS),
        ({"eventTime": NOON}, "no WHEN of TIMESTAMP BY holds"),
    ],
)
def test_a_case_takes_the_time_of_its_first_branch_that_holds(body: dict[str, Any], expected: int | str) -> None:
    assert ticks_or_reason(BY_KIND, **body) == expected


def test_a_case_may_end_in_a_time_and_be_one_of_several() -> None:
    with_else = replace(BY_KIND, other=SINCE_1970)
    assert ticks_or_reason(with_else, kind="C", ms=5) == UNIX_EPOCH + 50_000
    assert ticks_or_reason(FirstOf((BY_KIND, SENT)), kind="C", device={"sent": NOON}) == NOON_TICKS
    assert ticks_or_reason(FirstOf((BY_KIND, SENT)), kind="A", device={"sent": NOON}) == NOON_TICKS
    assert ticks_or_reason(FirstOf((BY_KIND, SENT)), kind="A", eventTime="x") == "eventTime is not a time"
    assert metadata_of(Chosen((Branch(KIND, "A", ENQUEUED),), ENQUEUED)) == (ENQUEUED, ENQUEUED)


def test_the_metadata_that_a_time_reads_is_listed_in_its_order() -> None:
    by_hub = MetadataColumn(Metadata.BLOB_LAST_MODIFIED)
    time = FirstOf((EVENT_TIME, Shifted(1, MILLISECONDS, ENQUEUED), by_hub))
    assert metadata_of(time) == (ENQUEUED, by_hub)
    assert metadata_of(EVENT_TIME) == metadata_of(None) == ()


def test_no_events_have_no_times() -> None:
    for time in (EVENT_TIME, SINCE_1970, FirstOf((EVENT_TIME, SINCE_1970)), BY_KIND):
        assert read(time).ticks.tolist() == []
