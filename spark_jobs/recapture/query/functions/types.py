"""The types of values."""

from sqlglot import exp

from recapture.model import AsaType
from recapture.query.functions.call import Call, takes
from recapture.query.generate.trees import case_when, operation
from recapture.query.generate.values import Value


def type_name(call: Call) -> Value:
    """GetType(x): the name of the type that each value has in ASA, such as bigint; NULL for NULL."""
    takes(call, 1)
    value, kind = call.value(0), call.kind(0)
    is_null = operation(exp.Is, value.node, exp.Null())
    return Value(case_when([(is_null, exp.Null())], kind), AsaType.STRING)
