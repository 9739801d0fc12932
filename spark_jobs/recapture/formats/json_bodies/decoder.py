"""The decoder of JSON bodies: a scan reads the usual ones, and DuckDB all others."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from recapture.formats.bodies import Bodies, Projection
from recapture.formats.json_bodies.parsed import documents_of, parsed
from recapture.formats.json_bodies.usual import usual_bodies
from recapture.formats.views import taken


@dataclass(frozen=True)
class JsonBodies:
    """A `BodyDecoder` of JSON: a body is one JSON object in UTF-8, with or without a byte order mark."""

    only_strings: bool = False

    def decode(self, bodies: pa.Array, projection: Projection, unreadable: pa.Array | None = None) -> Bodies:
        scanned = None if self.only_strings else usual_bodies(bodies, projection)
        if scanned is None:
            return parsed(bodies, projection, unreadable, only_strings=self.only_strings)
        usual, is_usual = scanned
        if unreadable is not None:
            is_usual &= unreadable.is_null().to_numpy(zero_copy_only=False)
        others = np.flatnonzero(~is_usual)
        if not len(others):
            return usual
        reasons = None if unreadable is None else unreadable.take(pa.array(others))
        return usual.replaced(others, parsed(taken(bodies, others), projection, reasons))

    def as_json(self, bodies: pa.Array) -> pa.Array:
        return documents_of(bodies)[0]
