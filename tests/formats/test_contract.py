"""What every input format and every body format promises: a damaged blob is never read as if it had fewer events."""

import json
import pickle
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cache
from typing import Any, get_args

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from recapture.archive.pinning import PinnedBlob, PlannedSlice
from recapture.formats.bodies import BodyDecoder, Projection
from recapture.formats.duckdb_sql import one_array
from recapture.formats.events import Reader
from recapture.formats.reference_data import Reference
from recapture.formats.sections import DEFAULT_FORMAT, FORMATS, Input
from recapture.model import TYPES, AsaType, InputColumn, MetadataColumn
from recapture.ordering.chunks import chunks
from recapture.ordering.decoding import BlobDecoder, DecodedBlob
from recapture.ordering.task import Task
from recapture.query.compile import compile_query
from recapture.storage import Blob
from recapture.time_model.slices import Arrivals, Slice
from recapture.time_model.ticks import from_datetime
from tests.draws import examples
from tests.formats.blobs import TEN
from tests.formats.samples import BODIES, SAMPLES, VARIANTS, Sample
from tests.worlds import HOUR, body

KINDS = SAMPLES | VARIANTS
DEVICE, TEMPERATURE = InputColumn(("deviceId",), AsaType.STRING), InputColumn(("temperature",), AsaType.FLOAT)
FIELDS = Projection([DEVICE, TEMPERATURE], [InputColumn(("eventTime",), AsaType.DATETIME)])
EVENTS = [(number, body(f"device-{number}", TEN, number + 0.25)) for number in (7, 8, 9, 12, 13)]
COMPILED = compile_query(
    "SELECT COUNT(*) AS n INTO out FROM t GROUP BY TumblingWindow(minute, 5)",
    inputs={"t": FORMATS[DEFAULT_FORMAT].metadata},
    output_aliases=["out"],
).inputs[0]
MALFORMED = "malformed"
Row = tuple[Any, ...] | str
"""The fields of an event, or MALFORMED."""


def reader_of(sample: Sample) -> tuple[Reader, tuple[MetadataColumn, ...]]:
    """Return the reader of an input, as a task gets it, and all metadata that a query can read."""
    section: Input = TypeAdapter(Input).validate_python({"alias": "telemetry", "container": "a", **sample.keys})
    reader = section.reader((*FIELDS.columns, *FIELDS.timestamp_fields))
    return pickle.loads(pickle.dumps(reader)), tuple(map(MetadataColumn, section.metadata.known))


def decoded(sample: Sample, content: bytes) -> DecodedBlob:
    """Return a blob as a run decodes it if damaged blobs are quarantined."""
    reader, metadata = reader_of(sample)
    download: Future[bytes] = Future()
    download.set_result(content)
    pinned = PinnedBlob("telemetry", "3", Blob("archive/blob", "etag", len(content), TEN))
    return BlobDecoder(reader, metadata, quarantine_damaged=True).decode(pinned, download)


def rows_of(decoder: BodyDecoder, bodies: pa.Array, unreadable: pa.Array | None = None) -> list[Row]:
    columns = decoder.decode(bodies, FIELDS, unreadable)
    reasons = columns.malformed.to_pylist()
    assert all(reason is None or (reason and "\n" not in reason) for reason in reasons)
    values = zip(columns.columns[DEVICE].to_pylist(), columns.columns[TEMPERATURE].to_pylist(), strict=True)
    return [row if reason is None else MALFORMED for row, reason in zip(values, reasons, strict=True)]


def read(sample: Sample, content: bytes) -> list[Row] | None:
    """Return the events of a blob in its order; None if it is damaged, which has one line that says why."""
    blob = decoded(sample, content)
    if blob.damage is not None:
        assert blob.damage.reason
        assert "\n" not in blob.damage.reason
        assert blob.damage.content == content
        assert len(blob.events.number) == 0
        return None
    rows = rows_of(reader_of(sample)[0].decoder, one_array(blob.events.body), blob.events.unreadable)
    assert len(rows) == len(blob.events.number) == len(blob.events.enqueued) == len(blob.arrival)
    assert {len(values) for values in blob.events.metadata.values()} <= {len(rows)}
    return rows


@cache
def read_whole(kind: str) -> list[Row]:
    """Return the events of an intact blob."""
    sample = KINDS[kind]
    rows = read(sample, sample.write(EVENTS, TEN))
    assert rows is not None
    return rows


# Every format has a sample


def test_every_input_format_and_every_decoder_has_a_sample() -> None:
    formats = {sample.keys.get("format", DEFAULT_FORMAT) for sample in SAMPLES.values()}
    assert formats == set(FORMATS), "add a sample to SAMPLES in tests/formats/samples.py"
    types = {type(decoder) for decoder in decoders()}
    assert types <= set(BODIES), "add a function to BODIES in tests/formats/samples.py"


