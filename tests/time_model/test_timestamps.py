"""ISO 8601 text to ticks: which texts are times, whatever the texts next to them are."""

import re
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recapture.time_model import timestamps
from recapture.time_model.ticks import LARGEST, TICKS_PER_SECOND, UNIX_EPOCH, from_datetime

NOON = from_datetime(datetime(2026, 3, 1, 12, tzinfo=UTC))


def parse(*texts: str | None) -> list[int | None]:
    """Return the ticks of each text; None if it is not a time."""
    ticks, valid = timestamps.parse(pa.array(texts, pa.string()))
    assert ticks.dtype == np.int64
    assert valid.dtype == np.bool_
    assert all(tick == 0 for tick, is_time in zip(ticks, valid, strict=True) if not is_time)
    return [int(tick) if is_time else None for tick, is_time in zip(ticks, valid, strict=True)]


def reference(text: str | None) -> int | None:
    """Return the same by datetime, one text at a time: a date, perhaps with a time of day and a zone."""
    zone = r"(Z|([+-])([01]\d|2[0-3])(?::?([0-5]\d))?)?"
    time = rf"(?:[ T]([01]\d|2[0-3])(?::([0-5]\d)(?::([0-5]\d)(?:\.(\d{{1,9}}))?)?)?{zone})?"
    match = re.fullmatch(rf"(\d{{4}})-(\d\d)-(\d\d){time}", text or "", re.ASCII)
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction, _, sign, zone_hour, zone_minute = match.groups("")
    try:
        days = date(int(year), int(month), int(day)).toordinal() - 1
    except ValueError:
        return None
    clock = timedelta(days=days, hours=int(hour or 0), minutes=int(minute or 0), seconds=int(second or 0))
    away = timedelta(hours=int(zone_hour or 0), minutes=int(zone_minute or 0)) * (-1 if sign == "-" else 1)
    seconds = (clock - away) // timedelta(seconds=1)
    ticks = seconds * TICKS_PER_SECOND + int(fraction.ljust(9, "0")[:7])
    return ticks if 0 <= ticks <= LARGEST else None


@pytest.mark.parametrize(
    "text",
    [
        "2026-03-01T12:00:00Z",
        "2026-03-01T12:00:00.0000000Z",
        "2026-03-01 12:00:00Z",
        "2026-03-01T12:00Z",
        "2026-03-01T12Z",
        "2026-03-01T12:00:00",
        "2026-03-01T12",
        "2026-03-01T13:30:00+01:30",
        "2026-03-01T13:30:00+0130",
        "2026-03-01T13:00:00+01",
        "2026-03-01T00:00:00-12:00",
        "2026-02-28T12:01:00-23:59",
    ],
)
def test_noon_in_any_of_its_spellings_is_noon(text: str) -> None:
    assert parse(text) == [NOON]


def test_a_date_alone_is_its_midnight() -> None:
    assert parse("2026-03-01") == [NOON - 12 * 3600 * TICKS_PER_SECOND]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Z",
        "noon",
        "1772366400",
        "2026-03-01T12:00:00z",
        "2026-03-01t12:00:00Z",
        "2026-03-01T24:00:00Z",
        "2026-03-01T12:60:00Z",
        "2026-03-01T23:59:60Z",
        "2026-02-29T12:00:00Z",
        "2026-13-01T12:00:00Z",
        "2026-03-00T12:00:00Z",
        "0000-01-01T00:00:00Z",
        "12026-03-01T12:00:00Z",
        "2026-3-1T12:00:00Z",
        "20260301T120000Z",
        "2026-03-01T1200Z",
        "2026-03-01TZ",
        "2026-03-01T12:00:00.Z",
        "2026-03-01T12:00:00,5Z",
        "2026-03-01T12:00:00.1234567890Z",
        "2026-03-01T12:00:00+24:00",
        "2026-03-01T12:00:00+01:60",
        "2026-03-01T12:00:00+01:00Z",
        "2026-03-01+01:00",
        " 2026-03-01T12:00:00Z",
        "2026-03-01T12:00:00Z ",
        "2026-03-01T12:00:00Z\n",
        "2026-03-01T12:00:00 Z",
        "3/1/2026 12:00:00 PM",
        "٢٠٢٦-٠٣-٠١T12:00:00Z",  # noqa: RUF001
    ],
)
def test_a_text_that_is_not_a_time_is_none(text: str) -> None:
    assert parse(text) == [None]


