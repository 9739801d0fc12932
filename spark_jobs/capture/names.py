"""The names of Capture blobs: which partition a blob holds (capture format, the name)."""

import re
from dataclasses import dataclass

DEFAULT_PATH = "{Namespace}/{EventHub}/{PartitionId}/{Year}/{Month}/{Day}/{Hour}/{Minute}/{Second}"


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
        match = re.fullmatch(r"([^/]+)/\d{4}/\d{2}/\d{2}/\d{2}/\d{2}/\d{2}(?:\.avro)?", name.removeprefix(self.prefix))
        return match[1] if match and name.startswith(self.prefix) else None
