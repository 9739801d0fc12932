"""Models of the JSON that the ASA tools write, with keys in any case.

A key that no model names is ignored; every credential is such a key. No error shows a value.
"""

import json
import re
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, ValidationError, model_validator

from recapture.errors import DefinitionError

OPEN_VALUE = re.compile(r"\$\{(\w+)\}")
"""Placeholder of an open value. A pipeline file reads it as an environment variable."""
_REASONS = {
    "string_type": "should be a string",
    "tuple_type": "should be a list",
    "dict_type": "should be an object",
    "model_type": "should be an object",
    "missing": "is missing",
}
_KIND = re.compile(r"[A-Za-z][A-Za-z ./#-]*[0-9]?")
_LOCALE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z]{2,8})*")
_FORMATS = {
    name.lower(): name
    for name in ("Json", "Avro", "Csv", "Parquet", "Delta", "Protobuf", "CustomClr", "None", "GZip", "Deflate")
}


class JobPart(BaseModel):
    """Part of a document. The field `event_hub_name` is the key `eventHubName` in any case."""

    model_config = ConfigDict(frozen=True, extra="ignore", alias_generator=lambda name: name.replace("_", ""))

    @model_validator(mode="before")
    @classmethod
    def _in_any_case(cls, value: Any) -> Any:
        """Return the value with keys in lower case, and without keys that are null."""
        if not isinstance(value, dict):
            return value
        return {key.lower(): item for key, item in value.items() if item is not None}


P = TypeVar("P", bound=JobPart)


def parse_json(text: str, name: str) -> Any:
    """Return the document in the text of a file. Raise DefinitionError, which calls it `name`, if it is not JSON."""
    try:
        document = json.loads(text)
        json.dumps(document, ensure_ascii=False).encode()
        return document
    except UnicodeEncodeError:
        raise DefinitionError(f"{name}: not valid Unicode: an escape is half of a surrogate pair") from None
    except json.JSONDecodeError as error:
        raise DefinitionError(f"{name}:{error.lineno}:{error.colno}: not JSON: {error.msg}") from None
    except ValueError:
        raise DefinitionError(f"{name}: a number has too many digits: correct it") from None
    except RecursionError:
        raise DefinitionError(f"{name}: JSON is nested too deeply") from None


def parse_part(model: type[P], value: Any, where: str) -> P:
    """Return a part as this model. Raise DefinitionError, with the key but never its value, if it does not fit."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        problem = error.errors(include_input=False, include_url=False)[0]
        reason = _REASONS.get(problem["type"], problem["msg"].removeprefix("Value error, ").removeprefix("Input "))
        place = _place(value, problem["loc"])
        raise DefinitionError(f"{where}: {place}{': ' if place else 'this '}{reason}") from None


def _place(value: Any, steps: tuple[int | str, ...]) -> str:
    """Return the path of a key, with every step as the document writes it."""
    names = []
    for step in steps:
        if isinstance(value, dict):
            step = next((key for key in value if key.lower() == step), step)
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        names.append(str(step))
    return ".".join(names)


def one_of(**meanings: str) -> BeforeValidator:
    """Return a validator that replaces a word in any case by its meaning, and leaves an open value as it is."""

    def meaning(value: object) -> object:
        if isinstance(value, str) and OPEN_VALUE.search(value):
            return value
        if isinstance(value, str) and value.lower() in meanings:
            return meanings[value.lower()]
        raise ValueError(f"should be {' or '.join(dict.fromkeys(meanings.values()))}")

    return BeforeValidator(meaning)


def _whole_number(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,9}", value):
        return int(value)
    if isinstance(value, str) and OPEN_VALUE.fullmatch(value):
        return value
    raise ValueError("should be an integer")


def _level(value: object) -> object:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 10:
        return f"{value:.1f}"
    if isinstance(value, str) and (re.fullmatch(r"[0-9]\.[0-9]", value) or OPEN_VALUE.fullmatch(value)):
        return value
    raise ValueError("should be 1.0, 1.1 or 1.2")


Seconds = Annotated[int | str, BeforeValidator(_whole_number)]
Level = Annotated[str, BeforeValidator(_level)]
Locale = Annotated[str, AfterValidator(lambda value: value if _LOCALE.fullmatch(value) else "unknown")]
Kind = Annotated[str, AfterValidator(lambda value: value if _KIND.fullmatch(value) else "unknown")]
"""Kind of an input, output or function, in words that are safe to show."""
Format = Annotated[str, AfterValidator(lambda value: _FORMATS.get(value.lower(), "unknown"))]
"""Serialization or compression, in the case of _FORMATS."""


class SettingsPart(JobPart):
    """Settings of a job; None where it does not set one. JobConfig.json and a template have the same keys.

    A string in place of a number is an open value.
    """

    events_out_of_order_policy: Annotated[str, one_of(adjust="Adjust", drop="Drop")] | None = None
    events_out_of_order_max_delay_in_seconds: Seconds | None = None
    events_late_arrival_max_delay_in_seconds: Seconds | None = None
    output_error_policy: Annotated[str, one_of(stop="Stop", retry="Stop", drop="Drop")] | None = None
    """`Stop` or `Drop`. The portal writes Retry for Stop."""
    compatibility_level: Level | None = None
    data_locale: Locale | None = None


class AccountPart(JobPart):
    """Storage account of an input or output."""

    account_name: str | None = None


class SourcePart(JobPart):
    """Source or target of an input or output: the names of an event hub, or of a container."""

    service_bus_namespace: str | None = None
    event_hub_name: str | None = None
    storage_accounts: tuple[AccountPart, ...] = ()
    container: str | None = None
    path_pattern: str = ""
    date_format: str = ""
    time_format: str = ""
    delta_path_pattern: str = ""
