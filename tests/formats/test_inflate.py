"""A compressed blob is unpacked up to a limit, and its excess is never held in memory."""

import gzip
import subprocess
import sys
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recapture.errors import DamagedBlobError
from recapture.formats.avro import decode
from recapture.formats.csv import CsvReader
from recapture.formats.event_hubs import EVENT_DATA
from recapture.formats.inflate import MIB, Limits, inflated, unzipped
from recapture.formats.iot_hub import IotHubReader
from recapture.formats.json_lines import JsonReader
from recapture.formats.service_bus import ServiceBusReader
from recapture.tools.sample import SampleEvent, capture_file
from tests.formats.blobs import NAME, read
from tests.formats.test_avro import NOON, in_blocks

SMALL = Limits(block=1, blob=2)


def deflated(content: bytes) -> bytes:
    compressor = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return compressor.compress(content) + compressor.flush()


def event(size: int) -> SampleEvent:
    return SampleEvent(0, "0", NOON, bytes(size), "key")


@given(st.lists(st.binary(max_size=64).map(lambda part: part * 40_000), max_size=3), st.binary(max_size=4))
def test_content_below_the_limits_is_unpacked_whole(contents: list[bytes], trailing: bytes) -> None:
    blocks = [memoryview(deflated(content) + trailing) for content in contents]
    assert b"".join(inflated("b", blocks, Limits())) == b"".join(contents)
    members = b"".join(gzip.compress(content, mtime=0) for content in contents)
    assert unzipped("b", members, Limits()) == b"".join(contents)


@pytest.mark.parametrize("sizes", [[MIB], [MIB, MIB], [0, MIB, 0, MIB]])
def test_the_limits_themselves_are_allowed(sizes: list[int]) -> None:
    blocks = [memoryview(deflated(bytes(size))) for size in sizes]
    assert sum(map(len, inflated("b", blocks, SMALL))) == sum(sizes)


@pytest.mark.parametrize(
    ("sizes", "reason"),
    [
        ([MIB + 1], "one of its blocks inflates to more than 1 MiB (raise input.max_block_mib if that is legitimate)"),
        ([MIB, MIB, 1], "it inflates to more than 2 MiB (raise input.max_blob_mib if that is legitimate)"),
    ],
)
def test_content_beyond_a_limit_is_refused_with_the_key_to_raise(sizes: list[int], reason: str) -> None:
    blocks = [memoryview(deflated(bytes(size))) for size in sizes]
    with pytest.raises(DamagedBlobError) as caught:
        list(inflated("b", blocks, SMALL))
    assert caught.value.reason == reason
    assert str(caught.value).startswith(f"blob b is damaged: {reason}; ")


@pytest.mark.parametrize(
    "reader",
    [JsonReader(SMALL), CsvReader(",", (), SMALL), ServiceBusReader(limits=SMALL), IotHubReader(SMALL)],
    ids=["Json", "Csv", "ServiceBus", "IotHub"],
)
def test_gzip_has_the_limit_of_a_blob_in_every_format(reader: Any) -> None:
    with pytest.raises(DamagedBlobError, match=rf"^blob {NAME} is damaged: it inflates to more than 2 MiB "):
        read(reader, gzip.compress(b"{}\n" * MIB))


def test_a_capture_file_has_both_limits() -> None:
    with pytest.raises(DamagedBlobError, match=r"raise input\.max_block_mib"):
        decode("b", capture_file([event(MIB)], codec="deflate"), EVENT_DATA, limits=SMALL)
    content = in_blocks(*[[event(MIB - 4096)]] * 3, codec="deflate")
    with pytest.raises(DamagedBlobError, match=r"raise input\.max_blob_mib"):
        decode("b", content, EVENT_DATA, limits=SMALL)
    assert decode("b", content, EVENT_DATA).num_rows == 3
    assert decode("b", capture_file([event(3 * MIB)]), EVENT_DATA, limits=SMALL).num_rows == 1, "nothing inflates"


@pytest.mark.parametrize("count", [1, 15, 16, 17, 5_000])
@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_a_large_blob_is_read_in_order_whatever_the_number_of_its_events(count: int, codec: str) -> None:
    body = bytes(2 * MIB // count)
    events = [SampleEvent(number, str(number), NOON, body) for number in range(count)]
    table = decode("b", capture_file(events, codec=codec), EVENT_DATA, ["EnqueuedTimeUtc"])  # type: ignore[arg-type]
    assert table["SequenceNumber"].to_pylist() == list(range(count))
    assert set(table["Body"].to_pylist()) == {body}


@pytest.mark.parametrize("wrong", [-1, 1])
def test_a_large_block_that_declares_one_record_more_or_less_is_refused(wrong: int) -> None:
    events = [SampleEvent(number, str(number), NOON, bytes(MIB)) for number in range(3)]
    content = capture_file(events)
    place = content.index(b"\x06", len(capture_file([])) - 20)
    with pytest.raises(DamagedBlobError):
        decode("b", content[:place] + bytes([6 + 2 * wrong]) + content[place + 1 :], EVENT_DATA)


BOMBS = """
import gzip, resource, sys, zlib
from recapture.tools.sample import capture_file
from tests.formats.test_inflate import bomb
from recapture.formats.avro import decode
from recapture.formats.event_hubs import EVENT_DATA
from recapture.formats.inflate import Limits, unzipped
from recapture.errors import DamagedBlobError
from recapture.formats.avro import decode

blocks, file = bomb(), gzip.compress(bytes(1 << 28), 1)
decode("b", capture_file([]), EVENT_DATA)  # loads what decoding needs
in_use = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (in_use + (64 << 20),) * 2)
for call in (lambda: decode("b", blocks, EVENT_DATA, limits=Limits(4, 4)), lambda: unzipped("b", file, Limits(4, 4))):
    try:
        call()
    except DamagedBlobError as error:
        print(error.reason)
"""


def bomb() -> bytes:
    """Return a file of one block, which inflates to 256 MiB of zeros."""
    content = capture_file([event(64)], codec="deflate")
    sync = content[-16:]
    header = content[: content.index(sync) + 16]
    block = deflated(bytes(1 << 28))
    return header + b"\x02" + long(len(block)) + block + sync


def long(value: int) -> bytes:
    out, value = [], value << 1
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def test_content_beyond_a_limit_never_takes_memory() -> None:
    completed = subprocess.run([sys.executable, "-c", BOMBS], capture_output=True, text=True, check=False)
    assert completed.stderr == ""
    assert completed.stdout.splitlines() == [
        "one of its blocks inflates to more than 4 MiB (raise input.max_block_mib if that is legitimate)",
        "it inflates to more than 4 MiB (raise input.max_blob_mib if that is legitimate)",
    ]
