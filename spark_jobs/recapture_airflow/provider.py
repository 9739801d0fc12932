"""What Airflow lists of the package among its providers, and the form of its type of connection."""

from typing import Any

SECRET, TEXT = {"type": ["string", "null"], "format": "password"}, {"type": ["string", "null"]}
FIELDS = {
    "connection_string": ("Connection string", SECRET),
    "sas_token": ("Signature (SAS)", SECRET),
    "tenant_id": ("Tenant of a service principal", TEXT),
    "managed_identity_client_id": ("Client id of a managed identity", TEXT),
    "workload_identity_tenant_id": ("Tenant of a workload identity", TEXT),
}
"""Label and schema of each field of the form that is in the connection's extra."""


def provider_info() -> dict[str, Any]:
    """Return the metadata of the provider. Its name is that of the distribution."""
    storage = {
        "connection-type": "recapture_storage",
        "hook-class-name": "recapture_airflow.storage_hook.StorageHook",
        "hook-name": "Recapture storage",
        "ui-field-behaviour": {
            "hidden-fields": ["schema", "port"],
            "relabeling": {
                "host": "Blob endpoint",
                "login": "Account, or client id",
                "password": "Account key, or client secret",
            },
        },
        "conn-fields": {name: {"label": label, "schema": schema} for name, (label, schema) in FIELDS.items()},
    }
    return {
        "package-name": "recapture",
        "name": "Recapture",
        "description": "Recomputes history from Event Hubs Capture with the time handling of Azure Stream Analytics.",
        "connection-types": [storage],
    }
