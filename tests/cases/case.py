"""A case: rows of inputs, a query, and the rows that it must publish, as text (CONTRIBUTING.md, "A case")."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from recapture.model import AsaType, JavaScriptFunction, OutputColumn

Row = dict[str, Any]

HOUR = timedelta(hours=1)
ARRIVAL, PARTITION = "EventEnqueuedUtcTime", "PartitionId"
"""Columns of an input that are not part of the body."""
_SECTION = re.compile(r"^\[(input|reference|function|query|output|refused) ?(\S*)\]$")
_FUNCTION = re.compile(r"ud(?P<kind>[fa])\.(?P<name>\w+)(?:\((?P<arguments>.*)\))?:(?P<output>.+)")
_REFUSAL = re.compile(r"^(\S.*?)\n=> ([^\n]+)$", re.MULTILINE | re.DOTALL)
_SEPARATOR = " | "
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


@dataclass(frozen=True)
class Case:
    """A query with its inputs, reference data and expected rows, each by its alias, and its JavaScript functions."""

    query: str
    inputs: dict[str, list[Row]]
    references: dict[str, list[Row]]
    outputs: dict[str, str]
    """Expected rows of each output, as `table` writes them."""
    functions: list[JavaScriptFunction]
    refused: list[tuple[str, str]]
    """Queries that are not supported, each with the first line of its error."""

    @property
    def span(self) -> tuple[datetime, datetime]:
        """The hours of its run: from the hour before the first event to the hour after the last one."""
        arrivals = [arrival(row) for rows in self.inputs.values() for row in rows]
        return hour(min(arrivals)) - HOUR, hour(max(arrivals)) + 2 * HOUR

    def difference(self, alias: str, columns: Sequence[OutputColumn], rows: Iterable[Row]) -> str | None:
        """Return the published rows and the expected ones, as a case writes them; None if they are the same."""
        actual = table(
            [column.name for column in columns],
            [{column.name: _of_type(row[column.name], column.type) for column in columns} for row in rows],
        )
        expected = self.outputs[alias]
        return None if actual == expected else f"[output {alias}]\n{actual}\n\nExpected:\n{expected}"


def parse(text: str) -> Case:
    """Return the case that a text describes. Raise ValueError if a line does not belong to one."""
    query: list[str] = []
    tables: dict[str, dict[str, list[str]]] = defaultdict(dict)
    lines: list[str] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        section = _SECTION.match(line)
        if section and section[1] == "query":
            lines = query
        elif section:
            lines = tables[section[1]][section[2]] = []
        elif lines is not None:
            lines.append(line)
        elif line and not line.startswith("#"):
            raise ValueError(f"line {number}: before the first section, a line starts with #")
    return Case(
        query="\n".join(query),
        inputs={alias: list(_rows(part)) for alias, part in tables["input"].items()},
        references={alias: list(_rows(part)) for alias, part in tables["reference"].items()},
        outputs={alias: table(_columns(part), _rows(part)) for alias, part in tables["output"].items()},
        functions=[_function(signature, part) for signature, part in tables["function"].items()],
        refused=[refusal for part in tables["refused"].values() for refusal in _REFUSAL.findall("\n".join(part))],
    )


def _function(signature: str, script: Iterable[str]) -> JavaScriptFunction:
    """Return a function, such as `udf.add(float,any):float`, or `uda.mean:float` without the types of its arguments."""
    match = _FUNCTION.fullmatch(signature)
    if match is None:
        raise ValueError(f"a function is declared like udf.add(float,any):float, not like {signature}")
    arguments = match["arguments"]
    types = [None if name == "any" else AsaType(name) for name in (arguments or "").split(",") if name]
    return JavaScriptFunction(
        match["name"],
        "\n".join(script).strip("\n"),
        AsaType(match["output"]),
        None if arguments is None else tuple(types),
        is_aggregate=match["kind"] == "a",
    )


def _columns(lines: Iterable[str]) -> list[str]:
    return _cells(next(line for line in lines if line))


def _rows(lines: Iterable[str]) -> Iterator[Row]:
    """Yield the rows of a table; a row lacks the columns whose cells are empty."""
    columns, *rows = [_cells(line) for line in lines if line]
    for cells in rows:
        if len(cells) != len(columns):
            raise ValueError(f"a row has {len(cells)} cells, its header has {len(columns)}: {' | '.join(cells)}")
        yield {column: _value(cell) for column, cell in zip(columns, cells, strict=True) if cell}


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in f"{line} ".split(_SEPARATOR)]


def _value(cell: str) -> Any:
    """Return a cell's JSON, or a cell that is not JSON as a string: 5 => 5, "5" => "5", Honda => "Honda"."""
    try:
        return json.loads(cell)
    except ValueError:
        return cell


def hour(time: datetime) -> datetime:
    return time.replace(minute=0, second=0, microsecond=0)


def arrival(row: Row) -> datetime:
    """Return the time in a row's column EventEnqueuedUtcTime, else its first time."""
    return datetime.fromisoformat(row[ARRIVAL] if ARRIVAL in row else next(filter(_is_time, row.values())))


def _is_time(value: Any) -> bool:
    return isinstance(value, str) and _TIME.fullmatch(value) is not None


def body(row: Row) -> bytes:
    """Return the JSON of a row of an input, without its columns that are not part of the body."""
    return json.dumps({name: value for name, value in row.items() if name not in (ARRIVAL, PARTITION)}).encode()


def _of_type(value: Any, type_: AsaType) -> Any:
    """Return a published value; records and arrays are published as JSON."""
    return json.loads(value) if value is not None and type_ in (AsaType.RECORD, AsaType.ARRAY) else value


def table(columns: list[str], rows: Iterable[Row]) -> str:
    """Return sorted rows as an aligned table of a case; NULL and a missing column are `null`."""
    cells = [columns, *sorted([_cell(row.get(column)) for column in columns] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [_SEPARATOR.join(map(str.ljust, line, widths)).rstrip() for line in cells]
    return "\n".join(lines)


def _cell(value: Any) -> str:
    if isinstance(value, datetime):
        seconds, _, fraction = value.astimezone(UTC).isoformat().removesuffix("+00:00").partition(".")
        return f"{seconds}.{fraction.rstrip('0')}Z" if fraction else f"{seconds}Z"
    if isinstance(value, str) and _value(value) == value and value.strip() == value and value:
        return value
    return json.dumps(value, ensure_ascii=False)
