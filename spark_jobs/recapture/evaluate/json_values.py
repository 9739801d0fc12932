"""Functions of JSON text. Each distinct document is read once per projection."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recapture import tokens
from recapture.evaluate import json_parts
from recapture.evaluate.distinct import each
from recapture.evaluate.documents import (
    INVALID,
    Leniency,
    Number,
    document,
    element_text,
    path_text,
    quoted_text,
    written,
)
from recapture.evaluate.float_text import texts
from recapture.evaluate.frames import Frame, Kernel, Node
from recapture.evaluate.strings import lower
from recapture.evaluate.vectors import Numbers, from_arrow, to_arrow


@dataclass(frozen=True)
class Documents:
    """The documents of some rows."""

    values: list[Any]
    """Distinct documents; INVALID for a string that is none."""
    indexes: NDArray[np.int64]
    """Index of each row's document; -1 for NULL."""

    def taken(self, rows: NDArray[np.int64]) -> "Documents":
        """Return the documents of some rows."""
        return Documents(self.values, self.indexes[rows])

    def each(self, function: Callable[[Any], Any], type_: pa.DataType) -> Any:
        """Return a function of the documents; NULL for NULL and for invalid JSON."""
        used = np.zeros(len(self.values) + 1, np.bool_)
        used[self.indexes] = True
        results = [
            function(value) if is_used and value is not INVALID else None
            for value, is_used in zip(self.values, used[:-1], strict=True)
        ]
        rows = pa.array(self.indexes, mask=self.indexes < 0)
        return from_arrow(pa.array(results, type_).take(rows))


def documents(frame: Frame, node: Node) -> Documents:
    """Return strings as documents."""
    (leniency,) = node.parameters
    return _documents(frame.array(node.arguments[0]), leniency)


def _documents(strings: pa.Array, leniency: Leniency) -> Documents:
    encoded = strings.dictionary_encode()
    values = [document(text, leniency) for text in encoded.dictionary.to_pylist()]
    indexes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return Documents(values, indexes)


def _property(value: Any, name: str) -> str | None:
    """Return the first property of an object that has a name and is not null."""
    if not isinstance(value, tuple):
        return None
    return next((path_text(part) for key, part in value if key == name and part is not None), None)


def _property_token(value: Any, name: str) -> str | None:
    if not isinstance(value, tuple):
        return None
    exact = [part for key, part in value if _stored(key) == name]
    similar = (part for key, part in value if lower(key) == lower(name))
    return _token(next((part for part in exact if part is not None), None) if exact else next(similar, None))


def _element_token(value: Any, index: int) -> str | None:
    return _token(value[index]) if isinstance(value, list) and 0 <= index < len(value) else None


def _token(part: Any) -> str | None:
    """Return the token of a part of a document; NULL for null."""
    match part:
        case None:
            return None
        case Number():
            is_integer = len(part) <= _LONGEST_BIGINT and part.lstrip("-").isdecimal()
            is_bigint = is_integer and abs(int(part)) < _BEYOND_BIGINTS
            return tokens.of_number(int(part) if is_bigint else float(part))
        case str():
            return tokens.of_string(element_text(part) or "")
    return tokens.MARK + written(part)


def _array_length(value: Any) -> int | None:
    return len(value) if isinstance(value, list) else None


def _element(value: Any, index: int) -> str | None:
    if not isinstance(value, list) or not 0 <= index < len(value):
        return None
    return element_text(value[index])


def _has_name(value: Any, name: str) -> bool | None:
    return any(key == name for key, _ in value) if isinstance(value, tuple) else None


def _named(value: Any, name: str) -> str | None:
    if not isinstance(value, tuple):
        return None
    return next((element_text(part) for key, part in value if _stored(key) == name), None)


def _similar(value: Any, name: str) -> str | None:
    """Return the first property with a name in any letters."""
    if not isinstance(value, tuple):
        return None
    small = lower(name)
    return next((element_text(part) for key, part in value if lower(key) == small), None)


_BEYOND_BIGINTS = 2**63
_LONGEST_BIGINT = len(str(-_BEYOND_BIGINTS))


def _stored(key: str) -> str:
    return key if key.isascii() else key.encode("utf-8", "replace").decode("utf-8")


def _elements(value: Any) -> list[dict[str, Any]] | None:
    if not isinstance(value, list):
        return None
    return [{"ArrayIndex": index, "ArrayValue": element_text(part)} for index, part in enumerate(value)]


def _properties(value: Any) -> list[dict[str, Any]] | None:
    if not isinstance(value, tuple):
        return None
    return [{"PropertyName": _stored(key), "PropertyValue": element_text(part)} for key, part in value]


