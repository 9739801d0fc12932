"""Names of what an event may be looked for by: fields of its body, and its metadata."""

from dataclasses import dataclass

from recapture.errors import DefinitionError
from recapture.model import IOT_HUB_PROPERTIES, AsaType, InputColumn, InputMetadata, Metadata, MetadataColumn

EventKey = InputColumn | MetadataColumn


@dataclass(frozen=True)
class Index:
    """The index of an input."""

    keys: tuple[EventKey, ...]
    digest: str
    """SHA-256 of what decides the notes besides the blobs. Notes of another digest say nothing."""


def event_key(name: str, known: InputMetadata) -> EventKey:
    """Return the key of a name: a field of the body, with dots for a field in a record, or metadata as in a query.

    Raise DefinitionError if the name is empty or names a time.
    """
    path = tuple(name.strip().split("."))
    if not all(path):
        raise DefinitionError(f"{name!r} names no field: write it as deviceId or site.id")
    if path[0].lower() == "iothub" and Metadata.IOT_HUB in known.known:
        column = IOT_HUB_PROPERTIES.get(".".join(path[1:]).lower())
        if column is None or column.type is not AsaType.STRING:
            names = ", ".join(f"IoTHub.{each.key}" for each in IOT_HUB_PROPERTIES.values() if each.key)
            raise DefinitionError(f"{name}: choose one of {names}")
        return column
    metadata = {kind.lower(): kind for kind in known.known if kind not in (Metadata.USER, Metadata.IOT_HUB)}
    kind = metadata.get(name.strip().lower())
    if kind is None:
        return InputColumn(path, AsaType.STRING)
    if MetadataColumn(kind).type is AsaType.DATETIME:
        raise DefinitionError(f"{name}: {kind} is a time; choose the range of arrivals with --from and --to")
    return MetadataColumn(kind)