def test_reference_data_has_no_reader_of_its_own() -> None:
    section: Any
    for section in get_args(get_args(Reference)[0]):
        keys = {"type": "Reference", "format": get_args(section.model_fields["format"].annotation)[0], "path": "a"}
        reference = section(alias="devices", container="a", **keys)
        assert type(reference.reader([DEVICE])) in {type(reader_of(sample)[0]) for sample in SAMPLES.values()}


# Blobs


@pytest.mark.parametrize("kind", KINDS)
def test_every_event_of_an_intact_blob_is_read_in_its_place(kind: str) -> None:
    sample = KINDS[kind]
    rows = read(sample, sample.write(EVENTS, TEN))
    expected = [(f"device-{number}", number + 0.25) for number, _ in EVENTS]
    assert rows is not None
    assert sorted(rows) == sorted(expected)
    assert rows in (expected, expected[::-1])


@pytest.mark.parametrize("kind", KINDS)
def test_a_blob_without_bytes_is_damaged(kind: str) -> None:
    assert read(KINDS[kind], b"") is None


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=examples(30))
@given(data=st.data())
def test_a_truncated_blob_is_damaged_or_has_one_malformed_event_unless_the_rest_is_a_blob(
    kind: str, data: st.DataObject
) -> None:
    sample = KINDS[kind]
    content = sample.write(EVENTS, TEN)
    size = data.draw(st.integers(1, len(content) - 1))
    rows, whole = read(sample, content[:size]), read_whole(kind)
    if rows is None or rows == whole:
        return
    last = rows.pop() if rows and (rows[-1] == MALFORMED or sample.may_shorten_last_field) else None
    assert rows == whole[: len(rows)]
    assert last is not None or size in sample.complete_at(content)


@pytest.mark.parametrize("kind", KINDS)
def test_only_a_blob_that_is_truncated_between_events_may_have_fewer_without_notice(kind: str) -> None:
    sample = KINDS[kind]
    content = sample.write(EVENTS, TEN)
    for size in sorted(sample.complete_at(content))[-3:]:
        rows, whole = read(sample, content[:size]), read_whole(kind)
        assert rows is not None
        assert rows == whole[: len(rows)]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=examples(25))
@given(data=st.data())
def test_a_flipped_bit_never_removes_an_event_without_notice(kind: str, data: st.DataObject) -> None:
    sample = KINDS[kind]
    content = bytearray(sample.write(EVENTS, TEN))
    content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    rows = read(sample, bytes(content))
    assert rows is None or len(rows) >= len(EVENTS) or MALFORMED in rows


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=examples(25))
@given(data=st.data())
def test_bytes_of_any_other_kind_are_damaged_or_malformed(kind: str, data: st.DataObject) -> None:
    sample = KINDS[kind]
    content = sample.write(EVENTS, TEN)
    place = data.draw(st.integers(0, len(content)))
    end = data.draw(st.integers(place, len(content)))
    rows = read(sample, content[:place] + data.draw(st.binary(max_size=20)) + content[end:])
    assert rows is None or all(row == MALFORMED or len(row) == 2 for row in rows)


@pytest.mark.parametrize("kind", KINDS)
def test_a_blob_that_is_written_twice_is_damaged_or_has_its_events_twice(kind: str) -> None:
    sample = KINDS[kind]
    content = sample.write(EVENTS, TEN)
    for between in (b"", b"\n"):
        rows = read(sample, content + between + content)
        assert rows is None or len(rows) >= 2 * len(EVENTS) or MALFORMED in rows


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=examples(10))
@given(data=st.data())
def test_events_keep_their_numbers_in_any_order_of_the_blob(kind: str, data: st.DataObject) -> None:
    sample = KINDS[kind]
    content = sample.write(data.draw(st.permutations(EVENTS)), TEN)
    rows, numbers = read(sample, content), decoded(sample, content).events.number.tolist()
    assert rows is not None
    assert sorted(rows) == sorted((f"device-{number}", number + 0.25) for number, _ in EVENTS)
    if reader_of(sample)[0].numbered:
        assert rows == [(f"device-{number}", number + 0.25) for number in numbers]
    else:
        assert numbers == list(range(len(EVENTS)))


@pytest.mark.parametrize("kind", KINDS)
def test_events_of_blobs_that_arrive_together_are_the_same_in_any_order_of_the_blobs(kind: str) -> None:
    sample = KINDS[kind]
    reader, _ = reader_of(sample)
    contents = [sample.write(EVENTS[::2], TEN), sample.write(EVENTS[1::2], TEN)]
    orders = [chunk_rows(reader, contents), chunk_rows(reader, contents[::-1])]
    assert sorted(orders[0]) == sorted(orders[1]) == sorted(read_whole(kind))
    if reader.numbered:
        assert orders[0] == orders[1]


