"""Evaluate compiled queries over no events: every expression of them is lowered, and has a type."""

import pyarrow as pa

from recapture.evaluate.bounds import SliceBounds
from recapture.evaluate.statement import SliceEvaluation
from recapture.model import TYPES
from recapture.ordering.order import schema
from recapture.query.model import CompiledQuery
from recapture.query.plan.joins import VALIDITY


def evaluate_over_nothing(query: CompiledQuery) -> None:
    """Evaluate the outputs of a query that have no `selects`. Raise an error if an expression cannot be evaluated."""
    views = {read.view: schema(read).empty_table() for read in query.inputs}
    for reference in query.references:
        fields = [(column.name, TYPES[column.type].view) for column in reference.columns]
        views[reference.view] = pa.schema([*((name, pa.int64()) for name in VALIDITY), *fields]).empty_table()
    bounds = SliceBounds(0, 1, query.python_functions)
    evaluation = SliceEvaluation(bounds, views.__getitem__, lambda view: view.groups.schema.empty_table())
    for output in query.outputs:
        if not output.selects:
            evaluation.rows(output)
