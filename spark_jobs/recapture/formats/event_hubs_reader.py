"""Capture's blobs as events."""

from collections.abc import Sequence
from dataclasses import dataclass

from recapture.archive.manifest import CaptureBlob
from recapture.formats import event_hubs_metadata as metadata
from recapture.formats.avro import decode, has_block
from recapture.formats.bodies import whole
from recapture.formats.events import ENQUEUED, Events
from recapture.formats.inflate import DEFAULT, Limits
from recapture.model import MetadataColumn
from recapture.time_model import ticks


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
