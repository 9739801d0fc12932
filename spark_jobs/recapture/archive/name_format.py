"""A name format, in its pieces, and whether the names that it makes tell one hub's blobs from another's."""

import itertools
import re
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from recapture.errors import DefinitionError

WIDTHS = {"Year": 4, "Month": 2, "Day": 2, "Hour": 2, "Minute": 2, "Second": 2}
"""Digits of the tokens of the time; they are filled up with zeros."""
TOKENS = ("Namespace", "EventHub", "PartitionId", *WIDTHS)
"""Of Capture."""

_DIGITS = frozenset(string.digits)
_LETTERS = frozenset(string.ascii_letters)
_MARKS = frozenset("._-")
_NAMES = {
    "Namespace": _LETTERS | _DIGITS | {"-"},
    "EventHub": _LETTERS | _DIGITS | _MARKS,
    "IotHub": _LETTERS | _DIGITS | {"-"},
}
"""What the service allows in a name; its ends are letters or digits, and a namespace begins with a letter."""
_SHORTEST = {"Namespace": 6, "EventHub": 1, "IotHub": 3}
_LONGEST_IOT_HUB = 50
PARTITION_DIGITS = 4
"""Of a partition, at most: an input has up to 10,000."""
HUB_PARTITIONS = 2_000
"""Of one hub, at most: 1,024 in a dedicated cluster of Event Hubs, 128 of an IoT hub."""
_SHOWN_DIGIT = "1"


class Piece(NamedTuple):
    """A part of a format: a token and how it is written, or text."""

    token: str | None
    """As Capture calls it, and IotHub."""
    text: str


@dataclass(frozen=True)
class Vocabulary:
    """The tokens of one service's name formats."""

    service: str
    tokens: Mapping[str, str]
    """As they are written, and what each is in a Piece."""
    hubs: tuple[str, ...]
    """Those that text may stand in place of, as in an archive that was copied."""
    several_hubs: str
    open_ended: bool = False
    """Whether a name may go on behind the format, with a sign that is no letter or digit."""
    padded: bool = False
    """Whether a partition below ten may have a zero before it."""

    @property
    def shown(self) -> str:
        return ", ".join(f"{{{token}}}" for token in self.tokens)


CAPTURE = Vocabulary("Capture", {token: token for token in TOKENS}, ("Namespace", "EventHub"), "event hubs")
IOT_HUB = Vocabulary(
    "IoT Hub",
    {
        "iothub": "IotHub",
        "partition": "PartitionId",
        "YYYY": "Year",
        "MM": "Month",
        "DD": "Day",
        "HH": "Hour",
        "mm": "Minute",
    },
    ("IotHub",),
    "IoT hubs",
    open_ended=True,
    padded=True,
)


def pieces(written: str, vocabulary: Vocabulary) -> Iterator[Piece]:
    """The pieces of a format, in order.

    Raises DefinitionError for an unknown token, a stray brace, or one without which a name tells too little.
    """
    found = list(split(written))
    for each in found:
        if each.token is not None and each.token not in vocabulary.tokens:
            called = f"an {vocabulary.service}" if vocabulary.service[0] in "AEIOU" else f"a {vocabulary.service}"
            raise DefinitionError(f"{{{each.token}}} is no token of {called} name: they are {vocabulary.shown}")
        if each.token is None and re.search(r"[{}]", each.text):
            raise DefinitionError(f"a brace in {each.text!r} belongs to no token: the tokens are {vocabulary.shown}")
    there = {each.token for each in found}
    needed = [token for token, meaning in vocabulary.tokens.items() if meaning not in vocabulary.hubs]
    missing = [f"{{{token}}}" for token in needed if token not in there]
    if missing:
        raise DefinitionError(
            f"{', '.join(missing)} is missing: without it a blob's partition or time cannot be told from its name; "
            f"{vocabulary.service} uses {vocabulary.shown}, in any order"
        )
    for each in found:
        yield Piece(each.token and vocabulary.tokens[each.token], each.text)


def split(written: str) -> Iterator[Piece]:
    """Tokens, whatever they are called, and the text between them."""
    for number, part in enumerate(re.split(r"\{([^{}]*)\}", written)):
        if number % 2:
            yield Piece(part, part)
        elif part:
            yield Piece(None, part)


