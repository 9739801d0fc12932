"""GROUP BYs of compiled queries, and the rows that they group."""

from functools import cache

from recapture.formats.event_hubs import CaptureInput
from recapture.query.compile import compile_query
from recapture.query.plan.grouping import Grouping

DECLARED = (
    "CREATE TABLE telemetry (t datetime, k nvarchar(max), j bigint, f float, b bit, id bigint, n bigint, x float, "
    "y float, name nvarchar(max), bought datetime, sold bit, doc record);\n"
)


@cache
def grouping_of(aggregates: tuple[str, ...], window: str, keys: tuple[str, ...]) -> Grouping:
    """Return the GROUP BY of a query, which has the aggregates in this order. It is compiled once."""
    columns = ["System.Timestamp() AS e", *keys, *(f"{text} AS r{number}" for number, text in enumerate(aggregates))]
    by = ", ".join([*keys, window])
    query = f"{DECLARED}SELECT {', '.join(columns)} INTO out FROM telemetry TIMESTAMP BY t GROUP BY {by}"
    metadata = {"telemetry": CaptureInput.metadata}
    compiled = compile_query(query, inputs=metadata, output_aliases=["out"], in_tasks=False)
    plan = compiled.outputs[0].plan
    [selection] = plan.output.selections
    assert selection.grouping is not None
    return selection.grouping
