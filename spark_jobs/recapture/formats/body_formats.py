"""The body formats: how senders may write the bodies of their events.

To add one, write a `BodyDecoder` in a module next to this one, and register it here under its name.
"""

from enum import StrEnum

from recapture.formats.bodies import BodyDecoder
from recapture.formats.json_bodies.decoder import JsonBodies


class BodyFormat(StrEnum):
    """Names of the body formats in a pipeline file."""

    JSON = "Json"


DECODERS: dict[BodyFormat, BodyDecoder] = {BodyFormat.JSON: JsonBodies()}
