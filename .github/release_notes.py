"""Print the notes of a release: its section of CHANGELOG.md. `python .github/release_notes.py v0.1.0` prints 0.1.0."""

import re
import sys
from pathlib import Path

CHANGELOG = Path(__file__).parents[1] / "CHANGELOG.md"
RELEASED = re.compile(r"^## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)$", re.MULTILINE)
"""Heading of a release, with its version and its date."""


def notes(changelog: str, tag: str) -> str:
    """Return the section of the newest release. Raise ValueError unless `tag` is its version after a "v"."""
    newest, *older = RELEASED.finditer(changelog)
    if tag != f"v{newest[1]}":
        raise ValueError(f"the tag is {tag}, but the newest release in CHANGELOG.md is {newest[1]}: move the tag")
    return changelog[newest.end() : older[0].start() if older else None].strip()


if __name__ == "__main__":
    try:
        print(notes(CHANGELOG.read_text(encoding="utf-8"), sys.argv[1]))
    except ValueError as error:
        sys.exit(str(error))
