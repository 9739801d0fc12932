"""Double quotes: "…" is a string if no column has this name."""

from functools import reduce

from sqlglot import exp

from recapture.model import AsaType
from recapture.query.analyse.relations import From
from recapture.query.analyse.values import Value
from recapture.query.parse.asaql import MAYBE_STRING
from recapture.query.parse.names import identifiers
from recapture.query.plan.expressions import call, case_when, failure, string
from recapture.query.plan.operations import Op


def quoted_string(from_clause: From, node: exp.Expr) -> Value | None:
    """Return the string that a "…" is; None for any other node, and for the name of a column.

    Without CREATE TABLE, an event may have a field of any name: then a "…" that is a whole column of SELECT is a name,
    unless several sides of a JOIN may have it. Any other one is a string, and an event with a field of this name stops
    the run.
    """
    names = identifiers(node) or []
    if len(names) != 1 or MAYBE_STRING not in names[0].meta:
        return None
    [name], text = names, names[0].name
    if not text:
        return Value(string(text), AsaType.STRING, text)
    if from_clause.named(text) or from_clause.element(text) or from_clause.lists(text):
        return None
    possible = [side for side in from_clause.relations if side.relation.can_have(text)]
    if not possible:
        return Value(string(text), AsaType.STRING, text)
    if name.meta[MAYBE_STRING] and len(possible) == 1:
        return None
    fields = [side.field([name]) for side in possible]
    is_property = [call(Op.IS_NOT_NULL, field.node) for field in fields if field is not None]
    reason = (
        f"\"{text}\" is a string here, but an event has a field of this name: write '…' for a string, […] for a field"
    )
    place = str(from_clause.source.error(name, reason)).split("\n")[0]
    return Value(
        case_when([(reduce(lambda left, right: call(Op.OR, left, right), is_property), failure(place))], string(text)),
        AsaType.STRING,
    )
