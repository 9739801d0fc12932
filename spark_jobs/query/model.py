"""A compiled query: what it reads of an event, which times it asks for, and the Spark SQL that computes its rows."""

from dataclasses import dataclass
from enum import StrEnum

from spark_jobs.time_model.windows import HoppingWindow


class AsaType(StrEnum):
    """The scalar types of ASA (time model, section 6)."""

    BIGINT = "bigint"
    FLOAT = "float"
    TEXT = "nvarchar(max)"
    DATETIME = "datetime"
    BIT = "bit"


@dataclass(frozen=True)
class InputColumn:
    """One field of the event's body that the query reads."""

    path: tuple[str, ...]
    """From the body's root: ("site", "id") for `site.id`."""
    type: AsaType

    @property
    def name(self) -> str:
        """The column's name in the view of ordered events: the path joined by dots."""
        return ".".join(self.path)


@dataclass(frozen=True)
class OutputColumn:
    """One column of the published table."""

    name: str
    type: AsaType


@dataclass(frozen=True)
class CompiledQuery:
    """An ASAQL query, ready to run.

    `sql` reads the view `events`, whose columns are those of `columns` under their names, and
    `_partition` (string), `_slice_start`, `_slice_end`, `_system_timestamp` (bigint, ticks).
    It yields the columns of `output`, then `slice_start` (timestamp, UTC).
    """

    columns: tuple[InputColumn, ...]
    timestamp_by: InputColumn | None
    over: tuple[InputColumn, ...]
    window: HoppingWindow
    output: tuple[OutputColumn, ...]
    identity: tuple[str, ...]
    """The output columns that make a row's identity, as far as the query selects them: window end, then group keys."""
    sql: str
    canonical: str
    """The query in one spelling, whatever its white space and its keywords' letter case."""
