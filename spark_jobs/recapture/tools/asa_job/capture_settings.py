"""Read where Capture writes from the resources of a template: event hubs, and datasets of Data Factory.

An event hub has the settings of its Capture. A dataset that reads Avro files in a folder NAMESPACE/HUB is only a hint.
Sources: "Microsoft.EventHub namespaces/eventhubs" and "Microsoft.DataFactory factories/datasets" in Microsoft's
template reference.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from recapture.tools.asa_job import sources
from recapture.tools.asa_job.capture import AvroFolder, Capture, Captures
from recapture.tools.asa_job.documents import JobPart, Seconds, parse_part

EVENT_HUB = "microsoft.eventhub/namespaces/eventhubs"
_DATASET = "microsoft.datafactory/factories/datasets"
_LINKED_SERVICE = "microsoft.datafactory/factories/linkedservices"
PARENTS = ("microsoft.eventhub/namespaces", "microsoft.datafactory/factories")
"""Types of the resources that contain these."""
_ENDPOINT = re.compile(r"https://([^./]+)\.(?:blob|dfs)\.", re.IGNORECASE)


class _DestinationProperties(JobPart):
    storage_account_resource_id: str | None = None
    blob_container: str | None = None
    archive_name_format: str | None = None


class _Destination(JobPart):
    properties: _DestinationProperties = _DestinationProperties()


class _Description(JobPart):
    enabled: bool | str = False
    interval_in_seconds: Seconds | None = None
    skip_empty_archives: bool | str = False
    destination: _Destination = _Destination()


class _EventHub(JobPart):
    capture_description: _Description = _Description()


class _Location(JobPart):
    file_system: str | None = None
    container: str | None = None
    folder_path: str | dict[str, Any] = ""


class _DatasetSettings(JobPart):
    location: _Location = _Location()


class _Reference(JobPart):
    reference_name: str = ""


class _Dataset(JobPart):
    type: str = ""
    linked_service_name: _Reference = _Reference()
    type_properties: _DatasetSettings = _DatasetSettings()


class _Endpoints(JobPart):
    url: str | dict[str, Any] = ""
    service_endpoint: str | dict[str, Any] = ""


class _LinkedService(JobPart):
    type_properties: _Endpoints = _Endpoints()


def captures_in(file: str, resources: Iterable[tuple[str, str, Any]]) -> Captures:
    """Return what resources say about Capture. Each has a type, in lower case, a full name and properties."""
    listed = list(resources)
    services = {name.rpartition("/")[2].lower(): part for type_, name, part in listed if type_ == _LINKED_SERVICE}
    hubs = (hub_capture(name, part, f"{file}, {name}") for type_, name, part in listed if type_ == EVENT_HUB)
    datasets = ((part, f"{file}, {name}") for type_, name, part in listed if type_ == _DATASET)
    return Captures(tuple(hub for hub in hubs if hub), tuple(_avro_folders(datasets, services)))


def hub_capture(name: str, properties: Any, where: str) -> Capture | None:
    """Return the settings of Capture of the event hub NAMESPACE/HUB; None if Capture is off."""
    description = parse_part(_EventHub, properties, where).capture_description
    if str(description.enabled).lower() == "false":
        return None
    destination = description.destination.properties
    hub = sources.hub_of(*name.split("/", 1)) if "/" in name else sources.hub_of(None, name)
    return Capture(
        hub.namespace,
        hub.name,
        sources.container_url(destination.storage_account_resource_id, destination.blob_container),
        destination.archive_name_format,
        description.interval_in_seconds,
        writes_empty_blobs=str(description.skip_empty_archives).lower() != "true",
    )


def _avro_folders(datasets: Iterable[tuple[Any, str]], services: Mapping[str, Any]) -> Iterator[AvroFolder]:
    """Yield the folders of the datasets of Avro files whose linked services, by name, give a storage account."""
    for properties, where in datasets:
        dataset = parse_part(_Dataset, properties, where)
        service = services.get(dataset.linked_service_name.reference_name.lower(), {})
        endpoints = parse_part(_LinkedService, service, where).type_properties
        account = _ENDPOINT.match(_text(endpoints.url or endpoints.service_endpoint))
        location = dataset.type_properties.location
        url = sources.container_url(account and account[1], location.file_system or location.container)
        if dataset.type.lower() == "avro" and url:
            yield AvroFolder(url, _text(location.folder_path), where)


def _text(value: str | dict[str, Any]) -> str:
    """Return a string, or the text of an expression: {"value": "@concat('a/b/', …)", "type": "Expression"}"""
    return value if isinstance(value, str) else str(value.get("value", ""))
