"""Read a job, and the settings of Capture of its event hubs, from Azure with the signed-in identity.

Sources: "Streaming Jobs - Get" of the Stream Analytics REST API; "Namespaces - List" and "Event Hubs - Get" of the
Event Hubs REST API.
"""

import os
import re
from collections.abc import Iterator
from typing import Any, NoReturn

from azure.core import PipelineClient
from azure.core.credentials import TokenCredential
from azure.core.exceptions import AzureError
from azure.core.pipeline.policies import BearerTokenCredentialPolicy, RetryPolicy
from azure.core.pipeline.transport import HttpTransport, RequestsTransport
from azure.core.rest import HttpRequest

from recapture.errors import DefinitionError, RunError, SetupError
from recapture.storage.credentials import Identity, identity
from recapture.tools.asa_job.capture_settings import EVENT_HUB
from recapture.tools.asa_job.clouds import signed_in_cloud
from recapture.tools.asa_job.documents import JobPart, parse_part
from recapture.tools.asa_job.job import AsaJob, EventHub
from recapture.tools.asa_job.reader import check_size
from recapture.tools.asa_job.template import is_answer, read_answers

_JOBS, _HUBS = "2020-03-01", "2024-01-01"
"""Versions of the APIs of Stream Analytics and of Event Hubs."""
_NAMES = {
    "subscription": r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}",
    "resource group": r"[\w.()-]{1,90}",
    "job": r"[A-Za-z0-9_-]{1,63}",
}
_CODE = re.compile(r"[A-Za-z]{1,80}")
_NAMESPACE_ID = re.compile(r"/subscriptions(/[\w.()-]+)+", re.ASCII)
"""Ids that are paths of the endpoint: the token goes to no other host."""


class _Namespace(JobPart):
    name: str
    id: str


class _Namespaces(JobPart):
    value: tuple[_Namespace, ...] = ()
    next_link: str = ""


def read_azure_job(
    subscription: str,
    group: str,
    name: str,
    credential: TokenCredential | None = None,
    transport: HttpTransport[Any, Any] | None = None,
) -> AsaJob:
    """Return a job in Azure, with the settings of Capture of its event hubs if the identity may read them.

    Without `credential`, the identity is that of the environment. Raise DefinitionError if a name is not valid, and
    SetupError or RunError if the job cannot be read.
    """
    for (kind, pattern), value in zip(_NAMES.items(), (subscription, group, name), strict=True):
        if not re.fullmatch(pattern, value):
            what = "id" if kind == "subscription" else "name"
            option = f"--{kind.replace(' ', '-')}"
            raise DefinitionError(f"{value!a} is not the {what} of a {kind}: correct {option}")
    manager = _Manager(signed_in_cloud(os.environ).endpoint, subscription, credential or identity(), transport)
    answer = manager.job(group, name)
    origin = f"resource group {group}"
    job = read_answers([answer], origin)
    check_size(job)
    hubs = [source for input_ in job.inputs if isinstance(source := input_.source, EventHub)]
    return read_answers([answer, *manager.event_hubs(hubs)], origin)


