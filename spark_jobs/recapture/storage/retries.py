"""Send a request again if the service is busy or did not answer."""

from typing import Any

from azure.core.pipeline import PipelineRequest, PipelineResponse
from azure.core.pipeline.policies import RetryPolicy
from azure.storage.blob import LocationMode

LONGEST_WAIT = 120.0
"""Seconds. The service asks for less; an answer that asks for more may be that of a proxy."""


class Retries(RetryPolicy[Any, Any]):
    """The retries of azure-core: about 30 seconds if the service is busy, a few seconds if nothing answers.

    The storage client's own retries give up at 429, and do not wait as long as a Retry-After asks.
    """

    def __init__(self) -> None:
        super().__init__(retry_total=5, retry_status=5, retry_read=5, retry_connect=1)

    def send(self, request: PipelineRequest[Any]) -> PipelineResponse[Any, Any]:
        """Send a request. The storage client passes options of its own retries, and reads the location from them."""
        for option in ("hosts", "location_mode", "retry_to_secondary", "retry_hook"):
            request.context.options.pop(option, None)
        response = super().send(request)
        response.http_response.location_mode = LocationMode.PRIMARY
        return response

    def get_backoff_time(self, settings: dict[str, Any]) -> float:
        """Return how long to wait before the next attempt, in seconds."""
        return max(1.0, super().get_backoff_time(settings))

    def get_retry_after(self, response: PipelineResponse[Any, Any]) -> float | None:
        """Return how long the service asks to wait, in seconds; None if it does not say."""
        seconds = super().get_retry_after(response)
        return None if seconds is None else min(seconds, LONGEST_WAIT)
