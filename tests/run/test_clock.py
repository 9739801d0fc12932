"""The storage's clock proves what Capture has written; a machine whose clock is ahead proves nothing."""

import time
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path

import pyarrow as pa
import pytest

from recapture.run import plan, progress
from recapture.time_model import ticks
from recapture.tools.reports import capture as of_report
from recapture.tools.reports.sources import RunSource, Source
from tests.worlds import HOUR, TELEMETRY, World, body


class Ahead(datetime):
    """The clock of a machine that is a day ahead."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> "Ahead":
        return cls.fromtimestamp(time.time() + timedelta(days=1).total_seconds(), tz)


@pytest.fixture
def ended(tmp_path: Path) -> tuple[World, datetime]:
    """A world whose newest blob is in the last hour that has ended, and the end of that hour."""
    end = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    world = World(tmp_path)
    world.put("0", end - timedelta(minutes=30), [body("device", end - timedelta(minutes=33))])
    return world, end


def test_a_machine_whose_clock_is_ahead_does_not_prove_a_slice_complete(
    ended: tuple[World, datetime], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Events of the hour may arrive for two hours more."""
    world, end = ended
    pipeline = world.define(eventsLateArrivalMaxDelayInSeconds=7200)
    monkeypatch.setattr(plan, "datetime", Ahead)
    [slice_] = plan.preview(pipeline, end - HOUR, end).inputs[0].slices
    assert slice_.incomplete_partitions == ("0",)
    waiting = progress.completeness(pipeline, end - HOUR, end, Ahead.now(UTC)).waiting
    assert len(waiting) == 1


def test_a_machine_whose_clock_is_ahead_does_not_say_in_the_report_how_far_capture_has_got(
    ended: tuple[World, datetime], monkeypatch: pytest.MonkeyPatch
) -> None:
    world, end = ended
    pipeline = world.define(inputs=[TELEMETRY], eventsLateArrivalMaxDelayInSeconds=7200)
    run = plan.plan_run(pipeline, end - HOUR, end)
    monkeypatch.setattr(of_report, "datetime", Ahead)
    source = RunSource(run.files, run.manifest, (), None, pa.table({}))
    [input_] = of_report.capture(Source(pipeline, (), {run.id: source}, {}, {}, (), {}, single=None))["inputs"]
    [partition] = input_["partitions"]
    assert ticks.parse_utc(partition["reached"]) <= datetime.now(UTC)