def require_told_apart(found: Sequence[Piece], known: Mapping[str, str], vocabulary: Vocabulary) -> None:
    """Raise DefinitionError where a blob of another hub may have a name that one of this hub has."""
    used = [token for token in known if any(each.token == token for each in found)]
    for digits in range(1, PARTITION_DIGITS + 1):
        ours = _places(found, {token: len(known[token]) for token in used} | {"PartitionId": digits}, known, vocabulary)
        for lengths in _lengths(found, used, len(ours), vocabulary):
            if any(lengths[token] < min(_SHORTEST[token], len(known[token])) for token in used):
                continue
            if all(lengths[token] == len(known[token]) for token in used):
                continue
            theirs = _places(found, lengths, {}, vocabulary)
            name = _common(ours, theirs, behind(found))
            if name is not None:
                raise DefinitionError(_told(found, known, name, digits, lengths, vocabulary))


def behind(found: Sequence[Piece]) -> frozenset[str]:
    """The signs with which a name cannot go on behind its format: it would go on in its last token."""
    return _LETTERS | _DIGITS | _NAMES.get(found[-1].token or "", frozenset())


def _lengths(
    found: Sequence[Piece], used: Sequence[str], total: int, vocabulary: Vocabulary
) -> Iterator[dict[str, int]]:
    """How long another hub's names and partition may be, in a name of this length; of any, where it may go on."""
    times = {token: sum(each.token == token for each in found) for token in (*used, "PartitionId")}
    rest = total - sum(WIDTHS.get(each.token or "", 0) for each in found)
    rest -= sum(len(each.text) for each in found if each.token is None)
    longest = max(rest, _LONGEST_IOT_HUB) if vocabulary.open_ended else rest
    choices = [range(1, longest + 1) for _ in used]
    for digits, *names in itertools.product(range(1, PARTITION_DIGITS + 1), *choices):
        lengths = dict(zip(used, names, strict=True)) | {"PartitionId": digits}
        if vocabulary.open_ended or sum(times[token] * length for token, length in lengths.items()) == rest:
            yield lengths


def _places(
    found: Iterable[Piece], lengths: Mapping[str, int], known: Mapping[str, str], vocabulary: Vocabulary
) -> list[frozenset[str]]:
    """For each place of a name, the signs that may stand there."""
    places: list[frozenset[str]] = []
    for each in found:
        if each.token is None:
            places += [frozenset("/\\") if sign == "\\" else frozenset(sign) for sign in each.text]
        elif each.token in known:
            places += [frozenset(sign) for sign in known[each.token]]
        elif each.token in _NAMES:
            allowed = [_NAMES[each.token]] * lengths[each.token]
            allowed[-1] -= _MARKS
            allowed[0] -= _MARKS | _DIGITS if each.token == "Namespace" else _MARKS
            places += allowed
        else:
            width = WIDTHS.get(each.token) or lengths[each.token]
            unpadded = each.token == "PartitionId" and width > (2 if vocabulary.padded else 1)
            places += [_DIGITS - {"0"} if unpadded else _DIGITS, *[_DIGITS] * (width - 1)]
    return places


def _common(
    ours: Sequence[frozenset[str]], theirs: Sequence[frozenset[str]], never_behind: frozenset[str]
) -> str | None:
    """A name that is both, or with which the longer begins and goes on behind the other; None where there is none."""
    short, long = sorted((ours, theirs), key=len)
    both = [one & other for one, other in zip(short, long, strict=False)]
    both += [place - never_behind if number == 0 else place for number, place in enumerate(long[len(short) :])]
    return "".join(_SHOWN_DIGIT if _SHOWN_DIGIT in each else min(each) for each in both) if all(both) else None


def _told(
    found: Sequence[Piece],
    known: Mapping[str, str],
    name: str,
    digits: int,
    lengths: Mapping[str, int],
    vocabulary: Vocabulary,
) -> str:
    theirs, place = dict(known), 0
    for each in found:
        if each.token is None:
            place += len(each.text)
            continue
        length = WIDTHS.get(each.token) or lengths[each.token]
        theirs[each.token] = name[place : place + length]
        place += length
    ours = f"partition {_SHOWN_DIGIT * digits} of {_hub(known)}"
    other = f"partition {theirs['PartitionId']} of {_hub(theirs)}"
    literal = "".join(known.get(each.token or "", f"{{{each.text}}}" if each.token else each.text) for each in found)
    return (
        f"blobs of other {vocabulary.several_hubs} cannot be told apart from this one's: {name} may be {ours} or "
        f"{other}. {vocabulary.service} formats are told apart by a delimiter that no name holds, such as /; if no "
        f"such hub is in the container, write the names themselves: {literal}"
    )


def _hub(named: Mapping[str, str]) -> str:
    return named["IotHub"] if "IotHub" in named else f"{named['Namespace']}'s {named['EventHub']}"
