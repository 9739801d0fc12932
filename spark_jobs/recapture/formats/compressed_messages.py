"""Compressed messages: each body is inflated by itself (source: "Stream data as input into Stream Analytics")."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import pyarrow as pa

from recapture.formats.messages import EventBodies, Messages
from recapture.formats.views import copied

MAX_MIB = 64
"""Largest inflated size of a body, MiB. A message of Event Hubs has at most 20 MB."""


class Compression(StrEnum):
    """Compression of bodies, by ASA's names."""

    NONE = "None"
    GZIP = "GZip"
    DEFLATE = "Deflate"


_WINDOW_BITS = {Compression.GZIP: 31, Compression.DEFLATE: -15}
"""What zlib calls a gzip file, and a raw deflate stream, as .NET's DeflateStream writes it."""


@dataclass(frozen=True)
class CompressedMessages:
    """`Messages` whose bodies are compressed."""

    compression: Compression
    inner: Messages
    """Messages that the bodies inflate to."""

    @property
    def only_strings(self) -> bool:
        return self.inner.only_strings

    def unpack(self, bodies: pa.Array, unreadable: pa.Array | None) -> EventBodies:
        inflate = _inflater(self.compression)
        known = [None] * len(bodies) if unreadable is None else unreadable.to_pylist()
        values = copied(bodies).to_pylist()
        parts = [
            (body, reason) if body is None or reason is not None else inflate(body)
            for body, reason in zip(values, known, strict=True)
        ]
        plain = pa.array([body for body, _ in parts], pa.binary())
        reasons = pa.array([reason for _, reason in parts], pa.string())
        events = self.inner.unpack(plain, reasons)
        return EventBodies(np.arange(len(plain)), plain, reasons) if events is None else events

    def split(self, bodies: pa.Array, malformed: pa.Array) -> EventBodies | None:
        return self.inner.split(bodies, malformed)


def _inflater(compression: Compression) -> Callable[[bytes], tuple[bytes, str | None]]:
    """Return a function from a body to what it inflates to, or to the body and the reason why it cannot be inflated."""
    from isal import isal_zlib

    bits, limit = _WINDOW_BITS[compression], MAX_MIB << 20

    def inflate(body: bytes) -> tuple[bytes, str | None]:
        inflater = isal_zlib.decompressobj(wbits=bits)
        try:
            plain = inflater.decompress(body, limit)
        except isal_zlib.error as error:  # type: ignore[misc]  # its stub has no class
            return body, f"not {compression} ({error})"
        if not inflater.eof:
            too_large = inflater.unconsumed_tail or len(plain) == limit
            return body, f"it inflates to more than {MAX_MIB} MiB" if too_large else f"its {compression} is cut off"
        if inflater.unused_data:
            return body, f"{len(inflater.unused_data)} bytes follow its {compression}"
        return plain, None

    return inflate
