"""The draft of a pipeline file, and the findings about a job that cannot be carried over as it is."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

NO_CONTAINER = "https://ACCOUNT.blob.core.windows.net/CONTAINER"
"""Placeholder for an unknown container. A pipeline with it cannot be loaded: container names are in lower case."""

Place = tuple[str | int, ...]


@dataclass(frozen=True)
class Finding:
    """Part of a job that is not carried over, or not unchanged."""

    where: str
    """File and, in a template, the resource."""
    what: str
    """Description: what it is, why, and what to do."""

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


@dataclass
class Draft:
    """Content of the pipeline file, and the findings about it."""

    name: str
    values: dict[str, Any]
    """Content of the file; None where the job does not give the value."""
    missing: list[Finding] = field(default_factory=list)
    """Findings to resolve before the pipeline runs as the job did."""
    different: list[Finding] = field(default_factory=list)
    """Findings about parts that are carried over or left out, and differ slightly from the job."""
    scripts: dict[str, str] = field(default_factory=dict)
    """Texts of the scripts of functions, by their paths relative to the file."""
    notes: dict[Place, list[str]] = field(default_factory=dict)
    """Comments above the line of a key, by its place."""

    def add_missing(self, where: str, what: str, place: Place, *keys: str | int) -> None:
        """Record a missing part, and note it above these keys of the section at `place`."""
        self.missing.append(Finding(where, what))
        for key in keys:
            self.notes.setdefault((*place, key), []).append(f"TO DO: {what}")

    def add_different(self, where: str, what: str) -> None:
        """Record a part that is carried over or left out, and differs slightly from the job."""
        self.different.append(Finding(where, what))


def on_lines(lines: list[int]) -> str:
    """Return the lines as a message lists them: `query lines 1, 2 and 3`."""
    return f"query line{'s' * (len(lines) > 1)} {listed(map(str, lines))}"


def listed(words: Iterable[str]) -> str:
    """Return words as a message lists them: `a, b and c`."""
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last
