"""Finding the address of Capture in what is next to a job: event hubs, and datasets of Data Factory."""

import json
from pathlib import Path
from typing import Any

import pytest

from recapture.errors import DefinitionError
from recapture.tools.asa_job import Draft, carry_over, read_captures, read_job
from recapture.tools.asa_job.clouds import AUTHORITY
from tests.tools.asa_job.jobs import SECRET, event_hub, parts, refused, template, template_input, template_job
from tests.tools.asa_job.test_terraform import OUTPUT, resource, shown
from tests.tools.asa_job.test_terraform import event_hub as terraform_input
from tests.tools.asa_job.test_terraform import job as terraform_job

HUBS = "Microsoft.EventHub/namespaces/eventhubs"
ADDRESS = "https://contosoarchive.blob.core.windows.net/capture"
NOT_CAPTURED = (
    "t.json, inputs/telemetry: input telemetry does not say where Capture writes its events: set container, and "
    "capture_interval_seconds if it is not 300"
)


def description(**changes: Any) -> dict[str, Any]:
    """Return the settings of Capture as a build of Bicep writes them."""
    properties = {
        "storageAccountResourceId": "[resourceId('Microsoft.Storage/storageAccounts', parameters('archive'))]",
        "blobContainer": "capture",
        "archiveNameFormat": "{Namespace}/{EventHub}/{PartitionId}/{Year}/{Month}/{Day}/{Hour}/{Minute}/{Second}",
    }
    return {
        "enabled": True,
        "encoding": "Avro",
        "intervalInSeconds": 60,
        "skipEmptyArchives": True,
        "destination": {"name": "EventHubArchive.AzureBlockBlob", "properties": properties},
    } | changes


def hub(name: str = "[format('{0}/{1}', 'contoso', 'telemetry')]", **changes: Any) -> dict[str, Any]:
    return {"type": HUBS, "name": name, "properties": {"captureDescription": description(**changes)}}


PARAMETERS = {
    "archive": {"type": "string", "defaultValue": "contosoarchive"},
    "streamingjobs_contoso_name": {"type": "string", "defaultValue": "contoso-telemetry"},
}


def drafted(folder: Path, *resources: Any, job: Any = None, parameters: Any = PARAMETERS) -> Draft:
    """Return the draft for a template of a job and these resources."""
    return carry_over(read_job(template(folder / "t.json", job or template_job(), *resources, parameters=parameters)))


def missing(draft: Draft) -> list[str]:
    return [str(finding) for finding in draft.missing]


def test_an_event_hub_next_to_the_job_gives_the_address_of_capture(tmp_path: Path) -> None:
    draft = drafted(tmp_path, hub())
    assert missing(draft) == []
    assert draft.values["input"] == {
        "alias": "telemetry",
        "container": ADDRESS,
        "namespace": "contoso",
        "event_hub": "telemetry",
        "capture_interval_seconds": 60,
        "arrival_time": "EventEnqueuedUtcTime",
        "empty_blobs": False,
    }
    inside = {
        "type": "Microsoft.EventHub/namespaces",
        "name": "contoso",
        "resources": [hub("telemetry") | {"type": "eventhubs"}],
    }
    assert drafted(tmp_path, inside).values["input"] == draft.values["input"]


def test_the_settings_may_be_in_a_file_of_their_own(tmp_path: Path) -> None:
    job = carry_over(read_job(template(tmp_path / "t.json", template_job())))
    assert missing(job) == [NOT_CAPTURED]
    captures = read_captures(template(tmp_path / "hubs.json", hub(), parameters=PARAMETERS))
    (capture,) = captures.settings
    assert (capture.container, capture.interval_seconds, capture.writes_empty_blobs) == (ADDRESS, 60, False)


def test_another_name_format_is_the_path_of_the_input(tmp_path: Path) -> None:
    path = "raw/{Namespace}/{EventHub}/{Year}{Month}{Day}/{Hour}{Minute}{Second}_{PartitionId}"
    destination = description()["destination"]
    destination["properties"]["archiveNameFormat"] = path
    values = drafted(tmp_path, hub(destination=destination, skipEmptyArchives=False)).values["input"]
    assert (values["path"], values["container"], "empty_blobs" in values) == (path, ADDRESS, False)


