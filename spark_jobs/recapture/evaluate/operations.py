"""What computes each operation of the plan: a table from Op to a rule, which finds the type and chooses the kernel."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from recapture import tokens
from recapture.evaluate import (
    calendar,
    casts,
    computed_patterns,
    control,
    float_text,
    json_values,
    matching,
    numbers,
    powers,
    strings,
    token_kernels,
)
from recapture.evaluate.by_value import by_value
from recapture.evaluate.documents import OF_FROM_JSON, OF_PATHS, Leniency
from recapture.evaluate.frames import Kernel, Node
from recapture.evaluate.lowering import BIGINT, BIT, FLOAT, NULL, STRING, Lowering, Rule, misfit
from recapture.model import TYPES, AsaType
from recapture.query.plan import regular
from recapture.query.plan.expressions import Constant
from recapture.query.plan.operations import Op

Constants = tuple[Constant, ...]
_SYSTEM = ("_slice_start", "_slice_end")
_ELEMENTS = pa.list_(pa.struct([("ArrayIndex", BIGINT), ("ArrayValue", STRING)]))
_PROPERTIES = pa.list_(pa.struct([("PropertyName", STRING), ("PropertyValue", STRING)]))


class Form(NamedTuple):
    """One form of an operation. Its kernel gets the constants of the operation as its parameters."""

    takes: Sequence[pa.DataType]
    """Types of the arguments."""
    gives: pa.DataType
    kernel: Kernel
    raises: bool = False
    """Whether it may raise an error of its own."""


def _one_of(*forms: Form) -> Rule:
    """Return the rule that chooses the first form whose types the arguments have."""

    def rule(lowering: Lowering, constants: Constants, arguments: list[Node]) -> Node:
        for form in forms:
            fitting = lowering.fitting(arguments, form.takes)
            if fitting is not None:
                return lowering.node(form.kernel, fitting, form.gives, constants, form.raises)
        raise misfit(" or ".join(str([str(type_) for type_ in form.takes]) for form in forms), arguments)

    return rule


def _of(takes: Sequence[pa.DataType], gives: pa.DataType, kernel: Kernel, raises: bool = False) -> Rule:
    """Return the rule of an operation with one form."""
    return _one_of(Form(takes, gives, kernel, raises))


def _of_numbers(exact: Kernel, floating: Kernel, count: int, raises: bool = True) -> Rule:
    """Return the rule of an operation on bigints or on floats. That on bigints may overflow."""
    return _one_of(Form([BIGINT] * count, BIGINT, exact, raises), Form([FLOAT] * count, FLOAT, floating))


def _of_bigints(kernel: Kernel, count: int, raises: bool = False) -> Rule:
    return _of([BIGINT] * count, BIGINT, kernel, raises)


def _of_float(kernel: Kernel) -> Rule:
    return _of([FLOAT], FLOAT, kernel)


def _of_string(kernel: Kernel, gives: pa.DataType = STRING) -> Rule:
    return _of([STRING], gives, kernel)


def _of_any_number(type_: pa.DataType, gives: pa.DataType, kernel: Kernel) -> Rule:
    """Return the rule of an operation on any number of arguments of one type."""

    def rule(lowering: Lowering, constants: Constants, arguments: list[Node]) -> Node:
        return _of([type_] * len(arguments), gives, kernel)(lowering, constants, arguments)

    return rule


def _or_refused(takes: Sequence[pa.DataType], gives: pa.DataType, kernel: Kernel) -> Rule:
    """Return the rule of an operation whose last argument, which may be missing, stops the run."""

    def rule(lowering: Lowering, constants: Constants, arguments: list[Node]) -> Node:
        types = [*takes, *[gives] * (len(arguments) - len(takes))]
        return _of(types, gives, kernel)(lowering, constants, arguments)

    return rule


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
    return _one_of(*(Form([type_, type_], BIT, kernel) for type_ in (BIGINT, FLOAT, STRING, BIT)))


def _is_null(lowering: Lowering, _: Constants, arguments: list[Node]) -> Node:
    return lowering.node(numbers.is_null, arguments, BIT)


def _is_not_null(lowering: Lowering, _: Constants, arguments: list[Node]) -> Node:
    return lowering.operation(Op.NOT, [_is_null(lowering, (), arguments)])


def _is_any_null(lowering: Lowering, _: Constants, arguments: list[Node]) -> Node:
    tests = [_is_null(lowering, (), [argument]) for argument in arguments]
    return lowering.node(control.disjunction, tests, BIT)


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
    return _one_of(exact, Form([FLOAT], FLOAT, numbers.rounded_float))(lowering, constants, arguments)


def _places(length: int) -> int:
    """Return a number of decimals within the range beyond which a bigint or a float has no digits."""
    return max(-400, min(400, length))


def _first_match_computed(lowering: Lowering, constants: Constants, arguments: list[Node]) -> Node:
    kernel = computed_patterns.FIRST_MATCH[str(constants[0])]
    return _of([STRING, STRING], BIGINT, kernel, raises=True)(lowering, (), arguments)


def _power(lowering: Lowering, constants: Constants, arguments: list[Node]) -> Node:
    base, exponent = arguments
    if exponent is lowering.literal(2.0, FLOAT):
        return lowering.operation(Op.SQUARE, [base])
    return _of([FLOAT, FLOAT], FLOAT, powers.POWER)(lowering, constants, arguments)


_CASTS: Mapping[tuple[pa.DataType, pa.DataType], Kernel] = {
    (BIT, BIGINT): numbers.TO_BIGINT,
    (FLOAT, BIGINT): numbers.float_to_bigint,
    (STRING, BIGINT): casts.BIGINT,
    (BIT, FLOAT): numbers.TO_FLOAT,
    (BIGINT, FLOAT): numbers.TO_FLOAT,
    (STRING, FLOAT): casts.FLOAT,
    (BIGINT, BIT): numbers.TO_BIT,
    (FLOAT, BIT): numbers.TO_BIT,
    (BIGINT, STRING): strings.bigint_text,
    (BIT, STRING): casts.bit_text,
    (FLOAT, STRING): float_text.JAVA,
}
"""Kernels of CAST, by the types from and to."""
_STOPPING = (casts.BIGINT, casts.FLOAT, numbers.float_to_bigint)
"""Those that stop the run, unless they are lenient."""


def _cast(lowering: Lowering, constants: Constants, arguments: list[Node]) -> Node:
    [value], [to, lenient] = arguments, constants
    type_ = TYPES[AsaType(str(to))].view
    if value.type in (type_, NULL):
        return lowering.required([value], [type_])[0]
    kernel = _CASTS[value.type, type_]
    return lowering.node(kernel, [value], type_, (lenient,), kernel in _STOPPING and not lenient)


def _string_to_float(lowering: Lowering, constants: Constants, arguments: list[Node]) -> Node:
    text, excess = arguments
    number = _of([STRING], FLOAT, casts.ASA_FLOAT, not constants[0])(lowering, constants, [text])
    return lowering.operation(Op.FINITE, [number, excess])


def _string_to_datetime(lowering: Lowering, constants: Constants, arguments: list[Node]) -> Node:
    return _of([STRING, BIGINT], BIGINT, casts.asa_datetime, not constants[0])(lowering, constants, arguments)


def _string_to_bit(lowering: Lowering, constants: Constants, arguments: list[Node]) -> Node:
    return _of([STRING], BIT, casts.ASA_BIT, not constants[0])(lowering, constants, arguments)


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
    return _of_string(matching.like, BIT)(lowering, (pattern,), arguments)


def _like_computed(lowering: Lowering, _: Constants, arguments: list[Node]) -> Node:
    pattern, text = lowering.required(arguments[:2], [STRING, STRING])
    has_set = lowering.node(strings.contains, [pattern, lowering.literal("[", STRING)], BIT)
    matches = lowering.node(matching.like_computed, [text, pattern], BIT)
    return lowering.operation(Op.CASE, [has_set, arguments[2], matches])


def _of_pattern(gives: pa.DataType, kernel: Kernel) -> Rule:
    """Return the rule of an operation whose constant is a regular expression."""

    def rule(lowering: Lowering, constants: Constants, arguments: list[Node]) -> Node:
        return _of_string(kernel, gives)(lowering, (regular.compiled(str(constants[0])),), arguments)  # type: ignore[arg-type]

    return rule


def _documents(lowering: Lowering, text: Node, leniency: Leniency) -> Node:
    """Return the node of strings as JSON documents, which functions of the same string share."""
    return lowering.node(json_values.documents, lowering.required([text], [STRING]), NULL, (leniency,))


def _of_document(kernel: Kernel, leniency: Leniency, gives: pa.DataType) -> Rule:
    """Return the rule of an operation on JSON and maybe a name or an index."""

    def rule(lowering: Lowering, _: Constants, arguments: list[Node]) -> Node:
        text, *others = arguments
        return lowering.node(kernel, [_documents(lowering, text, leniency), *others], gives)

    return rule


def _or_other(test: Kernel) -> Rule:
    """Return the rule of a string of JSON that a test has to accept, and of what stands for another string."""

    def rule(lowering: Lowering, _: Constants, arguments: list[Node]) -> Node:
        text, other = arguments
        is_json = lowering.node(test, [_documents(lowering, text, OF_PATHS)], BIT)
        is_given = _is_not_null(lowering, (), [text])
        null = lowering.literal(None, NULL)
        return lowering.operation(Op.CASE, [is_json, text, is_given, other, null])

    return rule


def _parsed_record(lowering: Lowering, _: Constants, arguments: list[Node]) -> Node:
    return lowering.operation(Op.STRING_TO_RECORD, [*arguments, lowering.literal(None, NULL)])


def _json_property(lowering: Lowering, _: Constants, arguments: list[Node]) -> Node:
    """Return the property with the exact name, or else the first with the name in other letters."""
    record, name = lowering.required(arguments, [STRING, STRING])
    properties = _documents(lowering, record, OF_FROM_JSON)
    has_name = lowering.node(json_values.HAS_NAME, [properties, name], BIT)
    similar = lowering.node(json_values.SIMILAR, [properties, name], STRING)
    is_literal = name.kernel is control.constant and json_values.is_plain_name(name.parameters[0].as_py())
    if not is_literal:
        named = lowering.node(json_values.NAMED, [properties, name], STRING)
        return lowering.operation(Op.CASE, [has_name, named, similar])
    exact = lowering.node(json_values.PROPERTY, [_documents(lowering, record, OF_PATHS), name], STRING)
    other = lowering.operation(Op.CASE, [has_name, lowering.literal(None, NULL), similar])
    return lowering.operation(Op.COALESCE, [exact, other])


def _array_element(lowering: Lowering, _: Constants, arguments: list[Node]) -> Node:
    array, index = lowering.required(arguments, [STRING, BIGINT])
    return lowering.node(json_values.element, [_documents(lowering, array, OF_FROM_JSON), index], STRING)


def _array_element_at(lowering: Lowering, constants: Constants, arguments: list[Node]) -> Node:
    return lowering.operation(Op.ARRAY_ELEMENT, [*arguments, lowering.literal(constants[0], BIGINT)])


def _token_of_part(kernel: Kernel, key: pa.DataType) -> Rule:
    """Return the rule of the token of a part of a document, given the type of its name or index."""

    def rule(lowering: Lowering, _: Constants, arguments: list[Node]) -> Node:
        text, place = lowering.required(arguments, [STRING, key])
        return lowering.node(kernel, [_documents(lowering, text, OF_FROM_JSON), place], STRING)

    return rule


def _joined(opening: str, closing: str) -> Rule:
    """Return the rule of two floats as JSON."""

    def rule(lowering: Lowering, _: Constants, arguments: list[Node]) -> Node:
        left, right = (lowering.operation(Op.CAST, [number], (AsaType.STRING, False)) for number in arguments)
        opened, comma, closed = (lowering.literal(sign, STRING) for sign in (opening, ",", closing))
        return lowering.operation(Op.CONCAT, [opened, left, comma, right, closed])

    return rule


def _position_of_point(lowering: Lowering, _: Constants, arguments: list[Node]) -> Node:
    record, refused = arguments
    point, coordinates = (
        lowering.node(
            json_values.PROPERTY,
            [_documents(lowering, record, OF_PATHS), lowering.literal(name, STRING)],
            STRING,
        )
        for name in ("type", "coordinates")
    )
    is_point = lowering.operation(Op.EQUAL, [point, lowering.literal("Point", STRING)])
    is_position = lowering.operation(Op.MATCHES, [coordinates], (_POSITION,))
    is_valid = lowering.operation(Op.AND, [is_point, is_position])
    is_given = _is_not_null(lowering, (), [record])
    null = lowering.literal(None, NULL)
    return lowering.operation(Op.CASE, [is_valid, coordinates, is_given, refused, null])


_POSITION = r"^\[-?[0-9][^,\[\]]*(,-?[0-9][^,\[\]]*){1,2}\]$"
"""Regular expression of the coordinates of a point."""


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
    Op.AND: _of_any_number(BIT, BIT, control.conjunction),
    Op.OR: _of_any_number(BIT, BIT, control.disjunction),
    Op.NOT: _of([BIT], BIT, numbers.NOT),
    Op.EQUAL: _comparison(numbers.EQUAL),
    Op.NOT_EQUAL: _comparison(numbers.NOT_EQUAL),
    Op.LESS: _comparison(numbers.LESS),
    Op.LESS_OR_EQUAL: _comparison(numbers.LESS_OR_EQUAL),
    Op.GREATER: _comparison(numbers.GREATER),
    Op.GREATER_OR_EQUAL: _comparison(numbers.GREATER_OR_EQUAL),
    Op.IN: _in,
    Op.IS_NULL: _is_null,
    Op.IS_NOT_NULL: _is_not_null,
    Op.IS_ANY_NULL: _is_any_null,
    Op.CASE: _case,
    Op.COALESCE: _coalesce,
    Op.ADD: _of_numbers(numbers.ADD, numbers.ADD_FLOATS, 2),
    Op.SUBTRACT: _of_numbers(numbers.SUBTRACT, numbers.SUBTRACT_FLOATS, 2),
    Op.MULTIPLY: _of_numbers(numbers.MULTIPLY, numbers.MULTIPLY_FLOATS, 2),
    Op.DIVIDE: _of([FLOAT, FLOAT], FLOAT, numbers.quotient, raises=True),
    Op.INTEGER_DIVIDE: _of_bigints(numbers.quotient, 2, raises=True),
    Op.INTEGER_QUOTIENT: _integer_quotient,
    Op.MODULO: _of_bigints(numbers.remainder, 2, raises=True),
    Op.NEGATE: _of_numbers(numbers.NEGATIVE, numbers.computed(np.negative), 1),
    Op.BIT_AND: _of_bigints(numbers.computed(np.bitwise_and), 2),
    Op.BIT_OR: _of_bigints(numbers.computed(np.bitwise_or), 2),
    Op.BIT_XOR: _of_bigints(numbers.computed(np.bitwise_xor), 2),
    Op.BIT_NOT: _of_bigints(numbers.computed(np.invert), 1),
    Op.GREATEST: _of_any_number(BIGINT, BIGINT, numbers.greatest),
    Op.LEAST: _of_any_number(BIGINT, BIGINT, numbers.least),
    Op.ABSOLUTE: _of_numbers(numbers.ABSOLUTE, numbers.computed(np.abs), 1),
    Op.SIGN: _of_float(numbers.computed(numbers.sign)),
    Op.FLOOR: _of_float(numbers.computed(numbers.floor)),
    Op.CEILING: _of_float(numbers.computed(numbers.ceiling)),
    Op.ROUND: _round,
    Op.ROUND_COMPUTED: _one_of(
        Form([BIGINT, BIGINT], BIGINT, by_value(numbers.rounded_bigint, _places), raises=True),
        Form([FLOAT, BIGINT], FLOAT, by_value(numbers.rounded_float, _places)),
    ),
    Op.POWER: _power,
    Op.SQUARE_ROOT: _of_float(numbers.computed(np.sqrt)),
    Op.SQUARE: _of_float(numbers.computed(np.square)),
    Op.EXPONENTIAL: _of_float(powers.EXPONENTIAL),
    Op.FINITE: _of([FLOAT, FLOAT], FLOAT, control.unless(numbers.is_not_finite)),
    Op.CAST: _cast,
    Op.STRING_TO_FLOAT: _string_to_float,
    Op.STRING_TO_BIT: _string_to_bit,
    Op.STRING_TO_DATETIME: _string_to_datetime,
    Op.STRING_TO_RECORD: _or_other(json_values.IS_OBJECT),
    Op.STRING_TO_ARRAY: _or_other(json_values.IS_ARRAY),
    Op.DATETIME_TO_STRING: _of([BIGINT], STRING, casts.datetime_text),
    Op.FLOAT_TO_STRING: _of([FLOAT], STRING, float_text.NET),
    Op.IS_BIGINT_TEXT: _of_string(strings.arrow(casts.is_bigint), BIT),
    Op.BIGINT_TEXT: _of_string(casts.bigint_of_json),
    Op.TOKEN: _one_of(
        Form([BIGINT], STRING, token_kernels.of_bigints),
        Form([FLOAT], STRING, token_kernels.of_floats),
        Form([STRING], STRING, strings.arrow(tokens.of_strings)),
    ),
    Op.TOKEN_TEXT: _of_string(strings.arrow(tokens.texts)),
    Op.IN_ORDER: lambda lowering, constants, sides: lowering.node(token_kernels.in_order, sides, BIT, constants),
    Op.DATE_PART: _of_bigints(calendar.date_part, 1),
    Op.DATE_BOUNDARIES: _of_bigints(calendar.date_boundaries, 1),
    Op.NAME_OF: _of([BIGINT], STRING, strings.name_of),
    Op.DATETIME_FROM_PARTS: _of_bigints(calendar.datetime_from_parts, 8),
    Op.MOVED: _of_bigints(calendar.moved, 2),
    Op.MOVED_BY_MONTHS: _of_bigints(calendar.moved_by_months, 2),
    Op.WITHIN_CALENDAR: _of_bigints(control.unless(calendar.is_outside), 2),
    Op.UNIX_MILLISECONDS: _of_bigints(calendar.UNIX_MILLISECONDS, 1),
    Op.CONCAT: _of_any_number(STRING, STRING, strings.concat),
    Op.JOIN_STRINGS: _of_any_number(STRING, STRING, strings.concat_ws),
    Op.UPPER: _letters(strings.UPPER),
    Op.LOWER: _letters(strings.LOWER),
    Op.REVERSE: _of_string(strings.REVERSED),
    Op.TRIM: _of_string(strings.TRIM),
    Op.TRIM_START: _of_string(strings.TRIM_START),
    Op.TRIM_END: _of_string(strings.TRIM_END),
    Op.LENGTH: _of_string(strings.length, BIGINT),
    Op.CODE_POINT: _of_string(strings.code_point, BIGINT),
    Op.CHARACTER: _of([BIGINT], STRING, strings.character),
    Op.REPEAT: _of([STRING, BIGINT], STRING, strings.repeat),
    Op.REPLACE: _of([STRING] * 3, STRING, strings.replace),
    Op.TRANSLATE: _of([STRING] * 4, STRING, strings.translate),
    Op.LEFT: _or_refused([STRING, BIGINT], STRING, strings.left),
    Op.RIGHT: _or_refused([STRING, BIGINT], STRING, strings.right),
    Op.SUBSTRING: _or_refused([STRING, BIGINT, BIGINT], STRING, strings.substring),
    Op.SUBSTRING_FROM: _or_refused([STRING, BIGINT, BIGINT], STRING, strings.substring),
    Op.STUFF: _or_refused([STRING, BIGINT, BIGINT, STRING], STRING, strings.stuff),
    Op.POSITION: _of([STRING, STRING, BIGINT], BIGINT, strings.position),
    Op.FIRST_MATCH: _of_pattern(BIGINT, matching.first_match),
    Op.FIRST_MATCH_COMPUTED: _first_match_computed,
    Op.MATCHES: _of_pattern(BIT, matching.matches),
    Op.LIKE: _like,
    Op.LIKE_COMPUTED: _like_computed,
    Op.JSON_PROPERTY: _json_property,
    Op.PROPERTY_TOKEN: _token_of_part(json_values.property_token, STRING),
    Op.JSON_OF_ANY: _one_of(
        Form([STRING], STRING, json_values.string_json), Form([FLOAT], STRING, json_values.float_json)
    ),
    Op.PARSED_RECORD: _parsed_record,
    Op.ARRAY_ELEMENT: _array_element,
    Op.ARRAY_ELEMENT_AT: _array_element_at,
    Op.ELEMENT_TOKEN: _token_of_part(json_values.element_token, BIGINT),
    Op.ARRAY_LENGTH: _of_document(json_values.ARRAY_LENGTH, OF_PATHS, BIGINT),
    Op.ARRAY_ELEMENTS: _of_document(json_values.ELEMENTS, OF_FROM_JSON, _ELEMENTS),
    Op.RECORD_PROPERTIES: _of_document(json_values.PROPERTIES, OF_FROM_JSON, _PROPERTIES),
    Op.POINT: _joined('{"type":"Point","coordinates":[', "]}"),
    Op.POINT_POSITION: _joined("[", "]"),
    Op.POSITION_OF_POINT: _position_of_point,
    Op.STRUCT: _struct,
    Op.RESULT: _result,
}
"""The rule of each operation. USER_CALL has none: `user_functions` computes it before the others."""
