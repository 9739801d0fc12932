"""Print the notes of a release: `python .github/release_notes.py v0.1.0 https://github.com/OWNER/NAME`.

They are the section of CHANGELOG.md. Its links lead to the pages of this version, because a page of a release on GitHub
cannot have relative links.
"""

import re
import sys
from pathlib import Path

CHANGELOG = Path(__file__).parents[1] / "CHANGELOG.md"
RELEASED = re.compile(r"^## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)$", re.MULTILINE)
"""Heading of a release, with its version and its date."""
LINK = re.compile(r"\]\((?!https?:)")
"""Beginning of the target of a relative link."""


def notes(changelog: str, tag: str, repository: str) -> str:
    """Return the section of the newest release. Raise ValueError unless `tag` is its version after a "v".

    `repository` is the address of the repository, to which relative links lead.
    """
    newest, *older = RELEASED.finditer(changelog)
    if tag != f"v{newest[1]}":
        raise ValueError(f"the tag is {tag}, but the newest release in CHANGELOG.md is {newest[1]}: move the tag")
    section = changelog[newest.end() : older[0].start() if older else None].strip()
    return LINK.sub(f"]({repository}/blob/{tag}/", section)


if __name__ == "__main__":
    try:
        print(notes(CHANGELOG.read_text(encoding="utf-8"), *sys.argv[1:]))
    except ValueError as error:
        sys.exit(str(error))
