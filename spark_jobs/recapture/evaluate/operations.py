"""What computes each operation of the plan: a table from Op to a rule, which finds the type and chooses the kernel."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from recapture import tokens
from recapture.evaluate import (
    calendar,
    cast_rules,
    casts,
    computed_patterns,
    control,
    float_text,
    json_rules,
    json_values,
    matching,
    numbers,
    powers,
    strings,
    token_kernels,
)
from recapture.evaluate.by_value import by_value
from recapture.evaluate.documents import OF_FROM_JSON, OF_PATHS
from recapture.evaluate.frames import Kernel, Node
from recapture.evaluate.lowering import BIGINT, BIT, FLOAT, NULL, STRING, Lowering, Rule
from recapture.evaluate.rules import (
    Constants,
    Form,
    of,
    of_any_number,
    of_bigints,
    of_float,
    of_numbers,
    of_string,
    one_of,
    or_refused,
)
from recapture.model import AsaType
from recapture.query.plan import regular
from recapture.query.plan.operations import Op

_SYSTEM = ("_slice_start", "_slice_end")
_ELEMENTS = pa.list_(pa.struct([("ArrayIndex", BIGINT), ("ArrayValue", STRING)]))
_PROPERTIES = pa.list_(pa.struct([("PropertyName", STRING), ("PropertyValue", STRING)]))


def _literal(type_: pa.DataType) -> Rule:
    return lambda lowering, constants, _: lowering.literal(constants[0] if constants else None, type_)


def _column(lowering: Lowering, constants: Constants, _: list[Node]) -> Node:
    name, qualifier = constants
    if qualifier is not None:
        struct = _column(lowering, (qualifier, None), [])
        return lowering.node(control.field, [struct], struct.type.field(str(name)).type, (name,))
    if name in _SYSTEM:
        return lowering.node(control.bound, [], BIGINT, (name,))
    return lowering.node(control.column, [], control.column_type(lowering.columns[str(name)]), (name,))


def _comparison(kernel: Kernel) -> Rule:
    return one_of(*(Form([type_, type_], BIT, kernel) for type_ in (BIGINT, FLOAT, STRING, BIT)))


def _is_null(lowering: Lowering, _: Constants, arguments: list[Node]) -> Node:
    return lowering.node(numbers.is_null, arguments, BIT)


def _is_not_null(lowering: Lowering, _: Constants, arguments: list[Node]) -> Node:
    return lowering.operation(Op.NOT, [_is_null(lowering, (), arguments)])


def _in(lowering: Lowering, _: Constants, arguments: list[Node]) -> Node:
    value, *members = arguments
    equal = [lowering.operation(Op.EQUAL, [value, member]) for member in members]
    return lowering.node(control.disjunction, equal, BIT)


def _case(lowering: Lowering, _: Constants, arguments: list[Node]) -> Node:
    conditions = lowering.required(arguments[:-1:2], [BIT] * (len(arguments) // 2))
    values = lowering.unified([*arguments[1::2], arguments[-1]])
    # A condition that makes no difference is not computed, so that its errors do not count.
    while len(values) > 1 and values[-2] is values[-1]:
        values.pop()
        conditions.pop()
    if not conditions:
        return values[-1]
    parts = [part for pair in zip(conditions, values, strict=False) for part in pair]
    return lowering.node(control.case, [*parts, values[-1]], values[-1].type)


def _coalesce(lowering: Lowering, _: Constants, arguments: list[Node]) -> Node:
    values = lowering.unified(arguments)
    return values[0] if len(values) == 1 else lowering.node(control.coalesce, values, values[0].type)


def _fail(lowering: Lowering, constants: Constants, _: list[Node]) -> Node:
    return lowering.node(control.fail, [], NULL, constants, raises=True)


def _integer_quotient(lowering: Lowering, _: Constants, arguments: list[Node]) -> Node:
    bigints = [lowering.operation(Op.CAST, [argument], (AsaType.BIGINT, False)) for argument in arguments]
    return lowering.operation(Op.CAST, [lowering.operation(Op.INTEGER_DIVIDE, bigints)], (AsaType.FLOAT, False))


def _round(lowering: Lowering, constants: Constants, arguments: list[Node]) -> Node:
    [length] = constants
    assert isinstance(length, int)
    places, constants = _places(length), (_places(length),)
    exact = Form([BIGINT], BIGINT, numbers.rounded_bigint, raises=places < 0)
    return one_of(exact, Form([FLOAT], FLOAT, numbers.rounded_float))(lowering, constants, arguments)


def _places(length: int) -> int:
    """Return a number of decimals within the range beyond which a bigint or a float has no digits."""
    return max(-400, min(400, length))


def _first_match_computed(lowering: Lowering, constants: Constants, arguments: list[Node]) -> Node:
    kernel = computed_patterns.FIRST_MATCH[str(constants[0])]
    return of([STRING, STRING], BIGINT, kernel, raises=True)(lowering, (), arguments)


def _power(lowering: Lowering, constants: Constants, arguments: list[Node]) -> Node:
    base, exponent = arguments
    if exponent is lowering.literal(2.0, FLOAT):
        return lowering.operation(Op.SQUARE, [base])
    return of([FLOAT, FLOAT], FLOAT, powers.POWER)(lowering, constants, arguments)


def _letters(kernel: Kernel) -> Rule:
    """Return the rule of UPPER or LOWER. One inside counts for nothing, as in Spark: LOWER(UPPER(x)) => LOWER(x)"""

    def rule(lowering: Lowering, _: Constants, arguments: list[Node]) -> Node:
        [text] = lowering.required(arguments, [STRING])
        while text.kernel in (strings.UPPER, strings.LOWER):
            [text] = text.arguments
        return lowering.node(kernel, [text], STRING)

    return rule


def _like(lowering: Lowering, constants: Constants, arguments: list[Node]) -> Node:
    pattern = matching.like_pattern(str(constants[0]))
    return of_string(matching.like, BIT)(lowering, (pattern,), arguments)


def _like_computed(lowering: Lowering, _: Constants, arguments: list[Node]) -> Node:
    pattern, text = lowering.required(arguments[:2], [STRING, STRING])
    has_set = lowering.node(strings.contains, [pattern, lowering.literal("[", STRING)], BIT)
    matches = lowering.node(matching.like_computed, [text, pattern], BIT)
    return lowering.operation(Op.CASE, [has_set, arguments[2], matches])


def _of_pattern(gives: pa.DataType, kernel: Kernel) -> Rule:
    """Return the rule of an operation whose constant is a regular expression."""

    def rule(lowering: Lowering, constants: Constants, arguments: list[Node]) -> Node:
        return of_string(kernel, gives)(lowering, (regular.pattern_of(str(constants[0])),), arguments)  # type: ignore[arg-type]

    return rule


def _struct(lowering: Lowering, constants: Constants, arguments: list[Node]) -> Node:
    [names] = constants
    assert isinstance(names, tuple)
    fields = [pa.field(name, value.type) for name, value in zip(names, arguments, strict=True)]
    return lowering.node(control.struct, arguments, pa.struct(fields))


def _result(lowering: Lowering, _: Constants, arguments: list[Node]) -> Node:
    [called] = arguments
    return lowering.node(control.result, [called], called.type.field("value").type, (), raises=True)


OPERATIONS: Mapping[Op, Rule] = {
    Op.COLUMN: _column,
    Op.STRING: _literal(STRING),
    Op.BIGINT: _literal(BIGINT),
    Op.DOUBLE: _literal(FLOAT),
    Op.BIT: _literal(BIT),
    Op.NULL: _literal(NULL),
    Op.ROW: lambda lowering, _, __: lowering.literal(1, BIGINT),
    Op.FAIL: _fail,
    Op.AND: of_any_number(BIT, BIT, control.conjunction),
    Op.OR: of_any_number(BIT, BIT, control.disjunction),
    Op.NOT: of([BIT], BIT, numbers.NOT),
    Op.EQUAL: _comparison(numbers.EQUAL),
    Op.NOT_EQUAL: _comparison(numbers.NOT_EQUAL),
    Op.LESS: _comparison(numbers.LESS),
    Op.LESS_OR_EQUAL: _comparison(numbers.LESS_OR_EQUAL),
    Op.GREATER: _comparison(numbers.GREATER),
    Op.GREATER_OR_EQUAL: _comparison(numbers.GREATER_OR_EQUAL),
    Op.IN: _in,
    Op.IS_NULL: _is_null,
    Op.IS_NOT_NULL: _is_not_null,
    Op.CASE: _case,
    Op.COALESCE: _coalesce,
    Op.ADD: of_numbers(numbers.ADD, numbers.ADD_FLOATS, 2),
    Op.SUBTRACT: of_numbers(numbers.SUBTRACT, numbers.SUBTRACT_FLOATS, 2),
    Op.MULTIPLY: of_numbers(numbers.MULTIPLY, numbers.MULTIPLY_FLOATS, 2),
    Op.DIVIDE: of([FLOAT, FLOAT], FLOAT, numbers.quotient, raises=True),
    Op.INTEGER_DIVIDE: of_bigints(numbers.quotient, 2, raises=True),
    Op.INTEGER_QUOTIENT: _integer_quotient,
    Op.MODULO: of_bigints(numbers.remainder, 2, raises=True),
    Op.NEGATE: of_numbers(numbers.NEGATIVE, numbers.computed(np.negative), 1),
    Op.BIT_AND: of_bigints(numbers.computed(np.bitwise_and), 2),
    Op.BIT_OR: of_bigints(numbers.computed(np.bitwise_or), 2),
    Op.BIT_XOR: of_bigints(numbers.computed(np.bitwise_xor), 2),
    Op.BIT_NOT: of_bigints(numbers.computed(np.invert), 1),
    Op.LEAST: of_any_number(BIGINT, BIGINT, numbers.least),
    Op.ABSOLUTE: of_numbers(numbers.ABSOLUTE, numbers.computed(np.abs), 1),
    Op.SIGN: of_float(numbers.computed(numbers.sign)),
    Op.FLOOR: of_float(numbers.computed(numbers.floor)),
    Op.CEILING: of_float(numbers.computed(numbers.ceiling)),
    Op.ROUND: _round,
    Op.ROUND_COMPUTED: one_of(
        Form([BIGINT, BIGINT], BIGINT, by_value(numbers.rounded_bigint, _places), raises=True),
        Form([FLOAT, BIGINT], FLOAT, by_value(numbers.rounded_float, _places)),
    ),
    Op.POWER: _power,
    Op.SQUARE_ROOT: of_float(numbers.computed(np.sqrt)),
    Op.SQUARE: of_float(numbers.computed(np.square)),
    Op.EXPONENTIAL: of_float(powers.EXPONENTIAL),
    Op.FINITE: of([FLOAT, FLOAT], FLOAT, control.unless(numbers.is_not_finite)),
    Op.CAST: cast_rules.cast,
    Op.STRING_TO_FLOAT: cast_rules.string_to_float,
    Op.STRING_TO_BIT: cast_rules.string_to_bit,
    Op.STRING_TO_DATETIME: cast_rules.string_to_datetime,
    Op.STRING_TO_RECORD: json_rules.or_other(json_values.IS_OBJECT),
    Op.STRING_TO_ARRAY: json_rules.or_other(json_values.IS_ARRAY),
    Op.DATETIME_TO_STRING: of([BIGINT], STRING, casts.datetime_text),
    Op.FLOAT_TO_STRING: of([FLOAT], STRING, float_text.NET),
    Op.IS_BIGINT_TEXT: of_string(strings.arrow(casts.is_bigint), BIT),
    Op.BIGINT_TEXT: of_string(casts.bigint_of_json),
    Op.TOKEN: one_of(
        Form([BIGINT], STRING, token_kernels.of_bigints),
        Form([FLOAT], STRING, token_kernels.of_floats),
        Form([STRING], STRING, strings.arrow(tokens.of_strings)),
    ),
    Op.TOKEN_TEXT: of_string(strings.arrow(tokens.texts)),
    Op.IN_ORDER: lambda lowering, constants, sides: lowering.node(token_kernels.in_order, sides, BIT, constants),
    Op.DATE_PART: of_bigints(calendar.date_part, 1),
    Op.DATE_BOUNDARIES: of_bigints(calendar.date_boundaries, 1),
    Op.NAME_OF: of([BIGINT], STRING, strings.name_of),
    Op.DATETIME_FROM_PARTS: of_bigints(calendar.datetime_from_parts, 8),
    Op.MOVED: of_bigints(calendar.moved, 2),
    Op.MOVED_BY_MONTHS: of_bigints(calendar.moved_by_months, 2),
    Op.WITHIN_CALENDAR: of_bigints(control.unless(calendar.is_outside), 2),
    Op.UNIX_MILLISECONDS: of_bigints(calendar.UNIX_MILLISECONDS, 1),
    Op.CONCAT: of_any_number(STRING, STRING, strings.concat),
    Op.JOIN_STRINGS: of_any_number(STRING, STRING, strings.concat_ws),
    Op.UPPER: _letters(strings.UPPER),
    Op.LOWER: _letters(strings.LOWER),
    Op.REVERSE: of_string(strings.REVERSED),
    Op.TRIM: of_string(strings.TRIM),
    Op.TRIM_START: of_string(strings.TRIM_START),
    Op.TRIM_END: of_string(strings.TRIM_END),
    Op.LENGTH: of_string(strings.length, BIGINT),
    Op.CODE_POINT: of_string(strings.code_point, BIGINT),
    Op.CHARACTER: of([BIGINT], STRING, strings.character),
    Op.REPEAT: of([STRING, BIGINT], STRING, strings.repeat),
    Op.REPLACE: of([STRING] * 3, STRING, strings.replace),
    Op.TRANSLATE: of([STRING] * 4, STRING, strings.translate),
    Op.LEFT: or_refused([STRING, BIGINT], STRING, strings.left),
    Op.RIGHT: or_refused([STRING, BIGINT], STRING, strings.right),
    Op.SUBSTRING: or_refused([STRING, BIGINT, BIGINT], STRING, strings.substring),
    Op.SUBSTRING_FROM: or_refused([STRING, BIGINT, BIGINT], STRING, strings.substring),
    Op.STUFF: or_refused([STRING, BIGINT, BIGINT, STRING], STRING, strings.stuff),
    Op.POSITION: of([STRING, STRING, BIGINT], BIGINT, strings.position),
    Op.FIRST_MATCH: _of_pattern(BIGINT, matching.first_match),
    Op.FIRST_MATCH_COMPUTED: _first_match_computed,
    Op.MATCHES: _of_pattern(BIT, matching.matches),
    Op.LIKE: _like,
    Op.LIKE_COMPUTED: _like_computed,
    Op.JSON_PROPERTY: json_rules.json_property,
    Op.PROPERTY_TOKEN: json_rules.token_of_part(json_values.property_token, STRING),
    Op.JSON_OF_ANY: one_of(
        Form([STRING], STRING, json_values.string_json), Form([FLOAT], STRING, json_values.float_json)
    ),
    Op.PARSED_RECORD: json_rules.parsed_record,
    Op.ARRAY_ELEMENT: json_rules.array_element,
    Op.ARRAY_ELEMENT_AT: json_rules.array_element_at,
    Op.ELEMENT_TOKEN: json_rules.token_of_part(json_values.element_token, BIGINT),
    Op.ARRAY_LENGTH: json_rules.of_document(json_values.ARRAY_LENGTH, OF_PATHS, BIGINT),
    Op.ARRAY_ELEMENTS: json_rules.of_document(json_values.ELEMENTS, OF_FROM_JSON, _ELEMENTS),
    Op.RECORD_PROPERTIES: json_rules.of_document(json_values.PROPERTIES, OF_FROM_JSON, _PROPERTIES),
    Op.POINT: json_rules.joined('{"type":"Point","coordinates":[', "]}"),
    Op.POINT_POSITION: json_rules.joined("[", "]"),
    Op.POSITION_OF_POINT: json_rules.position_of_point,
    Op.STRUCT: _struct,
    Op.RESULT: _result,
}
"""The rule of each operation. USER_CALL has none: `user_functions` computes it before the others."""