AtOnce = Callable[..., tuple[pa.Array, NDArray[np.bool_]]]
"""Returns the values of plain documents, given the strings, the literal if there is one, and the type; and which
documents are plain."""


def _over_documents(function: Callable[..., Any], at_once: AtOnce) -> Kernel:
    """Return the kernel of a function of a document, and maybe of a name or an index.

    Plain documents are read at once, others one by one; so are all of them if each row has a name of its own.
    """

    def kernel(frame: Frame, node: Node) -> Any:
        parsed, *others = node.arguments
        literals: list[Any] = []
        for other in others:
            vector = frame.vector(other)
            if not isinstance(vector, pa.Scalar):
                return _by_row(function, frame, node)
            if not vector.is_valid:
                return from_arrow(pa.nulls(frame.size, node.type))
            literals.append(vector.as_py())
        strings = frame.array(parsed.arguments[0])
        found, is_plain = at_once(strings, *literals, node.type)
        return _with_others(frame, node, found, is_plain, lambda value: function(value, *literals))

    return kernel


def _with_others(
    frame: Frame, node: Node, found: pa.Array, is_plain: NDArray[np.bool_], function: Callable[[Any], Any]
) -> Any:
    """Return the values of plain documents, and what a function gives for the others."""
    others = np.flatnonzero(~is_plain)
    if not len(others):
        return from_arrow(found)
    parsed = node.arguments[0]
    if len(others) == frame.size:
        documents_: Documents = frame.vector(parsed)
    else:
        documents_ = _documents(frame.array(parsed.arguments[0]).take(pa.array(others)), parsed.parameters[0])
    rest = to_arrow(documents_.each(function, node.type), node.type, len(others))
    places = np.arange(len(found))
    places[others] = np.arange(len(found), len(found) + len(others))
    return from_arrow(pa.concat_arrays([found, rest]).take(pa.array(places)))


def _by_row(function: Callable[[Any, Any], Any], frame: Frame, node: Node) -> Any:
    """Return a function of a document and another value of the row."""
    parsed, other = node.arguments
    documents_: Documents = frame.vector(parsed)
    known: dict[tuple[int, Any], Any] = {}
    results = []
    for key in zip(documents_.indexes.tolist(), frame.array(other).to_pylist(), strict=True):
        if key not in known:
            index, value = key
            document_ = INVALID if index < 0 else documents_.values[index]
            known[key] = None if document_ is INVALID or value is None else function(document_, value)
        results.append(known[key])
    return from_arrow(pa.array(results, node.type))


def _parts(opening: int) -> AtOnce:
    return lambda strings, type_: json_parts.parts(strings, opening, type_)


def _lengths(strings: pa.Array, type_: pa.DataType) -> tuple[pa.Array, NDArray[np.bool_]]:
    """Return the lengths of plain arrays; objects are not plain, and have none."""
    counts = json_parts.counts(strings, json_parts.ARRAY)
    return pa.array(counts, type_, mask=counts < 0), counts >= 0


def _are(opening: int) -> AtOnce:
    """Return a function that tells which documents are plain arrays, or plain objects."""

    def at_once(strings: pa.Array, type_: pa.DataType) -> tuple[pa.Array, NDArray[np.bool_]]:
        is_plain = json_parts.counts(strings, opening) >= 0
        return pa.array(is_plain, type_, mask=~is_plain), is_plain

    return at_once


def _has_names(strings: pa.Array, name: str, type_: pa.DataType) -> tuple[pa.Array, NDArray[np.bool_]]:
    """Return which plain objects have a property with the exact name."""
    rows, names, _, is_plain = _properties_at_once(strings)
    has = np.zeros(len(strings), np.bool_)
    has[rows[pc.equal(names, name).to_numpy(zero_copy_only=False)]] = True
    return pa.array(has, type_, mask=~is_plain), is_plain


def _similar_properties(strings: pa.Array, name: str, type_: pa.DataType) -> tuple[pa.Array, NDArray[np.bool_]]:
    """Return the first property of plain objects with a name in any letters."""
    rows, names, values, is_plain = _properties_at_once(strings)
    is_similar = pc.equal(each(lower, names, pa.string()), lower(name)).to_numpy(zero_copy_only=False)
    return _first_of(np.flatnonzero(is_similar), rows, values, len(strings)).cast(type_), is_plain


def _named_properties(strings: pa.Array, name: str, type_: pa.DataType) -> tuple[pa.Array, NDArray[np.bool_]]:
    """Return the first property of plain objects with the exact name."""
    rows, names, values, is_plain = _properties_at_once(strings)
    places = np.flatnonzero(pc.equal(names, name).to_numpy(zero_copy_only=False))
    return _first_of(places, rows, values, len(strings)).cast(type_), is_plain


