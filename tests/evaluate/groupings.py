"""GROUP BYs of compiled queries, and the rows that they group."""

from collections.abc import Sequence

import pytest

from recapture.formats.event_hubs import CaptureInput
from recapture.model import JavaScriptFunction
from recapture.query import compile
from recapture.query.generate import statements
from recapture.query.generate.grouping import Grouping
from recapture.query.generate.statements import CommonTable, Statement, Table
from recapture.query.generate.values import Value

DECLARED = (
    "CREATE TABLE telemetry (t datetime, k nvarchar(max), j bigint, f float, b bit, id bigint, n bigint, x float, "
    "y float, name nvarchar(max), bought datetime, sold bit, doc record);\n"
)


def grouping_of(
    aggregates: list[str], window: str, keys: tuple[str, ...] = (), functions: tuple[JavaScriptFunction, ...] = ()
) -> Grouping:
    """Return the GROUP BY of a query, which has the aggregates in this order."""
    columns = ["System.Timestamp() AS e", *keys, *(f"{text} AS r{number}" for number, text in enumerate(aggregates))]
    by = ", ".join([*keys, window])
    query = f"{DECLARED}SELECT {', '.join(columns)} INTO out FROM telemetry TIMESTAMP BY t GROUP BY {by}"
    metadata = {"telemetry": CaptureInput.metadata}
    written: list[CommonTable] = []

    def output_statement(steps: Sequence[Table], output: CommonTable, columns: list[tuple[str, Value]]) -> Statement:
        written.append(output)
        return statements.output_statement(steps, output, columns)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compile, "output_statement", output_statement)
        compile.compile_query(query, inputs=metadata, output_aliases=["out"], functions=functions, in_tasks=False)
    [selection] = written[0].selections
    assert selection.grouping is not None
    return selection.grouping
