"""JSON is copied as DuckDB writes it (`rewriting`)."""

import itertools
import json
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recapture.formats.duckdb_sql import select
from recapture.formats.json_bodies.rewriting import copy_json
from tests.draws import examples


def rewritten(*texts: str) -> list[str | None]:
    """Return the copies of some JSON values, None for those that DuckDB may write in another way."""
    content = " ".join(texts) + "}"
    sizes = np.array(list(map(len, texts)), np.int32)
    places = np.cumsum([0, *(sizes[:-1] + 1)], dtype=np.int64)
    bounds, copies = np.zeros(len(texts) + 1, np.int32), np.empty(len(content), np.uint8)
    usual = np.ones(len(texts), np.bool_)
    data = np.frombuffer(content.encode(), np.uint8)
    copy_json(data, 0, len(texts), places, sizes, bounds, copies, usual)
    parts = [copies[begin:end].tobytes().decode() for begin, end in itertools.pairwise(bounds)]
    return [part if is_usual else None for part, is_usual in zip(parts, usual, strict=True)]


@pytest.mark.parametrize(
    ("written", "copied"),
    [
        ('{ "a b" :\\t[ 1 , -2.50 ] }'.replace("\\t", "\t"), '{"a b":[1,-2.5]}'),
        ("[22.00,0.0,-0.00]", "[22.0,0.0,-0.0]"),
        ('["1 .50 ,",true , null]', '["1 .50 ,",true,null]'),
        ("[0.0001]", "[0.0001]"),
        ("[0.00001]", None),
        ("[1e3]", None),
        ("[-0]", None),
        ("[123456789012345678]", "[123456789012345678]"),
        ("[1234567890123456789]", None),
        ("[1.2345678901234]", "[1.2345678901234]"),
        ("[1.23456789012345]", None),
    ],
)
def test_spaces_and_the_zeros_at_the_end_of_a_number_are_left_out(written: str, copied: str | None) -> None:
    assert rewritten(written, "[]") == [copied, "[]"]


DIGITS = st.integers(-(10**20), 10**20)
NUMBERS = st.one_of(
    DIGITS.map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.builds(lambda digits, places: f"{Decimal(digits).scaleb(-places):f}", DIGITS, st.integers(0, 14)),
)
STRINGS = st.text(st.characters(codec="ascii", exclude_categories=["Cc"], exclude_characters='"\\')).map(json.dumps)
SPACES = st.sampled_from(["", "", " ", "\n\t"])
VALUES = st.recursive(
    NUMBERS | STRINGS | st.sampled_from(["true", "false", "null"]),
    lambda values: st.tuples(SPACES, st.lists(values, max_size=4), SPACES).map(
        lambda array: "[" + f"{array[0]},{array[2]}".join(array[1]) + "]"
    ),
    max_leaves=8,
)


@pytest.mark.property
@settings(max_examples=examples(400))
@given(st.lists(VALUES, min_size=1, max_size=8))
def test_a_copy_is_what_duckdb_writes(values: list[str]) -> None:
    bodies = pa.array([f'{{"x":[{value}]}}' for value in values])
    read = select({"body": bodies}, """SELECT json_transform(body, '{"x": "JSON"}').x AS x FROM bodies""")["x"]
    for copied, expected in zip(rewritten(*(f"[{value}]" for value in values)), read.to_pylist(), strict=True):
        assert copied in (None, expected)
