"""Casts from and to strings: those of ASA, and those that follow Java's rules."""

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recapture.evaluate.distinct import each
from recapture.evaluate.faults import stop
from recapture.evaluate.frames import Frame, Node
from recapture.evaluate.numbers import truncated
from recapture.evaluate.vectors import Numbers, Vector, from_arrow, to_arrow
from recapture.time_model import timestamps
from recapture.time_model.ticks import TICKS_PER_SECOND, UNIX_EPOCH

_INVALID = "CAST_INVALID_INPUT"
_PLAIN_BIGINT = r"\A-?[0-9]{1,18}\z"
_PLAIN_FLOAT = r"\A-?[0-9]{1,18}(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,2})?\z"
_SPARK_BLANKS = "".join(map(chr, (*range(33), 127)))
_JAVA_BLANKS = "".join(map(chr, range(33)))
_JAVA_FLOAT = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?")
_JAVA_HEXADECIMAL = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?[0-9]+[fFdD]?")
_SPECIAL = {
    **dict.fromkeys(("inf", "+inf", "infinity", "+infinity"), math.inf),
    **dict.fromkeys(("-inf", "-infinity"), -math.inf),
    "nan": math.nan,
}
_ASA_FLOAT = re.compile(r"[ \t]*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[ \t]*")
_BITS = {"true": True, "1": True, "false": False, "0": False}
_FAR_ZONE = r"^.{10}[ T][0-9:.]+[+-](?:(?:19|2[0-3])(?::?[0-9]{2})?|18:?(?:0[1-9]|[1-5][0-9]))$"
"""Regular expression of times whose zone is more than 18 hours away, which Spark does not read."""
_ZONE = re.compile(r"(?<=T..)(?:Z|[+-][0-9:]+)$|(?<=[0-9:.])(?:Z|(?<=:..)[+-][0-9:]+|(?<=\.)[+-][0-9:]+)$")


def bigint(string: str) -> int | None:
    """Return the bigint that Spark reads from a string; None if it reads none."""
    trimmed = string.strip(_SPARK_BLANKS)
    if not re.fullmatch("[+-]?[0-9]+", trimmed, re.ASCII):
        return None
    number = int(trimmed) if len(trimmed) < 4000 else int(re.sub("^([+-]?)0+", r"\1", trimmed)[:30] or "0")
    return number if -(2**63) <= number < 2**63 else None


def double(string: str) -> float | None:
    """Return the float that Java reads from a string; None if it reads none."""
    trimmed = string.strip(_JAVA_BLANKS)
    if _JAVA_FLOAT.fullmatch(trimmed):
        return float(trimmed.rstrip("fFdD"))
    if _JAVA_HEXADECIMAL.fullmatch(trimmed):
        try:
            return float.fromhex(re.sub("(?<=[0-9])[fFdD]$", "", trimmed))
        except OverflowError:
            return -math.inf if trimmed.startswith("-") else math.inf
    if trimmed in ("NaN", "+NaN", "-NaN"):
        return math.nan
    return _SPECIAL.get(trimmed.lower())


def asa_float(string: str) -> float | None:
    """Return the float that ASA casts a string to; None if it cannot."""
    return float(string.strip(" \t")) if _ASA_FLOAT.fullmatch(string) else None


def asa_bit(string: str) -> bool | None:
    """Return the bit that ASA casts a string to; None if it cannot."""
    return _BITS.get(string.strip(" \t").lower()) if string.isascii() else None


def _parsed(column: pa.Array, function: Callable[[str], Any], type_: pa.DataType) -> pa.Array:
    plain = {pa.int64(): _PLAIN_BIGINT, pa.float64(): _PLAIN_FLOAT}.get(type_)
    if plain is not None and pc.all(pc.match_substring_regex(column, pattern=plain), min_count=0).as_py() is not False:
        return column.cast(type_)
    return each(function, column, type_)


def from_string(function: Callable[[str], Any]) -> Callable[[Frame, Node], Vector]:
    """Return the kernel of a cast; its parameter says whether what cannot be cast is NULL or stops the run."""

    def kernel(frame: Frame, node: Node) -> Vector:
        column = frame.array(node.arguments[0])
        (lenient,) = node.parameters
        values = _parsed(column, function, node.type)
        if not lenient and values.null_count != column.null_count:
            _refuse(column, values.is_null().to_numpy(zero_copy_only=False), str(node.type))
        return from_arrow(values)

    return kernel


