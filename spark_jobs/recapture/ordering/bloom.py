"""Bloom filters of strings: a filter says of a string that it is not in a set, or that it may be.

They are the split block Bloom filters of Parquet ("Parquet Bloom Filter"): a filter is a row of blocks of 256 bits, and
a string sets eight bits of one block. The hash is XXH64. A filter here may have any number of blocks.
"""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]

BITS_PER_STRING = 11
"""Bits of a filter for each string in it: of a hundred other strings, about one may be in it by the filter."""
_BLOCK_BITS = 256
_SALTS = np.array(
    [0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31], np.uint32
)
_P1, _P2, _P3, _P4, _P5 = (
    np.array([prime], np.uint64)
    for prime in (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
)
_STRIPE = 32


def bloom_filter(hashes: Hashes) -> bytes:
    """Return the filter of the strings with these hashes, which are distinct; nothing for none."""
    blocks = -(-len(hashes) * BITS_PER_STRING // _BLOCK_BITS)
    words = np.zeros((blocks, len(_SALTS)), np.uint32)
    if blocks:
        np.bitwise_or.at(words, _block(hashes, blocks), _masks(hashes))
    return words.astype("<u4").tobytes()


def may_contain(filter_: bytes, hashes: Hashes) -> NDArray[np.bool_]:
    """Return which of the strings with these hashes may be among those of a filter."""
    words = np.frombuffer(filter_, "<u4").reshape(-1, len(_SALTS))
    if not len(words):
        return np.zeros(len(hashes), np.bool_)
    masks = _masks(hashes)
    may: NDArray[np.bool_] = (words[_block(hashes, len(words))] & masks == masks).all(axis=1)
    return may


def _block(hashes: Hashes, blocks: int) -> NDArray[np.int64]:
    return ((hashes >> np.uint64(32)) * np.uint64(blocks) >> np.uint64(32)).astype(np.int64)


def _masks(hashes: Hashes) -> NDArray[np.uint32]:
    """Return the bit that each hash sets in each word of its block."""
    low = hashes.astype(np.uint32)[:, np.newaxis]
    return np.uint32(1) << (low * _SALTS >> np.uint32(27))


def hashes_of(strings: pa.Array, seed: int) -> Hashes:
    """Return the XXH64 of each string in UTF-8; that of NULL means nothing."""
    strings = strings.cast(pa.large_string())
    _, offsets, content = strings.buffers()
    bounds = np.frombuffer(offsets, np.int64)[strings.offset : strings.offset + len(strings) + 1]
    data = np.frombuffer(content or b"", np.uint8)[bounds[0] : bounds[-1]]
    return _xxh64(np.append(data, np.zeros(8, np.uint8)), bounds[:-1] - bounds[0], np.diff(bounds), seed)


def _xxh64(data: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[np.int64], seed: int) -> Hashes:
    """Return the hash of each string; 8 bytes follow the last one."""
    words = np.ndarray((len(data) - 7,), "<u8", data, strides=(1,))
    seeds = np.full(len(starts), seed, np.uint64)
    accumulated = seeds + _P5
    long = np.flatnonzero(lengths >= _STRIPE)
    accumulated[long] = _striped(words, starts[long], lengths[long], seeds[long])
    accumulated += lengths.astype(np.uint64)
    places, ends = starts + lengths // _STRIPE * _STRIPE, starts + lengths
    for _ in range(3):
        rows = np.flatnonzero(ends - places >= 8)
        word = words[places[rows]].astype(np.uint64)
        accumulated[rows] = _rotated(accumulated[rows] ^ _round(0 * word, word), 27) * _P1 + _P4
        places[rows] += 8
    rows = np.flatnonzero(ends - places >= 4)
    half = words[places[rows]].astype(np.uint32).astype(np.uint64)
    accumulated[rows] = _rotated(accumulated[rows] ^ half * _P1, 23) * _P2 + _P3
    places[rows] += 4
    for _ in range(3):
        rows = np.flatnonzero(ends > places)
        accumulated[rows] = _rotated(accumulated[rows] ^ data[places[rows]].astype(np.uint64) * _P5, 11) * _P1
        places[rows] += 1
    for shift, prime in ((33, _P2), (29, _P3)):
        accumulated = (accumulated ^ accumulated >> np.uint64(shift)) * prime
    return accumulated ^ accumulated >> np.uint64(32)


def _striped(words: Hashes, starts: NDArray[np.int64], lengths: NDArray[np.int64], seeds: Hashes) -> Hashes:
    """Return what the whole stripes of strings that have at least one are hashed to."""
    lanes = [seeds + _P1 + _P2, seeds + _P2, seeds.copy(), seeds - _P1]
    stripes = lengths // _STRIPE
    for stripe in range(int(stripes.max(initial=0))):
        rows = np.flatnonzero(stripes > stripe)
        for number, lane in enumerate(lanes):
            lane[rows] = _round(lane[rows], words[starts[rows] + _STRIPE * stripe + 8 * number].astype(np.uint64))
    merged = sum((_rotated(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True)), 0 * seeds)
    for lane in lanes:
        merged = (merged ^ _round(0 * lane, lane)) * _P1 + _P4
    return merged


def _round(accumulated: Hashes, word: Hashes) -> Hashes:
    return _rotated(accumulated + word * _P2, 31) * _P1


def _rotated(values: Hashes, by: int) -> Hashes:
    return values << np.uint64(by) | values >> np.uint64(64 - by)
