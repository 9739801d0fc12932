"""Messages in a queue that ask for requests."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from recapture.definition.pipeline import Pipeline
from recapture.errors import DefinitionError
from recapture.keep.messages import Message, make_requests, parse_message
from recapture.keep.requests import cancel_request, requests_of
from tests.paths import ROOT
from tests.worlds import HOUR, TEN, World

FIELDS = {
    "id": "0001",
    "pipeline": "telemetry",
    "from": "2024-03-01T10:00:00Z",
    "to": "2024-03-01T12:00:00Z",
    "by": "deploy",
}


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    return World(tmp_path).define()


def message(**changes: Any) -> str:
    return json.dumps(FIELDS | changes)


def test_a_message_says_what_is_asked_for_when_and_by_whom() -> None:
    at, reason = "2024-04-01T02:00:00+02:00", "new thresholds"
    parsed = parse_message(message(at=at, reason=reason))
    assert parsed == Message("0001", "telemetry", TEN, TEN + 2 * HOUR, "deploy", parsed.at, reason)
    assert parsed.at is not None
    assert parsed.at.isoformat() == "2024-04-01T00:00:00+00:00"


def test_a_message_without_time_and_reason_asks_the_next_update() -> None:
    assert parse_message(message()) == parse_message(message(at=None, reason=None))
    assert parse_message(message()).at is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("from ten to twelve", "it is not JSON: Expecting value: line 1 column 1 (char 0)"),
        ('["telemetry"]', "it is not a JSON object, such as "),
        ('{"id": "1", "id": "2"}', "the key 'id' is there twice"),
        ("{}", "`id` is missing; `pipeline` is missing; `from` is missing; `to` is missing; `by` is missing"),
        (message(form="2024"), "the key 'form' is unknown: did you mean from?"),
        (message(by=""), '`by` is "": write a string that is not empty'),
        (message(id=1), "`id` is 1: write a string that is not empty"),
        (message(to="noon"), "`to` is 'noon': write an ISO 8601 time, such as 2026-03-01T10:00:00Z"),
        (message(at="noon", by=None), "`by` is null: write a string that is not empty; `at` is 'noon': write an ISO"),
    ],
)
def test_a_bad_message_is_refused_with_everything_that_is_wrong(text: str, problem: str) -> None:
    with pytest.raises(DefinitionError) as error:
        parse_message(text)
    assert str(error.value).startswith(problem)


def test_a_message_makes_one_request_however_often_it_is_delivered(pipeline: Pipeline) -> None:
    (first,) = make_requests([message()], [pipeline])
    again = make_requests([message(), message()], [pipeline])
    assert again == [first, first]
    assert requests_of(pipeline) == [first]


def test_a_message_that_comes_again_does_not_revive_its_cancelled_request(pipeline: Pipeline) -> None:
    (made,) = make_requests([message()], [pipeline])
    cancel_request(pipeline, made["id"], "ann")
    (again,) = make_requests([message()], [pipeline])
    assert (again["id"], again["state"]) == (made["id"], "cancelled")


def test_messages_with_other_ids_make_other_requests(pipeline: Pipeline) -> None:
    made = make_requests([message(), message(id="0002")], [pipeline])
    assert len({request["id"] for request in made}) == 2
    assert requests_of(pipeline) == made


@pytest.mark.parametrize("change", [{"to": "2024-03-01T11:00:00Z"}, {"reason": "another"}, {"at": "2025-01-01"}])
def test_the_id_of_another_message_is_refused(pipeline: Pipeline, change: dict[str, str]) -> None:
    made = make_requests([message()], [pipeline])
    with pytest.raises(DefinitionError, match="asks for something else under the same id: give each request its own"):
        make_requests([message(**change)], [pipeline])
    assert requests_of(pipeline) == made


def test_bad_messages_keep_no_others_from_making_their_requests(pipeline: Pipeline) -> None:
    with pytest.raises(DefinitionError) as error:
        make_requests(["{}", message(), message(id="2", to="2024-03-01T10:30:00Z")], [pipeline])
    first, second = str(error.value).splitlines()
    assert first.startswith("no request was made for the message {}: `id` is missing; ")
    assert "is not on a slice border" in second
    assert [request["by"] for request in requests_of(pipeline)] == ["deploy"]


def test_a_message_for_an_unknown_pipeline_is_refused_with_the_most_similar_name(pipeline: Pipeline) -> None:
    with pytest.raises(DefinitionError, match=r"there is no pipeline 'telemetri': did you mean telemetry\?$"):
        make_requests([message(pipeline="telemetri")], [pipeline])


def test_the_message_in_the_docs_is_valid() -> None:
    (example,) = re.findall(r"```json\n(.*?)```", (ROOT / "docs" / "update.md").read_text(), re.DOTALL)
    assert parse_message(example).pipeline == "telemetry"
