"""Why bodies cannot be used: they are not JSON objects, or have values that are not of the column's type."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from recapture.formats.duckdb_sql import literal, pointer
from recapture.formats.json_bodies.kinds import kind_at
from recapture.formats.json_bodies.values import reasons_in
from recapture.formats.views import starts_with
from recapture.model import AsaType, InputColumn
from recapture.tokens import MARK

_EXACT_FLOATS = 2**53
"""Every integer up to this one is exactly a float."""
_DIGITS_THAT_MAY_NOT_FIT = 19
"""Every integer with fewer digits fits a bigint."""


def not_objects(documents: pa.Array, valid: pa.Array) -> pa.Array:
    """Return the reason why a body is not a JSON object, or NULL."""
    others = pc.indices_nonzero(pc.invert(pc.and_kleene(valid, starts_with(documents, "{"))))
    reason = "WHEN NOT json_valid(body) THEN 'not JSON' WHEN json_type(body) <> 'OBJECT' THEN 'not a JSON object'"
    return reasons_in(documents, others, f"SELECT CASE {reason} END AS reason FROM bodies")


def unconverted(documents: pa.Array, values: pa.Array, column: InputColumn, path: Sequence[str]) -> pa.Array:
    """Return `COLUMN is not a TYPE` if the body has a value that is not null and the column has none; else NULL."""
    suspects = pc.indices_nonzero(pc.and_(pc.is_null(values), pc.is_valid(documents)))
    article = "an" if column.type is AsaType.ARRAY else "a"
    reason = literal(f"{column.name} is not {article} {column.type}")
    reading = f"SELECT CASE WHEN {kind_at(path)} <> 'NULL' THEN {reason} END AS reason FROM bodies"
    return reasons_in(documents, suspects, reading)


def inexact(documents: pa.Array, values: pa.Array, column: InputColumn, path: Sequence[str]) -> pa.Array:
    """Return a reason for each body whose integer ASA rejects, or that the column cannot hold exactly; else NULL.

    In ASA, integers are bigints. An integer beyond 64 bits is an input error. Not every smaller one is exactly
    representable as a float.
    """
    if column.type is AsaType.FLOAT:
        large = pc.greater_equal(pc.abs(values), float(_EXACT_FLOATS))
    elif column.is_token:
        large = pc.greater_equal(pc.binary_length(values), _DIGITS_THAT_MAY_NOT_FIT)
    else:
        return pa.nulls(len(values), pa.string())
    suspects = pc.indices_nonzero(large)
    if column.is_token and len(suspects):
        is_number = pc.match_substring_regex(values.take(suspects), rf"^{MARK}-?\d+$")
        suspects = suspects.filter(is_number)
    number = f"json_extract(body, {pointer(path)})::VARCHAR"
    is_integer = f"regexp_full_match({number}, '-?[0-9]+')"
    advice = f"declare its type: {column.name} nvarchar(max), bigint or float"
    reason = (
        f"CASE WHEN NOT {is_integer} THEN NULL"
        f" WHEN try_cast({number} AS BIGINT) IS NULL THEN {literal(f'{column.name} does not fit a bigint')}"
    )
    if column.type is AsaType.FLOAT:
        no_float = literal(f"{column.name} is a bigint that no float equals; {advice}")
        reason += f" WHEN CAST(CAST({number} AS DOUBLE) AS HUGEINT) <> CAST({number} AS HUGEINT) THEN {no_float}"
    return reasons_in(documents, suspects, f"SELECT {reason} END AS reason FROM bodies")
