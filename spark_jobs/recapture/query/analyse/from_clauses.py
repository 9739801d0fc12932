"""FROM: what a SELECT reads, in which order in time, its JOINs, and the elements that APPLY adds."""

from dataclasses import dataclass, field, replace

from sqlglot import exp

from recapture.model import AsaType, InputColumn, Metadata, MetadataColumn, TimeExpression
from recapture.query.analyse.expressions import Expressions
from recapture.query.analyse.field_types import FieldTypes
from recapture.query.analyse.input_relation import InputRelation
from recapture.query.analyse.joins import add_side, check_kind
from recapture.query.analyse.relations import Element, From, NamedRelation
from recapture.query.analyse.scopes import RowScope
from recapture.query.analyse.step_relation import StepRelation
from recapture.query.analyse.timestamp_by import time_of
from recapture.query.parse.create_table import inputs_text
from recapture.query.parse.names import Path, call_name, identifiers, is_analytic
from recapture.query.parse.source import Source, require_only
from recapture.query.plan.expressions import call as operation
from recapture.query.plan.operations import Op
from recapture.query.plan.relations import Lateral

_Timing = tuple[TimeExpression | None, tuple[InputColumn | MetadataColumn, ...]]


@dataclass(frozen=True)
class _Applied:
    """A function that APPLY takes."""

    argument: AsaType
    rows: Op
    """Gives an array of structs, from the argument."""
    fields: tuple[tuple[str, AsaType, bool], ...]
    """Fields of the struct, as those of Element."""


_APPLIED = {
    "GETARRAYELEMENTS": _Applied(
        AsaType.ARRAY, Op.ARRAY_ELEMENTS, (("ArrayIndex", AsaType.BIGINT, False), ("ArrayValue", AsaType.STRING, True))
    ),
    "GETRECORDPROPERTIES": _Applied(
        AsaType.RECORD,
        Op.RECORD_PROPERTIES,
        (("PropertyName", AsaType.STRING, False), ("PropertyValue", AsaType.STRING, True)),
    ),
}
_APPLIED["GETELEMENTS"] = _APPLIED["GETARRAYELEMENTS"]


