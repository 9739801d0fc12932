"""JSON bodies as typed columns, as DuckDB parses them.

It is the fastest of the parsers of any JSON that were measured (benchmarks/), and gives NULL for a value that it cannot
read instead of failing the column. A second look finds the values that are NULL but are not null in the body: the event
is malformed, because ASA drops an event if a field cannot be converted on input.
"""

import contextlib

import pyarrow as pa
import pyarrow.compute as pc

from recapture.formats.bodies import Bodies, Projection, first_reasons
from recapture.formats.duckdb_sql import one_array, utf8
from recapture.formats.json_bodies import spellings
from recapture.formats.json_bodies.checks import inexact, not_objects, unconverted
from recapture.formats.json_bodies.columns import read_columns
from recapture.formats.json_bodies.declared import Declared
from recapture.formats.json_bodies.spellings import Spelling
from recapture.formats.json_bodies.values import convert, strings_in, tokens_in, with_integral_floats
from recapture.formats.views import copied, copies, is_view, starts_with
from recapture.model import AsaType, InputColumn

_BYTE_ORDER_MARK = "\ufeff"


def parsed(
    bodies: pa.Array, projection: Projection, unreadable: pa.Array | None = None, *, only_strings: bool = False
) -> Bodies:
    """Return what is read of bodies, as `BodyDecoder.decode` does."""
    declared = Declared(tuple(projection.declared), only_strings)
    documents, malformed = documents_of(bodies)
    if unreadable is not None:
        malformed = pc.coalesce(unreadable, malformed)
    fields = tuple(
        column for column in dict.fromkeys([*projection.valued, *projection.timestamp_fields]) if column.path
    )
    spelling = spellings.spelling_of(documents, fields)
    decoded, raw = _decoded(documents, malformed, projection, declared, spelling)
    rows = spellings.differing(documents, raw, spelling)
    for other, chosen in spellings.by_spelling(copies(documents, rows), fields) if len(rows) else ():
        if other != spelling:
            again = rows[chosen]
            reasons, whole = malformed.take(pa.array(again)), copies(documents, again)
            respelt, new_spelling = (whole, other) if other is not None else spellings.respelt(whole, fields)
            decoded = decoded.replaced(again, _decoded(respelt, reasons, projection, declared, new_spelling, whole)[0])
    return decoded


def documents_of(bodies: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return the bodies as strings, without byte order marks, and, for each body that is not UTF-8, the reason.

    A NULL body has a reason, too. The strings of views may be views.
    """
    if is_view(bodies.type) and not bodies.null_count and pc.all(starts_with(bodies, "{")).as_py():
        with contextlib.suppress(pa.ArrowInvalid):
            return bodies.cast(pa.string_view()), pa.nulls(len(bodies), pa.string())
    bodies = copied(bodies)
    malformed = pc.if_else(pc.is_valid(bodies), pa.scalar(None, pa.string()), "no body")
    documents = utf8(bodies)
    marked = pc.starts_with(documents, _BYTE_ORDER_MARK)
    if pc.any(marked).as_py():
        documents = pc.if_else(marked, pc.utf8_slice_codeunits(documents, 1), documents)
    return documents, first_reasons(malformed, pc.if_else(pc.is_valid(documents), None, "not UTF-8"))


def _decoded(
    documents: pa.Array,
    malformed: pa.Array,
    projection: Projection,
    declared: Declared,
    spelling: Spelling,
    whole: pa.Array | None = None,
) -> tuple[Bodies, dict[InputColumn, pa.Array]]:
    """Return bodies that spell the columns in one way, and what was read of each column before it was converted.

    `whole` has the bodies as they were sent, if `documents` has not.
    """
    index = {spelt: number for number, spelt in enumerate(dict.fromkeys(spelling.values()))}
    strict = frozenset(spelt for column, spelt in spelling.items() if declared.is_strict(column))
    table = read_columns(documents, tuple(index), strict)
    malformed = first_reasons(malformed, not_objects(documents, one_array(table["valid"])))
    raw = {column: one_array(table[f"c{index[spelt]}"]) for column, spelt in spelling.items()}
    raw |= {
        column: tokens_in(raw[column]) if column.is_token else strings_in(raw[column])
        for column in raw
        if column.type is AsaType.STRING and declared.is_strict(column)
    }
    converted: dict[InputColumn, pa.Array] = {}
    for column in projection.valued:
        if not column.path:
            converted[column] = pc.if_else(pc.is_null(malformed), copied(documents if whole is None else whole), None)
            continue
        path = spelling[column].path
        values = convert(raw[column], column.type, declared.is_strict(column))
        if column.type is AsaType.BIGINT:
            values = with_integral_floats(values, raw[column], documents, path)
        converted[column] = values
        if column in declared.columns:
            malformed = first_reasons(malformed, declared.reasons(documents, values, column, path))
        elif column not in projection.timestamp_fields:
            if column.type is not AsaType.STRING:
                malformed = first_reasons(malformed, unconverted(documents, values, column, path))
            if not column.declared:
                malformed = first_reasons(malformed, inexact(documents, values, column, path))
    return Bodies(
        {column: converted[column] for column in projection.columns},
        {column: raw[column] for column in projection.timestamp_fields},
        malformed,
    ), raw
