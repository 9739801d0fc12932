"""The windows of a GROUP BY, read from their calls (docs/time-model.md, section 4)."""

from dataclasses import dataclass

from sqlglot import exp

from recapture.query.parse.date_parts import SHORT_NAMES, TICKS
from recapture.query.parse.names import call_name, is_system_timestamp, whole_number
from recapture.query.parse.source import Source, require_only
from recapture.time_model.windows import (
    LARGEST_SIZE,
    HoppingWindow,
    SessionWindow,
    SlidingWindow,
    SnapshotWindow,
    Window,
)

_KINDS = {
    name + ending: kind
    for name, kind in (("TUMBLING", "tumbling"), ("HOPPING", "hopping"), ("SLIDING", "sliding"), ("SESSION", "session"))
    for ending in ("", "WINDOW")
}
_FORMS = {
    "tumbling": "TumblingWindow(minute, 5) or TumblingWindow(Duration(minute, 5), Offset(second, -1))",
    "hopping": "HoppingWindow(minute, 10, 5) or HoppingWindow(Duration(minute, 10), Hop(minute, 5))",
    "sliding": "SlidingWindow(minute, 5) or SlidingWindow(Duration(minute, 5))",
    "session": "SessionWindow(minute, 5, 60) or SessionWindow(Timeout(minute, 5), MaxDuration(hour, 1))",
}
_PARTS = {
    "tumbling": ("DURATION", "OFFSET"),
    "hopping": ("DURATION", "HOP", "OFFSET"),
    "sliding": ("DURATION",),
    "session": ("TIMEOUT", "MAXDURATION"),
}
_OPTIONAL = "OFFSET"
_UNITS = ("day", "hour", "minute", "second", "millisecond", "microsecond")
UNITS = {spelling: TICKS[unit] for unit in _UNITS for spelling in (unit, f"{unit}s", *SHORT_NAMES[unit])}
"""Ticks of a unit of time, by every spelling: the short names of date parts, and plurals."""


@dataclass(frozen=True)
class WindowCall:
    """One window of a GROUP BY."""

    window: Window
    id: str | None
    """Its name in Windows(Window('id', …), …); None without one."""
    partition_by: tuple[exp.Expr, ...]
    """Keys of SessionWindow(…) OVER (PARTITION BY …)."""


def is_window(node: exp.Expr) -> bool:
    """Return whether a node is a call of a window in ASA."""
    inner = node.this if isinstance(node, exp.Window) else node
    return call_name(inner) in (*_KINDS, "WINDOWS", "WINDOW")


def windows_of(source: Source, node: exp.Expr) -> list[WindowCall]:
    """Return the window of a call, or those of Windows(…).

    TumblingWindow(minute, 5) => WindowCall(HoppingWindow(size=3_000_000_000, hop=3_000_000_000))

    Raise DefinitionError unless sizes and hops are integers, more than 0 and at most 7 days, or for sessions
    0 < timeout <= maxDuration <= 7 days. An offset may be negative.
    """
    if call_name(node) != "WINDOWS":
        return [_window(source, node, None)]
    if not node.expressions:
        raise source.error(node, "Windows() names no window: write Windows(Window('a', TumblingWindow(minute, 5)), …)")
    calls = []
    for call in node.expressions:
        if call_name(call) != "WINDOW":
            calls.append(_window(source, call, None))
            continue
        parts = call.expressions
        if len(parts) != 2 or not parts[0].is_string:
            raise source.error(call, "write Window('id', TumblingWindow(minute, 5)), with the id in quotes")
        calls.append(_window(source, parts[1], parts[0].name))
    ids = [window.id and window.id.lower() for window in calls]
    if None in ids and any(ids):
        raise source.error(node, "either all windows of Windows(…) have an id, Window('id', …), or none has")
    if any(ids) and len(set(ids)) < len(ids):
        raise source.error(node, "the ids of Windows(…) must differ in more than letter case")
    return calls


