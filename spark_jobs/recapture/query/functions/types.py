"""The types of values."""

from recapture.model import AsaType
from recapture.query.analyse.values import Value
from recapture.query.functions.call import Call, takes
from recapture.query.plan.expressions import NULL, Expr, case_when
from recapture.query.plan.operations import Op


def type_name(call: Call) -> Value:
    """GetType(x): the name of the type that each value has in ASA, such as bigint; NULL for NULL."""
    takes(call, 1)
    value, kind = call.value(0), call.kind(0)
    return Value(case_when([(Expr(Op.IS_NULL, [value.node]), NULL)], kind), AsaType.STRING)
