"""What pydantic finds wrong with a pipeline file, as one line per error that names the key and says what to do."""

from typing import Any

from pydantic import ValidationError

from recapture.definition.document import Document, KeyPath
from recapture.errors import DefinitionError
from recapture.formats.sections import DEFAULT_FORMAT, formats_with


def definition_error(error: ValidationError, document: Document) -> DefinitionError:
    """Return the errors that pydantic raised, joined."""
    return DefinitionError("; ".join(str(_problem(dict(problem), document)) for problem in error.errors()))


def _problem(problem: dict[str, Any], document: Document) -> DefinitionError:
    section, *rest = problem["loc"]
    if section == "input":
        del rest[1:3]  # pydantic names the type and the format after the index
    key_path: KeyPath = (section, *rest)
    reason = problem["msg"].removeprefix("Input ").removeprefix("Value error, ")
    match problem["type"]:
        case "missing":
            return document.error(key_path, "is missing: add it", colon=" ")
        case "extra_forbidden":
            unknown = "unknown key: remove it or correct its name"
            return document.error(key_path, _other_format(document, key_path) or unknown)
        case "model_type" | "model_attributes_type":
            return document.error(key_path, "should be a mapping, its keys on lines of their own")
        case "union_tag_invalid":
            key = "format" if problem["ctx"]["discriminator"] == "'format'" else "type"
            key_path, reason = (*key_path[:2], key), f"should be {problem['ctx']['expected_tags']}"
        case "union_tag_not_found":
            return document.error((*key_path[:2], "format"), "is missing: add it", colon=" ")
        case "string_type":
            reason = "should be a text: put it in quotation marks"
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
