"""The parts of a date and the units of time, by their names in ASA."""

from recapture.time_model.ticks import TICKS_PER_DAY, TICKS_PER_MICROSECOND, TICKS_PER_MILLISECOND, TICKS_PER_SECOND

SHORT_NAMES = {
    "year": ("yy", "yyyy"),
    "quarter": ("qq", "q"),
    "month": ("mm", "m"),
    "dayofyear": ("dy", "y"),
    "day": ("dd", "d"),
    "week": ("wk", "ww"),
    "weekday": ("dw", "w"),
    "hour": ("hh",),
    "minute": ("mi", "n"),
    "second": ("ss", "s"),
    "millisecond": ("ms",),
    "microsecond": ("mcs",),
}
PARTS = {spelling: part for part, short in SHORT_NAMES.items() for spelling in (part, *short)}
"""Each part, by every spelling."""
TICKS = {
    "dayofyear": TICKS_PER_DAY,
    "day": TICKS_PER_DAY,
    "week": 7 * TICKS_PER_DAY,
    "weekday": TICKS_PER_DAY,
    "hour": 3_600 * TICKS_PER_SECOND,
    "minute": 60 * TICKS_PER_SECOND,
    "second": TICKS_PER_SECOND,
    "millisecond": TICKS_PER_MILLISECOND,
    "microsecond": TICKS_PER_MICROSECOND,
}
"""Length in ticks of each part that has a fixed length."""
