"""Rules of the operations on strings of JSON. Operations on the same string share its documents."""

import pyarrow as pa

from recapture.evaluate import control, json_values
from recapture.evaluate.documents import OF_FROM_JSON, OF_PATHS, Leniency
from recapture.evaluate.frames import Kernel, Node
from recapture.evaluate.lowering import BIGINT, BIT, NULL, STRING, Lowering, Rule
from recapture.evaluate.rules import Constants
from recapture.model import AsaType
from recapture.query.plan.operations import Op


def documents(lowering: Lowering, text: Node, leniency: Leniency) -> Node:
    """Return the node of strings as JSON documents, which functions of the same string share."""
    return lowering.node(json_values.documents, lowering.required([text], [STRING]), NULL, (leniency,))


def of_document(kernel: Kernel, leniency: Leniency, gives: pa.DataType) -> Rule:
    """Return the rule of an operation on JSON and maybe a name or an index."""

    def rule(lowering: Lowering, _: Constants, arguments: list[Node]) -> Node:
        text, *others = arguments
        return lowering.node(kernel, [documents(lowering, text, leniency), *others], gives)

    return rule


def or_other(test: Kernel) -> Rule:
    """Return the rule of a string of JSON that a test has to accept, and of what stands for another string."""

    def rule(lowering: Lowering, _: Constants, arguments: list[Node]) -> Node:
        text, other = arguments
        is_json = lowering.node(test, [documents(lowering, text, OF_PATHS)], BIT)
        is_given = lowering.operation(Op.IS_NOT_NULL, [text])
        null = lowering.literal(None, NULL)
        return lowering.operation(Op.CASE, [is_json, text, is_given, other, null])

    return rule


def parsed_record(lowering: Lowering, _: Constants, arguments: list[Node]) -> Node:
    return lowering.operation(Op.STRING_TO_RECORD, [*arguments, lowering.literal(None, NULL)])


def json_property(lowering: Lowering, _: Constants, arguments: list[Node]) -> Node:
    """Return the property with the exact name, or else the first with the name in other letters."""
    record, name = lowering.required(arguments, [STRING, STRING])
    properties = documents(lowering, record, OF_FROM_JSON)
    has_name = lowering.node(json_values.HAS_NAME, [properties, name], BIT)
    similar = lowering.node(json_values.SIMILAR, [properties, name], STRING)
    is_literal = name.kernel is control.constant and json_values.is_plain_name(name.parameters[0].as_py())
    if not is_literal:
        named = lowering.node(json_values.NAMED, [properties, name], STRING)
        return lowering.operation(Op.CASE, [has_name, named, similar])
    exact = lowering.node(json_values.PROPERTY, [documents(lowering, record, OF_PATHS), name], STRING)
    other = lowering.operation(Op.CASE, [has_name, lowering.literal(None, NULL), similar])
    return lowering.operation(Op.COALESCE, [exact, other])


def array_element(lowering: Lowering, _: Constants, arguments: list[Node]) -> Node:
    array, index = lowering.required(arguments, [STRING, BIGINT])
    return lowering.node(json_values.element, [documents(lowering, array, OF_FROM_JSON), index], STRING)


def array_element_at(lowering: Lowering, constants: Constants, arguments: list[Node]) -> Node:
    return lowering.operation(Op.ARRAY_ELEMENT, [*arguments, lowering.literal(constants[0], BIGINT)])


def token_of_part(kernel: Kernel, key: pa.DataType) -> Rule:
    """Return the rule of the token of a part of a document, given the type of its name or index."""

    def rule(lowering: Lowering, _: Constants, arguments: list[Node]) -> Node:
        text, place = lowering.required(arguments, [STRING, key])
        return lowering.node(kernel, [documents(lowering, text, OF_FROM_JSON), place], STRING)

    return rule


def joined(opening: str, closing: str) -> Rule:
    """Return the rule of two floats as JSON."""

    def rule(lowering: Lowering, _: Constants, arguments: list[Node]) -> Node:
        left, right = (lowering.operation(Op.CAST, [number], (AsaType.STRING, False)) for number in arguments)
        opened, comma, closed = (lowering.literal(sign, STRING) for sign in (opening, ",", closing))
        return lowering.operation(Op.CONCAT, [opened, left, comma, right, closed])

    return rule


def position_of_point(lowering: Lowering, _: Constants, arguments: list[Node]) -> Node:
    record, refused = arguments
    point, coordinates = (
        lowering.node(
            json_values.PROPERTY,
            [documents(lowering, record, OF_PATHS), lowering.literal(name, STRING)],
            STRING,
        )
        for name in ("type", "coordinates")
    )
    is_point = lowering.operation(Op.EQUAL, [point, lowering.literal("Point", STRING)])
    is_position = lowering.operation(Op.MATCHES, [coordinates], (_POSITION,))
    is_valid = lowering.operation(Op.AND, [is_point, is_position])
    is_given = lowering.operation(Op.IS_NOT_NULL, [record])
    null = lowering.literal(None, NULL)
    return lowering.operation(Op.CASE, [is_valid, coordinates, is_given, refused, null])


_POSITION = r"\A\[-?[0-9][^,\[\]]*(,-?[0-9][^,\[\]]*){1,2}\]\z"
"""Regular expression of the coordinates of a point."""
