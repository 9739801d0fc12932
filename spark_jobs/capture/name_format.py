"""A name format, in its pieces, and whether the names that it makes tell one event hub's blobs from another's."""

import itertools
import re
import string
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from spark_jobs.errors import DefinitionError

WIDTHS = {"Year": 4, "Month": 2, "Day": 2, "Hour": 2, "Minute": 2, "Second": 2}
"""Digits of the tokens of the time; they are filled up with zeros."""
TOKENS = ("Namespace", "EventHub", "PartitionId", *WIDTHS)

_DIGITS = frozenset(string.digits)
_MARKS = frozenset("._-")
_NAMES = {
    "Namespace": frozenset(string.ascii_letters + string.digits + "-"),
    "EventHub": frozenset(string.ascii_letters + string.digits + "._-"),
}
"""What the service allows in a name; its ends are letters or digits, and a namespace begins with a letter."""
_SHORTEST_NAMESPACE = 6
_LARGEST_PARTITION = 4
"""Digits of a partition: a hub has at most some thousands."""
_SHOWN_DIGIT = "1"


class Piece(NamedTuple):
    """A part of a format: a token's name, or text."""

    token: str | None
    text: str


def pieces(written: str) -> Iterator[Piece]:
    """The pieces of a format, in order."""
    for number, part in enumerate(re.split(r"\{([^{}]*)\}", written)):
        if number % 2:
            yield Piece(part, part)
        elif part:
            yield Piece(None, part)


def require_all(found: Sequence[Piece]) -> None:
    """Raise DefinitionError for an unknown token, a stray brace, or one without which a name tells too little.

    Capture demands all nine. Text may stand in place of {Namespace} and {EventHub}, as in an archive that was copied.
    """
    tokens = {each.token for each in found}
    shown = ", ".join(f"{{{token}}}" for token in TOKENS)
    for each in found:
        if each.token is not None and each.token not in TOKENS:
            raise DefinitionError(f"{{{each.token}}} is no token of a Capture name: they are {shown}")
        if each.token is None and re.search(r"[{}]", each.text):
            raise DefinitionError(f"a brace in {each.text!r} belongs to no token: the tokens are {shown}")
    missing = [f"{{{token}}}" for token in ("PartitionId", *WIDTHS) if token not in tokens]
    if missing:
        raise DefinitionError(
            f"{', '.join(missing)} is missing: without it a blob's partition or time cannot be told from its name; "
            f"Capture uses {shown}, in any order"
        )


def require_told_apart(found: Sequence[Piece], namespace: str, event_hub: str) -> None:
    """Raise DefinitionError where a blob of another event hub may have a name that one of this hub has."""
    known = {"Namespace": namespace, "EventHub": event_hub}
    used = [token for token in known if any(each.token == token for each in found)]
    for digits in range(1, _LARGEST_PARTITION + 1):
        ours = _places(found, {token: len(known[token]) for token in used} | {"PartitionId": digits}, known)
        for lengths in _lengths(found, used, len(ours)):
            if "Namespace" in used and lengths["Namespace"] < min(_SHORTEST_NAMESPACE, len(namespace)):
                continue
            if all(lengths[token] == len(known[token]) for token in used):
                continue
            theirs = _places(found, lengths, {})
            name = _common(ours, theirs)
            if name is not None:
                raise DefinitionError(_told(found, known, name, digits, lengths))


def _lengths(found: Sequence[Piece], used: Sequence[str], total: int) -> Iterator[dict[str, int]]:
    """How long namespace, event hub and partition may be in a name of this length."""
    times = {token: sum(each.token == token for each in found) for token in (*used, "PartitionId")}
    rest = total - sum(WIDTHS.get(each.token or "", 0) for each in found)
    rest -= sum(len(each.text) for each in found if each.token is None)
    choices = [range(1, rest + 1) for _ in used]
    for digits, *names in itertools.product(range(1, _LARGEST_PARTITION + 1), *choices):
        lengths = dict(zip(used, names, strict=True)) | {"PartitionId": digits}
        if sum(times[token] * length for token, length in lengths.items()) == rest:
            yield lengths


def _places(found: Iterable[Piece], lengths: dict[str, int], known: dict[str, str]) -> list[frozenset[str]]:
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
            first = _DIGITS - {"0"} if each.token == "PartitionId" and width > 1 else _DIGITS
            places += [first, *[_DIGITS] * (width - 1)]
    return places


def _common(ours: Sequence[frozenset[str]], theirs: Sequence[frozenset[str]]) -> str | None:
    """A name that is both; None where there is none."""
    both = [one & other for one, other in zip(ours, theirs, strict=True)]
    return "".join(_SHOWN_DIGIT if _SHOWN_DIGIT in each else min(each) for each in both) if all(both) else None


def _told(found: Sequence[Piece], known: dict[str, str], name: str, digits: int, lengths: dict[str, int]) -> str:
    ours = f"partition {_SHOWN_DIGIT * digits} of {known['Namespace']}'s {known['EventHub']}"
    theirs, place = dict(known), 0
    for each in found:
        if each.token is None:
            place += len(each.text)
            continue
        length = WIDTHS.get(each.token) or lengths[each.token]
        theirs[each.token] = name[place : place + length]
        place += length
    other = f"partition {theirs['PartitionId']} of {theirs['Namespace']}'s {theirs['EventHub']}"
    literal = "".join(known.get(each.token or "", f"{{{each.token}}}" if each.token else each.text) for each in found)
    return (
        f"blobs of other event hubs cannot be told apart from this one's: {name} may be {ours} or {other}. Capture "
        "formats are told apart by a delimiter that no name holds, such as /; if no such hub is in the container, "
        f"write the names themselves: {literal}"
    )
