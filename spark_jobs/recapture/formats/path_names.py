"""The names of the blobs under a path pattern, as ASA's own blob input reads them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

from recapture.archive.blob_names import BlobNames
from recapture.archive.name_format import Piece, split
from recapture.errors import DefinitionError

DATE_FORMAT = "YYYY/MM/DD"
TimeFormat = Literal["HH", "HH/mm", "HH-mm"]
TIME_FORMATS = get_args(TimeFormat)

_TOKENS = ("date", "time", "partition")
DATE_TOKENS = {"YYYY": "Year", "MM": "Month", "DD": "Day"}
TIME_TOKENS = {"HH": "Hour", "mm": "Minute"}
_DATE = r"(?=.*YYYY)(?=.*MM)(?=.*DD)(?:YYYY|MM|DD)(?:[^0-9A-Za-z{}*]?(?:YYYY|MM|DD)){2}"
_PERIODS = {"Minute": 60, "Hour": 3600, "Day": 86_400}
"""Length of the period that a name gives, in seconds, by the last token of its time."""


@dataclass(frozen=True)
class InputPath(BlobNames):
    """The names of the blobs under a path of folders, in which `{date}`, `{time}` and `{partition}` may stand.

    The path is followed by `/`. If it ends in a token, any character other than a letter or digit may follow, or
    nothing. The time is the start of a day, an hour or a minute.
    Raise DefinitionError for a pattern or a format that cannot be read.
    """

    pattern: str = ""
    date_format: str = DATE_FORMAT
    """YYYY, MM and DD in any order, with separators or without."""
    time_format: str = "HH"
    """One of TIME_FORMATS."""

    def __post_init__(self) -> None:
        if not re.fullmatch(_DATE, self.date_format):
            reason = f"should have YYYY, MM and DD once each, with signs between them or without, such as {DATE_FORMAT}"
            raise DefinitionError(f"the date format {self.date_format!r} {reason}")
        if self.time_format not in TIME_FORMATS:
            raise DefinitionError(f"the time format {self.time_format!r} is not one of {', '.join(TIME_FORMATS)}")
        _ = self._pieces

    @property
    def period_seconds(self) -> int:
        """Length of the period that a name gives; 0 if names have no time."""
        return next((length for token, length in _PERIODS.items() if token in self._tokens), 0)

    @cached_property
    def _pieces(self) -> tuple[Piece, ...]:
        ends_in_literal = bool(self._written) and self._written[-1].token is None
        return (*self._spelled_pieces, *([Piece(None, "/")] if ends_in_literal else []))

    @cached_property
    def _written(self) -> tuple[Piece, ...]:
        return tuple(split(self.pattern.strip("/")))

    @cached_property
    def _spelled_pieces(self) -> tuple[Piece, ...]:
        """Pieces of the pattern, each date and time in its parts."""
        spelled = tuple(part for piece in self._written for part in self._spelled(piece))
        tokens = {piece.token for piece in self._written}
        if "time" in tokens and "date" not in tokens:
            raise DefinitionError("{time} without {date} does not give the day: write {date} too, or leave {time} out")
        return spelled

    def _spelled(self, piece: Piece) -> Iterator[Piece]:
        shown = ", ".join(f"{{{token}}}" for token in _TOKENS)
        match piece.token:
            case None if re.search(r"[{}*]", piece.text):
                raise DefinitionError(f"{piece.text!r}: no *, and no brace but those of the tokens {shown}")
            case None:
                yield piece
            case "date":
                yield from _parts(self.date_format, DATE_TOKENS)
            case "time":
                yield from _parts(self.time_format, TIME_TOKENS)
            case "partition":
                yield Piece("PartitionId", piece.text)
            case _:
                raise DefinitionError(f"{{{piece.token}}} is not a token of an input's path: they are {shown}")

    @property
    def _suffix(self) -> str:
        return "(?:[^0-9A-Za-z].*)?" if self._pieces and self._pieces[-1].token else ".+"

    @property
    def _year_first(self) -> bool:
        return next((token for token in self._tokens if token != "PartitionId"), "Year") == "Year"


def _parts(written: str, tokens: dict[str, str]) -> Iterator[Piece]:
    """Yield the pieces of a date format or a time format."""
    for part in filter(None, re.split(f"({'|'.join(tokens)})", written)):
        yield Piece(tokens.get(part), part)
