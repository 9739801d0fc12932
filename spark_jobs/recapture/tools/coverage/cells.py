"""The cells of the calendar: a year of days, by months, and a month of slices, by days."""

from calendar import monthrange
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

from recapture.run.slice_state import State
from recapture.time_model import ticks
from recapture.tools.coverage.marks import KINDS, SIGNS, Audits, why
from recapture.tools.coverage.ranges import Range, month_address, range_of
from recapture.tools.coverage.states import SliceState

Days = Mapping[date, Sequence[SliceState]]
"""Slices of each day of which something is known; the days are in order."""
_URGENCY = {state: number for number, state in enumerate(State)}


@dataclass(frozen=True)
class Cell:
    """A day or a slice."""

    label: str
    """Day or hours, and state: what a screen reader says."""
    why: str
    """Why it is in its state, in a sentence; empty for a day."""
    href: str
    kind: str
    text: str
    bounds: Range
    chosen: bool = False


@dataclass(frozen=True)
class Row:
    """A month of days, or a day of slices."""

    day: date
    """The day, or the first one of the month."""
    name: str
    href: str
    cells: Sequence[Cell | None]
    """Cells; None where nothing is known."""


def month_rows(year: int, days: Days, chosen: Range | None) -> list[Row]:
    """Return the months of a year from the first to the last of which something is known."""
    known = sorted({day.month for day in days if day.year == year})
    months = range(known[0], known[-1] + 1) if known else ()
    return [_month_row(date(year, month, 1), days, chosen) for month in months]


def _month_row(first: date, days: Days, chosen: Range | None) -> Row:
    href = month_address(first, chosen)
    every = (first.replace(day=day) for day in range(1, monthrange(first.year, first.month)[1] + 1))
    cells = [_day_cell(day, days[day], href, chosen) if day in days else None for day in every]
    return Row(first, f"{first:%B}", href, cells)


def _day_cell(day: date, states: Sequence[SliceState], href: str, chosen: Range | None) -> Cell:
    """Return the day with its most urgent state."""
    counts = Counter(state.state for state in states)
    urgent = sorted(counts, key=_URGENCY.__getitem__)
    listed = ", ".join(f"{counts[state]} {state}" for state in urgent)
    bounds = Range(states[0].start, states[-1].end)
    is_chosen = chosen is not None and any(map(chosen.contains, states))
    label, kind, sign = f"{day.day} {day:%B}: {listed}", KINDS[urgent[0]], SIGNS[urgent[0]]
    return Cell(label, "", f"{href}#d{day}", kind, sign, bounds, is_chosen)


def day_rows(month: date, days: Days, chosen: Range | None, length: int, audits: Audits) -> list[Row]:
    """Return the days of a month from the first to the last of which something is known.

    `length` is that of a slice, in ticks. `audits` has what failed in audits, by run.
    """
    known = [day for day in days if (day.year, day.month) == (month.year, month.month)]
    every = range(min(known).day, max(known).day + 1) if known else ()
    return [_day_row(month.replace(day=day), days, chosen, length, audits) for day in every]


def _day_row(day: date, days: Days, chosen: Range | None, length: int, audits: Audits) -> Row:
    midnight = ticks.from_datetime(datetime(day.year, day.month, day.day, tzinfo=UTC))
    by_start = {state.start: state for state in days.get(day, ())}
    bounds = Range(midnight, midnight + ticks.from_seconds(86_400))
    starts = range(bounds.start, bounds.end, length)
    cells = [_slice_cell(by_start[start], chosen, audits) if start in by_start else None for start in starts]
    return Row(day, f"{day:%a %d}", bounds.href, cells)


def _slice_cell(state: SliceState, chosen: Range | None, audits: Audits) -> Cell:
    bounds, kind = range_of(state), state.state
    is_chosen = chosen is not None and chosen.contains(state)
    label = f"{bounds.text}: {kind}"
    return Cell(label, why(state, audits), bounds.href, KINDS[kind], SIGNS[kind], bounds, is_chosen)


def neighbours(month: date, days: Iterable[date], chosen: Range | None) -> tuple[str | None, str | None]:
    """Return the addresses of the months before and after in which something is known; None if there are none."""
    months = sorted({day.replace(day=1) for day in days})
    earlier = [other for other in months if other < month]
    later = [other for other in months if other > month]
    before = month_address(earlier[-1], chosen) if earlier else None
    return before, month_address(later[0], chosen) if later else None
