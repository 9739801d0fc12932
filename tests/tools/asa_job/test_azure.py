"""Reading a job from Azure: answers in the form of Microsoft's pages, to the real client."""

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
import requests
from azure.core.credentials import AccessToken
from azure.core.exceptions import ClientAuthenticationError
from azure.core.pipeline.transport import RequestsTransport
from requests.adapters import BaseAdapter

from recapture.definition.pipeline import load
from recapture.errors import RecaptureError
from recapture.tools.asa_job import carry_over, pipeline_text
from recapture.tools.asa_job.azure import read_azure_job
from recapture.tools.asa_job.clouds import AUTHORITY
from tests.tools.asa_job.jobs import PLAIN_QUERY, SECRET, template_job

SUBSCRIPTION = "56b5e0a9-b645-407d-99b0-c64f86013e3d"
OWN = f"/subscriptions/{SUBSCRIPTION}"
JOB = f"{OWN}/resourceGroups/streams/providers/Microsoft.StreamAnalytics/streamingjobs/contoso-telemetry"
NAMESPACES = f"{OWN}/providers/Microsoft.EventHub/namespaces"
NAMESPACE = f"{OWN}/resourceGroups/hubs/providers/Microsoft.EventHub/namespaces/Contoso"
ACCOUNT = f"{OWN}/resourceGroups/hubs/providers/Microsoft.Storage/storageAccounts/contosoarchive"
NOT_CAPTURED = (
    "resource group streams, inputs/telemetry: input telemetry does not say where Capture writes its events: set "
    "container, and capture_interval_seconds if it is not 300"
)


def job(location: str = "West US") -> dict[str, Any]:
    """Return the answer for the job, in the form of "Streaming Jobs - Get"."""
    answer = template_job() | {"name": "contoso-telemetry", "id": JOB, "location": location}
    answer["properties"] |= {"jobState": "Running", "eventsLateArrivalMaxDelayInSeconds": 5}
    return answer


def event_hub(**changes: Any) -> dict[str, Any]:
    """Return the answer for the event hub, in the form of "Event Hubs - Get"."""
    destination = {
        "name": "EventHubArchive.AzureBlockBlob",
        "properties": {
            "storageAccountResourceId": ACCOUNT,
            "blobContainer": "capture",
            "archiveNameFormat": "{Namespace}/{EventHub}/{PartitionId}/{Year}/{Month}/{Day}/{Hour}/{Minute}/{Second}",
        },
    }
    capture = {
        "enabled": True,
        "encoding": "Avro",
        "intervalInSeconds": 120,
        "sizeLimitInBytes": 10485763,
        "destination": destination,
    }
    return {"name": "telemetry", "properties": {"partitionCount": 4, "captureDescription": capture | changes}}


