"""What a container promises, whichever kind it is."""

import dataclasses
import random
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from recapture.errors import DamagedBlobError, RunError
from recapture.storage import Container, open_container

Place = Any

NAMES = [
    "A", "a b", "a+b", "a-b", "a.b", "a/b-c", "a/b.d/e", "a/b/c", "a/c", "a0", "a=1/b", "b/2026/03/01", "b/2026/03/02",
    "c", "d/00", "d/01", "d/02", "d/10", "naïve/日本 100%41#?.avro", "ü",
]  # fmt: skip


def test_a_listing_is_in_name_order(container: Container) -> None:
    shuffled = random.Random(1).sample(NAMES, len(NAMES))
    for name in shuffled:
        container.write(name, name.encode())
    assert [blob.name for blob in container.list()] == sorted(NAMES)


@pytest.mark.parametrize("prefix", ["a", "a/", "a/b", "b/2026/03/01", "d/0", "z", "naïve/日"])
def test_a_prefix_selects_by_the_start_of_the_name(container: Container, prefix: str) -> None:
    for name in NAMES:
        container.write(name, b"")
    assert [blob.name for blob in container.list(prefix)] == sorted(n for n in NAMES if n.startswith(prefix))


@pytest.mark.parametrize(
    ("prefix", "folders"),
    [
        ("", ["a/", "a=1/", "b/", "d/", "naïve/"]),
        ("a/", ["a/b.d/", "a/b/"]),
        ("a/b", ["a/b.d/", "a/b/"]),
        ("b/2026/", ["b/2026/03/"]),
        ("c", []),
        ("z/", []),
    ],
)
def test_folders_are_what_names_have_up_to_the_next_slash(
    container: Container, prefix: str, folders: list[str]
) -> None:
    for name in NAMES:
        container.write(name, b"")
    assert list(container.list_folders(prefix)) == folders


def test_what_was_written_is_what_is_listed_and_read(container: Container) -> None:
    before = datetime.now(UTC) - timedelta(seconds=2)
    written = {container.write(name, name.encode()) for name in NAMES}
    listed = set(container.list())
    assert {(b.name, b.etag, b.size, b.last_modified) for b in written} == {
        (b.name, b.etag, b.size, b.last_modified) for b in listed
    }
    for blob in listed:
        assert container.read(blob) == container.read_current(blob.name) == blob.name.encode()
        assert blob.last_modified.tzinfo is UTC or blob.last_modified.utcoffset() == timedelta(0)
        assert blob.last_modified.microsecond == 0
        assert before <= blob.last_modified <= datetime.now(UTC)


def test_an_empty_blob_is_read_as_empty(container: Container) -> None:
    assert container.read(container.write("empty", b"")) == b""
    assert container.read_current("empty") == b""


def test_the_url_of_a_container_opens_the_same_container(place: Place, container: Container) -> None:
    container.write("naïve name", b"x")
    assert open_container(container.url).read_current("naïve name") == b"x"
    assert container.url == open_container(place.url + "/").url


def test_a_prefix_in_the_url_is_left_out_of_the_names(place: Place, container: Container) -> None:
    table = open_container(f"{place.url}/curated/my%20telemetry")
    table.write("part/0", b"0")
    container.write("curated/my telemetry-2/1", b"1")
    assert [blob.name for blob in table.list()] == ["part/0"]
    assert [blob.name for blob in table.list("part/")] == ["part/0"]
    assert [table.read(blob) for blob in table.list()] == [b"0"]
    assert container.read_current("curated/my telemetry/part/0") == b"0"
    assert table.create("part/0", b"") is False


def test_a_blob_with_other_content_is_refused_by_name(container: Container) -> None:
    planned = container.write("contoso/0/05.avro", b"as planned")
    now = container.write("contoso/0/05.avro", b"different!")
    message = (
        rf"^blob contoso/0/05\.avro changed since it was planned \(etag {planned.etag}, now {now.etag}\): plan again$"
    )
    with pytest.raises(RunError, match=message):
        container.read(planned)


def test_a_touched_blob_is_refused_though_its_content_is_the_same(place: Place, container: Container) -> None:
    planned = container.write("touched", b"same")
    place.touch("touched")
    assert container.read_current("touched") == b"same"
    with pytest.raises(RunError, match=r"^blob touched changed since it was planned"):
        container.read(planned)


def test_a_deleted_blob_is_refused_by_name(place: Place, container: Container) -> None:
    planned = container.write("gone", b"x")
    place.remove("gone")
    with pytest.raises(RunError, match=r"^blob gone was deleted since it was planned .*: plan again$"):
        container.read(planned)


