"""One SELECT: what it reads, filters, groups and gives."""

import re
from dataclasses import dataclass, field

from sqlglot import exp

from recapture.model import AsaType, InputColumn, Metadata, MetadataColumn, Time
from recapture.query.analyse.coercion import Coercion
from recapture.query.analyse.expressions import Expressions
from recapture.query.analyse.field_types import FieldTypes
from recapture.query.analyse.relations import WHOLE, WHOLE_NAME, Element, From, InputRelation, StepRelation
from recapture.query.analyse.scopes import GroupScope, RowScope
from recapture.query.analyse.timestamp_by import time_of
from recapture.query.functions import records
from recapture.query.generate.grouping import GroupedWindow, Grouping
from recapture.query.generate.select_items import SelectItem
from recapture.query.generate.statements import Selection
from recapture.query.generate.values import Value
from recapture.query.parse.names import Path, call_name, identifiers, is_system_timestamp, is_window_id
from recapture.query.parse.source import Source, only
from recapture.query.parse.window_calls import is_window, windows_of
from recapture.time_model.windows import SnapshotWindow

_CLAUSES = {
    "with_": "WITH stands before the first SELECT",
    "distinct": "SELECT DISTINCT is not supported: GROUP BY gives each group once",
    "limit": "TOP is not supported; leave it out",
    "order": "ORDER BY is not supported: a table has no order; leave it out",
}
_NOT_IN_DELTA = re.compile(r"[ ,;{}()\n\t=]")
_SLICE_START = "slice_start"
_ONE_TIME = "the input is read here with another TIMESTAMP BY than above: one pipeline orders its input in one way"


@dataclass
class Part:
    """One compiled SELECT."""

    ordered: bool
    columns: list[tuple[str, Value]] = field(default_factory=list)
    asked: list[tuple[str, Value]] = field(default_factory=list)
    """What later steps ask of a star."""
    starred: From | None = None
    selection: Selection = field(init=False)


