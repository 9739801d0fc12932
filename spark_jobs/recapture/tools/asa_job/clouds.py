"""The clouds of Azure: which one a job is in, and the addresses that storage accounts have there.

The names of regions are those of "Azure Government regions" and of "Azure in China regions".
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from recapture.errors import DefinitionError
from recapture.tools.asa_job.job import AsaJob, BlobFolder

AUTHORITY = "AZURE_AUTHORITY_HOST"


@dataclass(frozen=True)
class Cloud:
    """Cloud of Azure."""

    endpoint: str
    """Endpoint of Azure Resource Manager."""
    storage: str
    """End of the host of storage accounts."""


PUBLIC = Cloud("https://management.azure.com", "core.windows.net")
_US = Cloud("https://management.usgovcloudapi.net", "core.usgovcloudapi.net")
_CHINA = Cloud("https://management.chinacloudapi.cn", "core.chinacloudapi.cn")
_CLOUDS = {
    "login.microsoftonline.com": PUBLIC,
    "login.microsoftonline.us": _US,
    "login.chinacloudapi.cn": _CHINA,
    "login.partner.microsoftonline.cn": _CHINA,
}
"""Clouds by the host of the authority that azure-identity signs in to."""
_REGIONS = {"china": _CHINA, "usgov": _US, "usdod": _US}
"""Clouds by how the names of their regions begin."""


def signed_in_cloud(environment: Mapping[str, str]) -> Cloud:
    """Return the cloud that azure-identity signs in to. Raise DefinitionError if it is not known."""
    authority = environment.get(AUTHORITY) or "login.microsoftonline.com"
    host = urlsplit(authority if "//" in authority else f"https://{authority}").hostname or ""
    if host not in _CLOUDS:
        raise DefinitionError(
            f"{AUTHORITY} is {authority}, a cloud whose jobs cannot be read: write the job to a file with az rest, as "
            "docs/import.md says, and import the file"
        )
    return _CLOUDS[host]


def cloud_of_region(region: str) -> Cloud | None:
    """Return the cloud of a region, such as `China East 2` or `usgovvirginia`; None if the name is not a region's."""
    name = region.lower().replace(" ", "")
    if not re.fullmatch(r"[a-z]+\d?", name):
        return None
    return next((cloud for start, cloud in _REGIONS.items() if name.startswith(start)), PUBLIC)


def in_its_cloud(job: AsaJob, environment: Mapping[str, str]) -> AsaJob:
    """Return the job with the addresses that storage accounts have in its cloud.

    The cloud is that of the job's region or, if the region is not known, the one that azure-identity signs in to.
    """
    cloud = cloud_of_region(job.region)
    if cloud is None:
        try:
            cloud = signed_in_cloud(environment)
        except DefinitionError:
            cloud = PUBLIC

    def moved(folder: Any) -> Any:
        return replace(folder, suffix=cloud.storage) if isinstance(folder, BlobFolder) else folder

    def moved_url(url: str) -> str:
        return url.replace(f".{PUBLIC.storage}/", f".{cloud.storage}/", 1)

    captures = job.captures
    return replace(
        job,
        inputs=tuple(replace(input_, source=moved(input_.source)) for input_ in job.inputs),
        outputs=tuple(replace(output, target=moved(output.target)) for output in job.outputs),
        captures=replace(
            captures,
            settings=tuple(
                replace(item, container=item.container and moved_url(item.container)) for item in captures.settings
            ),
            folders=tuple(replace(item, container=moved_url(item.container)) for item in captures.folders),
        ),
    )
