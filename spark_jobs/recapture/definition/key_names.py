"""Names of the keys of events, as --where and the index of an input have them."""

from recapture.errors import DefinitionError
from recapture.formats.event_keys import EventKey
from recapture.model import AsaType, InputColumn, InputMetadata, Metadata, MetadataColumn
from recapture.query.analyse.metadata_properties import IOT_HUB, iot_hub_property

_KEYED = (Metadata.USER, Metadata.IOT_HUB, Metadata.ROUTED)
"""Metadata of which a column has a key."""


def event_key(name: str, known: InputMetadata) -> EventKey:
    """Return the key of a name: a field of the body, with dots for a field in a record, or metadata as in a query.

    Raise DefinitionError if the name is empty or names a time.
    """
    path = tuple(name.strip().split("."))
    if not all(path):
        raise DefinitionError(f"{name!r} names no field: write it as deviceId or site.id")
    if path[0].lower() == "iothub" and Metadata.IOT_HUB in known.known:
        column = iot_hub_property(".".join(path[1:]))
        if column is None or column.type is not AsaType.STRING:
            names = ", ".join(f"IoTHub.{name}" for name, known_column in IOT_HUB.items() if known_column.key)
            raise DefinitionError(f"{name}: choose one of {names}")
        return column
    metadata = {kind.lower(): kind for kind in known.known if kind not in _KEYED}
    kind = metadata.get(name.strip().lower())
    if kind is None:
        return InputColumn(path, AsaType.STRING)
    if MetadataColumn(kind).type is AsaType.DATETIME:
        raise DefinitionError(f"{name}: {kind} is a time; choose the range of arrivals with --from and --to")
    return MetadataColumn(kind)