def _refuse(column: pa.Array, null: NDArray[np.bool_], type_: str) -> None:
    """Stop the run for the first string that has no value in another type."""
    refused = column.filter(pa.array(null & ~column.is_null().to_numpy(zero_copy_only=False)))
    stop(_INVALID, f"CAST: '{refused[0].as_py()}' is not a {_NAMES.get(type_, type_)}")


_NAMES = {"int64": "bigint", "double": "float", "bool": "bit"}

BIGINT, FLOAT = from_string(bigint), from_string(double)
ASA_BIT, ASA_FLOAT = from_string(asa_bit), from_string(asa_float)


def asa_datetime(frame: Frame, node: Node) -> Vector:
    """Return the ticks of ISO times; the second argument stands for a time outside the years 1 to 9999."""
    string_node, outside = node.arguments
    column = frame.array(string_node)
    (lenient,) = node.parameters
    ticks, valid = timestamps.parse(column)
    far = pc.match_substring_regex(column, pattern=_FAR_ZONE).fill_null(False)
    valid = valid & ~far.to_numpy(zero_copy_only=False)
    if not lenient:
        null = column.is_null().to_numpy(zero_copy_only=False)
        refused = np.flatnonzero(~valid & ~null)[:1]
        if len(refused):
            string = str(column[refused[0]].as_py())
            if far[refused[0]].as_py() or not _is_time_elsewhere(string):
                stop(_INVALID, f"CAST: '{string}' is not an ISO time")
            frame.where(np.arange(frame.size) == refused[0]).vector(outside)
    return Numbers(np.where(valid, ticks, 0), None if valid.all() else ~valid)


def _is_time_elsewhere(string: str) -> bool:
    """Return whether a string would be a time without its zone."""
    without = re.sub(r"(?<=[0-9])[+-][0-9]{2}(?::?[0-9]{2})?$", "", string)
    _, valid = timestamps.parse(pa.array([without]))
    return without != string and "T" in string.replace(" ", "T") and bool(valid[0])


def datetime_text(frame: Frame, node: Node) -> Vector:
    """Return ticks as ISO times with 7 decimals: 2026-03-01T10:00:00.1234567Z"""
    vector = frame.vector(node.arguments[0])
    ticks = np.ascontiguousarray(np.broadcast_to(vector.values, (frame.size,)))
    seconds, rest = np.divmod(ticks, TICKS_PER_SECOND)
    dates = np.datetime_as_string((seconds - UNIX_EPOCH // TICKS_PER_SECOND).astype("datetime64[s]"), unit="s")
    times = pa.array(dates.astype(object), pa.string())
    decimals = pc.utf8_lpad(pa.array(rest).cast(pa.string()), width=7, padding="0")
    text = pc.binary_join_element_wise(times, ".", pc.binary_join_element_wise(decimals, "Z", ""), "")
    if vector.null is None:
        return text
    null = np.broadcast_to(vector.null, (frame.size,))
    return pc.if_else(pa.array(null), pa.scalar(None, pa.string()), text)


def bit_text(frame: Frame, node: Node) -> Vector:
    return to_arrow(frame.vector(node.arguments[0]), pa.bool_(), frame.size).cast(pa.string())


_END = r"(?:\r\n|[\n\r\x{85}\x{2028}\x{2029}])?\z"
"""Regular expression of the end of a string, after an end of line or not."""
_BIGINT_TEXT = rf"\A-?[0-9]+{_END}"
_NUMBER_TEXT = rf"\A-?[0-9]+(?:[.][0-9]+)?(?:[eE][+-]?[0-9]+)?{_END}"


def is_bigint(column: pa.Array) -> pa.Array:
    """Return which strings hold an integer, as JSON writes it."""
    return pc.match_substring_regex(column, pattern=_BIGINT_TEXT)


def bigint_of_json(frame: Frame, node: Node) -> Vector:
    """Return JSON values as the texts of bigints: a float is truncated, a bit is 1 or 0, the rest is unchanged."""
    column = frame.array(node.arguments[0])
    is_float = pc.and_not(pc.match_substring_regex(column, pattern=_NUMBER_TEXT), is_bigint(column))
    if pc.any(is_float).as_py():
        floats = each(double, pc.if_else(is_float, column, pa.scalar(None, pa.string())), pa.float64())
        whole, fits = truncated(floats.fill_null(0.0).to_numpy(zero_copy_only=False))
        column = pc.if_else(is_float, pa.array(whole, mask=~fits).cast(pa.string()), column)
    column = pc.if_else(pc.equal(column, "true"), "1", column)
    return pc.if_else(pc.equal(column, "false"), "0", column)
