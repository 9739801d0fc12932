"""The bytes of a buffer, as compiled code reads and compares them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recapture.process.byte_words import Bytes, are_equal, byte_at, eight_at
from recapture.process.compilation import compiled


@compiled
def _read(data: Bytes, at: int) -> tuple[int, np.uint64]:
    return byte_at(data, at), eight_at(data, at)


@compiled
def _are_equal(data: Bytes, left: int, right: int, size: int) -> bool:
    return are_equal(data, left, right, size)


def buffer(content: bytes) -> Bytes:
    return np.frombuffer(content, np.uint8)


@given(st.binary(min_size=8, max_size=40), st.data())
def test_a_byte_and_eight_bytes_are_those_at_a_place(content: bytes, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(content) - 8))
    byte, word = _read(buffer(content), at)
    assert (byte, int(word)) == (content[at], int.from_bytes(content[at : at + 8], "little"))


@given(st.binary(max_size=30), st.binary(max_size=30), st.integers(0, 29), st.binary(max_size=3))
def test_places_are_equal_exactly_if_their_bytes_are(left: bytes, right: bytes, changed: int, after: bytes) -> None:
    for other in (left, right, left[:changed] + b"\x00" + left[changed + 1 :]):
        size = min(len(left), len(other))
        content = left + other + after
        equal = _are_equal(buffer(content), 0, len(left), size)
        assert bool(equal) == (content[:size] == content[len(left) : len(left) + size])
