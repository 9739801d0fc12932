"""What Airflow lists of the package among its providers."""

from typing import Any


def provider_info() -> dict[str, Any]:
    """Return the metadata of the provider. Its name is that of the distribution."""
    return {
        "package-name": "recapture",
        "name": "Recapture",
        "description": "Recomputes history from Event Hubs Capture with the time handling of Azure Stream Analytics.",
    }
