"""Bloom filters: what is in a set is never denied, and what is not is rarely taken for it."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recapture.model import AsaType, InputColumn
from recapture.ordering.bloom import bloom_filter, hashes_of, may_contain
from recapture.ordering.key_values import key_hashes
from recapture.tools.events.conditions import Condition

_M = 2**64 - 1
_P1, _P2, _P3, _P4, _P5 = (
    11400714785074694791,
    14029467366897019727,
    1609587929392839161,
    9650029242287828579,
    2870177450012600261,
)


def rotated(value: int, by: int) -> int:
    return (value << by | value >> 64 - by) & _M


def mixed(state: int, word: int) -> int:
    return rotated((state + word * _P2) & _M, 31) * _P1 & _M


def xxh64(data: bytes, seed: int) -> int:
    """Return the hash, as "xxHash fast digest algorithm" describes XXH64, byte after byte."""
    state, length = (seed + _P5) & _M, len(data)
    if length >= 32:
        lanes = [(seed + _P1 + _P2) & _M, (seed + _P2) & _M, seed, (seed - _P1) & _M]
        while len(data) >= 32:
            for number in range(4):
                lanes[number] = mixed(lanes[number], int.from_bytes(data[8 * number : 8 * number + 8], "little"))
            data = data[32:]
        state = sum(rotated(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True)) & _M
        for lane in lanes:
            state = ((state ^ mixed(0, lane)) * _P1 + _P4) & _M
    state = (state + length) & _M
    while len(data) >= 8:
        state = (rotated(state ^ mixed(0, int.from_bytes(data[:8], "little")), 27) * _P1 + _P4) & _M
        data = data[8:]
    if len(data) >= 4:
        state = (rotated(state ^ int.from_bytes(data[:4], "little") * _P1 & _M, 23) * _P2 + _P3) & _M
        data = data[4:]
    for byte in data:
        state = rotated(state ^ byte * _P5 & _M, 11) * _P1 & _M
    state = (state ^ state >> 33) * _P2 & _M
    state = (state ^ state >> 29) * _P3 & _M
    return state ^ state >> 32


@pytest.mark.parametrize(
    ("text", "published"),
    [("", 0xEF46DB3751D8E999), ("a", 0xD24EC4F1A98C6E5B), ("abc", 0x44BC2CF5AD770999)],
)
def test_the_hash_is_xxh64(text: str, published: int) -> None:
    assert xxh64(text.encode(), 0) == published


@given(texts=st.lists(st.text(max_size=90), max_size=20), seed=st.integers(0, 3), skipped=st.integers(0, 3))
def test_strings_of_any_length_are_hashed_as_one_by_one(texts: list[str], seed: int, skipped: int) -> None:
    hashes = hashes_of(pa.array(texts, pa.string()).slice(skipped), seed)
    assert hashes.tolist() == [xxh64(text.encode(), seed) for text in texts[skipped:]]


@given(numbers=st.sets(st.integers(0, 2**64 - 1)))
def test_nothing_that_is_in_a_filter_is_denied(numbers: set[int]) -> None:
    hashes = np.array(sorted(numbers), np.uint64)
    assert may_contain(bloom_filter(hashes), hashes).all()


@pytest.mark.parametrize("count", [1, 30, 1000, 50_000])
def test_about_one_string_in_a_hundred_is_taken_for_one_of_the_filter(count: int) -> None:
    random = np.random.default_rng(count)
    filters = [bloom_filter(random.integers(0, 2**64, count, np.uint64)) for _ in range(max(1, 3000 // count))]
    others = random.integers(0, 2**64, 3000, np.uint64)
    assert np.mean([may_contain(filter_, others).mean() for filter_ in filters]) < 0.012
    assert len(filters[0]) <= 1.4 * count + 32


SPELLINGS = st.one_of(
    st.sampled_from(["5", "5.0", "50e-1", "0.5E1", "-0", "0", "0.0", "05", " 5", "1e400", "-5", "a", "A", "", "true"]),
    st.integers(-(2**60), 2**60).map(str),
    st.floats(allow_nan=False).map(repr),
    st.text(max_size=4),
)


@given(value=SPELLINGS, others=st.lists(SPELLINGS, min_size=1))
def test_a_value_that_a_condition_finds_has_the_hash_of_the_condition(value: str, others: list[str]) -> None:
    strings = pa.array([*others, value])
    is_found = Condition(InputColumn(("k",), AsaType.STRING), value).holds(strings).to_numpy(zero_copy_only=False)
    same = key_hashes(strings, 2) == key_hashes(pa.array([value]), 2)
    assert is_found[-1]
    assert same[is_found].all()
