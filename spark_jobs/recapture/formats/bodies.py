"""JSON bodies as typed columns, as far as the query reads them; a bad body does not affect the others.

DuckDB parses them: it is the fastest of the parsers measured (benchmarks/), and gives NULL for a value that it cannot
read instead of failing the column. A second look finds the values that are NULL but are not null in the body: the
event is malformed, because ASA drops an event if a field cannot be converted on input.
"""

import contextlib
import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recapture.formats import spellings
from recapture.formats.declared import KINDS, NOTHING_DECLARED, Declared, kind_at, texts_in
from recapture.formats.duckdb_sql import literal, one_array, pointer, select, utf8
from recapture.formats.spellings import Spelling
from recapture.formats.views import copied, copies, is_view, starts_with
from recapture.model import TYPES, AsaType, InputColumn
from recapture.time_model import timestamps

_EXACT_FLOATS = 2**53
"""Every whole number up to this one is exactly a float."""
_DIGITS_THAT_MAY_NOT_FIT = 19
"""Every whole number with fewer digits fits a bigint."""
_READ_AS_JSON = (AsaType.BIGINT, AsaType.FLOAT, AsaType.TEXT)
"""Types of strict columns that are read as JSON, because DuckDB converts to them."""
_TRUE_FALSE = pa.array(["true", "false"])
_BYTE_ORDER_MARK = "\ufeff"


@dataclass(frozen=True)
class Bodies:
    """The columns of some bodies; every array has one entry per body."""

    columns: dict[InputColumn, pa.Array]
    """Values of the columns, in the types of the view."""
    texts: dict[InputColumn, pa.Array]
    """Text of the fields that the policies judge; NULL if a body lacks the field."""
    malformed: pa.Array
    """Reason why a body cannot be used (string), or NULL."""


def parse(
    bodies: pa.Array,
    columns: Collection[InputColumn],
    timestamp_fields: Collection[InputColumn] = (),
    unreadable: pa.Array | None = None,
    declared: Declared = NOTHING_DECLARED,
) -> Bodies:
    """Read `columns`, those that CREATE TABLE declares, and the texts of `timestamp_fields`, from JSON bodies.

    The bodies are binary, or views. A value in `timestamp_fields` does not make a body malformed: the policies decide
    about it, unless it is declared. A name finds its field in any letter case (see `spellings`). `unreadable` holds the
    reason why a reader could not read a body (string), or NULL; it takes precedence over any other reason.
    """
    text, malformed = as_text(bodies)
    if unreadable is not None:
        malformed = pc.coalesce(unreadable, malformed)
    columns = tuple(dict.fromkeys([*columns, *declared.columns]))
    fields = tuple(column for column in dict.fromkeys([*columns, *timestamp_fields]) if column.path)
    spelling = spellings.spelling_of(text, fields)
    reading = _Reading(columns, tuple(timestamp_fields), declared)
    usual, raw = _parse(text, malformed, reading, spelling)
    rows = spellings.differing(text, raw, spelling)
    parsed, order = [usual], np.arange(len(text))
    for other, chosen in spellings.by_spelling(copies(text, rows), fields) if len(rows) else ():
        if other != spelling:
            again = rows[chosen]
            order[again] = sum(len(part.malformed) for part in parsed) + np.arange(len(again))
            reasons, whole = malformed.take(pa.array(again)), copies(text, again)
            again_text, again_spelling = (whole, other) if other is not None else spellings.respelt(whole, fields)
            parsed.append(_parse(again_text, reasons, reading, again_spelling, whole)[0])
    return usual if len(parsed) == 1 else _interleaved(parsed, pa.array(order))


@dataclass(frozen=True)
class _Reading:
    """What is read of bodies."""

    columns: tuple[InputColumn, ...]
    timestamp_fields: tuple[InputColumn, ...]
    declared: Declared


def _interleaved(parsed: Sequence[Bodies], order: pa.Array) -> Bodies:
    """Return all of these bodies in an order."""

    def together(arrays: Iterable[pa.Array]) -> pa.Array:
        return pa.concat_arrays(list(arrays)).take(order)

    return Bodies(
        {column: together(part.columns[column] for part in parsed) for column in parsed[0].columns},
        {column: together(part.texts[column] for part in parsed) for column in parsed[0].texts},
        together(part.malformed for part in parsed),
    )


