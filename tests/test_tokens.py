"""Tokens tell values of bodies apart as ASA does: 503 is not "503", 5 is 5.0, and integers are exact."""

import json
import math
import operator
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recapture import tokens
from recapture.formats.bodies import Projection
from recapture.formats.json_bodies.decoder import JsonBodies
from recapture.model import AsaType, InputColumn
from tests.draws import examples

X = InputColumn(("x",), AsaType.STRING, declared=False)
BIGINTS = st.one_of(st.integers(-3, 3), st.integers(2**53 - 2, 2**53 + 3), st.integers(-(2**63), 2**63 - 1))
FLOATS = st.one_of(st.sampled_from((5.0, -0.0, 2.0**53, 2.0**53 + 2, 1e20, 0.1)), st.floats(allow_nan=False, width=64))
STRINGS = st.one_of(st.sampled_from(("5", "5.0", "a", "", "true", tokens.MARK, tokens.MARK + "5")), st.text(max_size=3))
VALUES = st.one_of(BIGINTS, FLOATS.filter(math.isfinite), STRINGS, st.booleans(), st.none())


def token(value: Any, only_strings: bool = False) -> str | None:
    """Return the token that the decoder reads of a body."""
    body = json.dumps({"x": value}).encode()
    parsed = JsonBodies(only_strings).decode(pa.array([body], pa.binary()), Projection([X]))
    assert parsed.malformed.to_pylist() == [None]
    read: str | None = parsed.columns[X][0].as_py()
    return read


def kind(value: Any) -> type:
    """Return the type of a value, one for all numbers."""
    return float if isinstance(value, int) and not isinstance(value, bool) else type(value)


@settings(max_examples=examples(150), deadline=None)
@given(VALUES, VALUES)
def test_tokens_compare_as_the_values_do(one: Any, other: Any) -> None:
    left, right = (pa.array([token(value)], pa.string()) for value in (one, other))
    is_null = one is None or other is None
    alike = kind(one) is kind(other)
    # Python compares an int with a float exactly.
    assert (left == right) == ((alike and one == other) or (one is None and other is None))
    for name, compare in (("less", operator.lt), ("greater_or_equal", operator.ge)):
        expected = None if is_null else alike and kind(one) is not bool and compare(one, other)
        assert tokens.in_order(name, left, right).to_pylist() == [expected]


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(VALUES, max_size=5), st.one_of(BIGINTS, FLOATS.filter(math.isfinite)))
def test_tokens_compare_with_numbers_as_the_values_do(values: list[Any], number: float) -> None:
    expected = [None if value is None else kind(value) is float and value < number for value in values]
    read = pa.array([token(value) for value in values], pa.string())
    assert pa.array(tokens.in_order("less", read, pa.scalar(number))).to_pylist() == expected


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(FLOATS.filter(math.isfinite), max_size=5))
def test_the_text_of_a_float_is_the_number_itself(numbers: list[float]) -> None:
    written = tokens.float_texts(pa.array(numbers, pa.float64())).to_pylist()
    assert written == [tokens.number_text(number) for number in numbers]
    assert [Fraction(float(text)) for text in written] == [Fraction(number) for number in numbers]
    assert [token(number) for number in numbers] == [tokens.of_number(number) for number in numbers]


@settings(max_examples=examples(50), deadline=None)
@given(STRINGS)
def test_a_string_is_read_back_from_its_token(string: str) -> None:
    assert token(string) == token(string, only_strings=True) == tokens.of_string(string)
    assert tokens.texts(pa.array([token(string)])).to_pylist() == [string]


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("5.0", "5"),
        ("21.50", "21.5"),
        ("1e3", "1000"),
        ("9007199254740993.0", "9007199254740992"),
        ("1e20", "1E+20"),
        ("-1e400", "-Infinity"),
        ("1e-7", "1E-07"),
        ("true", "true"),
        ('{"a": [1]}', '{"a":[1]}'),
    ],
)
def test_the_text_of_a_value_is_what_asa_writes(written: str, text: str) -> None:
    parsed = JsonBodies().decode(pa.array([b'{"x": %s}' % written.encode()]), Projection([X]))
    assert tokens.texts(parsed.columns[X]).to_pylist() == [text]


@pytest.mark.parametrize(
    ("type_", "written"),
    [(AsaType.FLOAT, '"1.26"'), (AsaType.FLOAT, "true"), (AsaType.BIGINT, '"5"'), (AsaType.STRING, "1" + "0" * 19)],
)
def test_an_event_is_malformed_if_a_number_is_needed_and_the_value_is_none(type_: AsaType, written: str) -> None:
    column = InputColumn(("x",), type_, declared=False)
    parsed = JsonBodies().decode(pa.array([b'{"x": %s}' % written.encode()]), Projection([column]))
    assert parsed.malformed.is_valid().to_pylist() == [True]


@pytest.mark.parametrize("others", [[], ["a string"]])
def test_infinity_is_larger_than_every_number_whatever_else_is_compared(others: list[str]) -> None:
    values = pa.array([f"{tokens.MARK}{text}" for text in ("Infinity", "-Infinity", "NaN", "5")] + others)
    assert tokens.in_order("greater", values, pa.scalar(7)).to_pylist()[:4] == [True, False, False, False]
    assert tokens.in_order("greater_or_equal", values, values).to_pylist()[:4] == [True, True, False, True]
