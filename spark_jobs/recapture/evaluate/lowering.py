"""Lower expressions of the plan to nodes: operations with types, each with a kernel that computes it.

add(n, 5), n is a bigint => Node(ADD, (Node(column n), Node(literal 5)), int64)

What an operation becomes is in the table `operations.OPERATIONS`. Types are found from the columns upwards.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from recapture.evaluate import control, numbers
from recapture.evaluate.frames import Kernel, Node
from recapture.query.plan.expressions import Constant, Expr
from recapture.query.plan.operations import Op

BIGINT, FLOAT, BIT, STRING, NULL = pa.int64(), pa.float64(), pa.bool_(), pa.string(), pa.null()

Rule: TypeAlias = "Callable[[Lowering, tuple[Constant, ...], list[Node]], Node]"
"""Returns the node of an operation, given its constants and the nodes of its arguments."""


class Lowering:
    """The nodes of one projection over a table with known columns."""

    def __init__(self, columns: Mapping[str, pa.DataType], rules: Mapping[Op, Rule]) -> None:
        self.columns = columns
        self._rules = rules
        self._lowered: dict[Expr, Node] = {}
        self._nodes: dict[Any, Node] = {}

    def lower(self, expression: Expr) -> Node:
        """Return the node of an expression. Long chains of operators are deep, so this does not recurse."""
        todo = [expression]
        while todo:
            part = todo[-1]
            parts = operands(part)
            missing = [argument for argument in parts if argument not in self._lowered]
            if missing:
                todo += missing
                continue
            todo.pop()
            if part not in self._lowered:
                arguments = [self._lowered[argument] for argument in parts]
                self._lowered[part] = self.operation(part.op, arguments, part.constants)
        return self._lowered[expression]

    def operation(self, op: Op, arguments: Sequence[Node], constants: tuple[Constant, ...] = ()) -> Node:
        """Return the node of an operation on nodes."""
        return self._rules[op](self, constants, list(arguments))

    def node(
        self,
        kernel: Kernel,
        arguments: Sequence[Node],
        type_: pa.DataType,
        parameters: tuple[Any, ...] = (),
        raises: bool = False,
    ) -> Node:
        """Return the node of a kernel. An equal one is the same object."""
        key = (kernel, *map(id, arguments), type_, *((type(value), value) for value in parameters))
        node = self._nodes.get(key)
        if node is None:
            raises = raises or any(argument.raises for argument in arguments)
            depth = 1 + max((argument.depth for argument in arguments), default=0)
            node = self._nodes[key] = Node(kernel, tuple(arguments), type_, parameters, raises, depth)
        return node

    def literal(self, value: Any, type_: pa.DataType) -> Node:
        """Return the node of a literal."""
        key = (control.constant, type_, repr(value))
        node = self._nodes.get(key)
        if node is None:
            node = self._nodes[key] = Node(control.constant, (), type_, (control.literal(value, type_),))
        return node

    def fitting(self, arguments: Sequence[Node], types: Sequence[pa.DataType]) -> list[Node] | None:
        """Return arguments in these types; None if they need a CAST."""
        if len(types) != len(arguments):
            return None
        converted = [self._converted(argument, type_) for argument, type_ in zip(arguments, types, strict=True)]
        fitting = [argument for argument in converted if argument is not None]
        return fitting if len(fitting) == len(converted) else None

    def required(self, arguments: Sequence[Node], types: Sequence[pa.DataType]) -> list[Node]:
        """Return arguments in these types. Raise TypeError if they need a CAST."""
        fitting = self.fitting(arguments, types)
        if fitting is None:
            raise misfit(f"values of the types {', '.join(map(str, types))}", arguments)
        return fitting

    def _converted(self, node: Node, type_: pa.DataType) -> Node | None:
        """Return a value in a type; None if it needs a CAST. NULL has every type, and a bigint may be a float."""
        if node.type == type_:
            return node
        if node.type == NULL:
            return self.node(control.typed_null, (node,), type_)
        return self.node(numbers.TO_FLOAT, (node,), type_) if (node.type, type_) == (BIGINT, FLOAT) else None

    def unified(self, values: Sequence[Node]) -> list[Node]:
        """Return values in one type, as the branches of a CASE are. Raise TypeError if they have none."""
        types = [value.type for value in values if value.type != NULL]
        fitting = self.fitting(values, [types[0]] * len(values)) if types else list(values)
        if fitting is None:
            raise misfit("values of one type", values)
        return fitting


def operands(expression: Expr) -> Sequence[Expr]:
    """Return the arguments of an operation; a chain of AND or OR is one operation: (a AND b) AND c => [a, b, c]"""
    if expression.op not in (Op.AND, Op.OR):
        return expression.arguments
    todo, chain = [*reversed(expression.arguments)], []
    while todo:
        part = todo.pop()
        if part.op is expression.op:
            todo += reversed(part.arguments)
        else:
            chain.append(part)
    return chain


def misfit(expected: str, arguments: Sequence[Node]) -> TypeError:
    """Return the error for an expression that the compiler must not write."""
    return TypeError(f"{expected}, not {', '.join(str(argument.type) for argument in arguments)}")
