"""Small archives, the advice on them, and what runs with each setting count."""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recapture.archive.pinning import pin_input
from recapture.definition.digest import run_definition
from recapture.definition.pipeline import Pipeline
from recapture.ordering.order import Reading, order
from recapture.ordering.task import split
from recapture.run.slices import slices_of
from recapture.storage import open_container
from recapture.time_model.verdicts import Verdict
from recapture.tools.advise.advice import Advice, advise
from recapture.tools.advise.tolerances import NO_LIMIT, Setting
from recapture.tools.sample import SampleEvent, capture_file
from tests.blobs import write_blob
from tests.worlds import HOUR, TELEMETRY, TEN, World, blob_name

COUNT = "SELECT COUNT(*) AS events INTO aggregates FROM telemetry TIMESTAMP BY eventTime{over} GROUP BY {group}"
PLAIN = COUNT.format(over="", group="TumblingWindow(minute, 5)")
BY_DEVICE = COUNT.format(over=" OVER deviceId", group="TumblingWindow(minute, 5)")


def event(time: datetime | None, device: str | int | None = "a", **more: Any) -> bytes:
    """Return a body; a time or a device of None is left out."""
    fields: dict[str, Any] = {"deviceId": device} if device is not None else {}
    if time is not None:
        fields["eventTime"] = time.isoformat()
    return json.dumps(fields | more).encode()


def with_setting(pipeline: Pipeline, setting: Setting) -> Pipeline:
    """Return the pipeline with another setting of the tolerances."""
    late = NO_LIMIT if setting.late is None else setting.late
    update = {"late_seconds": late, "out_of_order_seconds": setting.out_of_order}
    return pipeline.model_copy(update={"job": pipeline.job.model_copy(update=update)})


def counted_by_runs(
    pipeline: Pipeline, start: datetime, end: datetime, task_bytes: int = 1 << 40
) -> dict[str, tuple[list[int], dict[str, int]]]:
    """Return what a run of a range counts in each partition that had events: its verdicts, and other counts.

    The run has the tasks of `recapture backfill`, and no Spark.
    """
    (definition,) = run_definition(pipeline).inputs
    (compiled,), (section,) = pipeline.query.inputs, pipeline.inputs
    container = open_container(section.container)
    planned = pin_input(definition, container, slices_of(pipeline, start, end), end + 1000 * HOUR)
    verdicts: dict[str, NDArray[np.int64]] = {}
    others: dict[str, dict[str, int]] = {}
    for task in split(planned.slices, planned.blobs, task_bytes):
        is_quarantined = section.on_damaged_blob == "quarantine"
        reading = Reading(compiled, pipeline.policies(compiled), pipeline.reader(compiled), is_quarantined)
        batches, by_slice = order(task, container, reading)
        for _ in batches:
            pass
        for counters in by_slice.values():
            before = verdicts.get(task.partition, np.zeros(len(Verdict), np.int64))
            verdicts[task.partition] = before + counters.verdicts
            total = others.setdefault(task.partition, dict.fromkeys(("late", "out_of_order", "early", "duplicates"), 0))
            for name in total:
                total[name] += getattr(counters, name)
    return {
        partition: (counts.tolist(), others[partition])
        for partition, counts in verdicts.items()
        if counts.any() or others[partition]["duplicates"]
    }


def input_section(**keys: Any) -> list[dict[str, Any]]:
    return [TELEMETRY | keys]


def put(world: World, partition: str, arrival: datetime, events: Iterable[tuple[datetime, bytes]], first: int) -> str:
    """Write a blob of events, each with the time when the hub took it; return the blob's name."""
    events = list(events)
    records = [SampleEvent(first + n, "", enqueued, body) for n, (enqueued, body) in enumerate(events)]
    name = blob_name(partition, min(enqueued for enqueued, _ in events).replace(microsecond=0))
    write_blob(world.capture / name, capture_file(records), arrival)
    return name


def fleet(
    world: World,
    clocks: Mapping[str, float],
    minutes: Iterable[float] = range(60),
    partition: str = "0",
    delay: float = 1,
    interval: int = 5,
) -> list[str]:
    """Write an hour from ten of devices with wrong clocks, `{name: seconds ahead}`, and return the blobs' names.

    Every device sends an event at each of these minutes after ten; it reaches the hub after `delay` seconds.
    """
    names, number = [], 0
    for opened in range(0, 60, interval):
        events = [
            (
                TEN + timedelta(minutes=minute, seconds=delay),
                event(TEN + timedelta(minutes=minute, seconds=ahead), name),
            )
            for minute in minutes
            if opened <= minute < opened + interval
            for name, ahead in clocks.items()
        ]
        if events:
            arrival = TEN + timedelta(minutes=opened + interval, seconds=2)
            names.append(put(world, partition, arrival, events, number))
            number += len(events)
    return names


def advised(pipeline: Pipeline, start: datetime = TEN, end: datetime = TEN + HOUR) -> Advice:
    """Return the advice on a range, long after it."""
    return advise(pipeline, start, end, end + 1000 * HOUR)