def _window(source: Source, node: exp.Expr, id_: str | None) -> WindowCall:
    if is_system_timestamp(node):
        return WindowCall(SnapshotWindow(), id_, ())
    call, partition_by = node, ()
    if isinstance(node, exp.Window):
        require_only(source, node, "this", "partition_by", "over")
        call, partition_by = node.this, tuple(node.args.get("partition_by") or ())
    kind = _KINDS.get(call_name(call))
    if kind is None:
        raise source.error(node, f"a window is expected here, such as {_FORMS['tumbling']}")
    if isinstance(node, exp.Window) and kind != "session":
        raise source.error(node, "OVER (PARTITION BY …) belongs to SessionWindow; other windows take keys in GROUP BY")
    sizes = _sizes(source, call, kind)
    return WindowCall(_checked(source, kind, sizes), id_, partition_by)


def _sizes(source: Source, call: exp.Expr, kind: str) -> dict[str, tuple[int, exp.Expr]]:
    """Return the ticks and the place of each part, from (unit, number, …) or from (Duration(unit, number), …)."""
    parts, arguments = _PARTS[kind], call.expressions
    if arguments and call_name(arguments[0]) in parts:
        sizes = {}
        for argument in arguments:
            name = call_name(argument)
            if name not in parts or name in sizes or len(argument.expressions) != 2:
                raise source.error(argument, f"{source.word(call)} is written {_FORMS[kind]}")
            unit, number = argument.expressions
            sizes[name] = (_unit(source, unit, kind) * _number(source, number), number)
    else:
        if not 1 <= len(arguments) - 1 <= len(parts):
            raise source.error(call, f"{source.word(call)} is written {_FORMS[kind]}")
        ticks = _unit(source, arguments[0], kind)
        numbers = arguments[1:]
        sizes = {name: (ticks * _number(source, number), number) for name, number in zip(parts, numbers, strict=False)}
    missing = [part for part in parts if part != _OPTIONAL and part not in sizes]
    if missing:
        raise source.error(call, f"{source.word(call)} lacks its {missing[0].lower()}: write {_FORMS[kind]}")
    return sizes


def _checked(source: Source, kind: str, sizes: dict[str, tuple[int, exp.Expr]]) -> Window:
    if kind == "session":
        (timeout, timeout_at), (longest, longest_at) = sizes["TIMEOUT"], sizes["MAXDURATION"]
        if not 0 < longest <= LARGEST_SIZE:
            raise source.error(longest_at, "the maxDuration of a session is more than 0 and at most 7 days")
        if not 0 < timeout <= longest:
            raise source.error(timeout_at, "the timeout of a session is more than 0 and at most its maxDuration")
        return SessionWindow(timeout, longest)
    size, size_at = sizes["DURATION"]
    if not 0 < size <= LARGEST_SIZE:
        raise source.error(size_at, "the size of a window is more than 0 and at most 7 days")
    if kind == "sliding":
        return SlidingWindow(size)
    hop, hop_at = sizes.get("HOP", (size, size_at))
    if not 0 < hop <= LARGEST_SIZE:
        raise source.error(hop_at, "the hop of a window is more than 0 and at most 7 days")
    return HoppingWindow(size, hop, sizes.get("OFFSET", (0, size_at))[0])


def _unit(source: Source, node: exp.Expr, kind: str) -> int:
    ticks = UNITS.get(node.name.lower()) if isinstance(node, exp.Column | exp.Var) and "." not in node.sql() else None
    if ticks is None:
        takes = "a window takes a unit (day, hour, minute, second, millisecond or microsecond) and then a size"
        raise source.error(node, f"{takes}: write {_FORMS[kind]}")
    return ticks


def _number(source: Source, node: exp.Expr) -> int:
    number = whole_number(node)
    if number is None:
        raise source.error(node, "the numbers of a window are integers")
    return number
