"""Scalar expressions as values: each is an operation with its arguments and constants, and has no SQL."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from recapture.model import AsaType
from recapture.query.plan.operations import Op

Constant: TypeAlias = bool | int | float | str | tuple[str, ...] | None
"""What an operation has besides its arguments."""
_Part: TypeAlias = tuple[Op, tuple[int, ...], tuple[Constant, ...]]
"""An operation, the places of its arguments in a list of parts, and its constants."""


class Expr:
    """An expression over one row. It is immutable, and expressions may share parts.

    Expressions are compared by value. The hash of each is computed once, from those of its arguments.
    """

    __slots__ = ("__weakref__", "_hash", "arguments", "constants", "op")

    op: Op
    arguments: tuple["Expr", ...]
    constants: tuple[Constant, ...]

    def __init__(self, op: Op, arguments: Sequence["Expr"] = (), constants: Sequence[Constant] = ()) -> None:
        self.op = op
        self.arguments = tuple(arguments)
        self.constants = tuple(constants)
        self._hash = hash((op, self.arguments, self.constants))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Expr):
            return NotImplemented
        # No recursion: a long chain of operators is deep.
        todo, seen = [(self, other)], set()
        while todo:
            left, right = todo.pop()
            if left is right or (id(left), id(right)) in seen:
                continue
            if (left._hash, left.op, left.constants) != (right._hash, right.op, right.constants):
                return False
            seen.add((id(left), id(right)))
            todo += zip(left.arguments, right.arguments, strict=True)
        return True

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Callable[[list[_Part]], "Expr"], tuple[list[_Part]]]:
        # Without recursion, and without the hash: another process hashes strings in another way.
        places: dict[Expr, int] = {}
        parts: list[_Part] = []
        for part in reversed([*walk(self)]):
            if part not in places:
                places[part] = len(parts)
                parts.append((part.op, tuple(places[argument] for argument in part.arguments), part.constants))
        return _from_parts, (parts,)

    @property
    def is_column(self) -> bool:
        """Whether it is a column of the row: not a field of a struct."""
        return self.op is Op.COLUMN and self.constants[1] is None

    @property
    def name(self) -> str:
        """Name of a column or of a field."""
        assert self.op is Op.COLUMN
        return str(self.constants[0])

    def __repr__(self) -> str:
        """Return the expression for readers: add(temperature, 1.5)"""
        texts: dict[int, str] = {}
        for part in reversed([*walk(self)]):
            if id(part) not in texts:
                texts[id(part)] = part._text([texts[id(argument)] for argument in part.arguments])
        return texts[id(self)]

    def _text(self, arguments: Sequence[str]) -> str:
        match self.op:
            case Op.COLUMN:
                return ".".join(str(name) for name in reversed(self.constants) if name is not None)
            case Op.STRING | Op.BIGINT | Op.DOUBLE:
                return repr(self.constants[0])
            case Op.BIT:
                return str(self.constants[0]).lower()
            case Op.NULL:
                return "null"
        constants = f"[{', '.join(map(str, self.constants))}]" if self.constants else ""
        return f"{self.op}{constants}({', '.join(arguments)})"


def _from_parts(parts: list[_Part]) -> Expr:
    expressions: list[Expr] = []
    for op, places, constants in parts:
        expressions.append(Expr(op, [expressions[place] for place in places], constants))
    return expressions[-1]


NULL = Expr(Op.NULL)
TRUE, FALSE = Expr(Op.BIT, (), (True,)), Expr(Op.BIT, (), (False,))


def call(op: Op, *arguments: Expr) -> Expr:
    """Return an operation without constants."""
    return Expr(op, arguments)


def column(name: str, qualifier: str | None = None) -> Expr:
    """Return a column of the row, or a field of the column `qualifier`."""
    return Expr(Op.COLUMN, (), (name, qualifier))


def string(text: str) -> Expr:
    """Return a string literal."""
    return Expr(Op.STRING, (), (text,))


def bigint(number: int) -> Expr:
    """Return a bigint literal."""
    return Expr(Op.BIGINT, (), (number,))


def double(number: float) -> Expr:
    """Return the literal of a float that is not negative."""
    return Expr(Op.DOUBLE, (), (number,))


def failure(message: str) -> Expr:
    """Return the expression that stops the run with a message; it fits any type."""
    return Expr(Op.FAIL, (), (message,))


def shifted(ticks: Expr, number: int) -> Expr:
    """Return a bigint plus a number, which may be negative: x, -5 => subtract(x, 5)"""
    return call(Op.ADD if number >= 0 else Op.SUBTRACT, ticks, bigint(abs(number)))


def cast_as(value: Expr, to: AsaType, lenient: bool = False) -> Expr:
    """Return the CAST between types that need no rules of ASA's own; see Op.CAST."""
    return Expr(Op.CAST, (value,), (to, lenient))


def case_when(branches: Sequence[tuple[Expr, Expr]], default: Expr) -> Expr:
    """Return a CASE: [(c, x)], y => case(c, x, y)"""
    return call(Op.CASE, *(part for branch in branches for part in branch), default)


def struct(fields: Sequence[tuple[str, Expr]]) -> Expr:
    """Return a struct of named fields."""
    return Expr(Op.STRUCT, [value for _, value in fields], (tuple(name for name, _ in fields),))


def walk(expression: Expr) -> Iterator[Expr]:
    """Yield an expression and its parts, each before its own parts."""
    todo = [expression]
    while todo:
        part = todo.pop()
        yield part
        todo += reversed(part.arguments)


def size(expression: Expr) -> int:
    """Return the number of the parts of an expression, itself included."""
    return sum(1 for _ in walk(expression))


def conjuncts(condition: Expr) -> Iterator[Expr]:
    """Yield the conditions that AND connects, in order."""
    remaining = [condition]
    while remaining:
        part = remaining.pop()
        if part.op is Op.AND:
            remaining += reversed(part.arguments)
        else:
            yield part


def columns_of(expression: Expr) -> dict[str, None]:
    """Return the names of the columns that an expression reads, in order; for a field, that of its struct."""
    read = (part for part in walk(expression) if part.op is Op.COLUMN)
    return dict.fromkeys(part.name if part.is_column else str(part.constants[1]) for part in read)


def user_call(name: str, arguments: Sequence[Expr]) -> Expr:
    """Return the value that a function in Python gives; its error stops the run."""
    return call(Op.RESULT, Expr(Op.USER_CALL, arguments, [name]))


def user_calls(expression: Expr) -> list[Expr]:
    """Return the different calls of functions in Python, each before the calls among its arguments."""
    return list(dict.fromkeys(part for part in walk(expression) if part.op is Op.USER_CALL))


def replaced(expression: Expr, parts: Mapping[Expr, Expr]) -> Expr:
    """Return an expression with some parts replaced: add(x, f(y)), {f(y): z} => add(x, z)"""
    written = dict(parts)
    todo = [expression]
    while todo:
        part = todo[-1]
        missing = [argument for argument in part.arguments if argument not in written] if part not in written else []
        todo += missing
        if not missing:
            todo.pop()
            if part not in written:
                arguments = [written[argument] for argument in part.arguments]
                written[part] = Expr(part.op, arguments, part.constants) if arguments else part
    return written[expression]
