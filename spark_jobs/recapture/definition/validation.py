"""What pydantic finds wrong with a pipeline file, as one line per error that names the key and says what to do."""

from collections.abc import Iterable, Iterator
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from recapture.definition.document import Document, KeyPath
from recapture.errors import DefinitionError
from recapture.formats.sections import DEFAULT_FORMAT, formats_with
from recapture.process.wording import did_you_mean


def definition_error(error: ValidationError, document: Document, root: type[BaseModel]) -> DefinitionError:
    """Return the errors that pydantic raised when it made the model `root` of a document, joined."""
    return DefinitionError("; ".join(str(_problem(dict(problem), document, root)) for problem in error.errors()))


def _problem(problem: dict[str, Any], document: Document, root: type[BaseModel]) -> DefinitionError:
    section, *rest = problem["loc"]
    if section == "input":
        del rest[1:3]  # pydantic names the type and the format after the index
    key_path: KeyPath = (section, *rest)
    reason = problem["msg"].removeprefix("Input ").removeprefix("Value error, ")
    match problem["type"]:
        case "missing":
            return document.error(key_path, "is missing: add it", colon=" ")
        case "extra_forbidden":
            advice = did_you_mean(str(key_path[-1]), _known_keys(root, problem["loc"][:-1]))
            unknown = f"unknown key: {advice or 'remove it or correct its name'}"
            return document.error(key_path, _other_format(document, key_path) or unknown)
        case "model_type" | "model_attributes_type":
            return document.error(key_path, "should be a mapping, its keys on lines of their own")
        case "union_tag_invalid":
            key = "format" if problem["ctx"]["discriminator"] == "'format'" else "type"
            key_path, reason = (*key_path[:2], key), f"should be {problem['ctx']['expected_tags']}"
        case "union_tag_not_found":
            return document.error((*key_path[:2], "format"), "is missing: add it", colon=" ")
        case "string_type":
            reason = "should be a string: put it in quotation marks"
    return document.error(key_path, f"{reason}{_given(document, key_path, problem['input'])}")


def _given(document: Document, key_path: KeyPath, value: object) -> str:
    text = document.text(key_path)
    if text is None:
        return ""
    quoted = isinstance(value, str) or (key_path[0] == "input" and key_path[-1] in ("format", "type"))
    return f" ({repr(text) if quoted else text or 'nothing'} given)"


def _other_format(document: Document, key_path: KeyPath) -> str | None:
    """Return what is wrong with a key that inputs of other formats have; None if there is no such key."""
    formats = formats_with(str(key_path[-1])) if key_path[0] == "input" and len(key_path) == 3 else []
    if not formats or document.text((*key_path[:2], "type")) == "Reference":
        return None
    own = document.text((*key_path[:2], "format")) or DEFAULT_FORMAT
    return f"a key of {' and '.join(formats)}, and this input's format is {own}: remove it, or correct input.format"


def _known_keys(root: type[BaseModel], location: Iterable[str | int]) -> list[str]:
    """Return the keys of the section at a location, which also names the formats of inputs, as pydantic does."""
    sections = [root]
    for step in location:
        inner = [found for section in sections for found in _sections(_fields(section).get(step))]
        sections_with_format = [section for section in sections if step in get_args(_fields(section).get("format"))]
        sections = inner or sections_with_format or sections
    return [str(key) for section in sections for key in _fields(section)]


def _fields(section: type[BaseModel]) -> dict[str | int, Any]:
    """Return the types of the keys of a section, by the names that a pipeline file gives them."""
    fields = section.model_fields
    return {field.alias or name: field.annotation for name, field in fields.items() if not field.exclude}


def _sections(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the sections that a value of a type holds."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _sections(argument)
