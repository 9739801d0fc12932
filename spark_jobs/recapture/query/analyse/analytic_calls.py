"""Calls of analytic functions: LAG, LAST, ISFIRST, and aggregates with LIMIT DURATION."""

from dataclasses import dataclass, replace

from sqlglot import exp

from recapture.model import AsaType
from recapture.query.analyse.aggregate_calls import AggregateCall
from recapture.query.analyse.expressions import Expressions
from recapture.query.analyse.kinds import aggregated, kinds_of
from recapture.query.analyse.refusals import unsupported
from recapture.query.analyse.relations import From
from recapture.query.analyse.tokens import is_dynamic, key_of, of_token, read_from, token_of
from recapture.query.analyse.values import Value
from recapture.query.functions import UNSUPPORTED
from recapture.query.parse.names import call_name, whole_number
from recapture.query.parse.source import Source, require_only
from recapture.query.parse.window_calls import UNITS
from recapture.query.plan.aggregates import OF_HISTORY, RANKED, AggregateFunction
from recapture.query.plan.analytics import EarlierValue, History, HistoryAggregate, IsFirst
from recapture.query.plan.expressions import NULL, Expr
from recapture.time_model.windows import LARGEST_SIZE

_LARGEST_NUMBER = 2**31 - 1
_OVER = "OVER (PARTITION BY id LIMIT DURATION(hour, 1))"
_NO_HISTORY_FORM = (
    "LIMIT DURATION is only for LAG, LAST, COUNT, SUM, AVG, MIN, MAX, Collect, TopOne and CollectTop, as in ASA"
)


@dataclass(frozen=True)
class AnalyticCall:
    """One call of an analytic function."""

    inside: Expressions
    """Compiler of its arguments."""
    from_clause: From
    node: exp.Expr
    """The call with its OVER; only ISFIRST may have none."""

    def compile(self) -> Value:
        """Compile the call, and add its function to the FROM clause.

        Raise DefinitionError for arguments that it does not take.
        """
        if isinstance(self.node, exp.Window):
            known = ("this", "partition_by", "over", "duration", "when")
            require_only(self.inside.source, self.node, *known, *(["order"] if self._name in RANKED else []))
        match self._name:
            case "LAG":
                arguments = self._call.expressions
                steps = _whole_number(self.inside.source, arguments[1]) if len(arguments) > 1 else 1
                return self._earlier(steps, [*arguments[:1], *arguments[2:]])
            case "LAST":
                return self._earlier(0, self._call.expressions)
            case "ISFIRST":
                return self._is_first()
        return self._aggregate()

    @property
    def _call(self) -> exp.Anonymous:
        call = self.node.this if isinstance(self.node, exp.Window) else self.node
        assert isinstance(call, exp.Anonymous)
        return call

    @property
    def _name(self) -> str:
        return call_name(self._call)

    def _earlier(self, steps: int, arguments: list[exp.Expr]) -> Value:
        """Compile LAG or LAST; `arguments` are the value and maybe the default."""
        source, form = self.inside.source, "LAG(x, 1, default)" if self._name == "LAG" else "LAST(x, default)"
        if not 1 <= len(arguments) <= 2:
            raise source.error(self.node, f"write {form} {_OVER}; the default may be left out")
        if isinstance(arguments[0], exp.Star):
            require_only(source, arguments[0])
            value = self.from_clause.record(arguments[0])
        else:
            value = self.inside.value(arguments[0])
        if value.type is None:
            raise source.untyped_null(arguments[0])
        default = self.inside.value(arguments[1]) if len(arguments) > 1 else Value(NULL, None)
        value_and_default = [value, default]
        (value, default), type_ = self.inside.unify(value_and_default, self.node, may_differ=True)
        undeclared = tuple(dict.fromkeys([*value.undeclared, *default.undeclared]))
        result = replace(value, type=type_, undeclared=undeclared)
        if any(map(is_dynamic, (value, default))):
            found = EarlierValue(self._history(), token_of(value), steps, token_of(default))
            result = of_token(result, self.from_clause.column_of(found))
        else:
            found = EarlierValue(self._history(), value.node, steps, default.node)
            result = read_from(result, self.from_clause.column_of(found))
        kinds = kinds_of(value_and_default, [value, default])
        if kinds is None or (value.kind is None and default.kind is None):
            return replace(result, kind=None)
        return replace(result, kind=self.from_clause.column_of(replace(found, value=kinds[0], default=kinds[1])))

    def _is_first(self) -> Value:
        duration = self.node.args.get("duration")
        if duration is not None:
            message = "ISFIRST takes no LIMIT DURATION: its interval is ISFIRST(hour, 1)"
            raise self.inside.source.error(duration, message)
        length = _length(self.inside.source, self._call, "ISFIRST(hour, 1)")
        return Value(self.from_clause.column_of(IsFirst(self._history_of(length))), AsaType.BIGINT)

    def _aggregate(self) -> Value:
        source = self.inside.source
        if self._name in UNSUPPORTED:
            raise unsupported(source, self._call)
        if self._name not in OF_HISTORY:
            raise source.error(self.node, _NO_HISTORY_FORM)
        order = self.node.args.get("order")
        orderings = order.expressions if order else []
        aggregate, argument = AggregateCall(self.inside, self.from_clause, self._call, self._call, orderings).compile()
        if aggregate.function is AggregateFunction.COUNT_DISTINCT:
            raise source.error(self.node, "COUNT(DISTINCT …) takes no LIMIT DURATION, as in ASA: write COUNT(x)")
        history, column_of = self._history(), self.from_clause.column_of
        return aggregated(aggregate, argument, lambda other: column_of(HistoryAggregate(history, other)))

    def _history(self) -> History:
        form = f"write {self._name}(…) {_OVER}"
        duration = self.node.args.get("duration")
        if duration is None:
            raise self.inside.source.error(self.node, f"LIMIT DURATION is missing: {form}")
        if call_name(duration) != "DURATION":
            raise self.inside.source.error(duration, form)
        return self._history_of(_length(self.inside.source, duration, "DURATION(hour, 1)"))

    def _history_of(self, length: int) -> History:
        when = self.node.args.get("when")
        condition = self.inside.condition(when) if when is not None else None
        keys = tuple(partition_key(self.inside, key) for key in self.node.args.get("partition_by") or [])
        return History(keys, length, condition)


