"""Lower scalar Spark SQL to typed nodes: the operations of this package that give the same values as Spark.

`x` + 5L, x is bigint => Node(add, (Node(column x), Node(constant 5)), int64)

Whatever is not in a table here or in `functions` is refused.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from recapture.evaluate import control, numbers
from recapture.evaluate.frames import Kernel, Node
from recapture.evaluate.refusal import NotEvaluatedError
from recapture.evaluate.syntax import Call, Constant, Lambda, Name, Syntax

BIGINT, INT, DOUBLE, BOOLEAN, STRING = pa.int64(), pa.int32(), pa.float64(), pa.bool_(), pa.string()
DATE, TIMESTAMP, NULL = pa.date32(), pa.timestamp("us"), pa.null()
_TYPES = {
    "BIGINT": BIGINT,
    "INT": INT,
    "DOUBLE": DOUBLE,
    "BOOLEAN": BOOLEAN,
    "STRING": STRING,
    "NULL": NULL,
}
_WIDTHS = (INT, BIGINT, DOUBLE)
"""Types of numbers. Each is widened to the later ones without CAST."""
_SYSTEM = ("_slice_start", "_slice_end")
MOST_NODES = 20_000
"""Largest number of operations of one projection."""


class Lowering:
    """The nodes of one projection over a table with known columns."""

    def __init__(self, columns: Mapping[str, pa.DataType]) -> None:
        self._columns = columns
        self._nodes: dict[Any, Node] = {}

    def node(
        self,
        kernel: Kernel,
        arguments: Sequence[Node],
        type_: pa.DataType,
        parameters: tuple[Any, ...] = (),
        raises: bool = False,
    ) -> Node:
        """Return the node of an operation. An equal one is the same object."""
        key = (kernel, *map(id, arguments), type_, *((type(value), value) for value in parameters))
        node = self._nodes.get(key)
        if node is None:
            raises = raises or any(argument.raises for argument in arguments)
            node = self._nodes[key] = Node(kernel, tuple(arguments), type_, parameters, raises)
            if len(self._nodes) > MOST_NODES:
                raise NotEvaluatedError("an expression is too long")
        return node

    def lower_all(self, expressions: Sequence[Syntax]) -> list[Node]:
        """Return the nodes of several expressions."""
        try:
            return [self.lower(expression, {}) for expression in expressions]
        except RecursionError:
            raise NotEvaluatedError("an expression is nested too deeply") from None

    def lower(self, syntax: Syntax, names: Mapping[str, Node]) -> Node:
        """Return the node of an expression; `names` are the parameters of the lambdas around it."""
        match syntax:
            case Constant(value, type_):
                return self.constant(value, _TYPES[type_])
            case Name(parts):
                return self._name(parts, names)
            case Call("transform" | "[]" | "filter" | "map_filter" | "aggregate" | "get"):
                return self._let_or_elements(syntax, names)
            case Call(function, arguments):
                return self._call(function, [self.lower(argument, names) for argument in arguments])
        raise NotEvaluatedError("a lambda is not an argument of transform")

    def constant(self, value: Any, type_: pa.DataType) -> Node:
        """Return the node of a literal."""
        key = (control.constant, type_, repr(value))
        node = self._nodes.get(key)
        if node is None:
            node = self._nodes[key] = Node(control.constant, (), type_, (control.literal(value, type_),))
        return node

    def _name(self, parts: tuple[str, ...], names: Mapping[str, Node]) -> Node:
        first, *fields = parts
        node = names.get(first)
        if node is None:
            if first in _SYSTEM:
                node = self.node(control.bound, (), BIGINT, (first,))
            else:
                type_ = self._columns.get(first)
                if type_ is None:
                    raise NotEvaluatedError(f"`{first}` is not a column")
                node = self.node(control.column, (), control.column_type(type_), (first,))
        for field in fields:
            node = self._field(node, field)
        return node

    def _field(self, struct: Node, name: str) -> Node:
        if not pa.types.is_struct(struct.type):
            raise NotEvaluatedError(f"a field `{name}` of a value that is not a struct")
        names = [struct.type.field(index).name for index in range(struct.type.num_fields)]
        if names.count(name) != 1:
            raise NotEvaluatedError(f"a struct without the field `{name}`")
        return self.node(control.field, (struct,), struct.type.field(name).type, (name,))

    def _let_or_elements(self, call: Call, names: Mapping[str, Node]) -> Node:
        """Lower a value that is bound to a name, or the elements of an APPLY.

        transform(array(v), y -> y + y)[0] => v + v, after v
        """
        match call:
            case Call("[]", (Call("transform", (Call("array", (value,)), Lambda((name,), body))), Constant(0, "INT"))):
                bound = self.lower(value, names)
                used = self.lower(body, {**names, name: bound})
                return self.node(control.after, (bound, used), used.type)
        raise NotEvaluatedError(f"{call.function.upper()} of an array")

    def _call(self, function: str, arguments: list[Node]) -> Node:
        if function.startswith("."):
            return self._field(arguments[0], function[1:])
        special = _SPECIAL.get(function)
        if special is not None:
            return special(self, arguments)
        from recapture.evaluate.functions import FUNCTIONS

        for signature in FUNCTIONS.get(function, ()):
            fitting = self.fitting(arguments, signature.arguments, signature.many)
            if fitting is not None:
                kernel, parameters = signature.kernel, signature.parameters
                return self.node(kernel, fitting, signature.type, parameters, signature.raises)
        types = ", ".join(str(argument.type) for argument in arguments)
        raise NotEvaluatedError(f"{function.upper()}({types})")

    def fitting(self, arguments: Sequence[Node], types: Sequence[pa.DataType], many: bool = False) -> list[Node] | None:
        """Return arguments in these types, the last of which stands for `many`; None if they do not fit."""
        if many:
            types = [*types, *[types[-1]] * (len(arguments) - len(types))]
        if len(types) != len(arguments):
            return None
        converted = [self._converted(argument, type_) for argument, type_ in zip(arguments, types, strict=True)]
        fitting = [argument for argument in converted if argument is not None]
        return fitting if len(fitting) == len(converted) else None

    def _converted(self, node: Node, type_: pa.DataType) -> Node | None:
        """Return a value in a type; None if Spark would need a CAST."""
        if node.type == type_:
            return node
        if node.type == NULL:
            return self.node(control.typed_null, (node,), type_)
        if node.type in _WIDTHS and type_ in _WIDTHS and _WIDTHS.index(node.type) < _WIDTHS.index(type_):
            return self.node(numbers.computed_float if type_ == DOUBLE else numbers.computed_same, (node,), type_)
        return None

    def unified(self, values: Sequence[Node]) -> list[Node]:
        """Return values in one type, as the branches of a CASE are."""
        types = [value.type for value in values if value.type != NULL]
        if not types:
            return list(values)
        type_ = max(types, key=_WIDTHS.index) if all(one in _WIDTHS for one in types) else types[0]
        if type_ == DOUBLE and BIGINT in types:
            raise NotEvaluatedError("a CASE of bigint and float")
        fitting = self.fitting(values, [type_] * len(values))
        if fitting is None:
            raise NotEvaluatedError(f"values of the types {', '.join(dict.fromkeys(map(str, types)))}")
        return fitting

    def string_constant(self, node: Node, what: str) -> str:
        """Return the string of a literal. Raise NotEvaluatedError for anything else."""
        if node.kernel is not control.constant or node.type != STRING:
            raise NotEvaluatedError(f"{what} that is computed")
        return str(node.parameters[0].as_py())


def _binary(lowering: Lowering, arguments: list[Node]) -> list[Node]:
    """Return two operands in the wider of their types."""
    return (
        lowering.unified(arguments)
        if DOUBLE not in {node.type for node in arguments}
        else _as_doubles(lowering, arguments)
    )


def _as_doubles(lowering: Lowering, arguments: list[Node]) -> list[Node]:
    fitting = lowering.fitting(arguments, [DOUBLE] * len(arguments))
    if fitting is None:
        raise NotEvaluatedError("a float with another type")
    return fitting


def _arithmetic(exact: Kernel, floating: Kernel | None) -> Callable[[Lowering, list[Node]], Node]:
    def lower(lowering: Lowering, arguments: list[Node]) -> Node:
        fitting = _binary(lowering, arguments)
        type_ = fitting[0].type
        if type_ in (BIGINT, INT):
            return lowering.node(exact, fitting, type_, (), raises=True)
        if type_ == DOUBLE and floating is not None:
            return lowering.node(floating, fitting, type_, (), raises=floating is numbers.quotient)
        raise NotEvaluatedError(f"arithmetic with {type_}")

    return lower


def _division(lowering: Lowering, arguments: list[Node]) -> Node:
    return lowering.node(numbers.quotient, _as_doubles(lowering, arguments), DOUBLE, (), raises=True)


def _integer_division(lowering: Lowering, arguments: list[Node]) -> Node:
    fitting = lowering.fitting(arguments, [BIGINT, BIGINT])
    if fitting is None:
        raise NotEvaluatedError("DIV of floats")
    return lowering.node(numbers.quotient, fitting, BIGINT, (), raises=True)


def _comparison(sign: str) -> Callable[[Lowering, list[Node]], Node]:
    def lower(lowering: Lowering, arguments: list[Node]) -> Node:
        fitting = _binary(lowering, arguments)
        if fitting[0].type == NULL:
            fitting = [lowering.node(control.typed_null, (node,), BIGINT) for node in fitting]
        if fitting[0].type not in (BIGINT, INT, DOUBLE, STRING, BOOLEAN):
            raise NotEvaluatedError(f"a comparison of {fitting[0].type}")
        return lowering.node(numbers.compared, fitting, BOOLEAN, (sign,))

    return lower


def _connective(kernel: Kernel) -> Callable[[Lowering, list[Node]], Node]:
    def lower(lowering: Lowering, arguments: list[Node]) -> Node:
        fitting = lowering.fitting(arguments, [BOOLEAN] * len(arguments))
        if fitting is None:
            raise NotEvaluatedError("AND, OR and NOT of values that are not conditions")
        return lowering.node(kernel, fitting, BOOLEAN)

    return lower


def _null_test(lowering: Lowering, arguments: list[Node]) -> Node:
    return lowering.node(numbers.is_null, arguments, BOOLEAN)


def _membership(lowering: Lowering, arguments: list[Node]) -> Node:
    fitting = _binary(lowering, arguments)
    if fitting[0].type not in (BIGINT, INT, DOUBLE, STRING, BOOLEAN):
        raise NotEvaluatedError(f"IN of {fitting[0].type}")
    equal = [lowering.node(numbers.compared, (fitting[0], member), BOOLEAN, ("=",)) for member in fitting[1:]]
    return lowering.node(control.any_of, equal, BOOLEAN)


def _case(lowering: Lowering, arguments: list[Node]) -> Node:
    conditions = lowering.fitting(arguments[:-1:2], [BOOLEAN] * (len(arguments) // 2))
    if conditions is None:
        raise NotEvaluatedError("a CASE whose WHEN is not a condition")
    values = lowering.unified([*arguments[1::2], arguments[-1]])
    parts = [part for pair in zip(conditions, values, strict=False) for part in pair]
    return lowering.node(control.case, [*parts, values[-1]], values[-1].type)


def _coalesce(lowering: Lowering, arguments: list[Node]) -> Node:
    values = lowering.unified(arguments)
    return values[0] if len(values) == 1 else lowering.node(control.coalesce, values, values[0].type)


def _raise_error(lowering: Lowering, arguments: list[Node]) -> Node:
    fitting = lowering.fitting(arguments, [STRING])
    if fitting is None:
        raise NotEvaluatedError("RAISE_ERROR of a value that is not a string")
    return lowering.node(control.raise_error, fitting, NULL, (), raises=True)


def _named_struct(lowering: Lowering, arguments: list[Node]) -> Node:
    names = [lowering.string_constant(name, "a field name") for name in arguments[::2]]
    values = arguments[1::2]
    type_ = pa.struct([pa.field(name, value.type) for name, value in zip(names, values, strict=True)])
    return lowering.node(control.named_struct, values, type_)


_SPECIAL: dict[str, Callable[[Lowering, list[Node]], Node]] = {
    "+": _arithmetic(numbers.ADD, numbers.ADD_FLOATS),
    "-": _arithmetic(numbers.SUBTRACT, numbers.SUBTRACT_FLOATS),
    "*": _arithmetic(numbers.MULTIPLY, numbers.MULTIPLY_FLOATS),
    "/": _division,
    "div": _integer_division,
    "%": _arithmetic(numbers.remainder, None),
    **{sign: _comparison(sign) for sign in ("=", "<>", "<", "<=", ">", ">=")},
    "and": _connective(control.conjunction),
    "or": _connective(control.disjunction),
    "not": _connective(numbers.NOT),
    "is null": _null_test,
    "in": _membership,
    "case": _case,
    "coalesce": _coalesce,
    "raise_error": _raise_error,
    "named_struct": _named_struct,
}
"""Operations whose types depend on those of their operands. All others are in `functions`."""
