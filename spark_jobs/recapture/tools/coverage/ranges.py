"""Ranges and months of slices, as the address of the calendar names them and as the page writes them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from urllib.parse import urlencode

from recapture.errors import DefinitionError
from recapture.time_model import ticks
from recapture.tools.coverage.states import SliceState

_YEARS = range(1970, 2970)
_SHOWN_CHARACTERS = 40
"""Number of characters of a wrong parameter that a message shows."""


@dataclass(frozen=True)
class Range:
    """Range (start, end] of chosen slices, in ticks."""

    start: int
    end: int

    @property
    def from_(self) -> str:
        """Start in ISO 8601."""
        return ticks.to_text(self.start)

    @property
    def to(self) -> str:
        """End in ISO 8601."""
        return ticks.to_text(self.end)

    @property
    def text(self) -> str:
        """Days and hours, such as "3 March, 02:00 to 03:00"."""
        start, end = ticks.to_datetime(self.start), ticks.to_datetime(self.end)
        until = f"{end:%H:%M}" if self.end - self.start <= ticks.from_seconds(86_400) else f"{end.day} {end:%B, %H:%M}"
        return f"{start.day} {start:%B}, {start:%H:%M} to {until}"

    @property
    def href(self) -> str:
        """Address of the calendar with this range chosen."""
        return f"{query(month=f'{day_of(self.start):%Y-%m}', **{'from': self.from_, 'to': self.to})}#chosen"

    def contains(self, state: SliceState) -> bool:
        return self.start <= state.start and state.end <= self.end


def range_of(state: SliceState) -> Range:
    """Return the range of a slice."""
    return Range(state.start, state.end)


def day_of(instant: int) -> date:
    """Return the day of an instant in ticks."""
    return ticks.to_datetime(instant).date()


def query(**parameters: str) -> str:
    """Return the address of the calendar with these parameters, relative to its own."""
    return f"?{urlencode(parameters)}"


def chosen_range(from_: str | None, to: str | None, length: int) -> Range | None:
    """Return the range that the address of the page names; None if it names none.

    Raise DefinitionError if it is not a range of whole slices; `length` is that of a slice, in ticks.
    """
    if not from_ and not to:
        return None
    bounds = []
    for name, text in (("From", from_), ("To", to)):
        try:
            bound = ticks.from_datetime(ticks.parse_utc(text or ""))
        except ValueError:
            raise DefinitionError(
                f"{name} is {shown_parameter(text)}: write a time such as 2026-03-01T06:00:00Z"
            ) from None
        _require_year(name, text or "", ticks.to_datetime(bound).year)
        if bound % length:
            hours = length // ticks.from_seconds(3600)
            raise DefinitionError(f"{name} {text} is not on a slice border: slices last {hours} h, from midnight UTC")
        bounds.append(bound)
    if bounds[0] >= bounds[1]:
        raise DefinitionError(f"the range is empty: From {from_} is not before To {to}")
    return Range(*bounds)


def shown_month(month: str | None, chosen: Range | None, states: Sequence[SliceState]) -> date:
    """Return the first day of the month to show: the named one, that of the chosen slices, or the newest one."""
    if month:
        try:
            named = datetime.strptime(month, "%Y-%m").date()
        except ValueError:
            raise DefinitionError(f"the month is {shown_parameter(month)}: write one such as 2026-03") from None
        _require_year("the month", month, named.year)
        return named
    if chosen is not None:
        return day_of(chosen.start).replace(day=1)
    held = [state for state in states if state.run or state.blocked_run or state.staged_run]
    return day_of(held[-1].start if held else ticks.from_datetime(datetime.now(UTC))).replace(day=1)


def _require_year(name: str, text: str, year: int) -> None:
    """Raise DefinitionError if the calendar does not show the year."""
    if year not in _YEARS:
        raise DefinitionError(
            f"{name} is {shown_parameter(text)}: the calendar shows the years {_YEARS[0]} to {_YEARS[-1]}"
        )


def shown_parameter(text: str | None) -> str:
    """Return a wrong part of a page's address as a message shows it."""
    text = text or ""
    return repr(text) if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]!r}…"
