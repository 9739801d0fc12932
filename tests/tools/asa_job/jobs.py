"""One made-up ASA job, as a project and as an ARM template. SECRET is in every place that may hold a credential."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from recapture.errors import DefinitionError
from recapture.tools.asa_job import read_job

SECRET = "S3cr3tK3yMadeUpForThisTest+Q=="

PLAIN_QUERY = """\
SELECT System.Timestamp() AS windowEnd, deviceId, COUNT(*) AS events
INTO aggregates
FROM telemetry TIMESTAMP BY eventTime
GROUP BY deviceId, TumblingWindow(minute, 5)
"""

WIDE_QUERY = """\
-- FROM alerts is only said here
WITH joined AS (
    SELECT t.deviceId, r.region, udf.classify(t.temperature) AS class
    FROM telemetry t TIMESTAMP BY t.eventTime
    JOIN [regions] r ON t.regionId = r.id
)
SELECT region, class, COUNT(*) AS events
INTO aggregates
FROM joined
WHERE class <> 'udf.classify(x)'
GROUP BY region, class, TumblingWindow(minute, 5)

SELECT deviceId, udf.classify(MAX(level)) AS class
INTO dashboard
FROM alerts TIMESTAMP BY raisedAt
GROUP BY deviceId, TumblingWindow(minute, 5)
"""


def event_hub_input(name: str, **changes: Any) -> dict[str, Any]:
    """Return an Inputs/*.json file of the tools for Visual Studio Code."""
    return {
        "Name": name,
        "Type": "Data Stream",
        "DataSourceType": "Event Hub",
        "EventHubProperties": {
            "ServiceBusNamespace": "contoso",
            "EventHubName": name,
            "SharedAccessPolicyName": "listen",
            "SharedAccessPolicyKey": SECRET,
            "ConsumerGroupName": "$Default",
            "AuthenticationMode": "ConnectionString",
        },
        "DataSourceCredentialDomain": SECRET,
        "Serialization": {"Type": "Json", "Encoding": "UTF8"},
        "PartitionKey": None,
        "CompressionType": "None",
        "ScriptType": "Input",
    } | changes


def capture_input(name: str, pattern: str = "contoso/telemetry/{partition}/{date}/{time}") -> dict[str, Any]:
    """Return an input that reads Capture's own blobs."""
    storage = {
        "StorageAccounts": [{"AccountName": "contosocapture", "AccountKey": SECRET}],
        "Container": "capture",
        "PathPattern": pattern,
    }
    changes = {"DataSourceType": "Blob Storage", "BlobStorageProperties": storage, "Serialization": {"Type": "Avro"}}
    return event_hub_input(name, EventHubProperties=None) | changes


def reference_input(name: str, serialization: dict[str, Any], **storage: Any) -> dict[str, Any]:
    """Return an input that reads reference data from blobs."""
    properties = {
        "StorageAccounts": [{"AccountName": "contosodata", "AccountKey": SECRET}],
        "Container": "reference",
        "PathPattern": f"{name}/{{date}}/{{time}}/{name}.csv",
        "DateFormat": "yyyy-MM-dd",
        "TimeFormat": "HH-mm",
    }
    return {
        "Name": name,
        "Type": "Reference data",
        "DataSourceType": "Blob Storage",
        "BlobReferenceProperties": properties | storage,
        "Serialization": serialization,
        "ScriptType": "Input",
    }


def blob_output(name: str) -> dict[str, Any]:
    return {
        "Name": name,
        "DataSourceType": "Blob Storage",
        "BlobStorageProperties": {
            "StorageAccounts": [{"AccountName": "contosodata", "AccountKey": SECRET}],
            "Container": "curated",
            "PathPattern": "rows/{date}/{time}",
            "AuthenticationMode": "ConnectionString",
        },
        "Serialization": {"Type": "Json", "Encoding": "UTF8", "Format": "LineSeparated"},
        "ScriptType": "Output",
    }


def settings(**changes: Any) -> dict[str, Any]:
    return {
        "ScriptType": "JobConfig",
        "DataLocale": "en-US",
        "OutputErrorPolicy": "Retry",
        "EventsLateArrivalMaxDelayInSeconds": 600,
        "EventsOutOfOrderMaxDelayInSeconds": 10,
        "EventsOutOfOrderPolicy": "Drop",
        "Sku": {"Name": "StandardV2", "StreamingUnits": "1"},
        "CompatibilityLevel": "1.2",
        "UseSystemAssignedIdentity": True,
        "GlobalStorage": {"AccountName": "contosodata", "AccountKey": SECRET},
        "Tags": {},
    } | changes


PLAIN = {
    "JobConfig.json": settings(),
    "Inputs/telemetry.json": event_hub_input("telemetry"),
    "Outputs/aggregates.json": blob_output("aggregates"),
}
"""Files of a small project, apart from asaproj.json and the query."""
CAPTURED = PLAIN | {"Inputs/telemetry.json": capture_input("telemetry")}
"""Files of a project that reads Capture's own blobs, so that its pipeline lacks nothing."""

WIDE = PLAIN | {
    "Inputs/alerts.json": event_hub_input("alerts"),
    "Inputs/regions.json": {
        "Name": "regions",
        "Type": "Reference data",
        "DataSourceType": "SQL Database",
        "SqlReferenceProperties": {"Server": "contoso", "Database": "sites", "Password": SECRET},
        "ScriptType": "Input",
    },
    "Outputs/dashboard.json": {
        "Name": "dashboard",
        "DataSourceType": "Power BI",
        "PowellBIProperties": {"RefreshToken": SECRET, "Dataset": "devices"},
        "ScriptType": "Output",
    },
    "Functions/classify.js.json": {
        "Name": "classify",
        "Type": "Scalar",
        "ScriptType": "JSFunction",
        "FunctionInputs": [{"DataType": "any", "IsConfigurationParameter": None}],
        "OutputType": "any",
    },
    "Functions/classify.js": "function main(x) {\n    return x > 30 ? 'hot' : 'cold';\n}\n",
}
"""Files of a project with two streams, reference data in a database, a function and an output that is not a storage."""

RATE: dict[str, Any] = {
    "Functions/rate.js.json": {
        "Name": "rate",
        "Type": "Scalar",
        "ScriptType": "JSFunction",
        "FunctionInputs": [{"DataType": "bigint"}],
        "OutputType": "Float",
    },
    "Functions/rate.js": "function main(n) { return n / 300; }",
}
"""Files of a JavaScript function that takes a bigint and returns a float."""


def project(folder: Path, files: Mapping[str, Any], query: str = PLAIN_QUERY) -> Path:
    """Write a project of Visual Studio Code that lists its files as the tools do; return its folder."""
    listed = [
        {"filePath": name, "subType": _sub_type(name, text)} for name, text in files.items() if not name.endswith(".js")
    ]
    document = {"name": "contoso-telemetry", "startFile": "Transformation.asaql", "configurations": listed}
    for name, text in {"asaproj.json": document, **files}.items():
        file = folder / name.replace("\\", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text if name.endswith(".js") else json.dumps(text, indent=4))
    folder.joinpath("Transformation.asaql").write_text(query, newline="")
    return folder


def _sub_type(name: str, text: Any) -> str:
    return text.get("ScriptType", "Input") if isinstance(text, dict) else name.partition("/")[0].rstrip("s")


def template_job(**changes: Any) -> dict[str, Any]:
    """Return the resource of a job whose parts are in its properties."""
    properties = {
        "sku": {"name": "Standard"},
        "eventsOutOfOrderPolicy": "Drop",
        "outputErrorPolicy": "Stop",
        "eventsOutOfOrderMaxDelayInSeconds": 10,
        "compatibilityLevel": "1.2",
        "inputs": parts(telemetry=template_input()),
        "outputs": parts(aggregates=template_output()),
        "transformation": {"name": "t", "properties": {"streamingUnits": 3, "query": PLAIN_QUERY}},
    }
    return {
        "type": "Microsoft.StreamAnalytics/streamingjobs",
        "apiVersion": "2020-03-01",
        "name": "[parameters('streamingjobs_contoso_name')]",
        "location": "[resourceGroup().location]",
        "identity": {"type": "SystemAssigned"},
        "properties": properties | changes,
    }


def parts(**properties: Any) -> list[dict[str, Any]]:
    """Return the inputs, outputs or functions of these names."""
    return [{"name": name, "properties": part} for name, part in properties.items()]


def event_hub(**properties: str) -> dict[str, Any]:
    return {"type": "Microsoft.ServiceBus/EventHub", "properties": properties}


def template_input(**changes: Any) -> dict[str, Any]:
    key = {"sharedAccessPolicyName": "listen", "sharedAccessPolicyKey": "[parameters('key')]"}
    return {
        "type": "Stream",
        "datasource": event_hub(serviceBusNamespace="contoso", eventHubName="telemetry", **key),
        "compression": {"type": "None"},
        "serialization": {"type": "Json", "properties": {"encoding": "UTF8"}},
        "diagnostics": {"conditions": []},
        "etag": SECRET,
    } | changes


def template_output(kind: str = "Microsoft.Storage/Blob") -> dict[str, Any]:
    account = {"accountName": "contosodata", "accountKey": SECRET}
    storage = {"storageAccounts": [account], "container": "curated", "pathPattern": "rows/{date}"}
    properties = storage if kind == "Microsoft.Storage/Blob" else {"password": SECRET}
    return {
        "datasource": {"type": kind, "properties": properties},
        "serialization": {"type": "Json", "properties": {"encoding": "UTF8"}},
    }


def template(file: Path, *resources: Any, **changes: Any) -> Path:
    """Write an ARM template; return its file."""
    document = {
        "$schema": "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#",
        "contentVersion": "1.0.0.0",
        "parameters": {
            "streamingjobs_contoso_name": {"defaultValue": "contoso-telemetry", "type": "String"},
            "key": {"defaultValue": SECRET, "type": "SecureString"},
            "plainKey": {"defaultValue": SECRET, "type": "String"},
        },
        "variables": {},
        "resources": list(resources),
    }
    file.write_text(json.dumps(document | changes, indent=2))
    return file


def job_template(folder: Path, **changes: Any) -> Path:
    """Write an ARM template of one job, with changes to the job's properties; return its file."""
    return template(folder / "t.json", template_job(**changes))


def refused(path: Path, name: str | None = None) -> str:
    """Return the error for a job that cannot be read, which is one line."""
    with pytest.raises(DefinitionError) as raised:
        read_job(path, name)
    message = str(raised.value)
    assert "\n" not in message
    return message
