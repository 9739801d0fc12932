"""Ranges and months of slices, as the address of the calendar names them and as the page writes them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from urllib.parse import urlencode

from recapture.errors import DefinitionError
from recapture.run.slice_state import State
from recapture.time_model import ticks
from recapture.tools.coverage.states import SliceState

_YEARS = range(1970, 2970)
_SHOWN_CHARACTERS = 40
"""Number of characters of a wrong parameter that a message shows."""


@dataclass(frozen=True)
class Range:
    """Chosen slices: those of a range (start, end], in ticks, or only those of it that are in some states."""

    start: int
    end: int
    only: tuple[State, ...] = ()
    """States of the chosen slices; empty for all states."""

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
        """Days and hours, and states, such as "3 March, 02:00 to 03:00, only missing"."""
        start, end = ticks.to_datetime(self.start), ticks.to_datetime(self.end)
        until = f"{end:%H:%M}" if day_of(self.start) == day_of(self.end - 1) else f"{end.day} {end:%B, %H:%M}"
        states = " or ".join(filter(None, [", ".join(self.only[:-1]), *self.only[-1:]]))
        return f"{start.day} {start:%B}, {start:%H:%M} to {until}{states and f', only {states}'}"

    @property
    def href(self) -> str:
        """Address of the calendar with these slices chosen, in the month of the first one."""
        return f"{month_address(day_of(self.start), self)}#chosen"

    def contains(self, state: SliceState) -> bool:
        return self.start <= state.start and state.end <= self.end and (not self.only or state.state in self.only)

    def narrowed(self, states: Iterable[SliceState]) -> "Range":
        """Return the shortest range with the same slices, if only slices in some states are chosen, and any is."""
        inside = [state for state in states if self.contains(state)] if self.only else []
        return Range(inside[0].start, inside[-1].end, self.only) if inside else self


def range_of(state: SliceState) -> Range:
    """Return the range of a slice."""
    return Range(state.start, state.end)


def in_each_state(states: Iterable[SliceState]) -> dict[State, Range]:
    """Return the slices in each state that any of them is in, the most urgent state first."""
    bounds: dict[State, tuple[int, int]] = {}
    for state in states:
        bounds[state.state] = bounds.get(state.state, (state.start,))[0], state.end
    return {state: Range(*bounds[state], (state,)) for state in State if state in bounds}


def in_any_state(by_state: Mapping[State, Range], chosen: Collection[State]) -> Range | None:
    """Return the slices in any of the chosen states; None if there are none. `by_state` is as of `in_each_state`."""
    ranges = [range_ for state, range_ in by_state.items() if state in chosen]
    if not ranges:
        return None
    start, end = min(range_.start for range_ in ranges), max(range_.end for range_ in ranges)
    return Range(start, end, tuple(state for range_ in ranges for state in range_.only))


def day_of(instant: int) -> date:
    """Return the day of an instant in ticks."""
    return ticks.to_datetime(instant).date()


def month_address(month: date, chosen: Range | None = None) -> str:
    """Return the address of the calendar that shows a month, relative to its own; the chosen slices stay chosen."""
    parameters: Mapping[str, str | Sequence[str]] = {"month": f"{month:%Y-%m}"}
    if chosen is not None:
        parameters = {**parameters, "from": chosen.from_, "to": chosen.to, "state": chosen.only}
    return f"?{urlencode(parameters, doseq=True)}"


def chosen_range(from_: str | None, to: str | None, length: int, only: Collection[str] = ()) -> Range | None:
    """Return the slices that the address of the page names; None if it names none.

    Raise DefinitionError if they are not a range of whole slices, or if `only` has a state that slices cannot be in;
    `length` is that of a slice, in ticks.
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
    unknown = [text for text in only if text not in list(State)]
    if unknown:
        raise DefinitionError(f"{shown_parameter(unknown[0])} is not a state of slices: use one of {', '.join(State)}")
    start, end = bounds
    return Range(start, end, tuple(state for state in State if state in only))


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
