"""The window of a GROUP BY, read from its call (time model, section 4)."""

from sqlglot import exp

from spark_jobs.query.source import Source
from spark_jobs.time_model.ticks import TICKS_PER_MICROSECOND, TICKS_PER_MILLISECOND, TICKS_PER_SECOND
from spark_jobs.time_model.windows import LARGEST_SIZE, HoppingWindow

_TUMBLING = ("tumblingwindow", "tumbling")
_HOPPING = ("hoppingwindow", "hopping")
_OTHERS = ("sliding", "slidingwindow", "session", "sessionwindow", "snapshot", "snapshotwindow", "windows", "window")

_UNITS = {
    name: ticks
    for names, ticks in (
        (("day", "days", "dd", "d"), 86_400 * TICKS_PER_SECOND),
        (("hour", "hours", "hh"), 3_600 * TICKS_PER_SECOND),
        (("minute", "minutes", "mi", "n"), 60 * TICKS_PER_SECOND),
        (("second", "seconds", "ss", "s"), TICKS_PER_SECOND),
        (("millisecond", "milliseconds", "ms"), TICKS_PER_MILLISECOND),
        (("microsecond", "microseconds", "mcs"), TICKS_PER_MICROSECOND),
    )
    for name in names
}
_FORMS = "write TumblingWindow(minute, 5) or HoppingWindow(minute, 10, 5)"


def is_window(node: exp.Expr) -> bool:
    """Whether a node is a call that ASA knows as a window, supported or not."""
    return isinstance(node, exp.Func) and _name(node) in (*_TUMBLING, *_HOPPING, *_OTHERS)


def window_of(source: Source, call: exp.Expr) -> HoppingWindow:
    """The window of a call: Tumbling(unit, size[, offset]) or Hopping(unit, size, hop[, offset]), each also as …Window.

    The sizes are whole numbers, 1 hop at least, hop <= size <= 7 days; the offset may be negative.
    """
    name = _name(call)
    tumbling = name in _TUMBLING
    if not tumbling and name not in _HOPPING:
        raise source.refuse(call, f"{source.word(call)} is not supported yet: {_FORMS}")
    arguments = call.expressions
    fewest = 2 if tumbling else 3
    if not fewest <= len(arguments) <= fewest + 1:
        parts = "unit, size[, offset]" if tumbling else "unit, size, hop[, offset]"
        raise source.refuse(call, f"{source.word(call)} takes {parts}: {_FORMS}")
    unit = _unit(source, arguments[0])
    size = unit * _number(source, arguments[1])
    hop = size if tumbling else unit * _number(source, arguments[2])
    offset = unit * _number(source, arguments[fewest]) if len(arguments) > fewest else 0
    if not 0 < size <= LARGEST_SIZE:
        raise source.refuse(arguments[1], "the size of a window is more than 0 and at most 7 days")
    if not 0 < hop <= size:
        raise source.refuse(arguments[2], "the hop of a window is more than 0 and at most its size")
    return HoppingWindow(size=size, hop=hop, offset=offset)


def _name(call: exp.Expr) -> str:
    return str(call.this if isinstance(call, exp.Anonymous) else call.key).lower()


def _unit(source: Source, node: exp.Expr) -> int:
    ticks = _UNITS.get(node.name.lower()) if isinstance(node, exp.Column | exp.Var) and "." not in node.sql() else None
    if ticks is None:
        raise source.refuse(
            node, "a window's unit is day, hour, minute, second, millisecond or microsecond, then its size: " + _FORMS
        )
    return ticks


def _number(source: Source, node: exp.Expr) -> int:
    sign, digits = (-1, node.this) if isinstance(node, exp.Neg) else (1, node)
    if not (isinstance(digits, exp.Literal) and not digits.is_string and digits.name.isdecimal()):
        raise source.refuse(node, "the numbers of a window are whole numbers")
    return sign * int(digits.name)
