"""Names in the tree of a query: dotted paths, System.Timestamp() and System.Window()."""

import re
from typing import NamedTuple

from sqlglot import exp

ANALYTIC_FUNCTIONS = ("LAG", "LAST", "ISFIRST")
"""Names of the functions that look at earlier rows; aggregates with LIMIT DURATION do, too."""
RESERVED = ("_partition", "_slice_start", "_slice_end", "_system_timestamp", "_arrival", "_row", "_unanchored")
"""Names of the columns that are added to rows."""
_OWN_COLUMNS = re.compile(
    r"@.*|slice_start|_(partition|slice|slice_start|slice_end|system_timestamp|arrival|row|pane|window_end|window_id"
    r"|unanchored|valid_from|valid_until|is_update|change_type|commit_version|commit_timestamp|[kpr]\d+)",
    re.IGNORECASE | re.DOTALL,
)
Path = tuple[str, ...]
"""A field of the body, from its root: ("site", "id") for `site.id`."""


class InputField(NamedTuple):
    """A field of the bodies of an input."""

    input: str
    """Alias of the input, as the pipeline spells it."""
    path: Path

    @property
    def name(self) -> str:
        """Its path as the query has it: site.id"""
        return ".".join(self.path)


def identifiers(node: exp.Expr) -> list[exp.Identifier] | None:
    """Return the names of a dotted path, left to right; None for anything else."""
    if isinstance(node, exp.Identifier):
        return [node]
    if isinstance(node, exp.Column):
        names = [part for part in node.parts if isinstance(part, exp.Identifier)]
        return names if len(names) == len(node.parts) else None
    if isinstance(node, exp.Dot):
        left, right = identifiers(node.this), identifiers(node.expression)
        return None if left is None or right is None else left + right
    return None


def identifier_at(offset: int, name: str) -> exp.Identifier:
    """Return a name as if it stood at a place in the query, which errors show."""
    identifier = exp.Identifier(this=name, quoted=True)
    identifier.meta["start"] = offset
    return identifier


def star_of(node: exp.Expr) -> list[exp.Identifier]:
    """Return the names before a star: [a, b] for a.b.*, none for *."""
    parts = node.parts[:-1] if isinstance(node, exp.Column) else []
    return [part for part in parts if isinstance(part, exp.Identifier)]


def is_system_timestamp(node: exp.Expr) -> bool:
    """Return whether a node is System.Timestamp() or System.Timestamp, ignoring case."""
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Anonymous):
        return _is_system_call(node, "timestamp")
    names = [(name.name.lower(), name.quoted) for name in identifiers(node) or []]
    return names == [("system", False), ("timestamp", False)]


def is_window_id(node: exp.Expr) -> bool:
    """Return whether a node is System.Window().Id, ignoring case."""
    if not isinstance(node, exp.Dot) or not is_system_window(node.this):
        return False
    return isinstance(node.expression, exp.Identifier) and node.expression.name.lower() == "id"


def is_system_window(node: exp.Expr) -> bool:
    """Return whether a node is System.Window(), ignoring case."""
    return isinstance(node, exp.Dot) and _is_system_call(node, "window")


def can_name_field(name: str) -> bool:
    """Return whether a query can read a field of this name at the top level of a body."""
    return bool(name) and "\n" not in name and name.lower() not in RESERVED


def can_name_column(name: str) -> bool:
    """Return whether a column of a SELECT can have this name: neither Recapture nor Delta's change feed uses it."""
    return _OWN_COLUMNS.fullmatch(name) is None


def is_analytic(node: exp.Expr) -> bool:
    """Return whether a node is the call of an analytic function, with its OVER.

    LAG(x) OVER (LIMIT DURATION(hour, 1)) is one, and so is AVG(x) OVER (LIMIT DURATION(hour, 1)).
    """
    if isinstance(node, exp.Window):
        return call_name(node.this) in ANALYTIC_FUNCTIONS or bool(node.args.get("duration") and call_name(node.this))
    return call_name(node) in ANALYTIC_FUNCTIONS


def whole_number(node: exp.Expr) -> int | None:
    """Return the value of an integer literal, which may have a sign; None for anything else."""
    sign, digits = (-1, node.this) if isinstance(node, exp.Neg) else (1, node)
    is_whole = isinstance(digits, exp.Literal) and not digits.is_string and digits.name.isdecimal()
    return sign * int(digits.name) if is_whole else None


def call_name(node: exp.Expr) -> str:
    """Return the name of a call in capitals; empty for anything else."""
    return str(node.this).upper() if isinstance(node, exp.Anonymous) else ""


def _is_system_call(node: exp.Dot, name: str) -> bool:
    call, names = node.expression, identifiers(node.this)
    is_system = [(part.name.lower(), part.quoted) for part in names or []] == [("system", False)]
    return is_system and call_name(call) == name.upper() and not call.expressions