def partition_key(inside: Expressions, node: exp.Expr) -> Expr:
    """Return a key of PARTITION BY. Raise DefinitionError for a record, an array and NULL."""
    value = inside.value(node)
    if value.type is None or value.type in (AsaType.RECORD, AsaType.ARRAY):
        raise inside.source.error(node, f"PARTITION BY cannot take {value.type or 'NULL'}: name a column")
    return key_of(value)


def duration_of(source: Source, node: exp.Expr, form: str) -> int:
    """Return the ticks of LIMIT DURATION. Raise DefinitionError, which shows the form, for anything else."""
    if call_name(node) != "DURATION":
        raise source.error(node, f"write {form}")
    return _length(source, node, form)


def _length(source: Source, call: exp.Expr, form: str) -> int:
    """Return the ticks of (unit, number)."""
    arguments = call.expressions
    if len(arguments) != 2:
        raise source.error(call, f"write {form}, with a unit and a number")
    unit = UNITS.get(arguments[0].name.lower()) if isinstance(arguments[0], exp.Column) else None
    if unit is None:
        units = "day, hour, minute, second, millisecond or microsecond"
        raise source.error(arguments[0], f"the unit is {units}: write {form}")
    length = unit * _whole_number(source, arguments[1])
    if length > LARGEST_SIZE:
        raise source.error(arguments[1], "a length is at most 7 days")
    return length


def _whole_number(source: Source, node: exp.Expr) -> int:
    number = whole_number(node)
    if number is None or not 1 <= number <= _LARGEST_NUMBER:
        raise source.error(node, f"an integer from 1 to {_LARGEST_NUMBER:,} is expected here")
    return number
