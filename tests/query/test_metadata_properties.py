"""GetMetadataPropertyValue: which metadata of an input's format its properties stand for."""

import pytest

from recapture.errors import DefinitionError
from recapture.formats.event_hubs import CaptureInput
from recapture.formats.iot_hub import IotHubInput
from recapture.formats.service_bus import ServiceBusInput
from recapture.model import AsaType, InputMetadata, JavaScriptFunction, Metadata, MetadataColumn
from recapture.query.analyse.metadata_properties import metadata_property
from recapture.query.compile import compile_query
from tests.query.small_stream import at, rows

CAPTURE, IOT, BUS = CaptureInput.metadata, IotHubInput.metadata, ServiceBusInput.metadata
DEVICE = MetadataColumn(Metadata.ROUTED, "iothub-connection-device-id")


@pytest.mark.parametrize(
    ("name", "offered", "column"),
    [
        ("[EventHub].[Offset]", CAPTURE, MetadataColumn(Metadata.OFFSET)),
        ("eventhub.partitionkey", CAPTURE, MetadataColumn(Metadata.PARTITION_KEY)),
        ("[EventHub].[IoTConnectionDeviceId]", CAPTURE, DEVICE),
        ("IoTHub.ConnectionDeviceId", CAPTURE, DEVICE),
        ("IoTHub.ConnectionDeviceId", IOT, MetadataColumn(Metadata.IOT_HUB, "connectionDeviceId")),
        ("[IoTHub].[EnqueueTime]", IOT, MetadataColumn(Metadata.EVENT_ENQUEUED)),
        ("[IoTHub].[MessageSource]", IOT, None),
        ("BlobName", BUS, MetadataColumn(Metadata.BLOB_NAME)),
        ("[Blob].[PartitionId]", BUS, MetadataColumn(Metadata.PARTITION_ID)),
        ("[User].[le/vel]", CAPTURE, MetadataColumn(Metadata.USER, "le/vel")),
        ("[User]", CAPTURE, MetadataColumn(Metadata.USER)),
        ("user", IOT, MetadataColumn(Metadata.USER)),
        ("Offset", CAPTURE, None),
        ("[IoTHub].[MessageId]", BUS, None),
        ("EventId", CAPTURE, None),
    ],
)
def test_a_property_is_metadata_of_the_format(name: str, offered: InputMetadata, column: MetadataColumn | None) -> None:
    assert metadata_property(name, offered) == column


@pytest.mark.parametrize(
    ("name", "offered", "names"),
    [
        ("[Blob]", BUS, ["BlobName", "EventProcessedUtcTime", "BlobLastModifiedUtcTime", "PartitionId"]),
        ("IoTHub", CAPTURE, ["ConnectionDeviceId", "ConnectionModuleId", "AuthMethod", "AuthGenerationId"]),
    ],
)
def test_a_record_has_the_properties_that_the_format_has(name: str, offered: InputMetadata, names: list[str]) -> None:
    record = metadata_property(name, offered)
    assert isinstance(record, dict)
    assert list(record)[: len(names)] == names


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("GetRecordPropertyValue(telemetry, name)", "the name of a property of a whole message of an IoT hub is not"),
        ("udf.f(telemetry)", "a whole message of an IoT hub cannot be an argument: select what the function reads"),
    ],
)
def test_a_whole_message_of_an_iot_hub_is_not_a_record(value: str, message: str) -> None:
    function = JavaScriptFunction("f", "function main(x) { return x.y; }", AsaType.STRING)
    text = f"SELECT {value} AS y INTO out FROM telemetry"
    with pytest.raises(DefinitionError, match=message):
        compile_query(text, inputs={"telemetry": IOT}, output_aliases=["out"], functions=[function])


def test_records_of_metadata_are_read_by_later_steps() -> None:
    query = """
    WITH a AS (
        SELECT GetMetadataPropertyValue(telemetry, 'EventHub') AS hub,
            GetMetadataPropertyValue(telemetry, '[User]') AS u
        FROM telemetry
    )
    SELECT hub.Offset, hub.PartitionId + 1, hub.Publisher, u.level INTO out FROM a
    """
    event = at(1) | {"@Offset": "96", "@PartitionId": 3, "@SequenceNumber": 7, "@User": '{"level":"9"}'}
    assert rows(query, [event]) == [[{"Offset": "96", "Column2": 4, "Publisher": None, "level": "9"}]]
