"""Requests that other programs make: each is a message, a JSON object in a queue."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from recapture.definition.pipeline import Pipeline
from recapture.errors import DefinitionError
from recapture.keep.requests import NewRequest, make_request
from recapture.printable import one_line
from recapture.process.wording import did_you_mean
from recapture.time_model import ticks

REQUIRED = ("id", "pipeline", "from", "to", "by")
OPTIONAL = ("at", "reason")
TIMES = ("from", "to", "at")
SHOWN = 200
"""Number of characters of a message that errors show."""


@dataclass(frozen=True)
class Message:
    """Message that asks for the slices of a range."""

    id: str
    """Name that the sender gives to the message: the same in each copy of it, and in no other message."""
    pipeline: str
    """Name of the pipeline."""
    start: datetime
    end: datetime
    by: str
    """Name of the person or program that asks."""
    at: datetime | None = None
    """Time from which the slices may be computed; None for the next update."""
    reason: str | None = None

    @property
    def request(self) -> str:
        """Return the id of the message's request: however often the message is delivered, it makes one request."""
        return hashlib.sha256(self.id.encode()).hexdigest()[:8]


def parse_message(text: str) -> Message:
    """Return the message of a JSON string. Raise DefinitionError, with everything that is wrong, if it is not one."""
    fields, times = parse_fields(text, REQUIRED, OPTIONAL)
    id, name, by = (fields[name] for name in ("id", "pipeline", "by"))
    return Message(id, name, times["from"], times["to"], by, times.get("at"), fields.get("reason"))


def parse_fields(
    text: str, required: Sequence[str], optional: Sequence[str]
) -> tuple[dict[str, Any], dict[str, datetime]]:
    """Return the fields of a JSON object of strings, and the times among them; an optional field may be null.

    Raise DefinitionError, with everything that is wrong, if it is not such an object.
    """
    fields, known = _object(text, required), (*required, *optional)
    problems = [
        *(f"the key {name!r} is unknown: {_advice(name, known)}" for name in fields if name not in known),
        *(f"`{name}` is missing" for name in required if name not in fields),
    ]
    times: dict[str, datetime] = {}
    for name in (name for name in known if name in fields):
        value = fields[name]
        if value is None and name in optional:
            continue
        if not isinstance(value, str) or not value.strip():
            problems.append(f"`{name}` is {json.dumps(value)}: write a string that is not empty")
        elif name in TIMES:
            try:
                times[name] = ticks.parse_utc(value)
            except ValueError:
                problems.append(f"`{name}` is {value!r}: write an ISO 8601 time, such as 2026-03-01T10:00:00Z")
    if problems:
        raise DefinitionError("; ".join(problems))
    return fields, times


def make_requests(texts: Iterable[str], pipelines: Sequence[Pipeline]) -> list[dict[str, Any]]:
    """Make the requests that messages ask for, and return them in JSON types.

    If some messages are bad, make the requests of all others first. Then raise DefinitionError: it names each bad
    message and what is wrong with it. A message whose request was made before makes no other one.
    """
    requests, problems = [], []
    for text in texts:
        try:
            message = parse_message(text)
            requests.append(_make(message, _pipeline(message.pipeline, pipelines)))
        except DefinitionError as error:
            problems.append(f"no request was made for the message {one_line(text[:SHOWN])}: {error}")
    if problems:
        raise DefinitionError("\n".join(problems))
    return requests


def _make(message: Message, pipeline: Pipeline) -> dict[str, Any]:
    new = NewRequest(message.start, message.end, message.by, message.at, message.reason, id=message.request)
    return make_request(pipeline, new)


def _pipeline(name: str, pipelines: Sequence[Pipeline]) -> Pipeline:
    by_name = {pipeline.name: pipeline for pipeline in pipelines}
    if name not in by_name:
        advice = did_you_mean(name, by_name) or f"use one of {', '.join(by_name) or 'none, as none could be loaded'}"
        raise DefinitionError(f"there is no pipeline {name!r}: {advice}")
    return by_name[name]


def _object(text: str, required: Sequence[str]) -> dict[str, Any]:
    """Return the object of a JSON string. Raise DefinitionError if it is not one, or has a key twice."""
    try:
        value = json.loads(text, object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        raise DefinitionError(f"it is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise DefinitionError("it is not a JSON object, such as " + json.dumps(dict.fromkeys(required, "…")))
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    repeated = [name for name, number in Counter(name for name, _ in pairs).items() if number > 1]
    if repeated:
        raise DefinitionError(f"the key {repeated[0]!r} is there twice")
    return dict(pairs)


def _advice(name: str, known: Sequence[str]) -> str:
    return did_you_mean(name, known) or f"use {', '.join(known)}"
