"""In the sample world, the sample pipeline gives every verdict that its policies can give."""

import json
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path

import fastavro
import pytest

from recapture.definition.pipeline import load
from recapture.time_model import ticks
from recapture.time_model.verdicts import Verdict
from recapture.tools.sample import SampleBlob, world, write_world
from tests.oracle import VERDICTS, Event, Policy, process
from tests.paths import ROOT
from tests.tools.advise.runs import counted_by_runs

START = datetime(2026, 3, 1, 6, tzinfo=UTC)
HOURS = 6


def judged_by_oracle(blobs: Iterable[SampleBlob], policy: Policy, end: datetime) -> dict[str, dict[str, int]]:
    """Return the number of events with each verdict by partition, of those that arrive up to `end`."""
    events = []
    for blob in blobs:
        if blob.last_modified <= end:
            partition, arrival = blob.name.split("/")[2], ticks.from_datetime(blob.last_modified)
            for record in fastavro.reader(BytesIO(blob.content)):
                assert isinstance(record, dict)
                events.append(parsed(partition, arrival, record["SequenceNumber"], record["Body"]))
    counts: dict[str, Counter[str]] = {}
    for outcome in process(sorted(events, key=lambda event: (event.arrival, event.sequence)), policy):
        counts.setdefault(outcome.event.partition, Counter())[outcome.verdict] += 1
    return {partition: dict(verdicts) for partition, verdicts in counts.items()}


def parsed(partition: str, arrival: int, sequence: int, body: bytes) -> Event:
    """Return a body as the oracle's event."""
    try:
        content = json.loads(body.decode())
    except ValueError:
        return Event(partition, arrival, sequence, None, malformed=True)
    malformed = not isinstance(content.get("temperature", 0.0), float | int)
    text = content.get("eventTime")
    time = None if text is None else ticks.from_datetime(_instant(text)) + int(text.removesuffix("Z")[26])
    return Event(partition, arrival, sequence, time, (content["deviceId"],), malformed)


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text[:26]).replace(tzinfo=UTC)


def test_every_verdict_of_the_policy_adjust_occurs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECAPTURE_CONTAINER", tmp_path.as_uri())
    monkeypatch.setenv("RECAPTURE_TABLE", (tmp_path / "table").as_uri())
    blobs = list(world(START, HOURS))
    write_world(blobs, tmp_path)
    pipeline = load(ROOT / "dags" / "pipelines" / "telemetry.yaml")
    end = START + timedelta(hours=HOURS)
    runs = counted_by_runs(pipeline, START, end)
    counts = {
        partition: {Verdict(code).name.lower(): count for code, count in enumerate(partition_counts) if count}
        for partition, (partition_counts, _) in runs.items()
    }
    out_of_order, late, early = map(
        ticks.from_seconds, (pipeline.job.out_of_order_seconds, pipeline.job.late_seconds, 300)
    )
    policy = Policy(out_of_order, late, early)
    assert counts == judged_by_oracle(blobs, policy, end)
    verdicts = {verdict for partition_counts in counts.values() for verdict in partition_counts}
    assert verdicts == {name for name in VERDICTS if not name.endswith(("late_dropped", "order_dropped"))}
