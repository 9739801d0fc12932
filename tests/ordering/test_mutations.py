"""Whatever happens to a blob, it is read to its last event or refused. The timeout of pytest catches endless loops."""

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

from recapture.archive.pinning import PinnedBlob, PlannedSlice
from recapture.formats.avro import read_framing
from recapture.formats.event_hubs import EVENT_DATA, CaptureInput, CaptureReader
from recapture.ordering.counters import Counters
from recapture.ordering.order import Reading, order
from recapture.ordering.task import Task
from recapture.query.compile import compile_query
from recapture.storage import Blob
from recapture.time_model.policies import Policies
from recapture.time_model.slices import Arrivals, Slice
from recapture.time_model.ticks import from_datetime, from_seconds
from recapture.tools.sample import SampleEvent, capture_file
from tests.draws import examples
from tests.formats.test_avro import in_blocks
from tests.paths import CAPTURE_FILES
from tests.worlds import body

TEN = datetime(2026, 3, 1, 10, tzinfo=UTC)
MUTATIONS = examples(60)
"""Number of mutations of each file."""
QUERY = compile_query(
    "SELECT COUNT(*) AS events, MAX(EventEnqueuedUtcTime) AS newest INTO out FROM t TIMESTAMP BY eventTime "
    "GROUP BY TumblingWindow(minute, 5), GetMetadataPropertyValue(t, '[User].[a]')",
    inputs={"t": CaptureInput.metadata},
    output_aliases=["out"],
).inputs[0]
POLICIES = Policies(
    out_of_order_tolerance=0, late_tolerance=from_seconds(600), early_window=from_seconds(300), adjust=True
)


def events(count: int, first: int = 100) -> list[SampleEvent]:
    return [
        SampleEvent(first + n, str(n), TEN + timedelta(seconds=n), body("a", TEN + timedelta(seconds=n)), "k", {"a": n})
        for n in range(count)
    ]


def real(name: str) -> bytes:
    path = CAPTURE_FILES / name
    if not path.exists():
        pytest.skip(f"shared/capture-files/{name} is not next to this repository")
    return path.read_bytes()


FILES: dict[str, Callable[[], bytes]] = {
    "one block": lambda: capture_file(events(20)),
    "deflate": lambda: capture_file(events(20), codec="deflate"),
    "several blocks": lambda: in_blocks(events(7), events(7, 107), events(6, 114)),
    "several deflated blocks": lambda: in_blocks(events(7), events(7, 107), events(6, 114), codec="deflate"),
    "the schema of 2016": lambda: capture_file(events(20), properties_with_null=False),
    "empty": lambda: capture_file([]),
    "real of 2016": lambda: real("2016-no-extension-05"),
    "real of 2022": lambda: real("p9--2022-12-09--16-50-12.avro"),
    "real and empty": lambda: real("empty.avro"),
}


def mutated(content: bytes, chance: Random) -> tuple[str, bytes]:
    kind = chance.choice(["flip", "flips", "cut", "insert", "delete", "swap", "zeros", "noise", "repeat"])
    size = len(content)
    place = chance.randrange(size)
    span = min(chance.choice([1, 4, 16, 64, 512]), size - place)
    head, middle, tail = content[:place], content[place : place + span], content[place + span :]
    match kind:
        case "flip" | "flips":
            changed = bytearray(content)
            for _ in range(1 if kind == "flip" else 8):
                changed[chance.randrange(size)] ^= 1 << chance.randrange(8)
            return kind, bytes(changed)
        case "cut":
            return kind, head
        case "insert":
            return kind, head + chance.randbytes(span) + middle + tail
        case "delete":
            return kind, head + tail
        case "swap":
            return kind, head + tail[:span] + middle + tail[span:]
        case "zeros":
            return kind, head + bytes(span) + tail
        case "noise":
            return kind, head + chance.randbytes(span) + tail
    return kind, head + middle * 2 + tail


class OneBlob:
    """A container that has one blob."""

    url = "memory:"

    def __init__(self, content: bytes) -> None:
        self._content = content

    def read(self, blob: Blob) -> bytes:
        return self._content


def judged(content: bytes) -> Counters:
    """Return the counters of a task that reads a blob with this content."""
    start = from_datetime(TEN)
    hour = Slice(start, start + from_seconds(3600))
    pinned = PinnedBlob("telemetry", "0", Blob("b.avro", "etag", len(content), TEN + timedelta(minutes=30)))
    planned = PlannedSlice(hour, Arrivals(start - from_seconds(4500), hour.end), "", ())
    container: Any = OneBlob(content)
    task = Task("telemetry", "0", (planned,), (pinned,))
    batches, counters = order(task, container, Reading(QUERY, POLICIES, CaptureReader(), quarantine_damaged=True))
    for _ in batches:
        pass
    return counters[hour]


@pytest.mark.parametrize("name", FILES)
def test_a_mutated_blob_is_read_to_its_last_event_or_quarantined_whole(name: str) -> None:
    content = FILES[name]()
    expected = judged(content)
    assert (expected.damaged, expected.events) == (0, read_framing("b", content, EVENT_DATA).records)
    borders = {block.stop + 16 for block in read_framing("b", content, EVENT_DATA).blocks}
    chance = Random(name)
    outcomes: Counter[str] = Counter()
    for _ in range(MUTATIONS):
        kind, mutant = mutated(content, chance)
        counted = judged(mutant)
        assert counted.events == counted.duplicates + counted.verdicts.sum()
        if counted.damaged:
            (row,) = [row for batch in counted.quarantine for row in batch.to_pylist()]
            assert (counted.events, row["verdict"], row["body"]) == (0, "damaged", mutant)
            assert "\n" not in row["reason"]
        elif kind == "cut" and len(mutant) in borders:
            assert len(mutant) < len(content), "complete in itself: only the listed size and the numbers show it"
        else:
            assert counted.events >= expected.events, (name, kind)
        outcomes["quarantined" if counted.damaged else "decoded"] += 1
    assert outcomes["quarantined"] > MUTATIONS // 2
