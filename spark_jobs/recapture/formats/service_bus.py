"""Archives of Service Bus messages, which their users write: JSON, a message a line (capture format, cousins)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recapture.archive.manifest import CaptureBlob
from recapture.formats.bodies import pointer, select, utf8, whole
from recapture.formats.events import UNNUMBERED, Events, metadata_of
from recapture.formats.inflate import DEFAULT, Limits
from recapture.formats.lines import lines, text
from recapture.formats.sequence_partition import partition_of
from recapture.formats.times import enqueued_times
from recapture.model import Metadata, MetadataColumn


@dataclass(frozen=True)
class ServiceBusReader:
    """Service Bus messages, ordered by their sequence numbers. A `Reader`.

    Its attributes name the fields of a line; dots step into records.
    """

    sequence_number: str
    enqueued_time: str
    body: str
    limits: Limits = DEFAULT
    numbered = True

    def read(self, pinned: CaptureBlob, content: bytes, wanted: Sequence[MetadataColumn]) -> Events:
        line = lines(text(pinned.blob.name, content, self.limits))
        read = select({"line": utf8(line)}, self._reading())
        number = whole(read["number"])
        unreadable = pc.coalesce(
            pc.if_else(pc.is_valid(whole(read["kind"])), pa.scalar(None, pa.string()), "its line is not JSON"),
            pc.if_else(pc.is_valid(number), None, f"its line has no whole number in {self.sequence_number}"),
        )
        readable = pc.is_null(unreadable).to_numpy(zero_copy_only=False)
        numbers = np.where(readable, number.fill_null(0).to_numpy(), np.arange(len(line)))
        entity = np.where(readable, partition_of(numbers), UNNUMBERED)
        times, enqueued = enqueued_times(pinned, whole(read["enqueued"]), self.enqueued_time)

        def own(metadata: Metadata, key: str) -> pa.Array | None:
            match metadata:
                case Metadata.PARTITION_ID:
                    return pa.array(entity, mask=~readable)
                case Metadata.SEQUENCE_NUMBER:
                    return pa.array(numbers, mask=~readable)
                case Metadata.EVENT_ENQUEUED:
                    return times
            return None

        body = pc.if_else(pc.is_null(unreadable), whole(read["body"]), line)
        return Events(numbers, enqueued, body, metadata_of(wanted, pinned, len(line), own), entity, unreadable)

    def _reading(self) -> str:
        number, enqueued, body = (
            f"json_extract(json, {pointer(field.split('.'))})"
            for field in (self.sequence_number, self.enqueued_time, self.body)
        )
        digits = f"CASE WHEN regexp_full_match({number}->>'$', '[0-9]{{1,19}}') THEN {number}->>'$' END"
        return f"""
            SELECT json_type(json) AS kind, try_cast({digits} AS BIGINT) AS number, {enqueued}->>'$' AS enqueued,
                encode(CASE json_type({body})
                    WHEN 'VARCHAR' THEN {body}->>'$' WHEN 'NULL' THEN NULL ELSE {body}::VARCHAR
                END) AS body
            FROM (SELECT CASE WHEN json_valid(line) THEN line::JSON END AS json FROM bodies)
        """
