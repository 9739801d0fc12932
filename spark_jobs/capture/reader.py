"""Capture's blobs as events."""

from collections.abc import Sequence
from dataclasses import dataclass

from spark_jobs.capture import metadata
from spark_jobs.capture.bodies import whole
from spark_jobs.capture.decode import decode
from spark_jobs.capture.events import ENQUEUED, Events
from spark_jobs.capture.manifest import CaptureBlob
from spark_jobs.query.model import MetadataColumn
from spark_jobs.time_model import ticks


@dataclass(frozen=True)
class CaptureReader:
    """Event Hubs Capture. A `Reader`."""

    numbered = True

    def read(self, pinned: CaptureBlob, content: bytes, wanted: Sequence[MetadataColumn]) -> Events:
        fields = dict.fromkeys(["EnqueuedTimeUtc", *metadata.fields_of(wanted)])
        events = decode(pinned.blob.name, content, tuple(fields))
        found = metadata.read(wanted, pinned, events)
        if pinned.window is None:
            enqueued = metadata.seconds(whole(events["EnqueuedTimeUtc"]))
        else:
            instants = found[ENQUEUED].to_numpy()
            enqueued = instants - instants % ticks.TICKS_PER_SECOND
        return Events(events["SequenceNumber"].to_numpy(), enqueued, whole(events["Body"]), found)