def _first_of(places: NDArray[np.int64], rows: NDArray[np.int64], values: pa.Array, count: int) -> pa.Array:
    """Return, for each row, the value at the first of some places; NULL for none."""
    found, first = np.unique(rows[places], return_index=True)
    chosen = np.full(count, -1)
    chosen[found] = places[first]
    return values.take(pa.array(chosen, mask=chosen < 0))


def _properties_at_once(strings: pa.Array) -> tuple[NDArray[np.int64], pa.Array, pa.Array, NDArray[np.bool_]]:
    """Return the rows, the names and the values of the properties of plain objects, and which rows have such one."""
    listed, is_plain = json_parts.parts(strings, json_parts.OBJECT, _PAIRS)
    names, values = listed.flatten().flatten()
    return pc.list_parent_indices(listed).to_numpy(), names, values, is_plain


def property_token(frame: Frame, node: Node) -> Any:
    """Return the token of the property of objects with a name."""
    return _by_row(_property_token, frame, node)


def element_token(frame: Frame, node: Node) -> Any:
    """Return the token of the element of arrays at an index."""
    return _by_row(_element_token, frame, node)


_PAIRS = pa.list_(pa.struct([("name", pa.string()), ("value", pa.string())]))
_VALUES = pa.list_(pa.struct([("index", pa.int64()), ("value", pa.string())]))


def _element_of(listed: pa.Array, indexes: NDArray[np.int64]) -> pa.Array:
    """Return the element of each list at an index from 0; NULL if it has none."""
    offsets = listed.offsets.to_numpy()
    counts = np.diff(offsets)
    has = (indexes >= 0) & (indexes < counts) & listed.is_valid().to_numpy(zero_copy_only=False)
    return listed.values.field(1).take(pa.array(offsets[:-1] + np.where(has, indexes, 0), mask=~has))


def element(frame: Frame, node: Node) -> Any:
    """Return the element of arrays at an index, which may be different in each row."""
    parsed, index = node.arguments
    strings = frame.array(parsed.arguments[0])
    numbers: Numbers = frame.vector(index)
    listed, is_plain = json_parts.parts(strings, json_parts.ARRAY, _VALUES)
    indexes = np.broadcast_to(np.where(False if numbers.null is None else numbers.null, -1, numbers.values), frame.size)
    if is_plain.all() and len(strings):
        return _element_of(listed, indexes)
    if not len(strings):
        return strings
    by_row = _by_row(_element, frame, node)
    return pc.if_else(pa.array(is_plain), _element_of(listed, indexes), by_row)


IS_OBJECT = _over_documents(lambda value: isinstance(value, tuple) or None, _are(json_parts.OBJECT))
IS_ARRAY = _over_documents(lambda value: isinstance(value, list) or None, _are(json_parts.ARRAY))
ARRAY_LENGTH = _over_documents(_array_length, _lengths)
ELEMENTS, PROPERTIES = (
    _over_documents(_elements, _parts(json_parts.ARRAY)),
    _over_documents(_properties, _parts(json_parts.OBJECT)),
)
PROPERTY = _over_documents(_property, lambda strings, name, _: json_parts.first_property(strings, name))
HAS_NAME, SIMILAR = _over_documents(_has_name, _has_names), _over_documents(_similar, _similar_properties)
NAMED = _over_documents(_named, _named_properties)

_IN_A_PATH = re.compile(r"(?!\s)[^'?*\[\]\\]+")
"""Regular expression of the names that may stand in a JSON path of Spark."""


def is_plain_name(name: str | None) -> bool:
    """Return whether a property of this name that is null counts as missing, as for a path of Spark."""
    return name is not None and _IN_A_PATH.fullmatch(name) is not None


def float_json(frame: Frame, node: Node) -> Any:
    """Return floats as JSON; those that are not finite are in quotes."""
    numbers: Numbers = frame.vector(node.arguments[0])
    values = np.ascontiguousarray(np.broadcast_to(numbers.values, (frame.size,)))
    strings = texts(values, net=False)
    finite = np.isfinite(values)
    if not finite.all():
        strings = pc.if_else(pa.array(finite), strings, pc.binary_join_element_wise('"', strings, '"', ""))
    if numbers.null is None:
        return strings
    return pc.if_else(pa.array(np.broadcast_to(numbers.null, (frame.size,))), pa.scalar(None, pa.string()), strings)


def string_json(frame: Frame, node: Node) -> Any:
    """Return strings as JSON."""
    column = frame.array(node.arguments[0])
    if not pc.any(pc.match_substring_regex(column, pattern=r'["\\\x00-\x1f]')).as_py():
        return pc.binary_join_element_wise('"', column, '"', "")
    return each(quoted_text, column, pa.string())
