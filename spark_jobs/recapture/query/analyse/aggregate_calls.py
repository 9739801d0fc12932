"""Calls of aggregates: the arguments that each takes, and their types."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from sqlglot import exp

from recapture.model import AsaType
from recapture.query.analyse.expressions import Expressions
from recapture.query.analyse.json_text import json_of
from recapture.query.analyse.refusals import ONLY_COUNT_DISTINCT
from recapture.query.analyse.relations import From
from recapture.query.analyse.tokens import key_of
from recapture.query.analyse.values import Value
from recapture.query.parse.names import call_name, whole_number
from recapture.query.parse.source import require_only
from recapture.query.plan.aggregates import COLLECTIONS, PERCENTILES, Aggregate, AggregateFunction, Ordering

_FINEST_SHARE = 10**9
_MOST_COLLECTED = 2**31 - 1


@dataclass(frozen=True)
class AggregateCall:
    """One call of an aggregate."""

    inside: Expressions
    """Compiler of its arguments."""
    from_clause: From
    node: exp.Expr
    """The call with its OVER, if it has one."""
    call: exp.Anonymous
    """The call without OVER."""
    orderings: Sequence[exp.Ordered]
    """Expressions of OVER (ORDER BY …)."""

    def compile(self) -> tuple[Aggregate, Value | None]:
        """Return the aggregate, and its argument; None for whole rows.

        Raise DefinitionError for arguments that it does not take.
        """
        if self.function in PERCENTILES:
            return self._percentile()
        if self.function in COLLECTIONS:
            return self._collection()
        source, arguments = self.inside.source, self.call.expressions
        if self.function is AggregateFunction.COUNT and all(map(self._is_row, arguments[:1])) and len(arguments) <= 1:
            return Aggregate(self.function), None
        if len(arguments) != 1:
            more = "; COUNT(*) counts events" if self.function is AggregateFunction.COUNT else ""
            raise source.error(self.node, f"{self.function} takes one argument{more}")
        argument = arguments[0]
        if isinstance(argument, exp.Star):
            require_only(source, argument)
            if self.function is not AggregateFunction.COUNT:
                raise source.error(argument, f"{self.function}(*) is not supported: {self.function} takes one argument")
            return Aggregate(self.function), None
        if isinstance(argument, exp.Distinct):
            if self.function is not AggregateFunction.COUNT or len(argument.expressions) != 1:
                raise source.error(argument, ONLY_COUNT_DISTINCT)
            if self._is_row(argument.expressions[0]):
                raise source.error(argument, "COUNT(DISTINCT …) of whole rows is not supported: name a column")
            return self._of(self._value(argument.expressions[0]), function=AggregateFunction.COUNT_DISTINCT)
        if self.function is AggregateFunction.COUNT:
            return self._of(self._value(argument))
        if self.function in (AggregateFunction.MIN, AggregateFunction.MAX):
            text = self._cast_text(argument)
            return self._of(text if text is not None else self._ordinal(argument))
        return self._of(self._number(argument), ordered=self.from_clause.ordered)

    @property
    def function(self) -> AggregateFunction:
        """Aggregate that is called; COUNT for COUNT(DISTINCT x) too."""
        return AggregateFunction(call_name(self.call))

    def _is_row(self, node: exp.Expr) -> bool:
        """Return whether an argument of COUNT is the name in FROM, which stands for the whole row."""
        named = self.from_clause.row_named(node)
        if named is None:
            return False
        if self.from_clause.joins:
            raise self.inside.source.error(node, f"next to JOIN, name a column of `{named.name}`; COUNT(*) counts rows")
        return True

    def _of(
        self,
        value: Value,
        orderings: tuple[Ordering, ...] = (),
        *,
        function: AggregateFunction | None = None,
        share: Fraction = Fraction(0),
        limit: int = 0,
        ordered: bool = True,
    ) -> tuple[Aggregate, Value]:
        """Return the aggregate of a value, and the value. What Collect and CollectTop take of a row is JSON."""
        function = function or self.function
        is_json = function in (AggregateFunction.COLLECT, AggregateFunction.COLLECTTOP)
        argument = json_of(value) if is_json else key_of(value)
        return Aggregate(function, argument, value.type, orderings, share, limit, ordered), value

    def _percentile(self) -> tuple[Aggregate, Value]:
        form = f"write {self.function}(0.95) OVER (ORDER BY x)"
        arguments = self.call.expressions
        number = arguments[0] if len(arguments) == 1 else None
        if not (isinstance(number, exp.Literal) and not number.is_string) or len(self.orderings) != 1:
            raise self.inside.source.error(self.node, form)
        share = Fraction(number.name)
        if share.denominator > _FINEST_SHARE:
            raise self.inside.source.error(number, "a percentile has 9 decimals at most")
        if not 0 <= share <= 1:
            raise self.inside.source.error(number, f"a percentile is a number from 0 to 1: {form}")
        value = self._number(self.orderings[0].this)
        return self._of(value, (_ordering(value, self.orderings[0]),), share=share)

    def _collection(self) -> tuple[Aggregate, Value]:
        source, arguments, limit = self.inside.source, self.call.expressions, 0
        if (self.function is AggregateFunction.COLLECT) == bool(self.orderings):
            form = "Collect() takes no OVER" if self.orderings else f"write {self.function}(…) OVER (ORDER BY x DESC)"
            raise source.error(self.node, form)
        if self.function is AggregateFunction.COLLECTTOP:
            number = whole_number(arguments[0]) if arguments else None
            if number is None:
                raise source.error(self.node, "CollectTop takes how many first: CollectTop(3) OVER (ORDER BY x DESC)")
            if not 0 < number <= _MOST_COLLECTED:
                raise source.error(arguments[0], f"CollectTop takes 1 event at least and {_MOST_COLLECTED:,} at most")
            limit, arguments = number, arguments[1:]
        if len(arguments) > 1:
            raise source.error(self.node, f"{self.function} takes fewer arguments")
        value = self._collected(arguments[0]) if arguments else self._row()
        orderings = tuple(_ordering(self._ordinal(by.this), by) for by in self.orderings)
        return self._of(value, orderings, limit=limit, ordered=self.from_clause.ordered)

    def _row(self) -> Value:
        if self.from_clause.elements or self.from_clause.joins:
            clause = "JOIN" if self.from_clause.joins else "APPLY"
            raise self.inside.source.error(self.node, f"next to {clause}, name what {self.function} takes")
        return self.from_clause.record(self.node)

    def _collected(self, node: exp.Expr) -> Value:
        value = self.inside.value(node)
        if self.function is not AggregateFunction.TOPONE and not self.inside.types.is_known_of_each(value):
            message = f"the type of this is not known, and {self.function} writes it as JSON: CAST it"
            raise self.inside.source.error(node, message)
        typed = self._typed(value, node)
        return value if self.function is AggregateFunction.TOPONE else typed

    def _value(self, node: exp.Expr) -> Value:
        return self._typed(self.inside.value(node), node)

    def _typed(self, value: Value, node: exp.Expr) -> Value:
        if value.type is None:
            raise self.inside.source.untyped_null(node)
        return replace(value, fields=())

    def _number(self, node: exp.Expr) -> Value:
        value = self.inside.value(node)
        number = self.inside.as_number(value, node, f"{self.function} takes bigint or float")
        return replace(number, fields=(), text=None)

    def _cast_text(self, node: exp.Expr) -> Value | None:
        """Return the argument of MIN or MAX if it is an explicit CAST to nvarchar(max), which is ordered by code point.

        Without this CAST, ASA reads a text as a float.
        """
        cast = node.unnest()
        if not isinstance(cast, exp.Cast):
            return None
        value = self.inside.value(cast)
        return replace(value, fields=()) if value.type is AsaType.STRING else None

    def _ordinal(self, node: exp.Expr) -> Value:
        value, types = self.inside.value(node), self.inside.types
        if value.type in (AsaType.DATETIME, AsaType.BIT):
            return replace(value, fields=())
        if value.type is AsaType.STRING and not types.are_open(value.fields) and not value.is_json_element:
            if self.function in (AggregateFunction.MIN, AggregateFunction.MAX):
                return self.inside.cast(value, AsaType.FLOAT, lenient=False, where=node)
            message = f"{self.function} orders numbers and datetimes, as in ASA, but this is nvarchar(max): CAST it"
            raise types.disagreement(value.fields, AsaType.FLOAT, node) or self.inside.source.error(node, message)
        return self._number(node)


def _ordering(value: Value, by: exp.Ordered) -> Ordering:
    return Ordering(value.node, bool(by.args.get("desc")))
