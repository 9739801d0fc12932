"""docs/query-language.md: every row of its tables, and every mistake with its message, is true."""

import re
from collections.abc import Iterator

import pytest

from recapture.errors import DefinitionError
from recapture.formats.event_hubs import CaptureInput
from recapture.model import InputMetadata
from recapture.query.compile import compile_query
from tests.paths import ROOT

PAGE = (ROOT / "docs" / "query-language.md").read_text(encoding="utf-8")

TEMPLATES = {
    "Statements and clauses": "{}",
    "Joins": "SELECT a.id INTO out FROM telemetry a TIMESTAMP BY t {}",
    "Patterns": "CREATE TABLE telemetry (t datetime, id bigint, x float, open bit);\nSELECT * INTO out FROM telemetry "
    "TIMESTAMP BY t MATCH_RECOGNIZE (LIMIT DURATION(minute, 1) {}) AS m",
    "Several inputs": "{}",
    "Reference data": "SELECT t.id INTO out FROM telemetry t TIMESTAMP BY at {}",
    "Windows": "SELECT COUNT(*) AS n INTO out FROM telemetry TIMESTAMP BY t GROUP BY {}",
    "Aggregates": "SELECT {} AS x INTO out FROM telemetry TIMESTAMP BY t GROUP BY Tumbling(s, 1)",
    "Analytic functions": "SELECT {} AS x INTO out FROM telemetry TIMESTAMP BY t",
    "Types": "SELECT {} AS x INTO out FROM telemetry TIMESTAMP BY t",
}


OTHER_INPUTS: dict[str, dict[str, InputMetadata | None]] = {
    "Several inputs": {"alarms": CaptureInput.metadata},
    "Reference data": {"devices": None},
}


def message_for(text: str, section: str = "") -> str | None:
    """Return the message that refuses a query; None if it compiles."""
    try:
        inputs = {"telemetry": CaptureInput.metadata, **OTHER_INPUTS.get(section, {})}
        compile_query(text, inputs=inputs, output_aliases=["out"])
    except DefinitionError as error:
        return str(error)
    return None


def examples() -> Iterator[tuple[str, str, str | None]]:
    """Yield each row's section, its query, and the message that refuses it."""
    section = ""
    for line in PAGE.splitlines():
        if line.startswith("## "):
            section = line.removeprefix("## ")
        row = re.fullmatch(r"\| `(.*?)` \| (?:supported.*|refused: (.*)) \|", line)
        if row and section in TEMPLATES:
            yield section, TEMPLATES[section].format(row[1].replace(r"\|", "|")), row[2]


EXAMPLES = list(examples())
MISTAKES = re.findall(r"```sql\n(.*?)\n```\n```\n(.*?)\n```", PAGE, re.DOTALL)


@pytest.mark.parametrize(("section", "text", "refusal"), EXAMPLES)
def test_a_row_of_the_tables_holds(section: str, text: str, refusal: str | None) -> None:
    message = message_for(text, section)
    assert (message and message.split("\n")[0].partition(": ")[2]) == refusal


@pytest.mark.parametrize(("text", "message"), MISTAKES)
def test_a_mistake_is_reported_as_the_page_shows(text: str, message: str) -> None:
    assert message_for(text) == message


def test_the_page_shows_nine_mistakes_and_all_kinds_of_examples() -> None:
    assert len(MISTAKES) == 9
    assert len(EXAMPLES) > 70
    assert all(f"## {section}\n" in PAGE for section in TEMPLATES)
