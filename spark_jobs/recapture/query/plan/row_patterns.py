"""PATTERN of MATCH_RECOGNIZE: a regular expression over variables, and the automaton that walks it row by row.

An automaton has a place for each variable of the pattern as it is written, so it has no empty steps: each step takes a
row. Places that may come next are in the order of preference of SQL:2016: the first alternative comes before the next
one, and another repetition before what follows.

    A+ (B | C)  => places A, B, C; A begins; after A come A, B, C; after B or C the pattern is complete
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

COMPLETE = -1
"""Stands for the end of the pattern among the places that may come next."""
MOST_PLACES = 1000
"""Largest number of places of an automaton; A{3} has three."""


class PatternTooLongError(Exception):
    """The pattern has more than MOST_PLACES places."""


@dataclass(frozen=True)
class Variable:
    """A row for which the condition of a variable is true."""

    name: str


@dataclass(frozen=True)
class Concatenation:
    """Parts one after another."""

    parts: "tuple[RowPattern, ...]"


@dataclass(frozen=True)
class Choice:
    """One of several parts; the first one is preferred."""

    parts: "tuple[RowPattern, ...]"


@dataclass(frozen=True)
class Repeated:
    """A part several times, as often as possible."""

    part: "RowPattern"
    least: int
    most: int | None
    """Largest number of times; None without limit."""


RowPattern = Variable | Concatenation | Choice | Repeated


@dataclass(frozen=True)
class Place:
    """A place of an automaton, after it took a row."""

    variable: int
    """Index of its variable."""
    next: tuple[int, ...]
    """Places that may take the next row, the preferred one first."""
    is_complete: bool
    """Whether the pattern may end here."""


@dataclass(frozen=True)
class Automaton:
    """The automaton of a pattern."""

    variables: tuple[str, ...]
    begin: tuple[int, ...]
    """Places that may take the first row, the preferred one first."""
    places: tuple[Place, ...]

    @property
    def goes_on(self) -> bool:
        """Return whether a complete match may go on with further rows."""
        return any(place.is_complete and place.next for place in self.places)


def variables_of(pattern: RowPattern) -> tuple[str, ...]:
    """Return the names of the variables of a pattern, each once, in order."""
    match pattern:
        case Variable(name):
            return (name,)
        case Repeated(part):
            return variables_of(part)
    return tuple(dict.fromkeys(name for part in pattern.parts for name in variables_of(part)))


def automaton(pattern: RowPattern) -> Automaton | None:
    """Return the automaton of a pattern; None if the pattern matches without any row.

    Raise PatternTooLongError if it has too many places.
    """
    building = _Building(variables_of(pattern))
    begin = building.entry(pattern, [COMPLETE])
    resolved = building.resolved(begin)
    if COMPLETE in resolved:
        return None
    places = []
    for variable, after in building.places:
        following = building.resolved(after)
        next_ = tuple(number for number in following if number != COMPLETE)
        places.append(Place(variable, next_, len(next_) < len(following)))
    return Automaton(building.variables, tuple(resolved), tuple(places))


@dataclass
class _Building:
    """The places of an automaton, as far as they are known.

    A number from 0 is a place, COMPLETE the end. Other negative numbers stand for the beginnings of loops, which are
    known only after the places in the loop.
    """

    variables: tuple[str, ...]
    places: list[tuple[int, list[int]]] = field(default_factory=list)
    """Variable of each place, and what may come next."""
    loops: list[list[int]] = field(default_factory=list)
    """What each loop begins with."""

    def entry(self, pattern: RowPattern, after: list[int]) -> list[int]:
        """Return what a pattern begins with, if `after` comes next; add its places."""
        match pattern:
            case Variable(name):
                if len(self.places) == MOST_PLACES:
                    raise PatternTooLongError
                self.places.append((self.variables.index(name), after))
                return [len(self.places) - 1]
            case Choice(parts):
                return [number for part in parts for number in self.entry(part, after)]
            case Concatenation(parts):
                for part in reversed(parts):
                    after = self.entry(part, after)
                return after
            case Repeated(part, 0, None):
                return [*self._loop(part, after), *after]
            case Repeated(part, least, None):
                return self._times(part, least - 1, self._loop(part, after))
            case Repeated(part, least, most):
                assert most is not None
                tail = after
                for _ in range(most - least):
                    tail = [*self.entry(part, tail), *after]
                return self._times(part, least, tail)

    def _times(self, part: RowPattern, times: int, after: list[int]) -> list[int]:
        for _ in range(times):
            after = self.entry(part, after)
        return after

    def _loop(self, part: RowPattern, after: list[int]) -> list[int]:
        """Return what a part begins with that is repeated as often as possible, once at least."""
        number = len(self.loops)
        self.loops.append([])
        self.loops[number] = self.entry(part, [_marker(number), *after])
        return [_marker(number)]

    def resolved(self, numbers: Iterable[int]) -> list[int]:
        """Return places and COMPLETE, each once, without the marks of loops."""
        found: dict[int, None] = {}
        todo, seen = [*numbers][::-1], set[int]()
        while todo:
            number = todo.pop()
            if number >= COMPLETE:
                found.setdefault(number)
            elif number not in seen:
                seen.add(number)
                todo += self.loops[_marker(number)][::-1]
        return [*found]


def _marker(number: int) -> int:
    """Return the mark of a loop by its number, and the number by the mark: 0 => -2"""
    return -2 - number