@dataclass
class SelectCompiler:
    """Compiles the SELECTs of one script, which share an input and its one way to be ordered in time."""

    source: Source
    types: FieldTypes
    input: InputRelation
    steps_to_come: list[str] = field(default_factory=list)
    """The names of the steps, in lower case, compiled or not."""
    steps: dict[str, StepRelation] = field(default_factory=dict)
    timing: tuple[Time | None, tuple[InputColumn | MetadataColumn, ...]] | None = None
    """TIMESTAMP BY and OVER of the input, once a SELECT has read it."""

    def compile(self, select: exp.Select, requests: dict[Path, None] | None) -> "Part":
        """One SELECT; `requests` are the columns that later steps want of its star, None for an output."""
        self._check_clauses(select)
        read, laterals = self._from(select)
        row = Expressions(Coercion(self.source, self.types), RowScope(read))
        where = row.condition(select.args["where"].this) if select.args.get("where") else None
        part = Part(read.relation.ordered)
        if select.args.get("group") is None:
            if select.args.get("having"):
                raise self.source.refuse(select.args["having"], "HAVING needs GROUP BY: use WHERE")
            self._columns(part, select, row, read, requests)
            part.selection = self._selection(part, read, laterals, where, None)
            return part
        scope = GroupScope(read, row)
        windows = self._grouping(select, scope)
        part.ordered = False
        group = Expressions(Coercion(self.source, self.types), scope)
        self._columns(part, select, group, None, None)
        scope.given = {name.lower(): value for name, value in part.columns}
        having = group.condition(select.args["having"].this) if select.args.get("having") else None
        keys = tuple(value.sql for value, _ in scope.keys)
        grouping = Grouping(windows, keys, tuple(scope.aggregates), having)
        part.selection = self._selection(part, read, laterals, where, grouping)
        return part

    def _selection(
        self, part: "Part", read: From, laterals: tuple[str, ...], where: str | None, grouping: Grouping | None
    ) -> Selection:
        items = tuple(SelectItem(name, value.sql) for name, value in [*part.columns, *part.asked])
        return Selection(read.relation.table, read.relation.unanchored, laterals, where, grouping, items)

    def _check_clauses(self, select: exp.Select) -> None:
        for name, message in _CLAUSES.items():
            found = select.args.get(name)
            if found:
                raise self.source.refuse(found[0] if isinstance(found, list) else found, message)
        only(self.source, select, "expressions", "into", "from_", "joins", "laterals", "where", "group", "having")
        if not select.expressions:
            raise self.source.refuse(select, "SELECT names no column")
        placed = [
            self.source.offset(select.args[name]) for name in ("where", "group", "having") if select.args.get(name)
        ]
        if placed != sorted(placed):
            raise self.source.refuse(max(placed), "the order of a query is SELECT, INTO, FROM, WHERE, GROUP BY, HAVING")

    def _from(self, select: exp.Select) -> tuple[From, tuple[str, ...]]:
        clause = select.args.get("from_")
        names = [self.input.alias, *(step.name for step in self.steps.values())]
        if clause is None:
            raise self.source.refuse(select, f"the query has no FROM: write FROM {names[-1]}")
        only(self.source, clause, "this")
        table = clause.this
        if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
            raise self.source.refuse(table, f"FROM takes a name, `{names[-1]}`: no query and no function")
        only(self.source, table, "this", "alias", "timestamp_by", "over", "partition_by", "joins", "laterals")
        if table.args.get("alias"):
            only(self.source, table.args["alias"], "this")
        qualifier = table.args["alias"].name if table.args.get("alias") else table.name
        step = self.steps.get(table.name.lower())
        if step is None and table.name.lower() != self.input.alias.lower():
            later = table.name.lower() in self.steps_to_come
            steps = "; that step comes later or is this one: put it before" if later else ""
            steps = steps or f"; its steps are {', '.join(f'`{name}`' for name in names[1:])}" if names[1:] else ""
            raise self.source.refuse(table, f"FROM {table.name}: the pipeline's input is `{self.input.alias}`{steps}")
        read = From(self.source, self.types, qualifier, step or self.input)
        self._time(read, table, step)
        self._partition_by(read, table, select)
        joins = [*(table.args.get("joins") or []), *(select.args.get("joins") or [])]
        return read, tuple(self._apply(read, join) for join in joins)

    def _time(self, read: From, table: exp.Table, step: StepRelation | None) -> None:
        node = table.args.get("timestamp_by")
        if step is not None:
            if node is not None:
                raise self.source.refuse(node, f"`{step.name}` is a step: TIMESTAMP BY belongs to the input itself")
            return
        time = time_of(read, node) if node is not None else None
        over = self._over(read, table)
        if self.timing not in (None, (time, over)):
            raise self.source.refuse(node or table, _ONE_TIME)
        self.timing = (time, over)

    def _over(self, read: From, table: exp.Table) -> tuple[InputColumn | MetadataColumn, ...]:
        """The keys of OVER. PartitionId adds nothing to them: no scope spans partitions (time model, section 2)."""
        keys: dict[InputColumn | MetadataColumn, None] = {}
        for node in table.args.get("over") or []:
            column = read.lookup(node)
            if column is None:
                raise self.source.refuse(node, "OVER takes fields, not expressions")
            if isinstance(column, InputColumn):
                self.types.key(column.path, node)
            if column != MetadataColumn(Metadata.PARTITION_ID):
                keys.setdefault(column)
        return tuple(keys)

    def _partition_by(self, read: From, table: exp.Table, select: exp.Select) -> None:
        """PARTITION BY says how ASA spreads a query: each key is aggregated by itself, so it must be in GROUP BY."""
        for node in table.args.get("partition_by") or []:
            names = identifiers(node)
            if not names:
                raise self.source.refuse(node, "PARTITION BY takes PartitionId or another column")
            group, key = select.args.get("group"), names[-1].name
            grouped = [identifiers(each) or [] for each in group.expressions] if group else []
            if group and not any(each and each[-1].name.lower() == key.lower() for each in grouped):
                raise self.source.refuse(
                    group, f"PARTITION BY {key} aggregates each {key} by itself: add {key} to GROUP BY"
                )

    def _apply(self, read: From, join: exp.Join) -> str:
        lateral = join.this
        if not isinstance(lateral, exp.Lateral) or lateral.args.get("cross_apply") is None:
            raise self.source.refuse(join, "JOIN is not supported: a pipeline has one input, and steps are not joined")
        makers = {"GETARRAYELEMENTS": AsaType.ARRAY, "GETRECORDPROPERTIES": AsaType.RECORD}
        call = lateral.this
        name, alias = call_name(call), lateral.args.get("alias")
        if name not in makers or len(call.expressions) != 1:
            raise self.source.refuse(call, "APPLY takes GetArrayElements(array) or GetRecordProperties(record)")
        if alias is None or not alias.name:
            raise self.source.refuse(call, "name what APPLY gives: CROSS APPLY GetArrayElements(array) AS element")
        only(self.source, alias, "this")
        if alias.name.lower() in (read.qualifier.lower(), *(each.alias.lower() for each in read.elements)):
            raise self.source.refuse(alias, f"`{alias.name}` is taken: choose another name")
        self.source.exact.add(alias.this.meta["start"])
        row = Expressions(Coercion(self.source, self.types), RowScope(read))
        kind = makers[name]
        argument = row.value(call.expressions[0])
        value = row.coercion.typed(argument, kind, call.expressions[0])
        if value is None:
            raise self.source.refuse(
                call.expressions[0], f"{self.source.word(call)} takes a {kind}, not {argument.type}"
            )
        number = len(read.elements)
        column = f"`@@e{number}`"
        if kind is AsaType.ARRAY:
            made = records.elements(value.sql)
            fields = (("ArrayIndex", AsaType.BIGINT, False), ("ArrayValue", AsaType.TEXT, True))
        else:
            made = records.properties(value.sql)
            fields = (("PropertyName", AsaType.TEXT, False), ("PropertyValue", AsaType.TEXT, True))
        read.elements.append(Element(alias.name, column, fields))
        outer = "" if lateral.args["cross_apply"] else "OUTER "
        return f"LATERAL VIEW {outer}explode({made}) `@@l{number}` AS {column}"

    def _columns(
        self,
        part: "Part",
        select: exp.Select,
        expressions: Expressions,
        starred: From | None,
        requests: dict[Path, None] | None,
    ) -> None:
        """The select list; a star stands for what `starred` has, or for what later steps ask of it."""
        for item in select.expressions:
            if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
                only(self.source, item.this if isinstance(item, exp.Column) else item)
                if starred is None:
                    raise self.source.refuse(item, "* cannot stand with GROUP BY: name the keys and the aggregates")
                self._star(part, item, starred, requests)
                continue
            node = item.this if isinstance(item, exp.Alias) else item
            value = expressions.value(node)
            name, where = self._output_name(item)
            if value.type is None:
                raise self.source.refuse(node, "NULL alone has no type here: CAST(NULL AS float), say")
            self._check_name(name, where, part, is_output=requests is None)
            if part.starred is not None and part.starred.has(name):
                raise self.source.refuse(where, f"`{name}` stands in the * before it, which wins: choose another name")
            part.columns.append((name, value))

    def _star(self, part: "Part", item: exp.Expr, starred: From, requests: dict[Path, None] | None) -> None:
        if isinstance(item, exp.Column) and item.table and item.table.lower() != starred.qualifier.lower():
            raise self.source.refuse(item, f"`{item.table}` is not in FROM; records are not spread by .*")
        if requests is not None:
            part.starred = starred
            for path in requests:
                if path == WHOLE:
                    part.asked.append((WHOLE_NAME, starred.relation.record(item)))
                    continue
                names = [exp.to_identifier(name) for name in path]
                for identifier in names:
                    identifier.meta["start"] = self.source.offset(item)
                value = starred.unqualified(names)
                if value is not None:
                    part.asked.append((".".join(path), value))
            return
        columns = starred.star(item)
        if columns is None:
            raise self.source.refuse(
                item,
                "* has no known columns here: name the columns, or declare the input's with CREATE TABLE "
                f"{self.input.alias} (field type, …)",
            )
        for name, value in columns:
            if name.lower() not in (other.lower() for other, _ in part.columns):
                self._check_name(name, item, part, is_output=True)
                part.columns.append((name, value))

    def _check_name(self, name: str, where: exp.Expr, part: "Part", is_output: bool) -> None:
        if not name or (is_output and _NOT_IN_DELTA.search(name)):
            raise self.source.refuse(where, f"`{name}` cannot name a column: leave out blanks and ,;{{}}()=")
        if name.lower() == _SLICE_START or name.startswith("_"):
            raise self.source.refuse(where, f"the pipeline itself adds `{name}`: choose another name")
        if name.lower() in (other.lower() for other, _ in part.columns):
            raise self.source.refuse(where, f"`{name}` names two columns: choose another name with AS")

    def _output_name(self, item: exp.Expr) -> tuple[str, exp.Expr]:
        if not isinstance(item, exp.Alias):
            names = identifiers(item)
            if names and not is_system_timestamp(item):
                self.source.exact.add(names[-1].meta["start"])
                return names[-1].name, item
            if is_window_id(item):
                return "Id", item
            raise self.source.refuse(item, "this column has no name: write AS and a name after it")
        only(self.source, item, "this", "alias")
        alias = item.args["alias"]
        if self.source.text[alias.meta["start"]] == "'":
            raise self.source.refuse(alias, f"write AS {alias.name}, without quotes")
        self.source.exact.add(alias.meta["start"])
        return alias.name, alias

    def _grouping(self, select: exp.Select, scope: "GroupScope") -> tuple[GroupedWindow, ...]:
        """Read GROUP BY into the scope's keys; its windows."""
        group = select.args["group"]
        only(self.source, group, "expressions")
        found: list[GroupedWindow] | None = None
        calls = []
        for node in group.expressions:
            node = node.unnest()
            if is_window(node) or is_system_timestamp(node):
                if found is not None:
                    raise self.source.refuse(
                        node, "GROUP BY takes one window, and this is the second: Windows(…) takes several"
                    )
                calls = [] if is_system_timestamp(node) else windows_of(self.source, node)
                found = []
            else:
                scope.add_key(node)
        if found is None:
            raise self.source.refuse(group, "GROUP BY has no window: add one, such as TumblingWindow(minute, 5)")
        if not calls:
            return (GroupedWindow(SnapshotWindow(), None),)
        return tuple(GroupedWindow(call.window, call.id, tuple(map(scope.key_of, call.partition_by))) for call in calls)
