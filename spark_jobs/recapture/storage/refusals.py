"""Errors for requests that an Azure service rejected, the same for every client library."""

from recapture.errors import RunError, SetupError
from recapture.storage.address import AzureAddress

CONTAINER_MISSING = ("ContainerNotFound", "ContainerBeingDeleted")


def refusal(action: str, address: AzureAddress, advice: str, status: int | None, code: str = "") -> RunError:
    """Return the error for an answer's status and the service's code; without a status there was no answer.

    The service's own text is left out: it may hold a signature.
    """
    reason = f" ({code})" if code else ""
    if code in CONTAINER_MISSING:
        return SetupError(
            f"container {address.endpoint}/{address.container} does not exist: create it, or correct the url"
        )
    if status in (401, 403):
        return SetupError(f"not authorised to {action}{reason}: {advice}")
    if status is not None:
        return RunError(f"cannot {action}: the service answered {status}{reason}")
    return RunError(f"cannot {action}: {address.endpoint} cannot be reached")


def garbled(action: str) -> RunError:
    """Return the error for an answer that is cut off or damaged."""
    return RunError(
        f"cannot {action}: the response was truncated or corrupt; run the same again, and if it recurs, check the "
        "network and any proxy on the way"
    )
