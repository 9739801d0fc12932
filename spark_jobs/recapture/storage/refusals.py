"""Make the errors for requests that an Azure service rejected, the same for every client library."""

from recapture.errors import RunError, SetupError
from recapture.storage.address import AzureAddress

CONTAINER_MISSING = ("ContainerNotFound", "ContainerBeingDeleted")
GARBLED = (
    "the response was truncated or corrupt; run the same command again, and if it recurs, check the network and any "
    "proxy on the way"
)
FOREIGN = (
    "something else answered in place of Azure Storage, such as the sign-in page of a network or a proxy; sign in, or "
    "let requests to the storage account pass, then run the same command again"
)
ENDLESS = (
    "the list repeats itself, or page after page has nothing new; run the same command again, and if it recurs, check "
    "the storage account and any proxy on the way"
)


def refusal(action: str, address: AzureAddress, advice: str, status: int | None, code: str = "") -> RunError:
    """Return the error for the status and the error code of a response; the status is None if there was no response.

    The service's own text is left out: it may contain a signature.
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