def chunk_rows(reader: Reader, contents: Sequence[bytes]) -> list[Row]:
    """Return the events of blobs that arrived together, in the order in which a run judges them."""
    blobs = [
        PinnedBlob("t", "3", Blob(f"blob-{place}", "etag", len(content), TEN)) for place, content in enumerate(contents)
    ]
    hour = Slice(from_datetime(TEN - HOUR), from_datetime(TEN))
    planned = PlannedSlice(hour, Arrivals(hour.start, hour.end), "", ())
    container: Any = Memory({pinned.blob.name: content for pinned, content in zip(blobs, contents, strict=True)})
    task = Task("t", "3", (planned,), tuple(blobs))
    rows = []
    for chunk in chunks(task, container, COMPILED, reader, quarantine_damaged=False):
        rows += rows_of(chunk.decoder, chunk.body, chunk.unreadable)
    return rows


@dataclass(frozen=True)
class Memory:
    """A container that has blobs."""

    contents: dict[str, bytes]

    def read(self, blob: Blob) -> bytes:
        return self.contents[blob.name]


@pytest.mark.parametrize("kind", KINDS)
def test_an_event_without_a_body_is_malformed_or_no_event(kind: str) -> None:
    """A blank line of JSON is not an event."""
    sample = KINDS[kind]
    rows = read(sample, sample.write([*EVENTS[:2], (10, b""), *EVENTS[2:]], TEN))
    assert rows is None or [row for row in rows if row != MALFORMED] in (whole := read_whole(kind), whole[::-1])


# Bodies


def decoders() -> list[BodyDecoder]:
    """Return the decoders of the bodies of events of all inputs."""
    return list(dict.fromkeys(reader_of(sample)[0].decoder for sample in SAMPLES.values()))


RECORDS = [{"deviceId": f"device-{number}", "temperature": f"{number}.25"} for number in range(3)]
ROWS: list[Row] = [(f"device-{number}", number + 0.25) for number in range(3)]


def written(decoder: BodyDecoder) -> list[bytes]:
    return [BODIES[type(decoder)](record) for record in RECORDS]


def body_rows(decoder: BodyDecoder, bodies: Sequence[bytes | None]) -> list[Row]:
    """Return the rows of bodies, which do not depend on whether they are views, nor on their neighbours."""
    array = pa.array(bodies, pa.binary())
    rows = rows_of(decoder, array)
    assert rows_of(decoder, array.cast(pa.binary_view())) == rows
    documents = decoder.as_json(array)
    assert len(documents) == len(rows)
    return rows


each_decoder: Callable[..., Any] = pytest.mark.parametrize("decoder", decoders(), ids=repr)


@each_decoder
def test_bodies_are_read_and_have_the_same_fields_as_json(decoder: BodyDecoder) -> None:
    assert body_rows(pickle.loads(pickle.dumps(decoder)), written(decoder)) == ROWS
    documents = decoder.as_json(pa.array(written(decoder), pa.binary())).to_pylist()
    assert list(map(json.loads, documents)) == RECORDS


@each_decoder
def test_no_bodies_give_empty_columns_of_their_types(decoder: BodyDecoder) -> None:
    columns = [InputColumn((kind.name,), kind) for kind in AsaType]
    empty = decoder.decode(pa.array([], pa.binary()), Projection(columns, columns[:1]))
    assert {column: values.type for column, values in empty.columns.items()} == {
        column: TYPES[column.type].view for column in columns
    }
    assert [len(values) for values in (*empty.strings.values(), empty.malformed)] == [0, 0]


@each_decoder
def test_names_are_found_in_any_letter_case_and_a_missing_field_is_null(decoder: BodyDecoder) -> None:
    write = BODIES[type(decoder)]
    assert body_rows(decoder, [write({"DEVICEID": "a"}), write({"other": None})]) == [("a", None), (None, None)]


@each_decoder
def test_a_body_that_is_missing_empty_truncated_or_written_twice_is_malformed(decoder: BodyDecoder) -> None:
    first, *others = written(decoder)
    cut = [first[:size] for size in range(len(first))]
    assert body_rows(decoder, [None, *cut, first + first, *others]) == [MALFORMED] * (len(cut) + 2) + ROWS[1:]
    (reason,) = decoder.decode(pa.array([None], pa.binary()), FIELDS).malformed.to_pylist()
    assert reason == "no body"


@each_decoder
def test_what_a_reader_could_not_read_is_the_reason(decoder: BodyDecoder) -> None:
    reasons = ["its line is torn", None, "its line is torn"]
    bodies = pa.array([b"?", *written(decoder)[:2]], pa.binary())
    assert decoder.decode(bodies, FIELDS, pa.array(reasons)).malformed.to_pylist() == reasons


@each_decoder
@settings(max_examples=examples(25))
@given(data=st.data())
def test_a_body_of_any_bytes_does_not_change_its_neighbours(decoder: BodyDecoder, data: st.DataObject) -> None:
    first, *others = written(decoder)
    changed = bytearray(first)
    changed[data.draw(st.integers(0, len(first) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    rows = body_rows(decoder, [bytes(changed), others[0], data.draw(st.binary(max_size=20)), others[1]])
    assert (rows[1], rows[3]) == (ROWS[1], ROWS[2])