@pytest.mark.parametrize(
    "other",
    [
        hub(enabled=False),
        hub("contoso/alerts"),
        hub("fabrikam/telemetry"),
        {"type": HUBS, "name": "contoso/telemetry", "properties": {}},
        hub(destination={"name": "EventHubArchive.AzureDataLake", "properties": {"dataLakeAccountName": "lake"}}),
    ],
    ids=["off", "another hub", "another namespace", "not set", "Data Lake Storage Gen1"],
)
def test_other_event_hubs_leave_the_address_to_the_user(tmp_path: Path, other: Any) -> None:
    assert missing(drafted(tmp_path, other)) == [NOT_CAPTURED]


def test_two_event_hubs_of_one_name_leave_the_address_to_the_user_unless_they_agree(tmp_path: Path) -> None:
    assert missing(drafted(tmp_path, hub(), hub())) == []
    assert missing(drafted(tmp_path, hub(), hub(intervalInSeconds=300))) == [NOT_CAPTURED]
    datasets = [*factory("contoso/telemetry"), *factory("raw/contoso/telemetry")]
    assert missing(drafted(tmp_path, *datasets)) == [NOT_CAPTURED]


def test_an_account_that_a_template_leaves_open_is_a_variable(tmp_path: Path) -> None:
    draft = drafted(tmp_path, hub(), parameters=PARAMETERS | {"archive": {"type": "string"}})
    assert draft.values["input"]["container"] == "https://${archive}.blob.core.windows.net/capture"
    (finding,) = missing(draft)
    assert "input.container uses ${archive}, which the template leaves open" in finding


def test_an_event_hub_in_terraforms_state_gives_the_address_of_capture(tmp_path: Path) -> None:
    destination = {
        "name": "EventHubArchive.AzureBlockBlob",
        "archive_name_format": "{Namespace}/{EventHub}/{PartitionId}/{Year}/{Month}/{Day}/{Hour}/{Minute}/{Second}",
        "blob_container_name": "capture",
        "storage_account_id": "/subscriptions/s/providers/Microsoft.Storage/storageAccounts/contosoarchive",
    }
    capture = {
        "enabled": True,
        "encoding": "Avro",
        "interval_in_seconds": 120,
        "size_limit_in_bytes": 314572800,
        "skip_empty_archives": False,
        "destination": [destination],
    }
    captured = resource("hub", name="telemetry", namespace_name="contoso", capture_description=[capture])
    captured["type"] = "azurerm_eventhub"
    file = shown(tmp_path, terraform_job(), terraform_input(), OUTPUT, captured)
    draft = carry_over(read_job(file))
    assert missing(draft) == []
    assert (draft.values["input"]["container"], draft.values["input"]["capture_interval_seconds"]) == (ADDRESS, 120)
    assert read_captures(file).settings == read_job(file).captures.settings
    captured["values"] |= {"namespace_name": None, "namespace_id": "/providers/Microsoft.EventHub/namespaces/contoso"}
    named_by_id = carry_over(read_job(shown(tmp_path, terraform_job(), terraform_input(), OUTPUT, captured)))
    assert named_by_id.values["input"] == draft.values["input"]
    captured["values"]["capture_description"] = []
    assert (
        len(missing(carry_over(read_job(shown(tmp_path, terraform_job(), terraform_input(), OUTPUT, captured))))) == 1
    )


def factory(folder_path: Any, type_: str = "Avro") -> list[dict[str, Any]]:
    """Return the resources of a data factory with a dataset of these files."""
    service = {
        "type": "AzureBlobFS",
        "typeProperties": {"url": "https://contosoarchive.dfs.core.windows.net/", "accountKey": {"value": SECRET}},
    }
    location = {"type": "AzureBlobFSLocation", "fileSystem": "capture", "folderPath": folder_path}
    dataset = {
        "linkedServiceName": {"referenceName": "Lake", "type": "LinkedServiceReference"},
        "type": type_,
        "typeProperties": {"location": location, "avroCompressionCodec": "deflate"},
    }
    return [
        {"type": "Microsoft.DataFactory/factories/linkedServices", "name": "factory/lake", "properties": service},
        {"type": "Microsoft.DataFactory/factories/datasets", "name": "factory/Captured", "properties": dataset},
    ]


