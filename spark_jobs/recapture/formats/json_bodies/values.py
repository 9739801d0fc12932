"""Values that DuckDB read of JSON bodies, converted to the types of columns."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from recapture import tokens
from recapture.formats.bodies import replaced
from recapture.formats.duckdb_sql import one_array, pointer, select
from recapture.formats.views import copies
from recapture.model import AsaType
from recapture.time_model import timestamps

_LONG = 12
"""Length of the JSON of a float, in bytes, from which ASA may write it in another way."""
_TRUE_FALSE = pa.array(["true", "false"])


def convert(values: pa.Array, to: AsaType, strict: bool) -> pa.Array:
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


def _bits(values: pa.Array) -> pa.Array:
    """Return JSON as bits: true, false, a number (0 is false), or one of the strings true, false, 1 and 0."""
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


def with_integral_floats(bigints: pa.Array, raw: pa.Array, documents: pa.Array, path: Sequence[str]) -> pa.Array:
    """Return the bigints, with the floats in the bodies that are integers: 12.0 and 1e3, but not "12.0"."""
    if bigints.null_count == raw.null_count:
        return bigints
    written = pc.match_substring_regex(raw, r"^-?\d(\d*\.0|(\.\d+)?e\+\d+)$")
    suspects = pc.indices_nonzero(pc.and_(pc.is_null(bigints), written))
    if not len(suspects):
        return bigints
    is_integer = f"json_type(body, {pointer(path)}) = 'DOUBLE' AND value = trunc(value)"
    doubles = "SELECT body, try_cast(value AS DOUBLE) AS value FROM bodies"
    floats = f"SELECT CASE WHEN {is_integer} THEN try_cast(value AS BIGINT) END AS value FROM ({doubles})"
    integers = one_array(
        select({"body": copies(documents, suspects.to_numpy()), "value": raw.take(suspects)}, floats)["value"]
    )
    return replaced(bigints, suspects.to_numpy(), integers)


def strings_in(values: pa.Array) -> pa.Array:
    """Return the strings among JSON values, and NULL for all others: "a" => a, 12 => NULL"""
    written = values.cast(pa.string())
    is_string = pc.starts_with(written, '"')
    strings = pc.binary_slice(written.cast(pa.binary()), 1, -1).cast(pa.string())
    if pc.all(is_string).as_py() is False:
        strings = pc.if_else(is_string, strings, None)
    escaped = pc.fill_null(pc.match_substring(strings, "\\"), False)
    if not pc.any(escaped).as_py():
        return strings
    unescaped = select({"value": written.filter(escaped)}, "SELECT value::JSON->>'$' AS value FROM bodies")["value"]
    return pc.replace_with_mask(strings, escaped, one_array(unescaped))


def tokens_in(values: pa.Array) -> pa.Array:
    """Return JSON values as tokens: "a" => a, 12.0 => the token of 12"""
    written = values.cast(pa.string())
    is_string = pc.starts_with(written, '"')
    if pc.any(is_string).as_py() is False:
        return tokens.of_texts(_canonical(written))
    strings = tokens.of_strings(strings_in(values))
    if strings.null_count == values.null_count:
        return strings
    return pc.coalesce(strings, tokens.of_texts(_canonical(pc.if_else(is_string, None, written))))


def _canonical(written: pa.Array) -> pa.Array:
    """Return JSON values that are not strings as ASA writes them: 5.0 => 5, 1e20 => 1E+20"""
    is_short = pc.less(pc.binary_length(written), _LONG)
    is_plain = pc.invert(pc.or_(pc.ends_with(written, ".0"), pc.match_substring(written, "e")))
    if pc.all(pc.and_(is_short, is_plain)).as_py() is not False and not pc.any(_is_tiny(written)).as_py():
        return written
    is_float = pc.match_substring_regex(written, r"^-?[0-9]+[.e]")
    floats = pc.if_else(is_float, written, None).cast(pa.float64())
    return pc.if_else(is_float, tokens.float_texts(floats), written)


def _is_tiny(written: pa.Array) -> pa.Array:
    return pc.match_substring_regex(written, r"^-?0\.0000")


def reasons_in(documents: pa.Array, suspects: pa.Array, reading: str) -> pa.Array:
    """Return the reasons that a query reads of the bodies at these places, which ascend (string); NULL for others."""
    reasons = pa.nulls(len(documents), pa.string())
    if not len(suspects):
        return reasons
    read = select({"body": copies(documents, suspects.to_numpy())}, reading)
    return replaced(reasons, suspects.to_numpy(), one_array(read["reason"]).cast(pa.string()))
