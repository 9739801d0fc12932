"""Strings have the same number in every chunk."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recapture.time_model.key_codes import KeyCodes
from recapture.time_model.string_codes import StringCodes

STRINGS = st.none() | st.text(max_size=20) | st.text("ab", min_size=7, max_size=17)


@given(st.lists(st.lists(STRINGS, max_size=30), max_size=6), st.integers(0, 2))
def test_numbers_are_those_of_the_first_occurrence(chunks: list[list[str | None]], skipped: int) -> None:
    codes, numbers = StringCodes(), dict[str, int]()
    for chunk in chunks:
        expected = [None if string is None else numbers.setdefault(string, len(numbers)) for string in chunk[skipped:]]
        coded = codes.encode(pa.array(chunk, pa.string())[skipped:])
        assert coded.indices.to_pylist() == expected
        assert coded.to_pylist() == chunk[skipped:]
    assert codes.values.to_pylist() == list(numbers)


def test_many_strings_keep_their_numbers() -> None:
    codes = StringCodes()
    strings = pa.array([f"device-{number}" for number in range(20_000)])
    earlier = [codes.encode(strings[: 10 * 4**step]) for step in range(6)]
    assert codes.encode(strings).indices.to_pylist() == list(range(20_000))
    for coded in earlier:
        assert coded.cast(pa.string()).equals(strings[: len(coded)])


@pytest.mark.parametrize("other", [b"\x00", b"a" * 8 + b"\x00", b"a" * 8 + b"\x00" * 7])
def test_zero_bytes_at_the_end_tell_strings_apart(other: bytes) -> None:
    string = other.decode()
    strings = pa.array([string, string.rstrip("\0"), string + "\0", string])
    assert StringCodes().encode(strings).indices.to_pylist() == [0, 1, 2, 0]


def test_keys_that_come_with_numbers_keep_them() -> None:
    codes = StringCodes()
    first, second = (codes.encode(pa.array(chunk)) for chunk in (["b", "a"], ["c", "a", "b"]))
    keys = KeyCodes()
    assert [keys.encode(first).tolist(), keys.encode(second).tolist()] == [[0, 1], [2, 1, 0]]
