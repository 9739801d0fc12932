"""Functions of JSON text. Each distinct document is read once per projection."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recapture.evaluate import json_parts
from recapture.evaluate.distinct import each
from recapture.evaluate.documents import (
    INVALID,
    Leniency,
    document,
    element_text,
    path_text,
    quoted_text,
)
from recapture.evaluate.float_text import texts
from recapture.evaluate.frames import Frame, Node
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


def over_documents(function: Callable[..., Any]) -> Callable[[Frame, Node], Any]:
    """Return the kernel of a function of one document; its parameters follow the document."""

    def kernel(frame: Frame, node: Node) -> Any:
        parsed = frame.vector(node.arguments[0])
        assert isinstance(parsed, Documents)
        return parsed.each(lambda value: function(value, *node.parameters), node.type)

    return kernel


def _property(value: Any, name: str) -> str | None:
    """Return the first property of an object that has a name and is not null."""
    if not isinstance(value, tuple):
        return None
    return next((path_text(part) for key, part in value if key == name and part is not None), None)


def _is_object(value: Any) -> bool | None:
    return True if isinstance(value, tuple) else None


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


def _similar(value: Any, small: str) -> str | None:
    """Return the first property whose name is equal to another in small letters."""
    if not isinstance(value, tuple):
        return None
    return next((element_text(part) for key, part in value if lower(key) == small), None)


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


def _read_at_once(
    read: Callable[..., tuple[pa.Array, NDArray[np.bool_]]], function: Callable[..., Any]
) -> Callable[[Frame, Node], Any]:
    """Return the kernel of a function of one document: plain documents are read at once, others one by one.

    `read` takes strings, the parameters and the type. It returns the values of plain documents, and which are plain.
    """

    def kernel(frame: Frame, node: Node) -> Any:
        (parsed,) = node.arguments
        (leniency,) = parsed.parameters
        strings = frame.array(parsed.arguments[0])
        found, is_plain = read(strings, *node.parameters, node.type)
        others = np.flatnonzero(~is_plain)
        if not len(others):
            return from_arrow(found)
        documents = _documents(strings.take(pa.array(others)), leniency)
        rest = to_arrow(
            documents.each(lambda value: function(value, *node.parameters), node.type), node.type, len(others)
        )
        places = np.arange(len(found))
        places[others] = np.arange(len(found), len(found) + len(others))
        return from_arrow(pa.concat_arrays([found, rest]).take(pa.array(places)))

    return kernel


PROPERTY = _read_at_once(lambda strings, name, _: json_parts.first_property(strings, name), _property)
IS_OBJECT, ARRAY_LENGTH = over_documents(_is_object), over_documents(_array_length)
ELEMENTS = _read_at_once(lambda strings, type_: json_parts.parts(strings, json_parts.ARRAY, type_), _elements)
PROPERTIES = _read_at_once(lambda strings, type_: json_parts.parts(strings, json_parts.OBJECT, type_), _properties)


def _has_names(strings: pa.Array, name: str, type_: pa.DataType) -> tuple[pa.Array, NDArray[np.bool_]]:
    """Return which plain objects have a property with the exact name."""
    rows, names, _, is_plain = _properties_at_once(strings)
    has = np.zeros(len(strings), np.bool_)
    has[rows[pc.equal(names, name).to_numpy(zero_copy_only=False)]] = True
    return pa.array(has, type_, mask=~is_plain), is_plain


def _similar_properties(strings: pa.Array, small: str, type_: pa.DataType) -> tuple[pa.Array, NDArray[np.bool_]]:
    """Return the first property of plain objects whose name is equal to another in small letters."""
    rows, names, values, is_plain = _properties_at_once(strings)
    places = np.flatnonzero(pc.equal(each(lower, names, pa.string()), small).to_numpy(zero_copy_only=False))
    found, first = np.unique(rows[places], return_index=True)
    chosen = np.full(len(strings), -1)
    chosen[found] = places[first]
    return values.take(pa.array(chosen, mask=chosen < 0)).cast(type_), is_plain


def _properties_at_once(strings: pa.Array) -> tuple[NDArray[np.int64], pa.Array, pa.Array, NDArray[np.bool_]]:
    """Return the rows, the names and the values of the properties of plain objects, and which rows have such one."""
    listed, is_plain = json_parts.parts(strings, json_parts.OBJECT, _PAIRS)
    names, values = listed.flatten().flatten()
    return pc.list_parent_indices(listed).to_numpy(), names, values, is_plain


_PAIRS = pa.list_(pa.struct([("name", pa.string()), ("value", pa.string())]))

ELEMENT, NAMED = over_documents(_element), over_documents(_named)
HAS_NAME, SIMILAR = _read_at_once(_has_names, _has_name), _read_at_once(_similar_properties, _similar)


def _by_row(function: Callable[[Any, Any], Any]) -> Callable[[Frame, Node], Any]:
    """Return the kernel of a function of a document and another value of the row."""

    def kernel(frame: Frame, node: Node) -> Any:
        parsed = frame.vector(node.arguments[0])
        assert isinstance(parsed, Documents)
        others = frame.array(node.arguments[1]).to_pylist()
        known: dict[tuple[int, Any], Any] = {}
        results = []
        for key in zip(parsed.indexes.tolist(), others, strict=True):
            if key not in known:
                index, other = key
                value = INVALID if index < 0 else parsed.values[index]
                known[key] = None if value is INVALID or other is None else function(value, other)
            results.append(known[key])
        return from_arrow(pa.array(results, node.type))

    return kernel


ELEMENT_OF_ROW, HAS_NAME_OF_ROW, NAMED_OF_ROW = _by_row(_element), _by_row(_has_name), _by_row(_named)
SIMILAR_OF_ROW = _by_row(_similar)
BY_ROW = {ELEMENT: ELEMENT_OF_ROW, HAS_NAME: HAS_NAME_OF_ROW, NAMED: NAMED_OF_ROW, SIMILAR: SIMILAR_OF_ROW}
"""Kernels for a name or an index that each row computes, by those for literals."""


def listed(frame: Frame, node: Node) -> Any:
    """Return to_json(array(x)): the JSON of a string or a float in brackets; that of NULL is [null]."""
    (argument,) = node.arguments
    if pa.types.is_floating(argument.type):
        numbers = frame.vector(argument)
        assert isinstance(numbers, Numbers)
        values = np.ascontiguousarray(np.broadcast_to(numbers.values, (frame.size,)))
        strings = texts(values, net=False)
        finite = np.isfinite(values)
        if not finite.all():
            strings = pc.if_else(pa.array(finite), strings, pc.binary_join_element_wise('"', strings, '"', ""))
        return _in_brackets(strings, numbers.null, frame.size)
    column = frame.array(argument)
    encoded = column.dictionary_encode()
    strings = pa.array([quoted_text(text) for text in encoded.dictionary.to_pylist()], pa.string())
    return _in_brackets(strings.take(encoded.indices), None, frame.size)


def _in_brackets(strings: pa.Array, null: Any, size: int) -> pa.Array:
    if null is not None:
        strings = pc.if_else(pa.array(np.broadcast_to(null, (size,))), pa.scalar(None, pa.string()), strings)
    return pc.binary_join_element_wise("[", pc.fill_null(strings, "null"), "]", "")
