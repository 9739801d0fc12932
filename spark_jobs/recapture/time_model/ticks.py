"""Instants and durations as ticks: whole 100 ns, the resolution of ASA's datetime.

An instant is an int64 count of ticks since 0001-01-01T00:00Z. Window ends align to that origin: a window end is a
multiple of its hop plus the window's offset (docs/time-model.md, section 4).
"""

from datetime import UTC, datetime, timedelta

TICKS_PER_MICROSECOND = 10
TICKS_PER_MILLISECOND = 10_000
TICKS_PER_SECOND = 10_000_000
TICKS_PER_DAY = 86_400 * TICKS_PER_SECOND
UNIX_EPOCH = 621_355_968_000_000_000
"""1970-01-01T00:00Z in ticks."""
LARGEST = 3_155_378_975_999_999_999
"""9999-12-31T23:59:59.9999999Z in ticks."""

_ORIGIN = datetime(1, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_COMPACT = "%Y%m%dT%H%M%SZ"


def from_datetime(instant: datetime) -> int:
    """Return the ticks of an aware datetime."""
    return (instant - _ORIGIN) // _MICROSECOND * TICKS_PER_MICROSECOND


def parse_utc(text: str) -> datetime:
    """Return the instant of an ISO 8601 string, in UTC; without a zone, it is in UTC. Raise ValueError otherwise."""
    instant = datetime.fromisoformat(text)
    try:
        return instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant.astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"{text} is outside the years 1 to 9999 in UTC") from error


def to_datetime(ticks: int) -> datetime:
    """Return the UTC datetime of an instant, truncated to microseconds."""
    return _ORIGIN + timedelta(microseconds=ticks // TICKS_PER_MICROSECOND)


def from_seconds(seconds: int) -> int:
    """Return the ticks of a duration."""
    return seconds * TICKS_PER_SECOND


def to_text(ticks: int) -> str:
    """Return an instant as ISO 8601 in UTC, with decimals only if it needs them: 2026-03-01T10:00:00Z."""
    return to_datetime(ticks).isoformat().removesuffix("+00:00") + "Z"


def from_text(text: str) -> int:
    """Return the ticks of an ISO 8601 time with a zone. Raise ValueError if this is not one."""
    return from_datetime(datetime.fromisoformat(text))


def text_of(instant: datetime) -> str:
    """Return an aware datetime as `to_text` does."""
    return to_text(from_datetime(instant))


def whole_seconds(instant: datetime) -> str:
    """Return an aware datetime as `to_text` does, truncated to seconds."""
    return text_of(instant.replace(microsecond=0))


def to_compact_text(ticks: int) -> str:
    """Return an instant in UTC, to the second, without separators, for names of files and runs: 20260301T100000Z."""
    return to_datetime(ticks).strftime(_COMPACT)


def from_compact_text(text: str) -> int:
    """Return the ticks of an instant that `to_compact_text` wrote."""
    return from_datetime(datetime.strptime(text, _COMPACT).replace(tzinfo=UTC))
