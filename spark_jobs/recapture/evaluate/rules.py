"""Rules that most operations of the plan follow: they find the type of the result, and choose the kernel."""

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from recapture.evaluate.frames import Kernel, Node
from recapture.evaluate.lowering import BIGINT, FLOAT, STRING, Lowering, Rule, misfit
from recapture.query.plan.expressions import Constant

Constants = tuple[Constant, ...]


class Form(NamedTuple):
    """One form of an operation. Its kernel gets the constants of the operation as its parameters."""

    takes: Sequence[pa.DataType]
    """Types of the arguments."""
    gives: pa.DataType
    kernel: Kernel
    raises: bool = False
    """Whether it may raise an error of its own."""


def one_of(*forms: Form) -> Rule:
    """Return the rule that chooses the first form whose types the arguments have."""

    def rule(lowering: Lowering, constants: Constants, arguments: list[Node]) -> Node:
        for form in forms:
            fitting = lowering.fitting(arguments, form.takes)
            if fitting is not None:
                return lowering.node(form.kernel, fitting, form.gives, constants, form.raises)
        raise misfit(" or ".join(str([str(type_) for type_ in form.takes]) for form in forms), arguments)

    return rule


def of(takes: Sequence[pa.DataType], gives: pa.DataType, kernel: Kernel, raises: bool = False) -> Rule:
    """Return the rule of an operation with one form."""
    return one_of(Form(takes, gives, kernel, raises))


def of_numbers(exact: Kernel, floating: Kernel, count: int, raises: bool = True) -> Rule:
    """Return the rule of an operation on bigints or on floats. That on bigints may overflow."""
    return one_of(Form([BIGINT] * count, BIGINT, exact, raises), Form([FLOAT] * count, FLOAT, floating))


def of_bigints(kernel: Kernel, count: int, raises: bool = False) -> Rule:
    return of([BIGINT] * count, BIGINT, kernel, raises)


def of_float(kernel: Kernel) -> Rule:
    return of([FLOAT], FLOAT, kernel)


def of_string(kernel: Kernel, gives: pa.DataType = STRING) -> Rule:
    return of([STRING], gives, kernel)


def of_any_number(type_: pa.DataType, gives: pa.DataType, kernel: Kernel) -> Rule:
    """Return the rule of an operation on any number of arguments of one type."""

    def rule(lowering: Lowering, constants: Constants, arguments: list[Node]) -> Node:
        return of([type_] * len(arguments), gives, kernel)(lowering, constants, arguments)

    return rule


def or_refused(takes: Sequence[pa.DataType], gives: pa.DataType, kernel: Kernel) -> Rule:
    """Return the rule of an operation whose last argument, which may be missing, stops the run."""

    def rule(lowering: Lowering, constants: Constants, arguments: list[Node]) -> Node:
        types = [*takes, *[gives] * (len(arguments) - len(takes))]
        return of(types, gives, kernel)(lowering, constants, arguments)

    return rule
