"""MATCH_RECOGNIZE as a value: the matches of a pattern in the rows of a table (docs/time-model.md, section 4.6)."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from recapture.query.plan.expressions import Expr
from recapture.query.plan.row_patterns import Automaton
from recapture.time_model.windows import JoinedSide, Reach

CLASSIFIER = "@classes"
"""Column with the names of the variables of a match's rows, as JSON."""


class Taken(StrEnum):
    """Which of the rows of a variable an aggregate takes."""

    FIRST = "FIRST"
    LAST = "LAST"
    MIN = "MIN"
    MAX = "MAX"


@dataclass(frozen=True)
class MatchAggregate:
    """An aggregate of the rows that a match has for a variable so far."""

    function: Taken
    variable: int
    """Index of the variable."""
    value: Expr
    """Value, over a row. MIN and MAX leave out NULL."""


def aggregate_name(number: int) -> str:
    """Return the name of the column that holds the value of an aggregate."""
    return f"@m{number}"


@dataclass(frozen=True)
class MatchedTable:
    """The matches of a pattern, under a name: one for each sequence of rows that fits the pattern.

    The System.Timestamp of a match is that of its last row. Matches have the columns of `measures`.
    """

    name: str
    source: str
    """Table whose rows are matched."""
    ties: tuple[str, ...] | None
    """Columns that order the rows of one partition that arrived at the same time; None if the rows come in order."""
    keys: tuple[Expr, ...]
    """Keys of PARTITION BY, over a row."""
    length: int
    """LIMIT DURATION in ticks: a match holds rows from less than this after its first row."""
    automaton: Automaton
    conditions: tuple[Expr, ...]
    """Condition of each variable, over a row and the aggregates with this row."""
    aggregates: tuple[MatchAggregate, ...]
    """Aggregates `@m0`, … of the conditions and the measures."""
    measures: tuple[tuple[str, Expr], ...]
    """Name and value of each column, over the aggregates and CLASSIFIER."""

    @property
    def windows(self) -> tuple[JoinedSide, ...]:
        """The reach of a match, in place of a window."""
        return (JoinedSide(self.length),)

    def reads(self, extra_look_back: int) -> Iterator[tuple[str, Reach]]:
        """Yield the table that it reads, and the reach of its rows."""
        yield self.source, Reach(JoinedSide(self.length), extra_look_back)

    @property
    def sources(self) -> list[str]:
        """Table that it reads."""
        return [self.source]

    @property
    def inputs(self) -> dict[Expr, None]:
        """Expressions over a row that decide the matches and their measures, without the conditions."""
        return dict.fromkeys([*self.keys, *(aggregate.value for aggregate in self.aggregates)])
