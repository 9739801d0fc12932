"""Phrases of messages that depend on a number."""

from collections.abc import Sequence


def counted(count: int, singular: str, plural: str | None = None) -> str:
    """Return a count and its words, such as "1 slice" or "2,400 slices"; the default plural ends with s."""
    return f"{count:,} {singular if count == 1 else plural or f'{singular}s'}"


def named_slices(starts: Sequence[str]) -> str:
    """Return which slices have these starts: "slice T" for one, else "N slices, the first T"."""
    return f"slice {starts[0]}" if len(starts) == 1 else f"{counted(len(starts), 'slice')}, the first {starts[0]}"
