"""The names of the blobs into which IoT Hub routes messages (capture format, cousins)."""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from recapture.archive.blob_names import BlobNames
from recapture.archive.name_format import HUB_PARTITIONS, IOT_HUB, Piece, behind, pieces, require_told_apart

DEFAULT_PATH = "{iothub}/{partition}/{YYYY}/{MM}/{DD}/{HH}/{mm}"


@dataclass(frozen=True)
class IotHubNames(BlobNames):
    """The names that an IoT hub's storage endpoint gives to its blobs; the time is that of a batch, to the minute.

    Partitions below ten are written with a zero before them or without. Behind the format may stand an extension, or
    whatever tells several blobs of a minute apart, if it begins with no letter or digit.
    Raises DefinitionError where the format lacks a token or does not tell this hub's blobs from another's.
    """

    on_schedule: ClassVar[bool] = True
    most_partitions: ClassVar[int] = HUB_PARTITIONS

    iot_hub: str
    format: str = DEFAULT_PATH
    """Text and tokens in any order."""

    def __post_init__(self) -> None:
        require_told_apart(self._written, {"IotHub": self.iot_hub}, IOT_HUB)

    @cached_property
    def _written(self) -> tuple[Piece, ...]:
        return tuple(pieces(self.format, IOT_HUB))

    @cached_property
    def _pieces(self) -> tuple[Piece, ...]:
        return tuple(Piece(None, self.iot_hub) if each.token == "IotHub" else each for each in self._written)

    @property
    def _behind(self) -> str:
        never = re.escape("".join(sorted(behind(self._written))))
        return f"(?:[^{never}].*)?"
