"""Values of which each has its own type, and which are compared, grouped and joined by their tokens.

`recapture.tokens` says what a token is. The column of a field whose type neither CREATE TABLE nor a use decides holds
tokens. Its value is the text of the token, and remembers the token.
"""

from collections.abc import Sequence
from dataclasses import replace

from recapture import tokens
from recapture.model import AsaType
from recapture.query.analyse.values import Value
from recapture.query.plan.expressions import NULL, Expr, bigint, call, case_when, string
from recapture.query.plan.operations import Op

_NUMBERS = (AsaType.BIGINT, AsaType.FLOAT)
_EXACT_FLOATS = 2**53
COMPARABLE = (AsaType.BIGINT, AsaType.FLOAT, AsaType.STRING)
"""Types that have tokens, and that are compared with values of any type."""


def of_token(value: Value, token: Expr) -> Value:
    """Return a value that is read from a token."""
    return replace(value, node=call(Op.TOKEN_TEXT, token), token=token, text=None)


def read_from(value: Value, column: Expr) -> Value:
    """Return a value that a column holds: its token, if each value has its own type."""
    return of_token(value, column) if is_dynamic(value) else replace(value, node=column, token=None, text=None)


def is_dynamic(value: Value) -> bool:
    """Return whether each value has its own type."""
    return value.token is not None and value.type is AsaType.STRING


def key_of(value: Value) -> Expr:
    """Return the expression that identifies a value: its token, or the value itself if all have one type."""
    return value.token if value.token is not None and is_dynamic(value) else value.node


def token_of(value: Value) -> Expr:
    """Return the token of a value: x => x, 5.0 => '￿5', CAST(x AS float) => token(cast(x))"""
    if is_dynamic(value):
        return key_of(value)
    if value.type is None or value.node == NULL:
        return NULL
    if value.text is not None:
        [literal] = value.node.constants
        assert isinstance(literal, str | int | float)
        return string(tokens.of_string(literal) if isinstance(literal, str) else tokens.of_number(literal))
    return call(Op.TOKEN, value.node)


def with_token_of_part(value: Value) -> Value | None:
    """Return a property or an element of JSON with its token; None if it is not known here where it comes from.

    JSON_PROPERTY(r, 'a') => token_text(PROPERTY_TOKEN(r, 'a'))
    """
    match value.node:
        case Expr(op=Op.JSON_PROPERTY, arguments=arguments):
            token = call(Op.PROPERTY_TOKEN, *arguments)
        case Expr(op=Op.ARRAY_ELEMENT, arguments=arguments):
            token = call(Op.ELEMENT_TOKEN, *arguments)
        case Expr(op=Op.ARRAY_ELEMENT_AT, arguments=(array,), constants=(int() as index,)):
            token = call(Op.ELEMENT_TOKEN, array, bigint(index))
        case _:
            return None
    return of_token(replace(value, is_json_element=False), token)


def compared(comparison: Op, left: Value, right: Value) -> Expr:
    """Return the comparison of two values by their types, NULL if one of them is NULL.

    Numbers are compared as numbers and strings as strings. Values of different types are not equal, and neither is
    less than the other.
    """
    if comparison in (Op.EQUAL, Op.NOT_EQUAL):
        return call(comparison, token_of(left), token_of(right))
    sides = [token_of(side) if side.type is AsaType.STRING else side.node for side in (left, right)]
    return Expr(Op.IN_ORDER, sides, [comparison.value])


def has_own_types(values: Sequence[Value]) -> bool:
    """Return whether values, some of which may be NULL, are strings and numbers."""
    typed = [value for value in values if value.type is not None]
    types = {value.type for value in typed}
    return all(value.type in COMPARABLE and not value.is_json_element for value in typed) and (
        AsaType.STRING in types and len(types) > 1
    )


def needs_tokens(values: Sequence[Value]) -> bool:
    """Return whether bigints are compared with floats, and a bigint may not be exactly a float."""
    if {value.type for value in values} != {AsaType.BIGINT, AsaType.FLOAT}:
        return False
    literals = [value for value in values if value.text is not None]
    if len(literals) == len(values):
        return False
    if any(_magnitude(value) >= _EXACT_FLOATS for value in literals):
        return True
    # Where one type has only literals, which are exact, the rounding of others makes no difference.
    return all(any(value.type is type_ and value.text is None for value in values) for type_ in _NUMBERS)


def _magnitude(literal: Value) -> float:
    text = literal.text or "0"
    return abs(int(text) if literal.type is AsaType.BIGINT else float(text))


def with_token_of_choice(chosen: Value, conditions: Sequence[Expr], values: Sequence[Value]) -> Value:
    """Return what a CASE chooses from values in one type; the last has no condition. It is dynamic if one of them is.

    A choice from values that are all of one type stays as it is.
    """
    if chosen.type is not AsaType.STRING or not any(map(is_dynamic, values)):
        return replace(chosen, token=None)
    *branches, default = map(token_of, values)
    return of_token(chosen, case_when(list(zip(conditions, branches, strict=True)), default))
