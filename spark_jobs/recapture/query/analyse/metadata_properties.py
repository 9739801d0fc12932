"""The properties of GetMetadataPropertyValue: Microsoft's names, and the metadata of events that they stand for."""

import re
from collections.abc import Mapping

from recapture.model import ROUTED_TIME, InputMetadata, Metadata, MetadataColumn

HUB_COLUMNS = (Metadata.EVENT_PROCESSED, Metadata.PARTITION_ID, Metadata.EVENT_ENQUEUED)
"""Input columns of a hub, in the order of *."""
BLOB_COLUMNS = (Metadata.BLOB_NAME, Metadata.EVENT_PROCESSED, Metadata.BLOB_LAST_MODIFIED)
"""Input columns of blobs, in the order of *."""
IOT_HUB: Mapping[str, MetadataColumn] = {
    "ConnectionDeviceId": MetadataColumn(Metadata.IOT_HUB, "connectionDeviceId"),
    "ConnectionDeviceGenerationId": MetadataColumn(Metadata.IOT_HUB, "connectionDeviceGenerationId"),
    "ConnectionModuleId": MetadataColumn(Metadata.IOT_HUB, "connectionModuleId"),
    "AuthMethod": MetadataColumn(Metadata.IOT_HUB, "connectionAuthMethod"),
    "AuthGenerationId": MetadataColumn(Metadata.IOT_HUB, "connectionDeviceGenerationId"),
    "CorrelationId": MetadataColumn(Metadata.IOT_HUB, "correlationId"),
    "MessageId": MetadataColumn(Metadata.IOT_HUB, "messageId"),
    "EnqueuedTime": MetadataColumn(Metadata.EVENT_ENQUEUED),
    "EnqueueTime": MetadataColumn(Metadata.EVENT_ENQUEUED),
}
"""Properties of a message that an IoT hub wrote to storage, by name."""
_ROUTED = {
    "ConnectionDeviceId": MetadataColumn(Metadata.ROUTED, "iothub-connection-device-id"),
    "ConnectionModuleId": MetadataColumn(Metadata.ROUTED, "iothub-connection-module-id"),
    "AuthMethod": MetadataColumn(Metadata.ROUTED, "iothub-connection-auth-method"),
    "AuthGenerationId": MetadataColumn(Metadata.ROUTED, "iothub-connection-auth-generation-id"),
    "InterfaceName": MetadataColumn(Metadata.ROUTED, "iothub-interface-name"),
    "MessageSource": MetadataColumn(Metadata.ROUTED, "iothub-message-source"),
    "EnqueueTime": MetadataColumn(Metadata.ROUTED, ROUTED_TIME),
    "EnqueuedTime": MetadataColumn(Metadata.ROUTED, ROUTED_TIME),
}
"""Properties of a message that an IoT hub routed to an event hub, by name."""
_EVENT_HUB = {
    str(metadata): MetadataColumn(metadata)
    for metadata in (
        *(Metadata.EVENT_ENQUEUED, Metadata.EVENT_PROCESSED, Metadata.PARTITION_ID, Metadata.OFFSET),
        *(Metadata.SEQUENCE_NUMBER, Metadata.PARTITION_KEY, Metadata.PUBLISHER),
    )
}
_BLOB = {str(metadata): MetadataColumn(metadata) for metadata in (*BLOB_COLUMNS, Metadata.PARTITION_ID)}
_ADAPTERS: Mapping[str, Mapping[str, MetadataColumn]] = {
    "eventhub": _EVENT_HUB | {f"IoT{name}": column for name, column in _ROUTED.items()},
    "blob": _BLOB,
}
_RECORDS: Mapping[str, Mapping[str, MetadataColumn]] = {"eventhub": _EVENT_HUB, "blob": _BLOB}
_PROPERTY = re.compile(r"(?:\[([^\]]+)\]|(\w+))(?:\.(?:\[([^\]]+)\]|([^\[\].]+)))?")
_SUGGESTED = {
    "[EventHub].[SequenceNumber]": Metadata.SEQUENCE_NUMBER,
    "[EventHub].[Offset]": Metadata.OFFSET,
    "[EventHub].[PartitionKey]": Metadata.PARTITION_KEY,
    "[EventHub].[Publisher]": Metadata.PUBLISHER,
    "[EventHub].[IoTConnectionDeviceId]": Metadata.ROUTED,
    "[IoTHub].[ConnectionDeviceId]": Metadata.IOT_HUB,
    "[Blob].[BlobName]": Metadata.BLOB_NAME,
    "[Blob].[BlobLastModifiedUtcTime]": Metadata.BLOB_LAST_MODIFIED,
    "[User].[name]": Metadata.USER,
}
"""Properties that an error lists, by the metadata that a format must have."""


def metadata_property(name: str, offered: InputMetadata) -> MetadataColumn | Mapping[str, MetadataColumn] | None:
    """Return the metadata that a property stands for, or that of a record by name; None for an unknown property.

    [EventHub].[Offset] => @Offset    [User].[level] => @User.level    EventHub => {"Offset": @Offset, …}
    [User] => @User, the record of all
    """
    match = _PROPERTY.fullmatch(name)
    if match is None:
        return None
    group, own = match[1] or match[2], match[3] or match[4]
    if group.lower() == "user":
        return MetadataColumn(Metadata.USER, own or "")
    if own is None:
        record = _of_iot_hub(offered) if group.lower() == "iothub" else _RECORDS.get(group.lower(), {})
        known = {part: column for part, column in record.items() if column.metadata in offered.known}
        return known or _named(_BLOB, group)
    properties = _of_iot_hub(offered) if group.lower() == "iothub" else _ADAPTERS.get(group.lower(), {})
    return _named(properties, own)


def iot_hub_property(name: str) -> MetadataColumn | None:
    """Return the metadata of a property of the record IoTHub, ignoring case; None if there is none."""
    return _named(IOT_HUB, name)


def suggested(offered: InputMetadata) -> str:
    """Return the properties that an error lists: [Blob].[BlobName] or [Blob].[BlobLastModifiedUtcTime]"""
    *others, last = (name for name, metadata in _SUGGESTED.items() if metadata in offered.known)
    return f"{', '.join(others)} or {last}" if others else last


def _of_iot_hub(offered: InputMetadata) -> Mapping[str, MetadataColumn]:
    """Return the properties of IoTHub: of messages in storage, or of those that the hub routed to an event hub."""
    if Metadata.IOT_HUB in offered.known:
        return IOT_HUB
    return _ROUTED if Metadata.ROUTED in offered.known else {}


def _named(properties: Mapping[str, MetadataColumn], name: str) -> MetadataColumn | None:
    return next((column for known, column in properties.items() if known.lower() == name.lower()), None)