@dataclass
class FromCompiler:
    """Compiles the FROM clauses of one script, which share the inputs and the one way in which each is ordered."""

    source: Source
    types: FieldTypes
    inputs: dict[str, InputRelation]
    """Inputs of the pipeline, by alias in lower case."""
    step_keys: list[str]
    """Keys of all steps, compiled or not."""
    steps: dict[str, StepRelation] = field(default_factory=dict)
    """Steps compiled so far, by key."""
    timing: dict[str, _Timing] = field(default_factory=dict)
    """TIMESTAMP BY and OVER of each input of events that a SELECT has read, by alias."""
    read: set[str] = field(default_factory=set)
    """Inputs that a SELECT has read, by alias."""

    def compile(self, select: exp.Select) -> tuple[From, tuple[Lateral, ...]]:
        """Return what a SELECT reads, and its APPLYs.

        FROM input AS i TIMESTAMP BY i.t CROSS APPLY GetArrayElements(i.list) AS e
        => From([i: the input], [Element("e")]), Lateral(0, `i.list`'s elements), and the input's `timing` is i.t
        """
        clause = select.args.get("from_")
        if clause is None:
            raise self.source.error(select, f"the query has no FROM: write FROM {self._example}")
        require_only(self.source, clause, "this")
        table = clause.this
        named = self._named(table, select, "FROM")
        if named.is_reference:
            message = f"`{table.name}` is reference data: write FROM with an input, then JOIN {table.name} ON …"
            raise self.source.error(table, message)
        added = [*(table.args.get("joins") or []), *(select.args.get("joins") or [])]
        joins = [join for join in added if not _is_apply(join)]
        if not joins:
            from_clause = From(self.source, self.types, [named], named.relation.table)
        else:
            from_clause = self._joined(named, joins, select)
        from_clause.has_analytics = _analytic(select) is not None
        if joins and added[: len(joins)] != joins:
            raise self.source.error(added[0], "APPLY goes after the last JOIN; to apply it before, use a step of WITH")
        return from_clause, tuple(self._apply(from_clause, join) for join in added[len(joins) :])

    @property
    def _names(self) -> list[str]:
        """Names that FROM takes, those of the queries in FROM left out."""
        inputs = (relation.alias for relation in self.inputs.values())
        return [*inputs, *(step.name for key, step in self.steps.items() if key == step.name.lower())]

    @property
    def _example(self) -> str:
        """Name that FROM takes, for messages."""
        return next(reversed(self._names), "input")

    def _joined(self, first: NamedRelation, joins: list[exp.Join], select: exp.Select) -> From:
        """Return the FROM clause of JOINs.

        FROM a JOIN b ON … => From([0: a, 1: b], `join 0`, [Join(…)])
        """
        first.number = 0
        unjoined = From(self.source, self.types, [replace(first, number=None)], first.relation.table)
        table = f"join {self.source.offset(select)}"
        from_clause = From(self.source, self.types, [first], table, unjoined=unjoined)
        analytic = _analytic(select)
        for number, join in enumerate(joins, 1):
            known = self.inputs.get(join.this.name.lower())
            check_kind(self.source, first, join, known is not None and known.is_reference)
            new = self._named(join.this, select, "JOIN")
            if join.this.args.get("joins"):
                raise self.source.error(join.this, "write ON after each JOIN: a JOIN b ON … JOIN c ON …")
            if analytic is not None and not new.is_reference:
                message = "an analytic function next to a JOIN of streams is not supported: call it in a step"
                raise self.source.error(analytic, message)
            new.number = number
            add_side(from_clause, new, join)
        return from_clause

    def _named(self, table: exp.Expr, select: exp.Select, word: str) -> NamedRelation:
        """Return a relation that FROM or JOIN names. Read its TIMESTAMP BY and PARTITION BY."""
        if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
            raise self.source.error(table, f"{word} takes a name, such as `{self._example}`, or (SELECT …) AS name")
        require_only(self.source, table, "this", "alias", "timestamp_by", "over", "partition_by", "joins", "laterals")
        if table.args.get("alias"):
            require_only(self.source, table.args["alias"], "this")
        name = table.alias_or_name
        step, input_ = self.steps.get(table.name.lower()), self.inputs.get(table.name.lower())
        relation = step or input_
        if relation is None:
            steps = ", ".join(f"`{name}`" for name in self._names[len(self.inputs) :])
            hint = f"; its steps are {steps}" if steps else ""
            if table.name.lower() in self.step_keys:
                hint = "; a step can read only the steps before it"
            elif word == "JOIN":
                hint += f"; to join other inputs or reference data, add `{table.name}` to the pipeline file"
            aliases = [relation.alias for relation in self.inputs.values()]
            raise self.source.error(table, f"{word} {table.name}: {inputs_text(aliases)}{hint}")
        if input_ is not None:
            self.read.add(input_.alias)
        self._read_time(From(self.source, self.types, [NamedRelation(name, relation)], relation.table), table)
        over = tuple(_column(node, name) for node in table.args.get("over") or [])
        return NamedRelation(name, relation, partition_by=self._partition_by(table, name), over=over)

    def _read_time(self, from_clause: From, table: exp.Table) -> None:
        """Read TIMESTAMP BY and OVER. Raise DefinitionError for a step, and for times that differ from above."""
        node, [named] = table.args.get("timestamp_by"), from_clause.relations
        if node is not None and isinstance(named.relation, StepRelation):
            message = f"`{named.relation.name}` is a step: TIMESTAMP BY belongs to the input itself"
            raise self.source.error(node, message)
        if node is not None and named.is_reference:
            message = f"`{table.name}` is reference data, which has no TIMESTAMP BY: leave it out"
            raise self.source.error(node, message)
        if not isinstance(named.relation, InputRelation) or named.is_reference:
            return
        time = time_of(from_clause, node) if node is not None else None
        timing = (time, self._over(from_clause, table))
        if self.timing.setdefault(named.relation.alias, timing) != timing:
            reason = f"`{named.relation.alias}` is read here with a different TIMESTAMP BY than above"
            advice = "a pipeline orders each input in one way; declare it again under another alias and read that"
            raise self.source.error(node or table, f"{reason}: {advice}")

    def _over(self, from_clause: From, table: exp.Table) -> tuple[InputColumn | MetadataColumn, ...]:
        """Return the keys of OVER, without PartitionId: no timeline spans partitions anyway."""
        keys: dict[InputColumn | MetadataColumn, None] = {}
        for node in table.args.get("over") or []:
            column = from_clause.event_column(node)
            if column is None:
                raise self.source.error(node, "OVER takes fields, not expressions")
            if column != MetadataColumn(Metadata.PARTITION_ID):
                keys.setdefault(column)
        return tuple(keys)

    def _partition_by(self, table: exp.Table, name: str) -> tuple[Path, ...]:
        """Return the keys of PARTITION BY."""
        keys = []
        for node in table.args.get("partition_by") or []:
            keys.append(_column(node, name))
            if not keys[-1]:
                raise self.source.error(node, "PARTITION BY takes PartitionId or another column")
        return tuple(keys)

    def _apply(self, from_clause: From, join: exp.Join) -> Lateral:
        """Add the element of an APPLY to the FROM clause, and return the APPLY.

        OUTER APPLY GetArrayElements(list) AS e => Lateral(0, `list`'s elements, outer=True)
        """
        lateral = join.this
        call, alias = lateral.this, lateral.args.get("alias")
        applied = _APPLIED.get(call_name(call))
        if applied is None or len(call.expressions) != 1:
            raise self.source.error(call, "APPLY takes GetArrayElements(array) or GetRecordProperties(record)")
        if alias is None or not alias.name:
            raise self.source.error(call, "name the result of APPLY: CROSS APPLY GetArrayElements(array) AS element")
        require_only(self.source, alias, "this")
        taken = [*(named.name for named in from_clause.relations), *(element.alias for element in from_clause.elements)]
        if alias.name.lower() in (name.lower() for name in taken):
            raise self.source.error(alias, f"`{alias.name}` is taken: choose another name")
        self.source.case_sensitive.add(alias.this.meta["start"])
        row = Expressions(self.source, self.types, RowScope(from_clause))
        [node] = call.expressions
        argument = row.value(node)
        value = row.typed(argument, applied.argument, node)
        if value is None:
            message = f"{self.source.word(call)} takes {applied.argument}, not {argument.type}"
            raise self.source.error(node, message)
        outer = not lateral.args["cross_apply"]
        added = Lateral(len(from_clause.elements), operation(applied.rows, value.node), outer)
        from_clause.elements.append(Element(alias.name, added.column, applied.fields))
        return added


def _column(node: exp.Expr, name: str) -> Path:
    """Return the column of the relation `name` that a dotted path names: a.site.id, "a" => ("site", "id")"""
    path = tuple(identifier.name for identifier in identifiers(node) or [])
    return path[1:] if len(path) > 1 and path[0].lower() == name.lower() else path


def _analytic(select: exp.Select) -> exp.Expr | None:
    """Return the first call of an analytic function in a SELECT; None if there is none."""
    return next((node for node in select.walk() if is_analytic(node)), None)


def _is_apply(join: exp.Join) -> bool:
    return isinstance(join.this, exp.Lateral) and join.this.args.get("cross_apply") is not None