def _parse(
    text: pa.Array,
    malformed: pa.Array,
    reading: _Reading,
    spelling: Spelling,
    whole: pa.Array | None = None,
) -> tuple[Bodies, dict[InputColumn, pa.Array]]:
    """Return bodies that spell the columns in one way, and what was read of each column before it was converted.

    `whole` has the bodies as they were sent, if `text` has not.
    """
    declared = reading.declared
    index = {spelt: number for number, spelt in enumerate(dict.fromkeys(spelling.values()))}
    strict = frozenset(spelt for column, spelt in spelling.items() if declared.is_strict(column))
    read = _read(text, tuple(index), strict)
    malformed = _first(malformed, _not_objects(text, one_array(read["valid"])))
    raw = {column: one_array(read[f"c{index[spelt]}"]) for column, spelt in spelling.items()}
    raw |= {
        column: texts_in(raw[column]) for column in raw if column.type is AsaType.TEXT and declared.is_strict(column)
    }
    converted: dict[InputColumn, pa.Array] = {}
    for column in reading.columns:
        if not column.path:
            converted[column] = pc.if_else(pc.is_null(malformed), copied(text if whole is None else whole), None)
            continue
        path = spelling[column].path
        values = _convert(raw[column], column.type, declared.is_strict(column))
        if column.type is AsaType.BIGINT:
            values = _with_whole_floats(values, raw[column], text, path)
        converted[column] = values
        if column in declared.columns:
            malformed = _first(malformed, declared.reasons(text, values, column, path))
        elif column not in reading.timestamp_fields:
            if column.type is not AsaType.TEXT:
                malformed = _first(malformed, _unconverted(text, values, column, path))
            if not column.declared:
                malformed = _first(malformed, _inexact(text, values, column, path))
    return Bodies(converted, {column: raw[column] for column in reading.timestamp_fields}, malformed), raw


def _not_objects(text: pa.Array, valid: pa.Array) -> pa.Array:
    """Return the reason why a body is not a JSON object, or NULL."""
    reasons = pa.nulls(len(text), pa.string())
    others = pc.indices_nonzero(pc.invert(pc.and_kleene(valid, starts_with(text, "{"))))
    if not len(others):
        return reasons
    reason = "WHEN NOT json_valid(body) THEN 'not JSON' WHEN json_type(body) <> 'OBJECT' THEN 'not a JSON object'"
    bodies = {"body": copies(text, others.to_numpy())}
    found = one_array(select(bodies, f"SELECT CASE {reason} END AS reason FROM bodies")["reason"])
    return _replaced(reasons, others, found.cast(pa.string()))


