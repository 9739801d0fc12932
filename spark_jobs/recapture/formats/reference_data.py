"""Reference data: a table in which a query looks rows up, as one blob or as versions of it.

ASA reads it as `reference input` from a blob whose path may have {date} and {time}: a version is in force from the time
in its name until that of the next version.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Discriminator

from recapture.archive.name_format import Piece
from recapture.errors import DefinitionError
from recapture.formats.base import InputSection, valid_date_format
from recapture.formats.csv import CsvReader, column_names
from recapture.formats.events import Reader
from recapture.formats.json_lines import JsonReader
from recapture.formats.path_names import DATE_FORMAT, InputPath, TimeFormat
from recapture.model import InputColumn


@dataclass(frozen=True)
class ReferencePath(InputPath):
    """The names of the versions of reference data. The pattern is a whole name; it may have `{date}` and `{time}`.

    Raise DefinitionError for a pattern or a format that cannot be read.
    """

    @cached_property
    def _pieces(self) -> tuple[Piece, ...]:
        if not self.pattern.strip("/"):
            raise DefinitionError("write the name of the blob, such as devices/{date}/{time}/devices.csv")
        if "{partition}" in self.pattern:
            raise DefinitionError("the path of reference data cannot contain {partition}: remove it")
        return self._spelled_pieces

    @property
    def _suffix(self) -> str:
        return ""


class ReferenceInput(InputSection):
    """The section of reference data, in any format."""

    metadata: ClassVar[None] = None
    location_keys: ClassVar[tuple[str, ...]] = (*InputSection.location_keys, "path", "date_format", "time_format")

    type: Literal["Reference"]
    path: str
    """Name of the blob, with the tokens {date} and {time} if there are several versions."""
    date_format: Annotated[str, AfterValidator(valid_date_format)] = DATE_FORMAT
    """Form of {date}: YYYY, MM and DD in any order, with separators or without."""
    time_format: TimeFormat = "HH"

    @cached_property
    def names(self) -> ReferencePath:
        return ReferencePath(self.path, self.date_format, self.time_format)


class JsonReference(ReferenceInput):
    """Reference data as JSON: one row per line, or one array of all rows."""

    format: Literal["Json"]

    def reader(self, columns: Iterable[InputColumn]) -> Reader:
        return JsonReader(self.limits)


class CsvReference(ReferenceInput):
    """Reference data as CSV with a header."""

    format: Literal["Csv"]
    delimiter: Literal[",", ";", "\t", "|", " "] = ","

    @property
    def only_strings(self) -> bool:
        """Whether bodies have no other values than strings and null."""
        return True

    def reader(self, columns: Iterable[InputColumn]) -> Reader:
        return CsvReader(self.delimiter, column_names(columns), self.limits)


Reference = Annotated[JsonReference | CsvReference, Discriminator("format")]
"""Reference data of a pipeline; its key `format` decides which section it is."""
