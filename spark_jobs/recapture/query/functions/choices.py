"""COALESCE, NULLIF and IIF: one value or another."""

from recapture.query.analyse.kinds import with_kind_of_choice
from recapture.query.analyse.tokens import key_of, read_from
from recapture.query.analyse.values import Value
from recapture.query.functions.call import MANY, Call, takes
from recapture.query.parse.names import InputField
from recapture.query.plan.expressions import NULL, Expr, case_when
from recapture.query.plan.operations import Op


def coalesce(call: Call) -> Value:
    """COALESCE(x, y, …): the first value that is not NULL; all are unified, as in CASE."""
    takes(call, 2, MANY)
    arguments = [call.value(index) for index in range(call.count)]
    values, kind = call.unify(arguments)
    first = Value(Expr(Op.COALESCE, [value.node for value in values]), kind, fields=_shared_fields(values))
    is_given = [Expr(Op.IS_NOT_NULL, [value.node]) for value in arguments]
    return with_kind_of_choice(first, is_given[:-1], arguments, values)


def nullif(call: Call) -> Value:
    """NULLIF(x, y): NULL where both are equal, else x, in the type of x."""
    takes(call, 2)
    equal = call.equal(0, 1)
    value = call.value(0)
    return read_from(value, case_when([(equal, NULL)], key_of(value)))


def iif(call: Call) -> Value:
    """IIF(condition, x, y): CASE WHEN condition THEN x ELSE y END. T-SQL's; ASA's documents do not list it."""
    takes(call, 3)
    condition = call.condition(0)
    arguments = [call.value(1), call.value(2)]
    values, kind = call.unify(arguments)
    if_true, if_false = values
    chosen = Value(case_when([(condition, if_true.node)], if_false.node), kind, fields=_shared_fields(values))
    return with_kind_of_choice(chosen, [condition], arguments, values)


def _shared_fields(values: list[Value]) -> tuple[InputField, ...]:
    """Return the fields of open type that all these values stand for, if they stand for the same."""
    first = values[0].fields
    return first if all(value.fields == first for value in values) else ()
