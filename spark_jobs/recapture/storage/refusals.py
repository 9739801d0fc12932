"""Make the errors for requests that an Azure service rejected, the same for every client library."""

from recapture.errors import RunError, SetupError
from recapture.storage.address import CONNECTION_STRING, AzureAddress

API_VERSION = "RECAPTURE_STORAGE_API_VERSION"
"""Variable with the version of the storage service's API that is asked for; the newest of the SDK without it."""
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

BUSY = (429, 503)
"""Statuses of a busy service, after the retries of `Retries`."""
_ADVICE = {
    "BlobArchived": "the blob is in the archive tier: move it to the tier Hot or Cool, wait until it is there, which "
    "can take 15 hours, then run the same command again",
    "BlobBeingRehydrated": "the blob is being moved out of the archive tier, which can take 15 hours: run the same "
    "command again after that",
    "BlobImmutableDueToPolicy": "an immutability policy protects the blob: keep the tables in a container without one",
    "FeatureVersionMismatch": f"set {API_VERSION} to a version that the account knows",
    "InvalidHeaderValue": f"if the account is not in Azure's cloud, set {API_VERSION} to a version that it knows",
}
"""What to do about a request that was refused, by the error code of the service."""
_NOT_AUTHORISED = {
    "AuthorizationFailure": "let requests from this network pass the account's firewall or private endpoint, or {}",
    "AuthorizationSourceIPMismatch": "the signature does not allow the IP address of this machine: {}",
    "KeyBasedAuthenticationNotPermitted": f"the account allows no keys: unset {CONNECTION_STRING}, and use an identity",
}
"""What to do about a request that was not authorised, by the error code; {} is the advice for the credential."""


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
        return SetupError(f"not authorised to {action}{reason}: {_NOT_AUTHORISED.get(code, '{}').format(advice)}")
    if code in _ADVICE:
        return SetupError(f"cannot {action}{reason}: {_ADVICE[code]}")
    if status in BUSY:
        return RunError(
            f"cannot {action}: the service answered {status}{reason} to every attempt: it is busy, or limits requests; "
            "run the same command again later, or send fewer requests at a time (docs/azure.md)"
        )
    if status is not None:
        return RunError(f"cannot {action}: the service answered {status}{reason}")
    return RunError(f"cannot {action}: {address.endpoint} cannot be reached")
