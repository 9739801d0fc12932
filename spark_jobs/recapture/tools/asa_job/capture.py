"""Where Capture writes the events of event hubs, as files next to the job say."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")

_PREFIX = r"(?:[A-Za-z0-9._=-]+/)*"


@dataclass(frozen=True)
class Capture:
    """Settings of Capture of an event hub. A value is None where they do not give it."""

    namespace: str | None
    event_hub: str | None
    container: str | None
    """Url of the container, with the folder that the names of the blobs are relative to."""
    name_format: str | None = None
    interval_seconds: int | str | None = None
    writes_empty_blobs: bool = True
    """Whether Capture writes a blob for an interval without events."""


@dataclass(frozen=True)
class AvroFolder:
    """Folder of Avro files that a dataset of Data Factory reads."""

    container: str
    """Url of the container."""
    path: str
    """Path of the folder, or an expression that makes it."""
    where: str
    """File and resource of the dataset."""

    def prefix(self, namespace: str, event_hub: str) -> str | None:
        """Return the folders above NAMESPACE/HUB, such as `raw/`; None if this is not the folder of an event hub."""
        names = rf"{re.escape(namespace)}/{re.escape(event_hub)}(?![A-Za-z0-9._-])"
        match = re.search(rf"(?<![A-Za-z0-9._=/-])/?({_PREFIX}){names}", self.path, re.IGNORECASE)
        return match and match[1]


@dataclass(frozen=True)
class Captures:
    """Settings of Capture and folders of Avro files that the files next to a job have."""

    settings: tuple[Capture, ...] = ()
    folders: tuple[AvroFolder, ...] = ()

    def __add__(self, other: "Captures") -> "Captures":
        return Captures(self.settings + other.settings, self.folders + other.folders)

    def of(self, namespace: str, event_hub: str) -> Capture | None:
        """Return the settings of Capture of an event hub; None if it has none, several, or Capture is off."""
        names = (namespace.lower(), event_hub.lower())
        hubs = (
            setting
            for setting in self.settings
            if ((setting.namespace or "").lower(), (setting.event_hub or "").lower()) == names
        )
        return _only(
            {(hub.container, hub.name_format, hub.interval_seconds, hub.writes_empty_blobs): hub for hub in hubs}
        )

    def folder_of(self, namespace: str, event_hub: str) -> tuple[str, AvroFolder] | None:
        """Return a container, with a prefix, in which datasets read the blobs of an event hub, and a folder of one.

        Return None if they read several.
        """
        containers = {
            f"{folder.container}/{prefix}".rstrip("/"): folder
            for folder in reversed(self.folders)
            if (prefix := folder.prefix(namespace, event_hub)) is not None
        }
        return _only({container: (container, folder) for container, folder in containers.items()})


def _only(values: Mapping[Any, T]) -> T | None:
    """Return the only value, None if there is none or another one."""
    return next(iter(values.values())) if len(values) == 1 else None
