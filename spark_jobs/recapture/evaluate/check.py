"""Find out whether a compiled query can be evaluated without Spark, by evaluating it over no events."""

from collections.abc import Iterator

import pyarrow as pa

from recapture.evaluate.bounds import SliceBounds
from recapture.evaluate.refusal import NotEvaluatedError
from recapture.evaluate.statement import SliceEvaluation
from recapture.model import TYPES
from recapture.ordering.order import schema
from recapture.query.merges import GroupsView
from recapture.query.model import CompiledOutput, CompiledQuery
from recapture.query.plan.joins import VALIDITY


def not_evaluated_because(query: CompiledQuery) -> str | None:
    """Return why a query needs Spark, the first reason if there are several; None if it does not."""
    return next((f"output {alias}: {because}" for alias, because in refusals(query) if because), None)


def refusals(query: CompiledQuery) -> Iterator[tuple[str, str | None]]:
    """Yield the alias of each output and why it needs Spark; None if it does not."""
    evaluation = _over_nothing(query)
    for output in query.outputs:
        yield output.alias, _refusal(evaluation, output)


def _refusal(evaluation: SliceEvaluation, output: CompiledOutput) -> str | None:
    if output.selects:
        return None
    try:
        evaluation.rows(output)
    except NotEvaluatedError as error:
        return str(error)
    except RecursionError:
        return "the query is nested too deeply"
    return None


def _over_nothing(query: CompiledQuery) -> SliceEvaluation:
    """Return the evaluation of a slice without events."""
    views = {read.view: schema(read).empty_table() for read in query.inputs}
    for reference in query.references:
        fields = [(column.name, TYPES[column.type].view) for column in reference.columns]
        validity = [(name, pa.int64()) for name in VALIDITY]
        views[reference.view] = pa.schema([*validity, *fields]).empty_table()

    def groups(view: GroupsView) -> pa.Table:
        return view.groups.schema.empty_table()

    return SliceEvaluation(SliceBounds(0, 1, query.python_functions), views.__getitem__, groups)
