"""Every query in `refused/` is refused with the message that follows it, which begins with the place of the mistake."""

from pathlib import Path

import pytest

from recapture.errors import DefinitionError
from recapture.formats.event_hubs import CaptureInput
from recapture.query.compile import compile_query
from tests.cases.case import Case, parse

CASES = {file.stem: parse(file.read_text("utf-8")) for file in sorted(Path(__file__).parent.glob("refused/*.txt"))}


@pytest.mark.parametrize(
    ("case", "query", "message"),
    [
        pytest.param(case, query, message, id=f"{name}-{number}")
        for name, case in CASES.items()
        for number, (query, message) in enumerate(case.refused, 1)
    ],
)
def test_a_query_is_refused(case: Case, query: str, message: str) -> None:
    inputs = {"telemetry": CaptureInput.metadata} | dict.fromkeys(case.references)
    with pytest.raises(DefinitionError) as error:
        compile_query(query, inputs=inputs, output_aliases=["out"], functions=case.functions)
    assert str(error.value).split("\n")[0] == f"query, {message}"