def error(code: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": SECRET}}


ANSWERS: Mapping[str, tuple[int, Any]] = {
    JOB: (200, job()),
    NAMESPACES: (200, {"value": [{"id": NAMESPACE, "name": "Contoso"}]}),
    f"{NAMESPACE}/eventhubs/telemetry": (200, event_hub()),
}


@dataclass
class Azure(BaseAdapter):
    """Azure Resource Manager, which has these answers, and the identity that signs in to it."""

    answers: Mapping[str, tuple[int, Any]]
    asked: list[requests.PreparedRequest] = field(default_factory=list)
    scopes: list[str] = field(default_factory=list)

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:  # type: ignore[override]
        self.asked.append(request)
        response = requests.Response()
        status, answer = self.answers.get(urlsplit(str(request.url)).path, (404, error("ResourceNotFound")))
        content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        response.status_code, response.raw, response.url = status, io.BytesIO(content), str(request.url)
        response.headers["Content-Type"] = "application/json"
        if status == 503:
            response.headers["retry-after-ms"] = "1"
        return response

    def close(self) -> None:
        """Close nothing."""

    def get_token(self, *scopes: str, **options: Any) -> AccessToken:
        self.scopes.extend(scopes)
        return AccessToken("the-token", 4_000_000_000)

    def read(self, group: str = "streams", subscription: str = SUBSCRIPTION) -> Any:
        session = requests.Session()
        session.mount("https://", self)
        transport = RequestsTransport(session=session, session_owner=False)
        return read_azure_job(subscription, group, "contoso-telemetry", self, transport)

    def refused(self, **names: str) -> str:
        with pytest.raises(RecaptureError) as raised:
            self.read(**names)
        message = str(raised.value)
        assert "\n" not in message
        assert SECRET not in message
        return message


def without(path: str) -> dict[str, tuple[int, Any]]:
    return {key: answer for key, answer in ANSWERS.items() if key != path}


def missing(azure: Azure) -> list[str]:
    return [str(finding) for finding in carry_over(azure.read()).missing]


def test_a_job_in_azure_and_the_capture_of_its_event_hub_give_a_pipeline_that_lacks_nothing(tmp_path: Path) -> None:
    azure = Azure(ANSWERS)
    read = azure.read()
    draft = carry_over(read)
    assert (read.name, read.query, draft.missing) == ("contoso-telemetry", PLAIN_QUERY, [])
    file = tmp_path / "job.yaml"
    file.write_text(pipeline_text(draft, read.origin))
    (input_,) = load(file).inputs
    assert (input_.container, input_.source, input_.interval_seconds) == (
        "https://contosoarchive.blob.core.windows.net/capture",
        "contoso/telemetry",
        120,
    )
    first = urlsplit(str(azure.asked[0].url))
    assert (first.scheme, first.netloc, first.path) == ("https", "management.azure.com", JOB)
    assert dict(parse_qsl(first.query)) == {
        "api-version": "2020-03-01",
        "$expand": "inputs,outputs,transformation,functions",
    }
    assert {request.headers["Authorization"] for request in azure.asked} == {"Bearer the-token"}
    assert set(azure.scopes) == {"https://management.azure.com/.default"}
    assert {request.method for request in azure.asked} == {"GET"}


@pytest.mark.parametrize(
    "answers",
    [
        without(NAMESPACES) | {NAMESPACES: (403, error("AuthorizationFailed"))},
        without(f"{NAMESPACE}/eventhubs/telemetry"),
        {**ANSWERS, f"{NAMESPACE}/eventhubs/telemetry": (200, event_hub(enabled=False))},
        {**ANSWERS, NAMESPACES: (200, {"value": []})},
    ],
    ids=["namespaces may not be listed", "event hub may not be read", "Capture is off", "other subscription"],
)
def test_without_the_capture_of_its_event_hub_a_job_asks_for_its_address_and_nothing_else(answers: Any) -> None:
    assert missing(Azure(answers)) == [NOT_CAPTURED]


def test_the_pages_of_a_list_are_followed_on_the_same_host_only() -> None:
    second = f"{NAMESPACES}/second"
    pages = {
        second: ANSWERS[NAMESPACES],
        NAMESPACES: (200, {"value": [], "nextLink": f"https://management.azure.com{second}"}),
    }
    assert missing(Azure({**ANSWERS, **pages})) == []
    azure = Azure({**ANSWERS, NAMESPACES: (200, {"value": [], "nextLink": f"https://example.com{second}"})})
    assert "refers to another host, or to an earlier page, for the next page" in azure.refused()
    assert not any("example.com" in str(request.url) for request in azure.asked)
    azure = Azure({**ANSWERS, NAMESPACES: (200, {"nextLink": f"https://management.azure.com{NAMESPACES}"})})
    assert "to an earlier page" in azure.refused()
    azure = Azure({**ANSWERS, NAMESPACES: (200, {"value": [{"id": f".example.com{NAMESPACE}", "name": "contoso"}]})})
    assert missing(azure) == [NOT_CAPTURED]
    assert not any("example.com" in str(request.url) for request in azure.asked)
    for value in (SECRET, [SECRET], [{"id": 5, "name": "contoso"}], [{"id": NAMESPACE}]):
        refused = Azure({**ANSWERS, NAMESPACES: (200, {"value": value})}).refused()
        assert refused.startswith("https://management.azure.com: value")


@pytest.mark.parametrize(
    ("status", "answer", "message"),
    [
        (401, error("InvalidAuthenticationTokenTenant"), "(InvalidAuthenticationTokenTenant): sign in to the tenant"),
        (403, error("AuthorizationFailed"), "not authorised to read the job contoso-telemetry in the resource group"),
        (403, error("AuthorizationFailed"), "give the signed-in identity the role Reader on the job"),
        (404, error("ResourceGroupNotFound"), "(ResourceGroupNotFound): correct --subscription, --resource-group or"),
        (404, error(SECRET), "cannot find the job contoso-telemetry in the resource group streams: correct"),
        (503, error("ServerBusy"), "the service answered 503 (ServerBusy): run the command again later"),
        (200, b"<html>sign in</html>", "the answer 200 is not JSON: check any proxy on the way"),
        (200, {"error": None}, "the answer is not a job: check any proxy on the way"),
    ],
)
def test_an_answer_that_is_not_the_job_says_what_to_do(status: int, answer: Any, message: str) -> None:
    assert message in Azure({JOB: (status, answer)}).refused()


def test_nothing_is_asked_with_names_that_azure_does_not_allow() -> None:
    azure = Azure(ANSWERS)
    assert azure.refused(group="../x") == "'../x' is not the name of a resource group: correct --resource-group"
    assert azure.refused(subscription="Contoso") == "'Contoso' is not the id of a subscription: correct --subscription"
    assert azure.asked == []


def test_the_cloud_is_that_of_the_authority(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(AUTHORITY, "https://login.microsoftonline.us/")
    azure = Azure({**ANSWERS, JOB: (200, job("USGov Virginia"))})
    draft = carry_over(azure.read())
    assert draft.values["input"]["container"] == "https://contosoarchive.blob.core.usgovcloudapi.net/capture"
    assert str(draft.values["output"]["table"]).startswith("https://contosodata.blob.core.usgovcloudapi.net/curated/")
    assert {urlsplit(str(request.url)).netloc for request in azure.asked} == {"management.usgovcloudapi.net"}
    monkeypatch.setenv(AUTHORITY, "login.example.com")
    assert "a cloud whose jobs cannot be read: write the job to a file with az rest" in Azure({}).refused()


def test_an_identity_that_cannot_sign_in_is_reported_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*scopes: str, **options: Any) -> AccessToken:
        raise ClientAuthenticationError("the credential failed: no account\nmore")

    azure = Azure(ANSWERS)
    monkeypatch.setattr(azure, "get_token", refuse)
    message = "https://management.azure.com: an import from Azure needs an identity, such as that of az login, and no"
    assert message in azure.refused()
    assert azure.asked == []
