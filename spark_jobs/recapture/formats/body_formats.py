"""The body formats: how senders may write the bodies of their messages.

To add one, write `Messages` in a module next to this one, and register it here under its name.
"""

from enum import StrEnum

from recapture.formats.avro_messages import AvroMessages
from recapture.formats.compressed_messages import CompressedMessages, Compression
from recapture.formats.csv_messages import CsvMessages
from recapture.formats.json_bodies.messages import JsonMessages
from recapture.formats.messages import Messages


class BodyFormat(StrEnum):
    """Names of the body formats in a pipeline file."""

    JSON = "Json"
    CSV = "Csv"
    AVRO = "Avro"


def messages_of(
    format_: BodyFormat = BodyFormat.JSON, compression: Compression = Compression.NONE, delimiter: str = ","
) -> Messages:
    """Return what takes events out of bodies that are written in a format."""
    messages: Messages
    match format_:
        case BodyFormat.JSON:
            messages = JsonMessages()
        case BodyFormat.CSV:
            messages = CsvMessages(delimiter)
        case BodyFormat.AVRO:
            messages = AvroMessages()
    return messages if compression is Compression.NONE else CompressedMessages(compression, messages)
