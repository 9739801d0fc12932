"""Convert the parts of a project or template to the values of a job."""

import itertools
import re

from recapture.model import AsaType
from recapture.tools.asa_job.documents import OPEN_VALUE, SourcePart
from recapture.tools.asa_job.job import BlobFolder, BlobPath, EventHub

_TYPES = {"".join(kind.split()): kind.value for kind in AsaType}
_NAMESPACE = re.compile(r"[A-Za-z][A-Za-z0-9-]{1,49}")
_EVENT_HUB = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,255}")
_FOLDER = re.compile(r"[A-Za-z0-9._=-]{1,256}")
_TOKEN = re.compile(r"(?<!\$)\{(?:date|time|partition)\}")
_DATE_FORMAT = re.compile(r"[YMD/._ -]{0,12}")
_TIME_FORMAT = re.compile(r"[Hm/-]{0,5}")
_ACCOUNT = re.compile(r"[a-z0-9]{3,24}")
_CONTAINER = re.compile(r"[a-z0-9](-?[a-z0-9]){2,62}")


def event_hub(part: SourcePart) -> EventHub:
    """Return the event hub of an input."""
    namespace = (part.service_bus_namespace or "").partition(".servicebus.")[0]
    return hub_of(namespace, part.event_hub_name)


def hub_of(namespace: str | None, name: str | None) -> EventHub:
    """Return the event hub of these names, without those that are not valid."""
    return EventHub(_name(_NAMESPACE, namespace), _name(_EVENT_HUB, name))


def container_url(account: str | None, container: str | None) -> str | None:
    """Return the url of a container; None if a name is not valid. The account may be the id of its resource."""
    name = (account or "").rpartition("/")[2]
    return BlobFolder(_name(_ACCOUNT, name), _name(_CONTAINER, container), ()).url


def blob_folder(part: SourcePart) -> BlobFolder:
    """Return the container and folders of an input or output on Blob storage."""
    account = part.storage_accounts[0].account_name if part.storage_accounts else None
    return BlobFolder(_name(_ACCOUNT, account), _name(_CONTAINER, part.container), _folders(part.path_pattern))


def blob_path(part: SourcePart) -> BlobPath:
    """Return the path pattern of a Blob input, with its date format in ASA's letters Y and D."""
    pattern = part.path_pattern.strip("/")
    folders = [_TOKEN.sub("x", folder) for folder in pattern.split("/")] if pattern else []
    date_format = part.date_format.replace("y", "Y").replace("d", "D")
    return BlobPath(
        pattern if all(_name(_FOLDER, folder) for folder in folders) else None,
        date_format if _DATE_FORMAT.fullmatch(date_format) else None,
        part.time_format if _TIME_FORMAT.fullmatch(part.time_format) else None,
        has_deltas=bool(part.delta_path_pattern),
    )


def _folders(path_pattern: str) -> tuple[str, ...]:
    parts = path_pattern.strip("/").split("/")
    return tuple(itertools.takewhile(lambda part: _name(_EVENT_HUB, part), parts))


def _name(allowed: re.Pattern[str], text: str | None) -> str | None:
    """Return the text if it is a valid name, else None, so that a misplaced connection string is never shown."""
    return text if text and allowed.fullmatch(OPEN_VALUE.sub("xxx", text)) else None


def data_type(written: str) -> str:
    """Return the type of an argument or a result of a function: NVarChar(Max) => nvarchar(max); else any"""
    return _TYPES.get("".join(written.lower().split()), "any")
