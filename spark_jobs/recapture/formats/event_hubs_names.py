"""The names of Capture blobs: their partition and the time at which their window began (capture format, the name)."""

import re
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import ClassVar

from recapture.archive.blob_names import BlobNames
from recapture.archive.name_format import CAPTURE, HUB_PARTITIONS, Piece, pieces, require_told_apart

DEFAULT_PATH = "{Namespace}/{EventHub}/{PartitionId}/{Year}/{Month}/{Day}/{Hour}/{Minute}/{Second}"

EXTENSION = ".avro"


@dataclass(frozen=True)
class CaptureNames(BlobNames):
    """The names that Capture gives to the blobs of one event hub.

    Raises DefinitionError where the format lacks a token or does not tell this hub's blobs from another's.
    """

    exact: ClassVar[bool] = True
    on_schedule: ClassVar[bool] = True
    padded: ClassVar[bool] = False
    most_partitions: ClassVar[int] = HUB_PARTITIONS

    namespace: str
    event_hub: str
    format: str = DEFAULT_PATH
    """Text and tokens in any order. Names end in `.avro`, whether it does or not; those of 2016 have no extension."""

    def __post_init__(self) -> None:
        require_told_apart(self._written, self._known, CAPTURE)

    @property
    def _known(self) -> dict[str, str]:
        return {"Namespace": self.namespace, "EventHub": self.event_hub}

    @cached_property
    def _written(self) -> tuple[Piece, ...]:
        return tuple(pieces(self.format.removesuffix(EXTENSION), CAPTURE))

    @cached_property
    def _pieces(self) -> tuple[Piece, ...]:
        known = self._known
        return tuple(Piece(None, known[each.token]) if each.token in known else each for each in self._written)

    @property
    def _behind(self) -> str:
        return f"(?:{re.escape(EXTENSION)})?"

    def name(self, partition: str, opened: datetime, behind: str = EXTENSION) -> str:
        """The name of the blob of a capture window that began then, in UTC."""
        return super().name(partition, opened, behind)
