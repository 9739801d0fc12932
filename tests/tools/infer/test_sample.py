"""The sample: spread over the partitions and the range, bounded, and always the same."""

import json
from collections import Counter
from pathlib import Path

import pytest

from recapture.archive.pinning import PinnedBlob
from recapture.formats.json_lines import JsonReader
from recapture.model import AsaType
from recapture.storage import open_container
from recapture.tools.infer import sample as sampling
from recapture.tools.infer.sample import Sample, read_sample, spread


def pinned(folder: Path, partitions: int, blobs: int, events: int) -> list[PinnedBlob]:
    """Write blobs of JSON lines, each line with its index in its blob; return them by partition."""
    folder.mkdir(exist_ok=True)
    lines = "\n".join(json.dumps({"x": index}) for index in range(events)) + "\n"
    for partition in range(partitions):
        for number in range(blobs):
            (folder / f"{partition}-{number:03}").write_text(lines)
    listed = open_container(folder.as_uri()).list()
    return [PinnedBlob("telemetry", blob.name.partition("-")[0], blob) for blob in listed]


def read(folder: Path, blobs: list[PinnedBlob]) -> Sample:
    return read_sample(open_container(folder.as_uri()), JsonReader(), blobs)


def test_the_first_blobs_are_of_all_partitions_and_all_times(tmp_path: Path) -> None:
    blobs = pinned(tmp_path, 4, 100, 1)
    first = [blob.blob.name.split("-") for blob in list(spread(blobs))[:80]]
    assert set(Counter(partition for partition, _ in first).values()) == {20}
    tenths = Counter(int(number) // 25 for _, number in first)
    assert len(tenths) == 4
    assert min(tenths.values()) >= 10


def test_every_blob_comes_once_and_the_order_is_always_the_same(tmp_path: Path) -> None:
    blobs = pinned(tmp_path, 3, 7, 1)[:-3]
    assert list(spread(blobs)) == list(spread(blobs))
    assert sorted(blob.blob.name for blob in spread(blobs)) == [blob.blob.name for blob in blobs]


def test_a_small_range_is_read_whole(tmp_path: Path) -> None:
    sample = read(tmp_path, pinned(tmp_path, 2, 3, 10))
    assert (sample.blobs, sample.events, sample.objects) == (6, 60, 60)
    (field,) = sample.fields
    assert field.kinds == {AsaType.BIGINT: 60}


def test_a_large_range_is_read_up_to_a_limit_of_events_evenly_from_each_blob(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampling, "MAX_EVENTS", 100)
    monkeypatch.setattr(sampling, "MIN_EVENTS_PER_BLOB", 20)
    sample = read(tmp_path, pinned(tmp_path, 2, 50, 1000))
    assert (sample.blobs, sample.events) == (5, 100)


@pytest.mark.parametrize(("limit", "value"), [("MAX_BLOBS", 3), ("MAX_BYTES", 250)])
def test_blobs_and_bytes_are_limited_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    monkeypatch.setattr(sampling, limit, value)
    blobs = pinned(tmp_path, 2, 5, 10)
    assert blobs[0].blob.size == 90
    assert read(tmp_path, blobs).blobs == 3


def test_bodies_that_are_counted_in_parts_count_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "BATCH_BYTES", 100)
    sample = read(tmp_path, pinned(tmp_path, 1, 4, 10))
    assert sample.counts[()]["name"].num_chunks > 1
    assert (sample.objects, sample.fields[0].events) == (40, 40)
