"""Split the name formats of blobs into tokens and text, and require that a name can be read in one way only."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from recapture.errors import DefinitionError

WIDTHS = {"Year": 4, "Month": 2, "Day": 2, "Hour": 2, "Minute": 2, "Second": 2}
"""Digits of each token of the time, with leading zeros."""
PARTITION_DIGITS = 4
"""Most digits of a partition: an input has up to 10,000 partitions."""
HUB_PARTITIONS = 2_000
"""Most partitions of one hub: dedicated clusters of Event Hubs allow 1,024, IoT Hub allows 128."""


class Piece(NamedTuple):
    """A part of a format: a token, or text between tokens."""

    token: str | None
    """Meaning of the token: PartitionId, a key of WIDTHS, or the name of a hub or namespace; None for text."""
    text: str


@dataclass(frozen=True)
class Vocabulary:
    """The tokens of one service's name formats."""

    service: str
    """Name of the service, with its article, for messages."""
    tokens: Mapping[str, str]
    """Meaning of each token, by the token's name in a format."""
    names: Mapping[str, str]
    """Characters that the service allows in the name of a hub or namespace (a regex class), by the token's meaning.

    A format may have the name itself in place of such a token, as in a copied archive.
    """

    @property
    def shown(self) -> str:
        """List of all tokens, for messages."""
        return ", ".join(f"{{{token}}}" for token in self.tokens)

    def characters(self, piece: Piece) -> str | None:
        """Return the characters of a token of variable length (a regex class); None for any other piece."""
        return "0-9" if piece.token == "PartitionId" else self.names.get(piece.token or "")


def pieces(written: str, vocabulary: Vocabulary) -> Iterator[Piece]:
    """Yield the pieces of a format. Raise DefinitionError for an unknown token, a stray brace, or a missing token."""
    parts = list(split(written))
    for part in parts:
        if part.token is not None and part.token not in vocabulary.tokens:
            raise DefinitionError(
                f"{{{part.token}}} is not a token of {vocabulary.service} name: the tokens are {vocabulary.shown}"
            )
        if part.token is None and re.search(r"[{}]", part.text):
            raise DefinitionError(
                f"a brace in {part.text!r} is not part of a token: remove it; the tokens are {vocabulary.shown}"
            )
    present = {part.token for part in parts}
    required = [token for token, meaning in vocabulary.tokens.items() if meaning not in vocabulary.names]
    missing = [f"{{{token}}}" for token in required if token not in present]
    if missing:
        raise DefinitionError(
            f"{', '.join(missing)} is missing: without it a blob's name does not give its partition or time; "
            f"the tokens of {vocabulary.service} name are {vocabulary.shown}, in any order"
        )
    for part in parts:
        yield Piece(part.token and vocabulary.tokens[part.token], part.text)


def split(written: str) -> Iterator[Piece]:
    """Yield the tokens of a format, by their names in it, and the text between them."""
    for index, part in enumerate(re.split(r"\{([^{}]*)\}", written)):
        if index % 2:
            yield Piece(part, part)
        elif part:
            yield Piece(None, part)


def require_delimiters(
    written: Sequence[Piece], vocabulary: Vocabulary, names: Mapping[str, str], ending: str = ""
) -> None:
    """Raise DefinitionError if a token of variable length is not followed by a character that it cannot contain.

    Otherwise a name could be read in several ways, and two hubs could give a blob the same name. `names` are the names
    of the hub, by the token's meaning. `ending` is text that may follow the format.
    """
    for piece, following in pairwise([*written, Piece(None, ending)]):
        characters = vocabulary.characters(piece)
        if characters and (following.token or re.match(f"[{characters}]", following.text)):
            name = names.get(piece.token or "")
            instead = f", or replace it with {name} if the container has no other" if name else ""
            raise DefinitionError(
                f"a name does not show where {{{piece.text}}} ends: write a delimiter after it that it cannot contain, "
                f"such as /{instead}"
            )
