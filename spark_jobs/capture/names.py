"""The names of Capture blobs: which partition a blob holds (capture format, the name)."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime

DEFAULT_PATH = "{Namespace}/{EventHub}/{PartitionId}/{Year}/{Month}/{Day}/{Hour}/{Minute}/{Second}"

_WINDOW = re.compile(r"/([0-9]{4})/([0-9]{2})/([0-9]{2})/([0-9]{2})/([0-9]{2})/([0-9]{2})(?:\.avro)?\Z")


@dataclass(frozen=True)
class CaptureNames:
    """The names that Capture gives to the blobs of one event hub, in the default format."""

    namespace: str
    event_hub: str

    @property
    def prefix(self) -> str:
        """What every name begins with."""
        return f"{self.namespace}/{self.event_hub}/"

    def partition(self, name: str) -> str | None:
        """The partition of the blob with this name; None where the name is not one that Capture gives.

        Blobs of 2016 have no extension.
        """
        rest = name.removeprefix(self.prefix)
        if rest == name or rest.count("/") != 6 or _opened(rest) is None:
            return None
        return rest.split("/")[0] or None


def opened(name: str) -> datetime:
    """When the capture window of the blob with this name began, in UTC. Raises ValueError where it names no time."""
    found = _opened(name)
    if found is None:
        raise ValueError(f"{name} is not the name of a Capture blob")
    return found


def _opened(name: str) -> datetime | None:
    match = _WINDOW.search(name)
    if match is None:
        return None
    year, month, day, hour, minute, second = map(int, match.groups())
    try:
        return datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
