"""docs/query-language.md: the table of each section, to compare with the code."""

import re

from tests.paths import ROOT

PAGE = ROOT / "docs" / "query-language.md"


def rows(section: str) -> list[list[str]]:
    """Return the cells of the first table below a heading, without the table's own heading."""
    _, heading, below = PAGE.read_text().partition(f"# {section}\n")
    assert heading, f"docs/query-language.md has no section {section}"
    table = re.search(r"(?:^\|.*\n)+", re.split(r"^#", below, maxsplit=1, flags=re.MULTILINE)[0], re.MULTILINE)
    assert table, f"the section {section} has no table"
    lines = table.group().splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in (line + " " for line in lines)]
