"""From the documents of both written forms to the values of a job."""

import itertools
import re

from spark_jobs.asa_job.documents import SettingsPart, SourcePart
from spark_jobs.asa_job.job import HOLE, BlobFolder, EventHub, JobSettings

_NAMESPACE = re.compile(r"[A-Za-z][A-Za-z0-9-]{1,49}")
_EVENT_HUB = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,255}")
_ACCOUNT = re.compile(r"[a-z0-9]{3,24}")
_CONTAINER = re.compile(r"[a-z0-9](-?[a-z0-9]){2,62}")


def event_hub(part: SourcePart) -> EventHub:
    namespace = (part.service_bus_namespace or "").removesuffix(".servicebus.windows.net")
    return EventHub(_name(_NAMESPACE, namespace), _name(_EVENT_HUB, part.event_hub_name))


def blob_folder(part: SourcePart) -> BlobFolder:
    account = part.storage_accounts[0].account_name if part.storage_accounts else None
    return BlobFolder(_name(_ACCOUNT, account), _name(_CONTAINER, part.container), _folders(part.path_pattern))


def settings(part: SettingsPart, where: str) -> JobSettings:
    return JobSettings(
        where=where,
        out_of_order_policy=part.events_out_of_order_policy,
        out_of_order_seconds=part.events_out_of_order_max_delay_in_seconds,
        late_seconds=part.events_late_arrival_max_delay_in_seconds,
        output_error_policy=part.output_error_policy,
        compatibility_level=part.compatibility_level,
        data_locale=part.data_locale,
    )


def _folders(path_pattern: str) -> tuple[str, ...]:
    parts = path_pattern.strip("/").split("/")
    return tuple(itertools.takewhile(lambda part: _name(_EVENT_HUB, part), parts))


def _name(allowed: re.Pattern[str], text: str | None) -> str | None:
    """The name, if it is one: whatever else stands in its place, a connection string say, goes no further."""
    return text if text and allowed.fullmatch(HOLE.sub("xxx", text)) else None
