"""Capture's blobs as events."""

from collections.abc import Sequence
from dataclasses import dataclass

from spark_jobs.capture import metadata
from spark_jobs.capture.bodies import whole
from spark_jobs.capture.decode import decode, has_block
from spark_jobs.capture.events import ENQUEUED, Events
from spark_jobs.capture.inflate import DEFAULT, Limits
from spark_jobs.capture.manifest import CaptureBlob
from spark_jobs.query.model import MetadataColumn
from spark_jobs.time_model import ticks


@dataclass(frozen=True)
class CaptureReader:
    """Event Hubs Capture. A `Reader`."""

    limits: Limits = DEFAULT
    numbered = True

    def read(self, pinned: CaptureBlob, content: bytes, wanted: Sequence[MetadataColumn]) -> Events:
        fields = dict.fromkeys(["EnqueuedTimeUtc", *metadata.fields_of(wanted)])
        events = decode(pinned.blob.name, content, tuple(fields), limits=self.limits)
        found = metadata.read(wanted, pinned, events)
        if pinned.window is None:
            enqueued = metadata.seconds(whole(events["EnqueuedTimeUtc"]))
        else:
            instants = found[ENQUEUED].to_numpy()
            enqueued = instants - instants % ticks.TICKS_PER_SECOND
        without_block = not events.num_rows and not has_block(pinned.blob.name, content)
        numbers = events["SequenceNumber"].to_numpy()
        return Events(numbers, enqueued, whole(events["Body"]), found, without_block=without_block)
