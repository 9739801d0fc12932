"""When the events of a line-by-line archive were enqueued."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recapture.archive.manifest import CaptureBlob
from recapture.errors import DamagedBlobError
from recapture.formats.events import UNKNOWN
from recapture.time_model import ticks, timestamps


def enqueued_times(pinned: CaptureBlob, texts: pa.Array, field: str) -> tuple[pa.Array, NDArray[np.int64]]:
    """The times in ticks, NULL where there is none, and those of `Events.enqueued`.

    Raises DamagedBlobError where there is none although the events arrive at it: no slice could count them.
    """
    instants, valid = timestamps.parse(texts)
    if pinned.window is not None and not valid.all():
        place = int(np.flatnonzero(~valid)[0])
        written = texts[place].as_py()
        told = f"no {field}" if written is None else f"the {field} {written!r}, which is no time"
        raise DamagedBlobError(
            pinned.blob.name, f"its event {place} has {told}, so when it was enqueued cannot be told"
        )
    seconds = np.where(valid, instants - instants % ticks.TICKS_PER_SECOND, UNKNOWN)
    return pa.array(instants, mask=~valid), seconds
