"""Messages whose bodies may hold several events: their events, each with a body of its own.

Event Hubs keeps messages, and ASA reads events out of them: the elements of a JSON array, its objects in lines, the
rows of CSV, the records of an Avro file (sources: "Azure Stream Analytics data errors", InvalidData; "Stream data as
input into Stream Analytics"). A message is a duplicate or not as a whole, so its events are taken out of it after its
sequence number has been looked at. They share its sequence number, its metadata and its arrival, and keep their order.
"""

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recapture.formats.bodies import Bodies, BodyDecoder, Projection

NO_EVENT = "it has no event in it"
"""Reason of a message that is well formed, and empty: it counts as one malformed event, so that it leaves a trace."""


@dataclass(frozen=True)
class EventBodies:
    """The bodies of the events of some messages; every array has one entry per event."""

    message: NDArray[np.intp]
    """Index of the event's message; they ascend, and every message has an event."""
    body: pa.Array
    """Body of the event (binary): a JSON object, or the bytes that could not be read."""
    unreadable: pa.Array | None
    """Reason why an event could not be read (string), or NULL; None if all could."""


class Messages(Protocol):
    """Takes events out of the bodies of messages. It is pickled and sent to the executors.

    A bad message never fails the others, and never raises: it, or the event in it, has a reason in `unreadable`.
    """

    @property
    def only_strings(self) -> bool:
        """Whether events have no other values than strings and null."""

    def unpack(self, bodies: pa.Array, unreadable: pa.Array | None) -> EventBodies | None:
        """Return the events of messages (binary, or views; none at all is allowed); None if bodies are JSON already.

        `unreadable` holds the reason why a reader could not read a body (string), or NULL; it takes precedence.
        """

    def split(self, bodies: pa.Array, malformed: pa.Array) -> EventBodies | None:
        """Return the events of what `unpack` returned, if some bodies with a reason in `malformed` hold several.

        None if each body is one event.
        """


def read(
    messages: Messages,
    decoder: BodyDecoder,
    bodies: pa.Array,
    projection: Projection,
    unreadable: pa.Array | None = None,
) -> tuple[EventBodies | None, Bodies]:
    """Return the events of messages, or None if each body is one event as it is, and what is read of the events."""
    events = messages.unpack(bodies, unreadable)
    if events is not None:
        bodies, unreadable = events.body, events.unreadable
    parsed = decoder.decode(bodies, projection, unreadable)
    if parsed.malformed.null_count == len(parsed.malformed):
        return events, parsed
    splittable = parsed.malformed
    if unreadable is not None and unreadable.null_count < len(unreadable):
        splittable = pc.if_else(pc.is_null(unreadable), splittable, None)
    split = messages.split(bodies, splittable)
    if split is None:
        return events, parsed
    if unreadable is not None:
        reasons = unreadable.take(pa.array(split.message))
        split = replace(
            split, unreadable=reasons if split.unreadable is None else pc.coalesce(reasons, split.unreadable)
        )
    parsed = decoder.decode(split.body, projection, split.unreadable)
    return split if events is None else replace(split, message=events.message[split.message]), parsed