class _Manager:
    """Azure Resource Manager, for one subscription."""

    def __init__(
        self, endpoint: str, subscription: str, credential: TokenCredential, transport: HttpTransport[Any, Any] | None
    ) -> None:
        self._subscription = f"/subscriptions/{subscription}"
        self._endpoint = endpoint
        signed_in = Identity(
            credential, self._endpoint, "an import from Azure needs an identity, such as that of az login"
        )
        policies = [RetryPolicy(retry_total=4), BearerTokenCredentialPolicy(signed_in, f"{self._endpoint}/.default")]
        self._client: PipelineClient[Any, Any] = PipelineClient(
            self._endpoint, policies=policies, transport=transport or RequestsTransport()
        )

    def job(self, group: str, name: str) -> Any:
        """Return the answer for a job. Raise SetupError or RunError if it cannot be read."""
        path = f"{self._subscription}/resourceGroups/{group}/providers/Microsoft.StreamAnalytics/streamingjobs/{name}"
        what = f"the job {name} in the resource group {group}"
        expand = "inputs,outputs,transformation,functions"
        status, answer = self._get(f"{self._endpoint}{path}", what, {"api-version": _JOBS, "$expand": expand})
        if status != 200:
            _refuse(what, status, answer)
        if not is_answer(answer):
            raise RunError(f"cannot read {what}: the answer is not a job: check any proxy on the way")
        return answer

    def event_hubs(self, hubs: list[EventHub]) -> Iterator[dict[str, Any]]:
        """Yield event hubs as the resources of a template. One that the identity cannot read is left out."""
        names = {(hub.namespace.lower(), hub.name): None for hub in hubs if hub.namespace and hub.name}
        ids = dict(self._namespaces()) if names else {}
        for namespace, name in names:
            if namespace in ids:
                url = f"{self._endpoint}{ids[namespace]}/eventhubs/{name}"
                status, answer = self._get(url, f"the event hub {namespace}/{name}", {"api-version": _HUBS})
                if status == 200:
                    yield {"type": EVENT_HUB, "name": f"{namespace}/{name}", "properties": answer.get("properties")}

    def _namespaces(self) -> Iterator[tuple[str, str]]:
        """Yield the names, in lower case, and the ids of the namespaces that the identity can read."""
        url: str | None = f"{self._endpoint}{self._subscription}/providers/Microsoft.EventHub/namespaces"
        params: dict[str, str] = {"api-version": _HUBS}
        asked: set[str] = set()
        while url is not None:
            status, answer = self._get(url, "the namespaces of the subscription", params)
            if status != 200:
                return
            page = parse_part(_Namespaces, answer, self._endpoint)
            for namespace in page.value:
                if _NAMESPACE_ID.fullmatch(namespace.id):
                    yield namespace.name.lower(), namespace.id
            asked.add(url)
            url, params = self._page(page.next_link, asked), {}

    def _page(self, link: str, asked: set[str]) -> str | None:
        """Return the url of the next page, None after the last.

        Raise RunError if it is on another host, which must not get the token, or was asked for before.
        """
        if link and (link in asked or not link.startswith(f"{self._endpoint}/")):
            raise RunError(
                f"{self._endpoint} refers to another host, or to an earlier page, for the next page of a list: run the "
                "command again"
            )
        return link or None

    def _get(self, url: str, what: str, params: dict[str, str]) -> tuple[int, dict[str, Any]]:
        """Return the status and the JSON object of an answer. Raise RunError if there is none."""
        try:
            response = self._client.send_request(HttpRequest("GET", url, params=params))
            response.read()
            answer = response.json()
        except AzureError:
            raise RunError(
                f"cannot read {what}: {self._endpoint} cannot be reached: check the network, then run the command again"
            ) from None
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise RunError(
                f"cannot read {what}: the answer {response.status_code} is not JSON: check any proxy on the way, then "
                "run the command again"
            )
        return response.status_code, answer


def _refuse(what: str, status: int, answer: dict[str, Any]) -> NoReturn:
    """Raise the error for an answer that is not a job. The service's own text is left out."""
    error = answer.get("error")
    code = str(error.get("code", "")) if isinstance(error, dict) else ""
    reason = f" ({code})" if _CODE.fullmatch(code) else ""
    if status == 401:
        raise SetupError(
            f"cannot read {what}{reason}: sign in to the tenant of the subscription, such as with az login"
        )
    if status == 403:
        raise SetupError(
            f"not authorised to read {what}{reason}: give the signed-in identity the role Reader on the job"
        )
    if status in (400, 404):
        raise SetupError(f"cannot find {what}{reason}: correct --subscription, --resource-group or --job")
    raise RunError(f"cannot read {what}: the service answered {status}{reason}: run the command again later")
