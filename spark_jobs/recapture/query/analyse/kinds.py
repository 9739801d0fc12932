"""Kinds: the type that each single value has in ASA, as text (docs/time-model.md, section 6).

A field that nothing declares is read in the type that its uses ask for. Where ASA's result depends on the type of each
value, as that of 5 / 2 does, its kind decides. The kind of a field is read only if an expression requests it
(FieldTypes.request_kinds). The first pass over a script makes the requests, and the second has the kinds.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from recapture.model import AsaType
from recapture.query.analyse.tokens import has_own_types, read_from, with_token_of_choice
from recapture.query.analyse.values import Value
from recapture.query.plan.aggregates import Aggregate, AggregateFunction
from recapture.query.plan.expressions import NULL, Expr, bigint, call, case_when, string
from recapture.query.plan.operations import Op


def kind_of(type_: AsaType) -> Expr:
    """Return the kind of all values of a type: BIGINT => 'bigint'"""
    return string(type_.value)


def kind_of_json(text: Expr) -> Expr:
    """Return the kind of a number that was taken out of JSON as text."""
    return _bigint_if(call(Op.IS_BIGINT_TEXT, text))


def is_bigint(kind: Expr) -> Expr:
    """Return the condition that a value is a bigint in ASA."""
    return call(Op.EQUAL, kind, kind_of(AsaType.BIGINT))


def _bigint_if(condition: Expr) -> Expr:
    return case_when([(condition, kind_of(AsaType.BIGINT))], kind_of(AsaType.FLOAT))


def divided(left: Expr, right: Expr, kinds: list[Expr]) -> Expr:
    """Return the quotient of two floats, truncated if both are bigints in ASA: 5 / 2 is 2, 5.0 / 2 is 2.5."""
    truncated = call(Op.INTEGER_QUOTIENT, left, right)
    return case_when([(_all_bigint(kinds), truncated)], call(Op.DIVIDE, left, right))


def _all_bigint(kinds: list[Expr]) -> Expr:
    conditions = [is_bigint(kind) for kind in kinds]
    return conditions[0] if len(conditions) == 1 else call(Op.AND, conditions[0], _all_bigint(kinds[1:]))


def aggregated(aggregate: Aggregate, argument: Value | None, result_of: Callable[[Aggregate], Expr]) -> Value:
    """Return the value of an aggregate, with its kind; `result_of` returns the column of an aggregate of the same rows.

    The value of TopOne is its argument in one row. Without an argument, the aggregate is of whole rows.
    """
    result = Value(result_of(aggregate), aggregate.type)
    if argument is None:
        return result
    match aggregate.function:
        case AggregateFunction.TOPONE:
            kind = argument.kind
            if kind is not None:
                kind = result_of(replace(aggregate, argument=kind, argument_type=AsaType.STRING))
            return read_from(replace(argument, kind=kind), result.node)
        case AggregateFunction.SUM | AggregateFunction.MIN | AggregateFunction.MAX:
            return with_kind_of_all(result, argument, result_of)
    return result


def with_kind_of_all(result: Value, argument: Value, result_of: Callable[[Aggregate], Expr]) -> Value:
    """Return a SUM, MIN or MAX of an argument with its kind: a bigint if all values of the argument are bigints in ASA.

    `result_of` returns the column of another aggregate of the same rows. The flags are 1 for a bigint, 0 for another
    value and NULL for NULL, so their minimum tells whether all are bigints.
    """
    result = replace(result, undeclared=argument.undeclared)
    if result.type is not AsaType.FLOAT or argument.kind is None:
        return result
    is_value = call(Op.IS_NOT_NULL, argument.kind)
    flag = case_when([(is_bigint(argument.kind), bigint(1)), (is_value, bigint(0))], NULL)
    least = result_of(Aggregate(AggregateFunction.MIN, flag, AsaType.BIGINT))
    return replace(result, kind=_bigint_if(call(Op.EQUAL, least, bigint(1))))


def known_kind(value: Value) -> Expr | None:
    """Return the kind of a value; None while it is not known."""
    if value.kind is not None:
        return value.kind
    return None if value.undeclared or value.type is None else kind_of(value.type)


def known_kinds(values: Sequence[Value]) -> list[Expr] | None:
    """Return the kinds of values; None unless all are known."""
    return _all_known([known_kind(value) for value in values])


def _all_known(kinds: list[Expr | None]) -> list[Expr] | None:
    known = [kind for kind in kinds if kind is not None]
    return known if len(known) == len(kinds) else None


def is_open_number(values: Sequence[Value]) -> bool:
    """Return whether the events decide if a number that is computed from these is a bigint or a float."""
    open_ = [value.kind is not None or bool(value.undeclared) for value in values]
    return any(open_) and all(
        is_open or value.type is AsaType.BIGINT for is_open, value in zip(open_, values, strict=True)
    )


def with_kind_of(value: Value, operands: Sequence[Value]) -> Value:
    """Return a number with the kind that its operands give it.

    x + 1 => a float that is a bigint in ASA wherever x is one
    """
    if not is_open_number(operands):
        return value
    kinds = known_kinds(operands)
    undeclared = tuple(dict.fromkeys(path for operand in operands for path in operand.undeclared))
    return replace(value, undeclared=undeclared, kind=None if kinds is None else _bigint_if(_all_bigint(kinds)))


def kinds_of(values: Sequence[Value], converted: Sequence[Value]) -> list[Expr] | None:
    """Return the kind of each converted value (NULL for NULL), or None if any is unknown.

    A conversion to float loses the kind of a bigint, and gives a kind to a value that was taken out of JSON.
    """
    kinds = [
        NULL if value.type is None else known_kind(other if value.is_json_element else value)
        for value, other in zip(values, converted, strict=True)
    ]
    return _all_known(kinds)


def with_kind_of_choice(
    chosen: Value, conditions: Sequence[Expr], values: Sequence[Value], converted: Sequence[Value]
) -> Value:
    """Return what a CASE chooses, with the kind of the value that it chooses; the last value has no condition.

    `converted` are the values in one type.
    """
    chosen = with_token_of_choice(chosen, conditions, converted)
    typed = [value for value in values if value.type is not None]
    if chosen.type is AsaType.STRING and all(value.is_json_element for value in typed):
        return replace(chosen, is_json_element=True)
    undeclared = tuple(dict.fromkeys(path for value in values for path in value.undeclared))
    if not undeclared and all(value.kind is None for value in converted) and not has_own_types(values):
        return chosen
    kinds = kinds_of(values, converted)
    kind = None if kinds is None else case_when(list(zip(conditions, kinds, strict=False)), kinds[-1])
    return replace(chosen, undeclared=undeclared, kind=kind)
