"""The parts of plain documents, read from their bytes, are those that the reader of all documents finds."""

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recapture.evaluate.documents import INVALID, OF_FROM_JSON, OF_PATHS, document, element_text, path_text
from recapture.evaluate.float_text import texts
from recapture.evaluate.json_parts import ARRAY, OBJECT, first_property, parts
from recapture.evaluate.laterals import applied
from tests.evaluate.relations import BOUNDS, relations

ELEMENTS = pa.list_(pa.struct([("ArrayIndex", pa.int64()), ("ArrayValue", pa.string())]))
PROPERTIES = pa.list_(pa.struct([("PropertyName", pa.string()), ("PropertyValue", pa.string())]))

_STRINGS = ('"a"', '""', '"é𝄞"', '"a,b]}"', '"\\n"', '"\t"', "'q'")
_INTEGERS = ("0", "-0", "12", "-5", "01", "123456789012345678", "1234567890123456789")
_FLOATS = ("1.5", "1.50", "0.0", "0.001", "0.0001", "1234567.25", "12345678.5", "1e5", "1.", "-", "0.1234567890123456")
_SCALARS = st.sampled_from((*_STRINGS, *_INTEGERS, *_FLOATS, "true", "false", "null", "nul", "NaN", "True"))
_BLANKS = st.sampled_from(("", "", "", " ", "\n"))


def _array(parts: list[str], blank: str, end: str) -> str:
    return "[" + blank + f"{blank},{blank}".join(parts) + blank + end


def _object(parts: list[tuple[str, str]], blank: str, end: str) -> str:
    return "{" + f",{blank}".join(f'"{name}"{blank}:{blank}{part}' for name, part in parts) + blank + end


_NAMES = st.sampled_from(("a", "b", "A", "", "é𝄞", "x y", '\\"'))
DOCUMENTS = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(
        st.builds(_array, st.lists(inner, max_size=4), _BLANKS, st.sampled_from(("]", "]", "]", "}", ",]", ""))),
        st.builds(
            _object,
            st.lists(st.tuples(_NAMES, inner), max_size=3),
            _BLANKS,
            st.sampled_from(("}", "}", "}", "]", ",}", "")),
        ),
    ),
    max_leaves=8,
)


def expected(text: str) -> Any:
    """Return the parts of an array or object as documents.py reads them; None for anything else."""
    value = document(text, OF_FROM_JSON)
    if isinstance(value, list):
        return [{"ArrayIndex": index, "ArrayValue": element_text(part)} for index, part in enumerate(value)]
    if isinstance(value, tuple) and value is not INVALID:
        return [{"PropertyName": name, "PropertyValue": element_text(part)} for name, part in value]
    return None


@given(st.lists(st.one_of(st.none(), st.builds("".join, st.tuples(_BLANKS, DOCUMENTS, _BLANKS))), max_size=20))
def test_the_parts_of_plain_documents_are_those_of_the_reader(documents: list[str | None]) -> None:
    strings = pa.array(["[1]", *documents], pa.string()).slice(1)
    for opening, type_ in ((ARRAY, ELEMENTS), (OBJECT, PROPERTIES)):
        found, is_plain = parts(strings, opening, type_)
        found.validate(full=True)
        for text, plain, value in zip(documents, is_plain, found.to_pylist(), strict=True):
            assert value == (expected(text) if plain and text is not None else None)
            assert text is not None or not plain


@given(st.lists(DOCUMENTS, max_size=20), st.sampled_from(("a", "b", "", "é𝄞")))
def test_the_property_of_a_plain_object_is_the_first_that_is_not_null(documents: list[str], name: str) -> None:
    found, is_plain = first_property(pa.array(documents, pa.string()), name)
    for text, plain, value in zip(documents, is_plain, found.to_pylist(), strict=True):
        properties = document(text, OF_PATHS) if plain else ()
        assert value == next((path_text(part) for key, part in properties if key == name and part is not None), None)


PLAIN = [[], [1, "x", None, True], [1.5, -0.001, 100000.25], [{"a": [1, {"b": "c d"}]}, []], ["𝄞", "{ a }", "[ ]"]]


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_usual_documents_are_plain(separators: tuple[str, str]) -> None:
    strings = pa.array([json.dumps(value, separators=separators, ensure_ascii=False) for value in PLAIN])
    found, is_plain = parts(strings, ARRAY, ELEMENTS)
    assert is_plain.all()
    assert found.to_pylist() == [expected(text) for text in strings.to_pylist()]


def test_java_writes_plain_decimals_as_they_are() -> None:
    draw = np.random.default_rng(4)
    digits = [f"{draw.integers(0, 10**7)}.{draw.integers(1, 10**8)}" for _ in range(5000)]
    found, is_plain = parts(pa.array([f"[{text}]" for text in digits]), ARRAY, ELEMENTS)
    plain = np.flatnonzero(is_plain)
    assert len(plain) > 4000
    written = texts(np.array([float(digits[row]) for row in plain]), net=False).to_pylist()
    assert [found[row].as_py()[0]["ArrayValue"] for row in plain] == written == [digits[row] for row in plain]


def test_a_query_applies_the_elements_of_any_array() -> None:
    """Arrays that are not plain, such as those with escapes, are among the others."""
    apply = "SELECT e.ArrayValue AS v INTO out FROM telemetry TIMESTAMP BY t OUTER APPLY GetArrayElements(list) AS e"
    [selection], _ = relations(f"CREATE TABLE telemetry (t datetime, list array);\n{apply}")
    rows = pa.table({"list": ['["a"]', '["\\u0062"]', None, "[]", "{}", '["c", "d"]']})
    found = applied(rows, selection.laterals, BOUNDS)
    assert [element and element["ArrayValue"] for element in found["@@e0"].to_pylist()] == [
        "a", "b", None, None, None, "c", "d"
    ]  # fmt: skip
