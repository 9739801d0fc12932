"""The date functions, case by case and against a naive calendar in Python."""

import calendar
from collections.abc import Iterable
from datetime import date, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recapture.errors import DefinitionError, RunError
from recapture.query.analyse.values import Value
from recapture.query.parse.date_parts import PARTS
from recapture.query.plan.expressions import column
from recapture.time_model.ticks import LARGEST
from tests.draws import examples
from tests.query.functions.calls import BIGINT, DATETIME, TEXT, Case, Given, call, check, columns, computed, ticks, time

SPELLINGS = {
    "year": "year yy yyyy",
    "quarter": "quarter qq q",
    "month": "month mm m",
    "dayofyear": "dayofyear dy y",
    "day": "day dd d",
    "week": "week wk ww",
    "weekday": "weekday dw w",
    "hour": "hour hh",
    "minute": "minute mi n",
    "second": "second ss s",
    "millisecond": "millisecond ms",
    "microsecond": "microsecond mcs",
}
ORIGIN = datetime(1, 1, 1)
SPANS = {
    "dayofyear": timedelta(days=1),
    "day": timedelta(days=1),
    "weekday": timedelta(days=1),
    "week": timedelta(weeks=1),
    "hour": timedelta(hours=1),
    "minute": timedelta(minutes=1),
    "second": timedelta(seconds=1),
    "millisecond": timedelta(milliseconds=1),
    "microsecond": timedelta(microseconds=1),
}
MONTHS = {"year": 12, "quarter": 3, "month": 1}


def test_a_part_has_these_spellings_and_no_others() -> None:
    assert {short: part for part, names in SPELLINGS.items() for short in names.split()} == PARTS
    with pytest.raises(DefinitionError, match="`iso_week` is not a part of a date: the parts are year, quarter, "):
        call("DATEPART", "iso_week", time("2026-03-01"))


