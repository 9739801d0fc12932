"""Pieces of Spark SQL: quoted names and strings, structs, and values that are bound to a name.

Spark allows no Python function in a lambda, so that a bound value can use none. The text of each call of a Python
function is therefore marked until the whole expression is written, and `let` computes the calls beforehand.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

_OPEN, _CLOSE = "\ufdd0", "\ufdd1"
"""Around the call of a Python function; Unicode reserves these for use within a program."""
_SHORT = 120
"""SQL of up to this many characters is repeated: Spark computes equal expressions once. Longer SQL is bound to a name,
since calls within calls would grow without bound; that costs about a microsecond a row."""


def quoted_name(name: str) -> str:
    """Return a name in Spark SQL: a b => `a b`."""
    return "`" + name.replace("`", "``") + "`"


def unquoted_name(name: str) -> str:
    """Return the name that a name in Spark SQL stands for: `a b` => a b."""
    return name[1:-1].replace("``", "`")


def quoted_text(text: str) -> str:
    """Return a text literal in Spark SQL: it's => 'it\\'s'."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def named_struct(fields: Mapping[str, str]) -> str:
    """Return a struct that has these fields: y, x + 1 => named_struct('y', x + 1)"""
    return f"named_struct({', '.join(f'{quoted_text(name)}, {value}' for name, value in fields.items())})"


def let(value: str, name: str, use: Callable[[str], str]) -> str:
    """Return what `use` makes of a value that is bound to a name, within one expression.

    f(`x`), "y", lambda y: f"{y} + {y}" => transform(array(f(`x`)), `@@y` -> `@@y` + `@@y`)[0]
    """
    bound = quoted_name(f"@@{name}")
    used = use(bound)
    calls = list(_python_calls(used))
    if calls:
        calls = list(dict.fromkeys([*_python_calls(value), *calls]))
        fields = {call: f"`@@calls`.c{index}" for index, call in enumerate(calls)}
        inner = let(_replaced(value, fields), name, lambda _: _replaced(used, fields))
        struct = named_struct({f"c{index}": call for index, call in enumerate(calls)})
        return let(struct, "calls", lambda _: inner)
    return f"transform(array({value}), {bound} -> {used})[0]"


def once(value: str, name: str, use: Callable[[str], str]) -> str:
    """Return what `use` makes of a value that is computed once a row.

    `x`, "y", lambda y: f"{y} + {y}" => `x` + `x`    a long value is bound to the name, as `let` does
    """
    return use(value) if len(unmarked(value)) <= _SHORT else let(value, name, use)


def python_call(name: str, arguments: Sequence[str]) -> str:
    """Return the call of a Python function, which gives a struct of a value and an error; marked."""
    return f"{_OPEN}{quoted_name(name)}({', '.join(arguments)}){_CLOSE}"


def unmarked(sql: str) -> str:
    """Return SQL without the marks of `python_call`."""
    return sql.replace(_OPEN, "").replace(_CLOSE, "")


def _python_calls(sql: str) -> Iterator[str]:
    """Yield the different marked calls that are in no other call, in order."""
    yield from dict.fromkeys(sql[start:end] for start, end in _spans(sql))


def _spans(sql: str) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each marked call that is in no other call."""
    start = sql.find(_OPEN)
    while start >= 0:
        end, depth = start + 1, 1
        while depth:
            depth += {_OPEN: 1, _CLOSE: -1}.get(sql[end], 0)
            end += 1
        yield start, end
        start = sql.find(_OPEN, end)


def _replaced(sql: str, fields: Mapping[str, str]) -> str:
    """Return SQL with other text in the places of marked calls."""
    parts, last = [], 0
    for start, end in _spans(sql):
        parts += [sql[last:start], fields[sql[start:end]]]
        last = end
    return "".join([*parts, sql[last:]])
