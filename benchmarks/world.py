"""The input of the benchmarks: Capture blobs in a local folder, made once and kept between runs."""

import json
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from pathlib import Path

import fastavro
import numpy as np

from recapture.tools.sample.capture_file import capture_schema, enqueued_text

START = datetime(2026, 3, 1, tzinfo=UTC)
WORTH_PROCESSES = 100_000
"""Number of events from which on several processes write them: they take a second to start."""


@dataclass(frozen=True)
class World:
    """Events that are spread evenly over the partitions and capture intervals of some hours."""

    events: int
    hours: int = 6
    interval: timedelta = timedelta(minutes=5)
    partitions: int = 4
    devices: int = 1000
    codec: str = "null"
    by_device: bool = False
    """Whether each device sends to one partition, as with a partition key; otherwise to all of them."""

    @property
    def end(self) -> datetime:
        """End of the last hour."""
        return START + timedelta(hours=self.hours)

    @property
    def blob_count(self) -> int:
        """Number of blobs: one for each partition and interval."""
        return self.partitions * self._intervals

    @property
    def _intervals(self) -> int:
        return int(timedelta(hours=self.hours) / self.interval)

    def make(self, folder: Path) -> None:
        """Write the blobs as Capture would, unless the folder has them."""
        if self.blob_count > self.events:
            raise ValueError(f"give at least {self.blob_count} events")
        marker = folder / ".complete"
        if marker.exists():
            return
        partitions = [folder] * self.partitions, range(self.partitions)
        if self.events < WORTH_PROCESSES:
            list(map(self._make_partition, *partitions))
        else:
            with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
                list(pool.map(self._make_partition, *partitions))
        marker.touch()

    def _make_partition(self, folder: Path, partition: int) -> None:
        random = np.random.default_rng([7, partition])
        schema = fastavro.parse_schema(json.loads(capture_schema()))
        sequence = 0
        for interval in range(self._intervals):
            number = partition * self._intervals + interval
            count = self.events * (number + 1) // self.blob_count - self.events * number // self.blob_count
            begins = START + interval * self.interval
            modified = (begins + self.interval + timedelta(seconds=3)).timestamp()
            path = folder / f"contoso/telemetry/{partition}/{begins:%Y/%m/%d/%H/%M/%S}.avro"
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                records = self._records(random, begins, sequence, count, partition)
                fastavro.writer(file, schema, records, codec=self.codec, sync_interval=1 << 30)
            os.utime(path, (modified, modified))
            sequence += count

    def _records(
        self, random: np.random.Generator, begins: datetime, sequence: int, count: int, partition: int
    ) -> Iterator[dict[str, object]]:
        draws = zip(
            np.sort(random.uniform(0, self.interval.total_seconds(), count)).tolist(),
            random.exponential(20, count).tolist(),
            random.integers(self.devices, size=count).tolist(),
            random.normal(21, 4, count).round(2).tolist(),
            random.integers(20, size=count).tolist(),
            strict=True,
        )
        for place, (seconds, delay, drawn, temperature, site) in enumerate(draws, sequence):
            device = drawn // self.partitions * self.partitions + partition if self.by_device else drawn
            enqueued = begins + timedelta(seconds=seconds)
            body = {
                "deviceId": f"device-{device}",
                "eventTime": f"{enqueued - timedelta(seconds=delay):%Y-%m-%dT%H:%M:%S.%f}0Z",
                "temperature": temperature,
                "site": {"id": f"site-{site}", "region": "west"},
                "firmware": "4.11.2",
            }
            yield {
                "SequenceNumber": place,
                "Offset": str(place * 256),
                "EnqueuedTimeUtc": enqueued_text(enqueued),
                "SystemProperties": {"x-opt-enqueued-time": int(enqueued.timestamp() * 1000)},
                "Properties": {},
                "Body": json.dumps(body, separators=(",", ":")).encode(),
            }