def as_text(bodies: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return the bodies as text, without byte order marks, and, for each body that is not text, the reason.

    A NULL body is not text. The text of views may be views.
    """
    if is_view(bodies.type) and not bodies.null_count and pc.all(starts_with(bodies, "{")).as_py():
        with contextlib.suppress(pa.ArrowInvalid):
            return bodies.cast(pa.string_view()), pa.nulls(len(bodies), pa.string())
    bodies = copied(bodies)
    malformed = pc.if_else(pc.is_valid(bodies), pa.scalar(None, pa.string()), "no body")
    text = utf8(bodies)
    marked = pc.starts_with(text, _BYTE_ORDER_MARK)
    if pc.any(marked).as_py():
        text = pc.if_else(marked, pc.utf8_slice_codeunits(text, 1), text)
    return text, _first(malformed, pc.if_else(pc.is_valid(text), None, "not UTF-8"))


def _read(text: pa.Array, columns: tuple[InputColumn, ...], strict: frozenset[InputColumn]) -> pa.Table:
    """Return c0, c1, … and `valid` (whether a body is JSON), all bodies at once if none of them is bad.

    A text is not converted to the type of a `strict` column.
    """
    import duckdb

    if any(not column.is_kind for column in columns):
        with contextlib.suppress(duckdb.InvalidInputException):
            return select({"body": text}, _reading(columns, strict, "body"))
    return select({"body": text}, _reading(columns, strict, "CASE WHEN json_valid(body) THEN body END"))


@lru_cache(256)
def _reading(columns: tuple[InputColumn, ...], strict: frozenset[InputColumn], json_body: str) -> str:
    """Return the SQL that reads c0, c1, … and `valid` (whether `json_body` is not NULL) from `body`.

    A number is read as a text if it is not strict. A strict number or text is read as JSON, with its quotation marks.
    """
    groups = list(_without_clashes(column for column in columns if not column.is_kind))
    transforms = "".join(
        f", json_transform(json, {literal(json.dumps(_structure(group, strict)))}) AS g{index}"
        for index, group in enumerate(groups)
    )
    fields = {
        column: "".join(["struct_extract("] * len(column.path))
        + f"g{index}"
        + "".join(f", {literal(step)})" for step in column.path)
        for index, group in enumerate(groups)
        for column in group
    }
    fields |= {
        column: f"try_cast({field}::VARCHAR AS DOUBLE)"
        for column, field in fields.items()
        if column in strict and column.type is AsaType.FLOAT
    }
    fields |= {column: _kind("json", column.path) for column in columns if column.is_kind}
    selected = "".join(f", {fields[column]} AS c{index}" for index, column in enumerate(columns))
    read = f"SELECT json{transforms} FROM (SELECT {json_body} AS json FROM bodies)"
    return f"SELECT json IS NOT NULL AS valid{selected} FROM ({read})"


def _kind(body: str, path: Sequence[str]) -> str:
    """Return the SQL of the ASA type of the value at a path, as text; NULL for JSON null and a missing value."""
    kinds = "".join(f" WHEN '{json_type}' THEN '{kind}'" for json_type, kind in KINDS.items())
    return f"CASE json_type({body}, {pointer(path)}){kinds} END"


def _without_clashes(columns: Iterable[InputColumn]) -> Iterable[list[InputColumn]]:
    """Return the columns in groups. In a group no column is part of another, and no two differ only in letter case."""
    groups: list[list[InputColumn]] = []
    for column in columns:
        group = next((group for group in groups if not any(_clash(column, other) for other in group)), None)
        if group is None:
            groups.append([column])
        else:
            group.append(column)
    return groups


def _clash(one: InputColumn, other: InputColumn) -> bool:
    for step, other_step in zip(one.path, other.path, strict=False):
        if step != other_step:
            return step.casefold() == other_step.casefold()
    return True


def _structure(columns: list[InputColumn], strict: Collection[InputColumn]) -> dict[str, Any]:
    root: dict[str, Any] = {}
    for column in columns:
        record = root
        for step in column.path[:-1]:
            record = record.setdefault(step, {})
        is_json = column in strict and column.type in _READ_AS_JSON
        record[column.path[-1]] = "JSON" if is_json else TYPES[column.type].duckdb
    return root


def _convert(values: pa.Array, to: AsaType, strict: bool) -> pa.Array:
    """Return the values in a type; NULL if a value is not of that type. If `strict`, only true and false are bits."""
    match to:
        case AsaType.BIGINT:
            values = values.cast(pa.string())
            whole = pc.if_else(pc.match_substring_regex(values, r"^-?\d{1,18}$"), values, None)
            exact = whole.cast(pa.int64())
            longer = pc.and_(pc.is_null(exact), pc.match_substring_regex(values, r"^-?\d{19}$"))
            return _long_integers(values, exact) if pc.any(longer).as_py() else exact
        case AsaType.FLOAT:
            return pc.if_else(pc.is_finite(values), values, None)
        case AsaType.DATETIME:
            ticks, valid = timestamps.parse(values)
            return pa.array(ticks, mask=~valid)
        case AsaType.BIT:
            return (
                pc.equal(pc.if_else(pc.is_in(values, _TRUE_FALSE), values, None), "true") if strict else _bits(values)
            )
        case AsaType.RECORD | AsaType.ARRAY:
            opening = "{" if to is AsaType.RECORD else "["
            return pc.if_else(pc.starts_with(values, opening), values, None).cast(pa.string())
    return values


def _true_false(values: pa.Array) -> pa.Array:
    """Return JSON as bits: true or false."""
    written = values.cast(pa.string())
    return pc.if_else(pc.is_in(written, value_set=_TRUE_FALSE), pc.equal(written, "true"), None)


def _bits(values: pa.Array) -> pa.Array:
    """Return JSON as bits: true, false, a number (0 is false), or one of the texts true, false, 1 and 0."""
    written = pc.utf8_lower(values.cast(pa.string()))
    zero = pc.match_substring_regex(written, r"^-?0(\.0+)?(e[+-]?\d+)?$")
    is_false = pc.or_(zero, pc.is_in(written, value_set=pa.array(["false", '"false"', '"0"'])))
    is_true = pc.is_in(written, value_set=pa.array(["true", '"true"', '"1"']))
    number = pc.match_substring_regex(written, r"^-?\d")
    known = pc.or_(is_false, pc.or_(is_true, number))
    return pc.if_else(pc.fill_null(known, False), pc.invert(is_false), None)


def _long_integers(values: pa.Array, exact: pa.Array) -> pa.Array:
    integer = "CASE WHEN regexp_full_match(value, '-?[0-9]+') THEN try_cast(value AS BIGINT) END"
    return pc.coalesce(exact, one_array(select({"value": values}, f"SELECT {integer} AS value FROM bodies")["value"]))


def _with_whole_floats(bigints: pa.Array, raw: pa.Array, text: pa.Array, path: Sequence[str]) -> pa.Array:
    """Return the bigints, with the floats in the bodies that are whole numbers: 12.0 and 1e3, but not "12.0"."""
    if bigints.null_count == raw.null_count:
        return bigints
    written = pc.match_substring_regex(raw, r"^-?\d(\d*\.0|(\.\d+)?e\+\d+)$")
    suspects = pc.indices_nonzero(pc.and_(pc.is_null(bigints), written))
    if not len(suspects):
        return bigints
    is_whole = f"json_type(body, {pointer(path)}) = 'DOUBLE' AND value = trunc(value)"
    doubles = "SELECT body, try_cast(value AS DOUBLE) AS value FROM bodies"
    floats = f"SELECT CASE WHEN {is_whole} THEN try_cast(value AS BIGINT) END AS value FROM ({doubles})"
    found = one_array(select({"body": copies(text, suspects.to_numpy()), "value": raw.take(suspects)}, floats)["value"])
    return _replaced(bigints, suspects, found)


def _unconverted(text: pa.Array, values: pa.Array, column: InputColumn, path: Sequence[str]) -> pa.Array:
    """Return `COLUMN is not a TYPE` if the body has a value that is not null and the column has none; else NULL."""
    suspects = pc.indices_nonzero(pc.and_(pc.is_null(values), pc.is_valid(text)))
    reasons = pa.nulls(len(values), pa.string())
    if not len(suspects):
        return reasons
    bodies = {"body": copies(text, suspects.to_numpy())}
    kinds = select(bodies, f"SELECT {kind_at(path)} AS kind FROM bodies")["kind"]
    present = pc.fill_null(pc.not_equal(one_array(kinds), "NULL"), False)
    wrong = suspects.filter(present)
    if not len(wrong):
        return reasons
    article = "an" if column.type is AsaType.ARRAY else "a"
    reason = f"{column.name} is not {article} {column.type}"
    return _replaced(reasons, wrong, pa.repeat(pa.scalar(reason), len(wrong)))


def _inexact(text: pa.Array, values: pa.Array, column: InputColumn, path: Sequence[str]) -> pa.Array:
    """Return a reason for each body whose whole number ASA rejects, or that the column cannot hold exactly; else NULL.

    In ASA, whole numbers are bigints. A whole number beyond 64 bits is an input error. Not every smaller one is exactly
    representable as a float.
    """
    if column.type is AsaType.FLOAT:
        large = pc.greater_equal(pc.abs(values), float(_EXACT_FLOATS))
    elif column.type is AsaType.TEXT:
        large = pc.greater_equal(pc.binary_length(values), _DIGITS_THAT_MAY_NOT_FIT)
    else:
        return pa.nulls(len(values), pa.string())
    reasons = pa.nulls(len(values), pa.string())
    suspects = pc.indices_nonzero(large)
    if column.type is AsaType.TEXT and len(suspects):
        is_number = pc.match_substring_regex(values.take(suspects), r"^-?\d+$")
        suspects = suspects.filter(is_number)
    if not len(suspects):
        return reasons
    number = f"json_extract(body, {pointer(path)})::VARCHAR"
    is_whole = f"regexp_full_match({number}, '-?[0-9]+')"
    advice = f"declare its type: {column.name} nvarchar(max), bigint or float"
    reason = (
        f"CASE WHEN NOT {is_whole} THEN NULL"
        f" WHEN try_cast({number} AS BIGINT) IS NULL THEN {literal(f'{column.name} does not fit a bigint')}"
    )
    if column.type is AsaType.FLOAT:
        inexact = literal(f"{column.name} is a bigint that no float equals; {advice}")
        reason += f" WHEN CAST(CAST({number} AS DOUBLE) AS HUGEINT) <> CAST({number} AS HUGEINT) THEN {inexact}"
    bodies = {"body": copies(text, suspects.to_numpy())}
    found = one_array(select(bodies, f"SELECT {reason} END AS reason FROM bodies")["reason"])
    return _replaced(reasons, suspects, found.cast(pa.string()))


def _replaced(values: pa.Array, places: pa.Array, replacements: pa.Array) -> pa.Array:
    """Return the values with others at these places, which ascend."""
    mask = np.zeros(len(values), dtype=bool)
    mask[places.to_numpy()] = True
    return pc.replace_with_mask(values, pa.array(mask), replacements)


def _first(reasons: pa.Array, later: pa.Array) -> pa.Array:
    """Return the first reason of every body."""
    return reasons if later.null_count == len(later) else pc.coalesce(reasons, later.cast(pa.string()))
