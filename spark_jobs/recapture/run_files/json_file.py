"""A JSON file of Recapture: it says its format, and has one name, one type, one reader and one writer."""

import json
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, TypeVar, cast

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from recapture.process.versions import FORMAT, require_format

Content = TypeVar("Content")


class DamagedFileError(Exception):
    """A file that is not what Recapture wrote."""


@dataclass(frozen=True)
class JsonFile(Generic[Content]):
    """A kind of file: its name, and the type of its content.

    A reader ignores fields that it does not know, and takes the default of a field that an older version did not write.
    """

    name: str
    type: type[Content]

    @property
    def _adapter(self) -> TypeAdapter[Content]:
        return _adapter(cast(Any, self.type))

    def encode(self, content: Content) -> bytes:
        """Return the file. Raise ValueError for a float that JSON does not have."""
        value = {"format": self.format_of(content), "content": self._adapter.dump_python(content, by_alias=True)}
        document = to_json(value, indent=1, inf_nan_mode="constants")
        if b"NaN" in document or b"Infinity" in document:
            json.dumps(value, allow_nan=False)  # it may be a string
        return document

    def decode(self, document: bytes, what: str) -> Content:
        """Return the content of a file; `what` names it in messages.

        Raise FormatError if another version wrote it, and DamagedFileError if none did.
        """
        try:
            value = json.loads(document)
        except (ValueError, RecursionError):
            raise DamagedFileError from None
        number = value.get("format") if isinstance(value, dict) else None
        if number not in self.formats:
            require_format(number, max(self.formats), what)
        if "content" not in value:
            raise DamagedFileError
        try:
            return self.stored(self._adapter.validate_python(value["content"]), document)
        except ValidationError:
            raise DamagedFileError from None

    @property
    def formats(self) -> tuple[int, ...]:
        """Formats that this version reads."""
        return (FORMAT,)

    def format_of(self, content: Content) -> int:
        """Return the format of a file with this content."""
        return FORMAT

    def stored(self, content: Content, document: bytes) -> Content:
        """Return the content with what it says of its own file, `document`: nothing by default."""
        return content

    def json_types(self, content: Content) -> Any:
        """Return the content in JSON types, as the file has it."""
        return json.loads(self.encode(content))["content"]


@cache
def _adapter(type_: Any) -> TypeAdapter[Any]:
    """Return the adapter of a type, which takes milliseconds to make."""
    return TypeAdapter(type_)
