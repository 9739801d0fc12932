"""Spark SQL of several functions that this package evaluates as one operation, such as ASA's casts.

Each form is what the compiler writes for a placeholder. An expression with the same form and any value in place of the
placeholder is that operation.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

import pyarrow as pa

from recapture.evaluate import casts, float_text
from recapture.evaluate.frames import Kernel
from recapture.evaluate.syntax import Call, Lambda, Name, Syntax, parsed
from recapture.model import AsaType
from recapture.query.analyse.casts import cast
from recapture.query.analyse.values import Value
from recapture.query.lower.spark import render
from recapture.query.plan.expressions import Expr, column

_HOLE = "@@hole"
_LONG_HOLE = _HOLE * 30
"""Name of a hole that the compiler binds to a name, as it does with long values."""


@dataclass(frozen=True)
class Idiom:
    """One form."""

    form: Syntax
    argument: pa.DataType
    type: pa.DataType
    kernel: Kernel
    parameters: tuple[object, ...] = ()
    raises: bool = False


@cache
def idioms() -> Mapping[str, tuple[Idiom, ...]]:
    """Return the forms, by the name of their outermost function."""
    text, ticks = pa.string(), pa.int64()
    found: dict[str, tuple[Idiom, ...]] = {}

    def add(
        write: Callable[[Expr], Expr], argument: pa.DataType, type_: pa.DataType, kernel: Kernel, *more: bool
    ) -> None:
        for hole in (_HOLE, _LONG_HOLE):
            form = parsed(render(write(column(hole))))
            assert isinstance(form, Call)
            raises = bool(more) and not more[0]
            known = found.get(form.function, ())
            found[form.function] = (*known, Idiom(form, argument, type_, kernel, more, raises))

    def casting(source: AsaType, to: AsaType, lenient: bool = False) -> Callable[[Expr], Expr]:
        return lambda node: cast(Value(node, source), to, lenient)

    add(casting(AsaType.FLOAT, AsaType.STRING), pa.float64(), text, float_text.NET)
    add(casting(AsaType.DATETIME, AsaType.STRING), ticks, text, casts.datetime_text)
    for lenient in (False, True):
        add(casting(AsaType.STRING, AsaType.FLOAT, lenient), text, pa.float64(), casts.asa_floats, lenient)
        add(casting(AsaType.STRING, AsaType.BIT, lenient), text, pa.bool_(), casts.ASA_BIT, lenient)
        add(casting(AsaType.STRING, AsaType.DATETIME, lenient), text, ticks, casts.asa_datetimes, lenient)
    return found


def matched(expression: Call) -> tuple[Idiom, Syntax] | None:
    """Return the idiom that an expression matches, and its value; None if it matches none."""
    for idiom in idioms().get(expression.function, ()):
        values: list[Syntax] = []
        if _matches(idiom.form, expression, values):
            return idiom, values[0]
    return None


def _matches(form: Syntax, expression: Syntax, values: list[Syntax]) -> bool:
    """Return whether an expression has a form; add the value in the place of the hole to `values`."""
    match form:
        case Name((name,)) if name in (_HOLE, _LONG_HOLE):
            if values:
                return values[0] == expression
            values.append(expression)
            return True
        case Call(function, arguments):
            return (
                isinstance(expression, Call)
                and expression.function == function
                and len(expression.arguments) == len(arguments)
                and all(map(lambda one, other: _matches(one, other, values), arguments, expression.arguments))
            )
        case Lambda(parameters, body):
            return (
                isinstance(expression, Lambda)
                and expression.parameters == parameters
                and _matches(body, expression.body, values)
            )
    return form == expression