def test_content_that_does_not_match_the_content_md5_of_the_listing_is_damaged(container: Container) -> None:
    blob = dataclasses.replace(container.write("flipped", b"flip"), md5="AAAAAAAAAAAAAAAAAAAAAA==")
    with pytest.raises(DamagedBlobError, match=r"^blob flipped is damaged: "):
        container.read(blob)


def test_content_shorter_than_listed_is_a_fault_of_the_storage_and_not_damage(container: Container) -> None:
    blob = dataclasses.replace(container.write("short", b"half"), size=8)
    with pytest.raises(RunError, match=r"^blob short was not read whole: the storage sent 4 of the 8 bytes") as raised:
        container.read(blob)
    assert not isinstance(raised.value, DamagedBlobError)


def test_an_absent_blob_reads_as_none(container: Container) -> None:
    container.write("a/b", b"")
    for name in ("nothing", "a", "a/c", "a/b/c"):
        assert container.read_current(name) is None


def test_create_keeps_an_existing_blob(container: Container) -> None:
    assert container.create("runs/1/manifest.json", b"first") is True
    assert container.create("runs/1/manifest.json", b"second") is False
    assert container.read_current("runs/1/manifest.json") == b"first"
    assert [blob.name for blob in container.list()] == ["runs/1/manifest.json"]


def test_the_listed_version_of_a_blob_is_removed(container: Container) -> None:
    container.write("part/0", b"0")
    container.write("part/1", b"1")
    (first,) = container.list("part/0")
    assert container.remove(first) is True
    assert [blob.name for blob in container.list()] == ["part/1"]
    assert container.remove(first) is False


def test_a_blob_that_was_written_again_is_not_removed(container: Container) -> None:
    listed = container.write("part/0", b"0")
    container.write("part/0", b"0")
    assert container.remove(listed) is False
    assert container.read_current("part/0") == b"0"


def test_exactly_one_of_several_removals_at_the_same_time_removes_a_blob(place: Place) -> None:
    with ThreadPoolExecutor(8) as pool:
        for number in range(5):
            blob = open_container(place.url).write(f"race/{number}", b"x")
            removed = list(
                pool.map(lambda container, blob=blob: container.remove(blob), [open_container(place.url)] * 8)
            )
            assert removed.count(True) == 1


def test_a_blob_is_replaced_only_in_the_version_that_was_read(container: Container) -> None:
    assert container.read_with_etag("record.json") is None
    assert container.replace("record.json", b"too early", "0x1") is False
    container.write("record.json", b"first")
    read = container.read_with_etag("record.json")
    assert read is not None
    content, etag = read
    assert content == b"first"
    assert container.replace("record.json", b"second", etag) is True
    assert container.replace("record.json", b"third!", etag) is False
    assert container.read_current("record.json") == b"second"
    assert [blob.name for blob in container.list()] == ["record.json"]


def test_no_increment_of_several_writers_that_race_to_replace_is_lost(place: Place) -> None:
    def increment(container: Container) -> None:
        while True:
            read = container.read_with_etag("count")
            assert read is not None
            content, etag = read
            if container.replace("count", b"%d" % (int(content) + 1), etag):
                return

    containers = [open_container(place.url) for _ in range(4)]
    containers[0].write("count", b"100")
    with ThreadPoolExecutor(len(containers)) as pool:
        list(pool.map(increment, containers * 5))
    assert containers[0].read_current("count") == b"120"


def test_exactly_one_of_several_writers_that_race_to_create_wins(place: Place) -> None:
    contents = [bytes([number]) * 200_000 for number in range(8)]
    with ThreadPoolExecutor(len(contents)) as pool:
        for attempt in range(5):
            containers = [open_container(place.url) for _ in contents]
            name = f"race/{attempt}"
            won = list(pool.map(lambda c, content, name=name: c.create(name, content), containers, contents))
            assert won.count(True) == 1
            assert containers[0].read_current(name) == contents[won.index(True)]


def test_a_reader_never_sees_a_half_written_blob(place: Place, container: Container) -> None:
    contents = [bytes([number]) * 300_000 for number in range(20)]
    container.write("live", contents[0])
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(lambda: [open_container(place.url).write("live", content) for content in contents])
        contents_read = set()
        while not writing.done():
            contents_read.add(container.read_current("live"))
    writing.result()
    assert contents_read <= set(contents)
    assert container.read_current("live") == contents[-1]


def test_a_missing_container_is_reported_in_one_line(place: Place) -> None:
    missing = open_container(place.url + "-not")
    with pytest.raises(RunError, match=r"-not does not exist: create it, or correct the url$") as raised:
        list(missing.list("some/prefix"))
    assert "\n" not in str(raised.value)
