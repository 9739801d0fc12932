"""Compatibility levels: which differences between a job's level and 1.2 touch its query.

Source: "Compatibility level for Azure Stream Analytics jobs". The changes of the page that concern only outputs which
are not tables, or running in parallel, touch no query.
"""

from collections.abc import Iterator, Sequence

from recapture.model import AsaType, InputColumn, ShapeComparison
from recapture.query.model import CompiledInput, CompiledQuery, CompiledReference
from recapture.tools.asa_job.draft import listed

LEVELS = ("1.0", "1.1", "1.2")
_MOST_NAMES = 5
_NEVER_BIT = (AsaType.DATETIME, AsaType.RECORD, AsaType.ARRAY)


def differences(level: str, query: CompiledQuery) -> list[str]:
    """Return the differences between a level below 1.2 and 1.2 that touch a query; each is a clause of a sentence."""
    clauses = list(_since_1_2(query))
    return clauses + list(_since_1_1(query)) if level == "1.0" else clauses


def all_differences(level: str) -> list[str]:
    """Return the differences between a level below 1.2 and 1.2, for a query that cannot be compiled."""
    bits = "true and false in JSON are bit instead of bigint 1 and 0: add a CAST if the query relies on bigint"
    clauses = [bits, "geospatial functions compare shapes on a plane instead of on the globe"]
    if level == "1.0":
        clauses += [
            "field names keep their case instead of becoming lower case",
            "a string that looks like a time stays a string instead of becoming a datetime in UTC",
            "CREATE TABLE rejects NaN as a float",
        ]
    return clauses


def _since_1_2(query: CompiledQuery) -> Iterator[str]:
    bits = [column.name for column, is_declared in _fields(query) if _may_be_bit(column, is_declared)]
    if bits:
        where = f"true and false in {_listed(bits)} are bit instead of bigint 1 and 0"
        yield f"{where}: add a CAST if the query relies on bigint"
    planar = [function.value for function in query.geography if function is not ShapeComparison.DISTANCE]
    if planar:
        yield f"in {_listed(planar)}, shapes are compared on a plane instead of on the globe"


def _since_1_1(query: CompiledQuery) -> Iterator[str]:
    names = [column.name for output in query.outputs for column in output.columns if column.name != column.name.lower()]
    if names:
        yield f"the names of {_listed(names)} keep their case instead of becoming lower case"
    texts = [column.name for column, is_declared in _fields(query) if _may_be_time(column, is_declared)]
    if texts:
        where = f"a string that looks like a time in {_listed(texts)}"
        yield f"{where} stays a string instead of becoming a datetime in UTC"
    checked = [column for read in _reads(query) for column in read.columns_to_check]
    floats = [column.name for column in checked if column.type is AsaType.FLOAT]
    if floats:
        yield f"CREATE TABLE rejects NaN in {_listed(floats)}"


def _fields(query: CompiledQuery) -> Iterator[tuple[InputColumn, bool]]:
    """Yield the fields of bodies that a query reads, and whether CREATE TABLE declares each."""
    for read in _reads(query):
        declared = {column.path for column in read.columns_to_check}
        for column in read.body_columns:
            if not column.is_kind:
                yield column, column.path in declared


def _reads(query: CompiledQuery) -> tuple[CompiledInput | CompiledReference, ...]:
    return (*query.inputs, *query.references)


def _may_be_bit(column: InputColumn, is_declared: bool) -> bool:
    return column.type is AsaType.BIT or not (is_declared or (column.type in _NEVER_BIT and column.path))


def _may_be_time(column: InputColumn, is_declared: bool) -> bool:
    return not is_declared and (column.type is AsaType.STRING or not column.path)


def _listed(names: Sequence[str]) -> str:
    """Return names as a message lists them: a, b and 3 more."""
    names = list(dict.fromkeys("the body" if name == "@body" else name for name in names))
    return listed(names if len(names) <= _MOST_NAMES else [*names[:_MOST_NAMES], f"{len(names) - _MOST_NAMES} more"])
