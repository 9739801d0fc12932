"""MATCH_RECOGNIZE: its keys, the conditions of its variables, and what it takes of a match.

The rules are those of the page "MATCH_RECOGNIZE (Azure Stream Analytics)". What the page does not have is refused.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from recapture.model import AsaType
from recapture.query.analyse.aggregate_calls import AggregateCall
from recapture.query.analyse.analytic_calls import duration_of, partition_key
from recapture.query.analyse.expressions import Expressions, NameScope
from recapture.query.analyse.field_types import FieldTypes
from recapture.query.analyse.kinds import with_kind_of_all
from recapture.query.analyse.relations import From
from recapture.query.analyse.scopes import RowScope
from recapture.query.analyse.step_relation import passed_on
from recapture.query.analyse.tokens import key_of, read_from
from recapture.query.analyse.values import Value
from recapture.query.parse.match_clauses import PATTERN
from recapture.query.parse.names import call_name, can_name_column, identifiers
from recapture.query.parse.source import Source
from recapture.query.plan.aggregates import Aggregate
from recapture.query.plan.expressions import TRUE, Expr, column
from recapture.query.plan.matches import CLASSIFIER, MatchAggregate, MatchedTable, Taken, aggregate_name
from recapture.query.plan.row_patterns import MOST_PLACES, Automaton, PatternTooLongError, automaton

_AGGREGATES = {function.value for function in Taken}
_FIELD = "First, Last, Min and Max take one column of a variable, as in ASA: write Last(A.x)"


@dataclass(frozen=True)
class MatchCompiler:
    """Compiles the MATCH_RECOGNIZE of a FROM."""

    source: Source
    types: FieldTypes
    from_clause: From
    """What it reads."""
    match: exp.MatchRecognize

    def compile(self, name: str) -> tuple[MatchedTable, list[tuple[str, Value]]]:
        """Return its matches as the table `name`, and their columns. Raise DefinitionError for what ASA lacks."""
        source, [relation] = self.source, self.from_clause.relations
        if relation.partition_by:
            raise source.error(self.match, "write PARTITION BY inside MATCH_RECOGNIZE (…), not after the input")
        row = Expressions(source, self.types, RowScope(self.from_clause))
        keys = tuple(partition_key(row, node) for node in self.match.args.get("partition_by") or [])
        length = duration_of(source, self.match.args["duration"], "LIMIT DURATION(minute, 1)")
        walked = self._automaton()
        scope = MatchScope(self.from_clause, walked.variables)
        conditions = self._conditions(walked, scope)
        columns = self._measures(scope)
        spelled = {node.name.lower(): node.name for node in self.match.args["names"]}
        table = MatchedTable(
            name,
            source=self.from_clause.table,
            ties=self.from_clause.ties,
            keys=keys,
            length=length,
            automaton=replace(walked, variables=tuple(spelled.get(name, name) for name in walked.variables)),
            conditions=tuple(conditions.get(name, TRUE) for name in walked.variables),
            aggregates=tuple(scope.aggregates),
            measures=tuple((item.name, item.expression) for item in passed_on(columns)),
        )
        return table, columns

    def _automaton(self) -> Automaton:
        try:
            walked = automaton(self.match.meta[PATTERN])
        except PatternTooLongError:
            message = f"PATTERN is too long: the limit is {MOST_PLACES:,} variables, and A{{3}} counts three times"
            raise self.source.error(self.match, message) from None
        if walked is None:
            message = "PATTERN can match no event at all, which ASA does not document: write A+ instead of A*"
            raise self.source.error(self.match, message)
        return walked

    def _conditions(self, walked: Automaton, scope: "MatchScope") -> Mapping[str, Expr]:
        """Return the conditions of DEFINE, by the name of the variable in lower case."""
        conditions: dict[str, Expr] = {}
        for definition in self.match.args["define"]:
            name = definition.alias.lower()
            if name in conditions:
                raise self.source.error(
                    definition.args["alias"], f"DEFINE has `{definition.alias}` twice: join its conditions"
                )
            if name not in walked.variables:
                message = f"`{definition.alias}` is in DEFINE but not in PATTERN: correct one of the names"
                raise self.source.error(definition.args["alias"], message)
            known = (*conditions, name)
            inside = replace(scope, current=name, known=known)
            conditions[name] = Expressions(self.source, self.types, inside).condition(definition.this)
        for name in self.match.args["names"]:
            self.source.case_sensitive.add(self.source.offset(name))
            if name.name.lower() not in conditions:
                message = f"`{name.name}` is in PATTERN but not in DEFINE: define it, or write . for any event"
                raise self.source.error(name, message)
        return conditions

    def _measures(self, scope: "MatchScope") -> list[tuple[str, Value]]:
        columns: dict[str, tuple[str, Value]] = {}
        compiler = Expressions(self.source, self.types, scope)
        for measure in self.match.args["measures"]:
            name, value = measure.alias, compiler.value(measure.this)
            if value.type is None:
                raise self.source.untyped_null(measure)
            if not can_name_column(name):
                raise self.source.error(measure.args["alias"], f"`{name}` is reserved: choose another name with AS")
            if name.lower() in columns:
                raise self.source.error(measure.args["alias"], f"`{name}` names two columns: choose another name")
            self.source.case_sensitive.add(self.source.offset(measure.args["alias"]))
            columns[name.lower()] = (name, value)
        return list(columns.values())


@dataclass(frozen=True)
class MatchScope(NameScope):
    """Names in DEFINE and MEASURES."""

    from_clause: From
    variables: tuple[str, ...]
    """Names of the variables of the pattern, in lower case."""
    current: str | None = None
    """Variable whose condition is compiled, or whose column an aggregate takes; None in MEASURES."""
    known: Sequence[str] | None = None
    """Variables that a condition may name: those that are defined before it, and itself; None for all."""
    aggregates: dict[MatchAggregate, int] = field(default_factory=dict)
    """Aggregates that have been compiled, with their indexes."""

    @property
    def source(self) -> Source:
        """Text of the query."""
        return self.from_clause.source

    def named_value(self, node: exp.Expr) -> Value | None:
        name = call_name(node)
        if isinstance(node, exp.Anonymous) and name in _AGGREGATES:
            return self._taken(node, Taken(name))
        if name == "CLASSIFIER":
            if self.current is not None or node.expressions:
                raise self.source.error(node, "Classifier() takes no arguments, and is for MEASURES")
            return Value(column(CLASSIFIER), AsaType.ARRAY)
        names = identifiers(node)
        if not names:
            return None
        variable = self._variable(names)
        if self.current is None:
            raise self.source.error(node, f"MEASURES aggregates the events of a match: write Last({names[0].name}.…)")
        if variable != self.current:
            message = f"`{names[0].name}` may be several events: write Last({names[0].name}.…), First, Min or Max"
            raise self.source.error(node, message)
        return self._field(names)

    def _variable(self, names: list[exp.Identifier]) -> str:
        """Return the variable that a path begins with. Raise DefinitionError if there is none, or it is not known."""
        name = names[0].name.lower()
        if name not in self.variables and len(names) > 1:
            raise self.source.error(names[0], f"`{names[0].name}` is not a variable of PATTERN")
        if len(names) < 2:
            message = f"a column needs a variable of PATTERN before it: write A.{names[0].name}, with your variable"
            raise self.source.error(names[0], message)
        if self.known is not None and name not in self.known:
            message = f"DEFINE has `{names[0].name}` below: a condition names only its own variable and those above it"
            raise self.source.error(names[0], message)
        return name

    def _field(self, names: list[exp.Identifier]) -> Value:
        [relation] = self.from_clause.relations
        value = relation.field(names[1:])
        if value is None:
            raise self.source.error(names[1], f"`{relation.name}` has no column `{names[1].name}`")
        return value

    def _taken(self, node: exp.Anonymous, function: Taken) -> Value:
        """Return the value of First, Last, Min or Max of a column of a variable."""
        arguments = node.expressions
        names = identifiers(arguments[0]) if len(arguments) == 1 else None
        if not names:
            raise self.source.error(node, _FIELD)
        variable = self._variable(names)
        number = self.variables.index(variable)
        if function in (Taken.FIRST, Taken.LAST):
            value = self._field(names)
            kind = None if value.kind is None else self._column(MatchAggregate(function, number, value.kind))
            taken = self._column(MatchAggregate(function, number, key_of(value)))
            return read_from(replace(value, kind=kind), taken)
        inside = Expressions(self.source, self.from_clause.types, replace(self, current=variable))
        aggregate, argument = AggregateCall(inside, self.from_clause, node, node, []).compile()
        assert argument is not None

        def result(aggregate: Aggregate) -> Expr:
            return self._column(MatchAggregate(Taken(aggregate.function), number, aggregate.prepared()))

        return with_kind_of_all(Value(result(aggregate), aggregate.type), argument, result)

    def _column(self, aggregate: MatchAggregate) -> Expr:
        return column(aggregate_name(self.aggregates.setdefault(aggregate, len(self.aggregates))))

    def system_timestamp(self, node: exp.Expr) -> Value:
        message = "ASA does not document System.Timestamp() in MATCH_RECOGNIZE: select it as a column in a step"
        raise self.source.error(node, message)

    def window_id(self, node: exp.Expr) -> Value:
        raise self.source.error(node, "System.Window() is supported only in a query with a window")

    def aggregate(self, node: exp.Expr, call: exp.Anonymous, orderings: Sequence[exp.Ordered]) -> Value:
        word = self.source.word(node)
        raise self.source.error(node, f"{word} is not an aggregate of MATCH_RECOGNIZE: use First, Last, Min or Max")

    def analytic(self, node: exp.Expr) -> Value:
        raise self.source.error(node, f"MATCH_RECOGNIZE takes no analytic function: call it in a step. {_FIELD}")

    def metadata(self, node: exp.Anonymous) -> Value:
        raise self.source.error(node, "MATCH_RECOGNIZE takes no GetMetadataPropertyValue: call it in a step")
