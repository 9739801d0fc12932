"""COALESCE, NULLIF and IIF: one value or another."""

from dataclasses import replace

from sqlglot import exp

from recapture.query.functions.arity import MANY, takes
from recapture.query.functions.call import Call
from recapture.query.generate.trees import case_when, spark_call
from recapture.query.generate.values import Value


def coalesce(call: Call) -> Value:
    """COALESCE(x, y, …): the first value that is not NULL; all are unified, as in CASE."""
    takes(call, 2, MANY)
    values, kind = call.unify(*range(call.count))
    first = spark_call("coalesce", *(value.node for value in values))
    return Value(first, kind, fields=_shared_fields(values))


def nullif(call: Call) -> Value:
    """NULLIF(x, y): NULL where both are equal, else x, in the type of x."""
    takes(call, 2)
    equal = call.equal(0, 1)
    value = call.value(0)
    return replace(value, node=case_when([(equal, exp.Null())], value.node), text=None)


def iif(call: Call) -> Value:
    """IIF(condition, x, y): CASE WHEN condition THEN x ELSE y END. T-SQL's; ASA's documents do not list it."""
    takes(call, 3)
    condition = call.condition(0)
    values, kind = call.unify(1, 2)
    one, other = values
    return Value(case_when([(condition, one.node)], other.node), kind, fields=_shared_fields(values))


def _shared_fields(values: list[Value]) -> tuple[tuple[str, ...], ...]:
    """Return the fields of open type that all these values stand for, if they stand for the same."""
    first = values[0].fields
    return first if all(value.fields == first for value in values) else ()