def test_a_missing_text_is_not_a_time() -> None:
    assert parse(None) == [None]
    assert parse(None, "2026-03-01T12:00:00Z", None) == [None, NOON, None]
    assert parse() == []


def test_the_resolution_is_100_ns_and_finer_digits_are_cut_off() -> None:
    assert parse("2026-03-01T12:00:00.0000001Z", "2026-03-01T12:00:00.000000199Z") == [NOON + 1, NOON + 1]
    assert parse("1969-12-31T23:59:59.999999999Z") == [UNIX_EPOCH - 1]
    assert parse("2026-03-01T12:00:00.5") == [NOON + TICKS_PER_SECOND // 2]


def test_only_the_years_1_to_9999_are_times() -> None:
    assert parse("0001-01-01T00:00:00Z", "9999-12-31T23:59:59.9999999Z") == [0, LARGEST]
    assert parse("0001-01-01T00:00:00-00:01") == [60 * TICKS_PER_SECOND]
    assert parse("0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01") == [None, None]


def test_the_range_of_64_bit_nanoseconds_is_not_a_limit() -> None:
    texts = ("1677-09-21T00:12:43Z", "1677-09-21T00:12:44Z", "2262-04-11T23:47:16Z", "2262-04-11T23:47:17Z")
    assert parse(*texts) == [reference(text) for text in texts]


@given(instant=st.datetimes(timezones=st.timezones() | st.just(UTC)), digits=st.integers(0, 9))
def test_an_instant_survives_its_own_iso_text(instant: datetime, digits: int) -> None:
    offset = instant.utcoffset()
    assert offset is not None
    if offset % timedelta(minutes=1):
        instant = instant.replace(tzinfo=UTC)
    ticks = from_datetime(instant)
    expected = ticks if 0 <= ticks <= LARGEST else None
    clock, zone = instant.isoformat(timespec="microseconds")[:26], instant.isoformat(timespec="microseconds")[26:]
    text = clock + "0" * max(0, digits - 6) + zone
    assert parse(text) == [expected] == [reference(text)]


CLOCK = r"\d\d(:\d\d(:\d\d(\.\d{0,10})?)?)?"
ALMOST_ISO = re.compile(rf"\d{{4}}-[01]\d-[0-3]\d([ Tt]{CLOCK}([Zz]|[+-]\d\d(:?\d\d)?)?)?\n?", re.ASCII)
YEARS = st.sampled_from(("0001", "1677", "1900", "2026", "2262", "9999"))
TWO_DIGITS = st.integers(0, 62).map("{:02}".format)
IRREGULAR = st.one_of(
    st.none(),
    st.text(max_size=12),
    st.from_regex(ALMOST_ISO, fullmatch=True),
    st.builds("{}-{}-{}T{}:{}:{}Z".format, YEARS, *[TWO_DIGITS] * 5),
)
REGULAR = st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1)).map(lambda instant: f"{instant.isoformat()}Z")


@given(texts=st.lists(st.one_of(IRREGULAR, REGULAR, REGULAR), max_size=8))
def test_the_ticks_of_a_text_do_not_depend_on_its_neighbours(texts: list[str | None]) -> None:
    assert parse(*texts) == [reference(text) for text in texts]


@given(texts=st.lists(REGULAR, min_size=1, max_size=12), offset=st.integers(0, 3))
def test_a_part_of_a_longer_column_is_read_like_a_column(texts: list[str], offset: int) -> None:
    column = pa.array(["no time"] * offset + texts + [None])
    ticks, valid = timestamps.parse(column.slice(offset, len(texts)))
    assert valid.all()
    assert ticks.tolist() == parse(*texts)
