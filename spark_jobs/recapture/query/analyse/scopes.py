"""What names mean in a row, in the argument of an aggregate, and in a group of a window."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from sqlglot import exp

from recapture.model import AsaType
from recapture.query.analyse.aggregate_calls import AggregateCall
from recapture.query.analyse.analytic_calls import AnalyticCall
from recapture.query.analyse.expressions import Expressions, NameScope
from recapture.query.analyse.kinds import aggregated
from recapture.query.analyse.quoted_strings import quoted_string
from recapture.query.analyse.relations import From
from recapture.query.analyse.tokens import key_of, read_from
from recapture.query.analyse.user_functions import javascript_call, javascript_record
from recapture.query.analyse.values import Value
from recapture.query.analyse.whole_rows import property_of_row, row_of, whole_row
from recapture.query.parse.names import Path, call_name, identifiers, is_analytic, is_system_timestamp, is_system_window
from recapture.query.parse.user_functions import USER_FUNCTION, is_user_aggregate
from recapture.query.plan.aggregates import AGGREGATES, Aggregate, AggregateFunction
from recapture.query.plan.expressions import Expr, column
from recapture.query.plan.grouping import WINDOW_END, WINDOW_ID


@dataclass
class RowScope(NameScope):
    """Names in a row of a FROM."""

    from_clause: From
    no_aggregate: ClassVar[str] = "needs GROUP BY with a window, and is supported only in SELECT and HAVING"
    no_timestamp: ClassVar[str | None] = None
    """Why there is no System.Timestamp(); None if there is one."""

    def named_value(self, node: exp.Expr) -> Value | None:
        quoted = quoted_string(self.from_clause, node)
        return quoted if quoted is not None else self.from_clause.field(node)

    def system_timestamp(self, node: exp.Expr) -> Value:
        if self.no_timestamp is not None:
            raise self.from_clause.source.error(node, self.no_timestamp)
        return Value(column("_system_timestamp"), AsaType.DATETIME)

    def window_id(self, node: exp.Expr) -> Value:
        message = "System.Window() is supported only in SELECT and HAVING of a query with a window"
        raise self.from_clause.source.error(node, message)

    def aggregate(self, node: exp.Expr, call: exp.Anonymous, orderings: Sequence[exp.Ordered]) -> Value:
        is_user_defined = is_user_aggregate(node)
        word = node.meta[USER_FUNCTION].called_as if is_user_defined else self.from_clause.source.word(node)
        raise self.from_clause.source.error(node, f"{word} is an aggregate: it {self.no_aggregate}")

    def analytic(self, node: exp.Expr) -> Value:
        from_clause = self.from_clause
        seen = from_clause.unjoined or from_clause
        inside = Expressions(seen.source, seen.types, EarlierRowScope(seen, from_clause))
        return from_clause.relations[0].numbered(AnalyticCall(inside, seen, node).compile())

    def metadata(self, node: exp.Anonymous) -> Value:
        source, arguments = self.from_clause.source, node.expressions
        if len(arguments) != 2 or not arguments[1].is_string:
            raise source.error(node, "write GetMetadataPropertyValue(input, '[EventHub].[SequenceNumber]')")
        names = identifiers(arguments[0]) or []
        named = self.from_clause.named(names[0].name) if len(names) == 1 else None
        if named is None:
            known = " or ".join(named.name for named in self.from_clause.relations)
            raise source.error(arguments[0], f"the first argument is the input as FROM names it: {known}")
        return named.metadata(arguments[1].name, arguments[1])

    def whole_row(self, node: exp.Expr) -> Expr | None:
        return whole_row(self.from_clause, node)

    def property_of_row(self, node: exp.Expr, name: Value) -> Value | None:
        return property_of_row(self.from_clause, node, name)


class OnScope(RowScope):
    """Names in ON of a JOIN."""

    no_timestamp = "System.Timestamp() is that of the joined row, which ON decides: use DATEDIFF with the names of FROM"


class ArgumentScope(RowScope):
    """Names in the argument of an aggregate."""

    no_aggregate: ClassVar[str] = "cannot be inside another one: aggregate in a step of WITH, then aggregate its rows"
    no_timestamp = "System.Timestamp() is the window's end here, one for all rows: use it outside of aggregates"


@dataclass
class EarlierRowScope(RowScope):
    """Names in an analytic function, which sees the rows of FROM as they are before APPLY and JOIN."""

    whole: From
    """FROM with APPLY and JOIN."""
    no_aggregate: ClassVar[str] = "cannot be inside an analytic function: aggregate in a step of WITH"

    def named_value(self, node: exp.Expr) -> Value | None:
        names = identifiers(node)
        if names and quoted_string(self.whole, node) is None:
            self.whole.require_seen_by_analytics(names)
        return super().named_value(node)

    def analytic(self, node: exp.Expr) -> Value:
        message = "an analytic function cannot be inside another one: name the inner one in a step of WITH"
        raise self.from_clause.source.error(node, message)


@dataclass
class GroupScope(NameScope):
    """Names in a group of a window: keys, aggregates and the window itself."""

    from_clause: From
    row: Expressions
    keys: list[tuple[Value, exp.Expr]] = field(default_factory=list)
    aggregates: dict[Aggregate, int] = field(default_factory=dict)
    has_timestamp_key: bool = False
    """Whether System.Timestamp() is a key next to a window."""
    select_columns: dict[str, Value] = field(default_factory=dict)
    """Columns of SELECT by lower-case name, which HAVING may use."""

    def __post_init__(self) -> None:
        self.source, self.types = self.from_clause.source, self.from_clause.types
        self._key_indexes: dict[Expr, int] = {}
        """Index of each key of GROUP BY."""
        self._key_names: set[Path] = set()

    def add_key(self, node: exp.Expr) -> None:
        """Add a key of GROUP BY, unless it is there. Raise DefinitionError for literals, records and arrays.

        UPPER(k) => keys [upper(`k`)]
        """
        value = self.row.value(node)
        if value.type is None or node.find(exp.Literal) is node:
            raise self.source.error(node, "GROUP BY takes fields and expressions of them")
        if value.type in (AsaType.RECORD, AsaType.ARRAY):
            raise self.source.error(node, f"GROUP BY cannot take a {value.type}: take its properties")
        if self.add_partition_key(value, node):
            self._key_names.add(_lower_names(node))

    def add_partition_key(self, value: Value, node: exp.Expr) -> bool:
        """Add a key that SELECT need not name, and return whether it is new."""
        if key_of(value) in self._key_indexes:
            return False
        self._key_indexes[key_of(value)] = len(self.keys)
        self.keys.append((value, node))
        return True

    def key_of(self, node: exp.Expr) -> int:
        """Return the index of a key. Raise DefinitionError if GROUP BY does not have it."""
        index = self._key_indexes.get(key_of(self.row.value(node)))
        if index is None:
            raise self.source.error(node, f"`{self.source.word(node)}` is in PARTITION BY but not in GROUP BY: add it")
        return index

    def named_value(self, node: exp.Expr) -> Value | None:
        """Return a key's column, or a column that SELECT names: UPPER(k) => `_k0`; None for anything else."""
        if isinstance(node, exp.Literal | exp.Null) or _has_group_parts(node):
            return None
        plain = node.unnest()
        selected = self._select_column(plain)
        if selected is not None:
            return selected
        value = self._of_row(plain)
        index = self._key_indexes.get(key_of(value))
        if index is not None:
            kind = None
            if value.kind is not None:
                kind = self._result(Aggregate(AggregateFunction.MIN, value.kind, AsaType.STRING))
            return read_from(replace(value, kind=kind), column(f"_k{index}"))
        quoted = quoted_string(self.from_clause, plain)
        if quoted is not None:
            if quoted.text is None:
                message = "write a string in single quotes, '…': an event may have a field of this name"
                raise self.source.error(plain, message)
            return quoted
        if self.from_clause.field(plain) is not None:
            name = ".".join(identifier.name for identifier in identifiers(plain) or [])
            raise self.source.error(plain, f"`{name}` is neither in GROUP BY nor in an aggregate")
        return None

    def _of_row(self, node: exp.Expr) -> Value:
        """Return the value of a node in a row. In HAVING "a b" > 1, a name that GROUP BY has is not a string."""
        if isinstance(node, exp.Column) and _lower_names(node) in self._key_names:
            key = self.from_clause.field(node)
            assert key is not None
            return key
        return self.row.value(node)

    def _select_column(self, node: exp.Expr) -> Value | None:
        """Return the column that SELECT names like this, unless it is the name of a key."""
        names = _lower_names(node)
        return self.select_columns.get(names[0]) if len(names) == 1 and names not in self._key_names else None

    def system_timestamp(self, node: exp.Expr) -> Value:
        if self.has_timestamp_key:
            reason = "System.Timestamp() is a key of GROUP BY here, next to a window"
            advice = "to use the key, name it in a step of WITH, and group by this name"
            raise self.source.error(node, f"{reason}, so it could be the key or the window's end: {advice}")
        return Value(column(WINDOW_END), AsaType.DATETIME)

    def window_id(self, node: exp.Expr) -> Value:
        return Value(column(WINDOW_ID), AsaType.STRING)

    def analytic(self, node: exp.Expr) -> Value:
        advice = "make it a key, aggregate it, or write it in a step that reads the groups"
        raise self.source.error(node, f"an analytic function is computed for each row, before GROUP BY: {advice}")

    def metadata(self, node: exp.Anonymous) -> Value:
        raise self.source.error(node, "this is neither in GROUP BY nor in an aggregate")

    def property_of_row(self, node: exp.Expr, name: Value) -> Value | None:
        if row_of(self.from_clause, node) is not None:
            raise self.source.error(node, "a property of a whole row is neither in GROUP BY nor in an aggregate")
        return None

    def aggregate(self, node: exp.Expr, call: exp.Anonymous, orderings: Sequence[exp.Ordered]) -> Value:
        inside = Expressions(self.source, self.types, ArgumentScope(self.from_clause))
        if is_user_aggregate(node):
            return self._user_defined(node, inside)
        aggregate, argument = AggregateCall(inside, self.from_clause, node, call, orderings).compile()
        return aggregated(aggregate, argument, self._result)

    def _user_defined(self, node: exp.Expr, inside: Expressions) -> Value:
        """Return the value of uda.NAME(…): its function, called with the events of a group and the group's name."""
        [argument] = inside.user_arguments(node)
        events = Aggregate(AggregateFunction.USER_DEFINED, argument, ordered=self.from_clause.ordered)
        return javascript_call(node.meta[USER_FUNCTION], [self._result(events), self._name()])

    def _name(self) -> Expr:
        """Return a record that names a group in errors: the window's end, and the keys."""
        columns = {"window end": Value(column(WINDOW_END), AsaType.DATETIME)}
        for number, (key, node) in enumerate(self.keys):
            name = ".".join(part.name for part in identifiers(node) or [])
            unique = f"key {number + 1}" if not name or name in columns else name
            columns[unique] = read_from(replace(key, kind=None), column(f"_k{number}"))
        return javascript_record(list(columns.items()))

    def _result(self, aggregate: Aggregate) -> Expr:
        """Return the column of an aggregate's result."""
        return column(f"_r{self.aggregates.setdefault(aggregate, len(self.aggregates))}")


def _lower_names(node: exp.Expr) -> Path:
    """Return the names of a dotted path in lower case; nothing for any other expression."""
    return tuple(name.name.lower() for name in identifiers(node) or [])


def _has_group_parts(node: exp.Expr) -> bool:
    """Return whether a part of an expression exists in a group only: an aggregate or the window."""
    return any(
        is_system_timestamp(part) or is_system_window(part) or call_name(part) in AGGREGATES or is_user_aggregate(part)
        for part in node.walk(prune=is_analytic)
    )
