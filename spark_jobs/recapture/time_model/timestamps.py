"""ISO 8601 text to ticks, a column at a time. A time without a zone is UTC."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recapture.time_model.ticks import LARGEST, TICKS_PER_SECOND, UNIX_EPOCH

_ISO = (
    r"^(?P<date>\d{4}-\d{2}-\d{2})"
    r"(?:[ T](?P<hour>\d{2})(?::(?P<minute>\d{2})(?::(?P<second>\d{2})(?:\.(?P<fraction>\d{1,9}))?)?)?"
    r"(?:Z|(?P<sign>[+-])(?P<zone_hour>\d{2})(?::?(?P<zone_minute>\d{2}))?)?)?$"
)
_REGULAR = (
    r"^(?:19|20)\d{2}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
    r"T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?Z$"
)
_NANOSECONDS_PER_TICK = 100


def parse(text: pa.StringArray) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the ticks of each string, truncated to 100 ns, and whether it is a time; if it is not, the ticks are 0.

    Dates from year 0001 to 9999 are times. The result for one text does not depend on the other texts.
    """
    at_once = _all_at_once(text)
    if at_once is not None:
        return at_once
    regular = pc.match_substring_regex(text, _REGULAR).fill_null(False)
    rows = regular.to_numpy(zero_copy_only=False)
    if not rows.any():
        return _one_by_one(text)
    ticks, valid = np.zeros(len(text), np.int64), rows.copy()
    ticks[rows], _ = _all_at_once(text.filter(regular)) or _one_by_one(text.filter(regular))
    ticks[~rows], valid[~rows] = _one_by_one(text.filter(pc.invert(regular)))
    return ticks, valid


def _all_at_once(text: pa.StringArray) -> tuple[NDArray[np.int64], NDArray[np.bool_]] | None:
    """Do what `parse` does, 40 times as fast; None unless every string ends in Z and is a time of 1678 to 2261."""
    if pc.all(pc.ends_with(text, "Z")).as_py() is False:
        return None
    try:
        times = text.cast(pa.timestamp("ns", tz="UTC"))
    except pa.ArrowInvalid:
        return None
    valid = pc.is_valid(text).to_numpy(zero_copy_only=False)
    ticks = times.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False) // _NANOSECONDS_PER_TICK + UNIX_EPOCH
    return np.where(valid, ticks, 0), valid


def _one_by_one(text: pa.StringArray) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    parts = pc.extract_regex(text, _ISO)

    def number(name: str, width: int = 0) -> NDArray[np.int64]:
        digits = pc.struct_field(parts, name)
        digits = pc.if_else(pc.equal(pc.binary_length(digits), 0), "0", digits).fill_null("0")
        return pc.utf8_rpad(digits, width, "0").cast(pa.int64()).to_numpy(zero_copy_only=False)

    date = pc.struct_field(parts, "date")
    day = pc.strptime(date, format="%Y-%m-%d", unit="s", error_is_null=True)
    real = pc.equal(pc.strftime(day, format="%Y-%m-%d"), date).fill_null(False).to_numpy(zero_copy_only=False)
    hour, minute, second = number("hour"), number("minute"), number("second")
    zone_hour, zone_minute = number("zone_hour"), number("zone_minute")
    valid = real & (hour < 24) & (minute < 60) & (second < 60) & (zone_hour < 24) & (zone_minute < 60)

    west = pc.equal(pc.struct_field(parts, "sign"), "-").fill_null(False).to_numpy(zero_copy_only=False)
    zone = np.where(west, -1, 1) * (zone_hour * 3600 + zone_minute * 60)
    midnight = day.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    seconds = midnight + hour * 3600 + minute * 60 + second - zone
    ticks = seconds * TICKS_PER_SECOND + UNIX_EPOCH + number("fraction", 9) // _NANOSECONDS_PER_TICK
    valid &= (ticks >= 0) & (ticks <= LARGEST)
    return np.where(valid, ticks, 0), valid
