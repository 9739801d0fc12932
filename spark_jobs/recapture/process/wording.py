"""Phrases of messages, and values of results, that depend on a number or on a similar name."""

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any


def counted(count: int, singular: str, plural: str | None = None) -> str:
    """Return a count and its words, such as "1 slice" or "2,400 slices"; the default plural ends with s."""
    return f"{count:,} {singular if count == 1 else plural or f'{singular}s'}"


def of_input(alias: str | None) -> str:
    """Return " of input ALIAS", or nothing for None: a pipeline with one input does not name it."""
    return "" if alias is None else f" of input {alias}"


def values_of_only(entries: Sequence[Mapping[str, Any]], *names: str) -> dict[str, Any]:
    """Return these values of the only entry; none if there are several entries."""
    return {name: entries[0][name] for name in names} if len(entries) == 1 else {}


def named_slices(starts: Sequence[str]) -> str:
    """Return which slices have these starts: "slice T" for one, else "N slices, the first T"."""
    return f"slice {starts[0]}" if len(starts) == 1 else f"{counted(len(starts), 'slice')}, the first {starts[0]}"


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """Return "did you mean NAME?" with the known name that is most similar in any case; None if none is."""
    by_lower_case = {other.lower(): other for other in known}
    close = get_close_matches(name.lower(), by_lower_case, 1)
    return f"did you mean {by_lower_case[close[0]]}?" if close else None