@pytest.mark.parametrize(
    ("folder_path", "container"),
    [
        ("contoso/telemetry", ADDRESS),
        ("raw/2024/contoso/telemetry/0/2024", f"{ADDRESS}/raw/2024"),
        ({"value": "@concat('raw/Contoso/telemetry/', dataset().hour)", "type": "Expression"}, f"{ADDRESS}/raw"),
    ],
)
def test_a_dataset_of_a_data_factory_that_reads_the_blobs_gives_their_container(
    tmp_path: Path, folder_path: Any, container: str
) -> None:
    draft = drafted(tmp_path, *factory(folder_path))
    assert (missing(draft), draft.values["input"]["container"]) == ([], container)
    assert [finding.what for finding in draft.different if "factory/Captured" in finding.where] == [
        "this dataset reads Avro files of input telemetry: the pipeline file has its container; set "
        "capture_interval_seconds if it is not 300"
    ]
    assert SECRET not in str(draft)


@pytest.mark.parametrize(
    "resources",
    [
        factory("contoso/telemetry2"),
        factory("fabrikam-contoso/telemetry"),
        factory("contoso/telemetry", "DelimitedText"),
        factory({"value": "@pipeline().parameters.folder", "type": "Expression"}),
        factory("contoso/telemetry")[1:],
    ],
    ids=["another hub", "another namespace", "not Avro", "unknown folder", "unknown account"],
)
def test_other_datasets_leave_the_address_to_the_user(tmp_path: Path, resources: Any) -> None:
    assert missing(drafted(tmp_path, *resources)) == [NOT_CAPTURED]


def test_a_file_that_says_nothing_about_capture_is_refused(tmp_path: Path) -> None:
    file = template(tmp_path / "hubs.json", hub(enabled=False))
    with pytest.raises(DefinitionError, match=r"hubs\.json: has no event hub whose Capture is on, and no dataset"):
        read_captures(file)
    file.write_text(json.dumps({"a": 1}))
    with pytest.raises(DefinitionError, match="not an ARM template: it has no resources"):
        read_captures(file)


def test_an_event_hub_without_a_valid_name_leaves_its_name_to_the_user(tmp_path: Path) -> None:
    source = event_hub(serviceBusNamespace="Endpoint=sb://x/;SharedAccessKey=" + SECRET, eventHubName="telemetry")
    draft = drafted(tmp_path, hub(), job=template_job(inputs=parts(telemetry=template_input(datasource=source))))
    assert missing(draft) == [NOT_CAPTURED.replace("set container,", "set container and namespace,")]
    assert refused(template(tmp_path / "t.json", hub())) == (
        "t.json: the template has no Microsoft.StreamAnalytics/streamingjobs resource"
    )


@pytest.mark.parametrize(
    ("location", "authority", "suffix"),
    [
        ("China East 2", None, "core.chinacloudapi.cn"),
        ("usgovvirginia", None, "core.usgovcloudapi.net"),
        ("usdodcentral", "login.chinacloudapi.cn", "core.usgovcloudapi.net"),
        ("westeurope", "login.chinacloudapi.cn", "core.windows.net"),
        ("[resourceGroup().location]", "login.chinacloudapi.cn", "core.chinacloudapi.cn"),
        ("[resourceGroup().location]", "login.example.com", "core.windows.net"),
        ("[resourceGroup().location]", None, "core.windows.net"),
    ],
)
def test_addresses_are_those_of_the_cloud_of_the_region_or_else_of_the_environment(
    location: str, authority: str | None, suffix: str, tmp_path: Path
) -> None:
    resources = template_job() | {"location": location}, hub()
    job = read_job(template(tmp_path / "t.json", *resources, parameters=PARAMETERS))
    draft = carry_over(job, {} if authority is None else {AUTHORITY: authority})
    assert draft.values["input"]["container"] == f"https://contosoarchive.blob.{suffix}/capture"
    assert str(draft.values["output"]["table"]).startswith(f"https://contosodata.blob.{suffix}/curated/")


def test_terraform_gives_the_region_of_a_job(tmp_path: Path) -> None:
    state = shown(tmp_path, terraform_job(location="chinanorth3"), terraform_input(), OUTPUT)
    draft = carry_over(read_job(state), {})
    assert str(draft.values["output"]["table"]).startswith("https://contosodata.blob.core.chinacloudapi.cn/curated/")