def test_differences_count_the_boundaries_that_are_crossed() -> None:
    before, after = "2025-12-31T23:59:59.9999999Z", "2026-01-01T00:00:00.0000000Z"
    across = [("DATEDIFF", (part, time(before), time(after)), 0 if part == "week" else 1) for part in SPELLINGS]
    cases: list[Case] = [
        *across,
        ("DATEDIFF", ("year", time("2025-01-01"), time("2025-12-31T23:59:59")), 0),
        ("DATEDIFF", ("month", time("2026-03-31"), time("2026-02-01")), -1),
        ("DATEDIFF", ("week", time("2026-02-28"), time("2026-03-01")), 1),
        ("DATEDIFF", ("week", time("2026-03-01"), time("2026-03-07T23:59:59")), 0),
        ("DATEDIFF", ("hour", time("2026-03-01T10:59:59"), time("2026-03-01T12:00:00")), 2),
        ("DATEDIFF", ("day", time("1969-12-31T23:00:00"), time("1970-01-01T01:00:00")), 1),
        ("DATEDIFF", ("mcs", time("0001-01-01"), time("9999-12-31T23:59:59.9999999Z")), LARGEST // 10),
        ("DATEDIFF", ("second", None, time("2026-03-01")), None),
    ]
    check(*cases)


def test_additions_keep_100_ns_and_the_last_day_of_a_shorter_month() -> None:
    fine = "2026-03-01T10:00:00.1234567Z"
    cases: list[tuple[str, Given, str | None, str | None]] = [
        ("hour", 2, fine, "2026-03-01T12:00:00.1234567Z"),
        ("mcs", 1, fine, "2026-03-01T10:00:00.1234577Z"),
        ("ms", -124, fine, "2026-03-01T09:59:59.9994567Z"),
        ("month", 1, "2026-01-31T01:02:03.0000001Z", "2026-02-28T01:02:03.0000001Z"),
        ("month", -1, "2024-03-31T00:00:00Z", "2024-02-29T00:00:00Z"),
        ("month", 1, "2026-02-28T00:00:00Z", "2026-03-28T00:00:00Z"),
        ("year", 1, "2024-02-29T12:00:00Z", "2025-02-28T12:00:00Z"),
        ("quarter", -5, "2026-05-31T00:00:00Z", "2025-02-28T00:00:00Z"),
        ("week", 1, fine, "2026-03-08T10:00:00.1234567Z"),
        ("weekday", 1, fine, "2026-03-02T10:00:00.1234567Z"),
        ("dayofyear", -1, fine, "2026-02-28T10:00:00.1234567Z"),
        ("day", 1.9, fine, "2026-03-02T10:00:00.1234567Z"),
        ("day", -1.9, fine, "2026-02-28T10:00:00.1234567Z"),
        ("year", -1969, "1970-06-01T00:00:00Z", "0001-06-01T00:00:00Z"),
        ("mcs", 0, "9999-12-31T23:59:59.9999999Z", "9999-12-31T23:59:59.9999999Z"),
        ("day", None, fine, None),
        ("month", None, fine, None),
        ("month", 1, None, None),
    ]
    check(
        *[("DATEADD", (part, number, start and time(start)), end and ticks(end)) for part, number, start, end in cases],
    )


def test_datepart_and_datename_read_the_parts_of_a_time() -> None:
    moment = time("2026-03-01T09:08:07.1234567Z")
    parts = {
        "year": 2026,
        "quarter": 1,
        "month": 3,
        "dayofyear": 60,
        "day": 1,
        "week": 10,
        "weekday": 1,
        "hour": 9,
        "minute": 8,
        "second": 7,
        "millisecond": 123,
        "microsecond": 123456,
    }
    names = {**{part: str(number) for part, number in parts.items()}, "month": "March", "weekday": "Sunday"}
    cases: list[Case] = [
        *[("DATEPART", (part, moment), number) for part, number in parts.items()],
        *[("DATENAME", (part, moment), name) for part, name in names.items()],
        ("DATEPART", ("week", time("2026-01-01")), 1),
        ("DATEPART", ("week", time("2026-01-03T23:59:59")), 1),
        ("DATEPART", ("week", time("2026-01-04")), 2),
        ("DATEPART", ("week", time("2024-12-31")), 53),
        ("DATEPART", ("week", time("2000-12-31")), 54),
        ("DATEPART", ("week", time("0001-01-01")), 1),
        ("DATENAME", ("dw", time("0001-01-01")), "Monday"),
        ("DATENAME", ("w", time("2026-03-07")), "Saturday"),
        ("DATENAME", ("mm", time("9999-12-31")), "December"),
        ("DATENAME", ("month", None), None),
        ("YEAR", (time("0001-01-01"),), 1),
        ("MONTH", (moment,), 3),
        ("DAY", (time("1969-12-31T23:59:59Z"),), 31),
        ("YEAR", (None,), None),
    ]
    check(*cases)


def test_a_text_literal_is_a_time() -> None:
    assert call("DAY", "2026-03-01T10:00:00Z") == call("DAY", time("2026-03-01T10:00:00Z"))
    with pytest.raises(DefinitionError, match="DAY takes datetime here"):
        call("DAY", Value(column("text"), TEXT))


def test_a_time_is_put_together_from_its_parts() -> None:
    expected = ticks("2014-09-10T12:30:15.007Z")
    check(
        ("DATETIMEFROMPARTS", (2014, 9, 10, 12, 30, 15, 7), expected),
        ("DATETIMEFROMPARTS", (1, 1, 1, 0, 0, 0, 0), 0),
        ("DATETIMEFROMPARTS", (9999, 12, 31, 23, 59, 59, 999), ticks("9999-12-31T23:59:59.999Z")),
        ("DATETIMEFROMPARTS", (2014, 9, None, 12, 30, 15, 7), None),
        ("DATETIMEFROMPARTS", (2014, 9, 10, 12, 30, 15, None), None),
    )


@pytest.mark.parametrize(
    "parts",
    [(2014, 9, 10, 12, 60, 0, 0), (0, 9, 10, 12, 0, 0, 0), (2014, 9, 10, 24, 0, 0, 0), (2014, 2, 29, 0, 0, 0, 0)],
)
def test_parts_that_are_not_a_time_stop_the_run(parts: tuple[int, ...]) -> None:
    with pytest.raises(RunError, match=r"DATETIMEFROMPARTS: the parts are not a time|Invalid date"):
        computed([call("DATETIMEFROMPARTS", *parts).node])


@pytest.mark.parametrize(
    ("part", "number", "start"),
    [
        ("mcs", 1, "9999-12-31T23:59:59.9999999Z"),
        ("day", -1, "0001-01-01T12:00:00Z"),
        ("month", -1, "0001-01-31T00:00:00Z"),
        ("year", 8000, "2026-01-01T00:00:00Z"),
    ],
)
def test_a_sum_outside_the_calendar_stops_the_run(part: str, number: int, start: str) -> None:
    with pytest.raises(RunError, match="DATEADD: the result lies outside the years 1 to 9999"):
        computed([call("DATEADD", part, number, time(start)).node])


def test_a_number_too_large_to_count_with_stops_the_run() -> None:
    for part in ("week", "year"):
        with pytest.raises(RunError, match="DATEADD: the result lies outside the years 1 to 9999"):
            computed([call("DATEADD", part, 2**61, time("2026-01-01")).node])


def test_nested_additions_do_not_grow_without_bound() -> None:
    value: Given = time("2026-01-31")
    for _ in range(12):
        value = call("DATEADD", "month", 1, value)
    assert isinstance(value, Value)
    assert len(str(value.node)) < 20_000


def test_nested_additions_add_up() -> None:
    value: Given = time("2026-01-31T10:00:00.0000001Z")
    for part in ("month", "day", "year", "hour", "quarter"):
        value = call("DATEADD", part, 1, value)
    assert isinstance(value, Value)
    assert list(computed([value.node])) == [ticks("2027-06-01T11:00:00.0000001Z")]


def naive(instant: int) -> tuple[datetime, int]:
    """Return the time in microseconds, and the ticks that remain."""
    return ORIGIN + timedelta(microseconds=instant // 10), instant % 10


def shifted(part: str, number: int, instant: int) -> int:
    moment, below = naive(instant)
    if part in SPANS:
        moment += number * SPANS[part]
    else:
        months = moment.year * 12 + moment.month - 1 + number * MONTHS[part]
        year, month = months // 12, months % 12 + 1
        day = min(moment.day, calendar.monthrange(year, month)[1])
        moment = moment.replace(year=year, month=month, day=day)
    return (moment - ORIGIN) // timedelta(microseconds=1) * 10 + below


def boundaries(part: str, instant: int) -> int:
    """Return the number of the part's boundaries since a fixed time."""
    moment, _ = naive(instant)
    if part == "week":
        return moment.toordinal() // 7
    if part in SPANS:
        return (moment - ORIGIN) // SPANS[part]
    return (moment.year * 12 + moment.month - 1) // MONTHS[part]


def field(part: str, instant: int) -> int:
    moment, _ = naive(instant)
    day = moment.date()
    match part:
        case "quarter":
            return (moment.month + 2) // 3
        case "dayofyear":
            return moment.timetuple().tm_yday
        case "week":
            return 1 + sum(day_.isoweekday() == 7 for day_ in days(date(day.year, 1, 2), day))
        case "weekday":
            return moment.isoweekday() % 7 + 1
        case "millisecond":
            return moment.microsecond // 1000
    return int(getattr(moment, part))


def days(first: date, last: date) -> Iterable[date]:
    return (date.fromordinal(ordinal) for ordinal in range(first.toordinal(), last.toordinal() + 1))


MIDDLE = st.integers(ticks("1000-01-01"), ticks("9000-01-01"))
NEAR = st.tuples(MIDDLE, st.integers(-50 * 864_000_000_000, 50 * 864_000_000_000)).map(
    lambda pair: (pair[0], sum(pair))
)
TURNS = st.sampled_from([ticks("2026-01-01"), ticks("2024-02-29"), ticks("1970-01-01"), ticks("2026-03-01T10:00:00Z")])
TURNED = st.tuples(TURNS, st.integers(-2, 2), TURNS, st.integers(-2, 2)).map(
    lambda four: (four[0] + four[1], four[2] + four[3])
)
ROWS = st.lists(
    st.tuples(st.one_of(st.tuples(MIDDLE, MIDDLE), NEAR, TURNED), st.integers(-900, 900)), min_size=100, max_size=200
)


@given(ROWS)
@settings(max_examples=examples(6))
def test_dates_agree_with_a_naive_calendar(rows: list[tuple[tuple[int, int], int]]) -> None:
    times = [(*pair, number) for pair, number in rows]
    table = pa.table(dict(zip(("one", "other", "number"), map(list, zip(*times, strict=True)), strict=True)))
    one, other = Value(column("one"), DATETIME), Value(column("other"), DATETIME)
    number = Value(column("number"), BIGINT)
    expressions = [
        *(call("DATEADD", part, number, one).node for part in SPELLINGS),
        *(call("DATEDIFF", part, one, other).node for part in SPELLINGS),
        *(call("DATEPART", part, one).node for part in SPELLINGS),
    ]
    actual = zip(*(values.to_pylist() for values in columns(expressions, table)), strict=True)
    for values, (first, second, amount) in zip(actual, times, strict=True):
        expected = [
            *(shifted(part, amount, first) for part in SPELLINGS),
            *(boundaries(part, second) - boundaries(part, first) for part in SPELLINGS),
            *(field(part, first) for part in SPELLINGS),
        ]
        labels = [f"{name} {part}" for name in ("DATEADD", "DATEDIFF", "DATEPART") for part in SPELLINGS]
        assert dict(zip(labels, values, strict=True)) == dict(zip(labels, expected, strict=True))
