"""SELECT: its filter, its groups and its select list."""

from dataclasses import dataclass, field

from sqlglot import exp

from recapture.model import path_name
from recapture.query.analyse.column_names import column_name, published_name
from recapture.query.analyse.expressions import Expressions
from recapture.query.analyse.field_types import FieldTypes
from recapture.query.analyse.from_clauses import FromCompiler
from recapture.query.analyse.relations import From, NamedRelation
from recapture.query.analyse.scopes import GroupScope, RowScope
from recapture.query.analyse.stars import StarredRecord, StarSource, StarSources
from recapture.query.analyse.step_relation import DECLARE, WHOLE, WHOLE_NAME, passed_on
from recapture.query.analyse.tokens import key_of
from recapture.query.analyse.values import Value
from recapture.query.parse.names import Path, can_name_column, identifier_at, identifiers, is_system_timestamp, star_of
from recapture.query.parse.source import Source, require_only
from recapture.query.parse.window_calls import is_window, windows_of
from recapture.query.plan.expressions import Expr, call
from recapture.query.plan.grouping import GroupedWindow, Grouping
from recapture.query.plan.joins import JoinedTable
from recapture.query.plan.operations import Op
from recapture.query.plan.relations import Item, Selection
from recapture.time_model.windows import SnapshotWindow

_REFUSED_CLAUSES = {
    "with_": "WITH goes before the first SELECT",
    "distinct": "SELECT DISTINCT is not supported: GROUP BY gives each group once",
    "limit": "TOP is not supported: for the first rows of a window, use CollectTop or TopOne",
    "order": "ORDER BY is not supported: a table has no order; leave it out",
}


@dataclass
class CompiledSelect:
    """One compiled SELECT."""

    node: exp.Select
    selection: Selection
    columns: list[tuple[str, Value]]
    star_source: StarSource
    """What its * stand for, in a step."""
    ordered: bool
    """Whether its rows come in arrival order."""
    has_row_column: bool
    """Whether its rows have the column `_row`."""
    joined: JoinedTable | None
    """Rows of the JOINs that it reads; None without a JOIN."""


@dataclass
class _SelectList:
    """A select list, as far as it is compiled."""

    select: exp.Select
    from_clause: From
    """FROM whose columns its * stand for."""
    requests: dict[Path, None] | None
    """Columns of its * that later steps use; None for all columns."""
    is_output: bool
    columns: dict[str, tuple[str, Value]] = field(default_factory=dict)
    """Columns as named, by name in lower case."""
    from_star: dict[str, Value] = field(default_factory=dict)
    """Those of `columns` that a * gives, by name in lower case."""
    requested: list[tuple[str, Value]] = field(default_factory=list)
    """Columns of the * that later steps use."""
    stars: list[StarSource] = field(default_factory=list)
    """What each * of a step stands for."""

    def __post_init__(self) -> None:
        self.source = self.from_clause.source

    @property
    def star_source(self) -> StarSource:
        """What the * of a step stand for so far."""
        return self.stars[0] if len(self.stars) == 1 else StarSources(self.source, tuple(self.stars))

    def compile(self, expressions: Expressions) -> None:
        """Compile the items, and add their columns.

        x, UPPER(k) AS u => columns [("x", `x`), ("u", upper(`k`))]
        """
        for number, item in enumerate(self.select.expressions, 1):
            if _is_star(item):
                require_only(self.source, item.this if isinstance(item, exp.Column) else item)
                if self.select.args.get("group") is not None:
                    raise self.source.error(item, "* cannot be used with GROUP BY: name the keys and the aggregates")
                self._add_star(item)
                continue
            node = item.this if isinstance(item, exp.Alias) else item
            value = expressions.value(node)
            name, where = column_name(self.source, item, number)
            if value.type is None:
                raise self.source.untyped_null(node)
            if self._is_of_star(name, value, where):
                continue
            self._add(name, value, where)
            if self.star_source.has(name):
                raise self.source.error(where, f"the * before it already has a column `{name}`: choose another name")
        self._request(next(filter(_is_star, self.select.expressions), self.select))

    def _add(self, name: str, value: Value, where: exp.Expr) -> None:
        """Add a column. Raise DefinitionError for a name that a column cannot have, or another column has."""
        if not name:
            raise self.source.error(where, "this column has an empty name: choose another one with AS")
        if "\0" in name:
            raise self.source.error(where, "the name of this column contains U+0000: choose another one with AS")
        published = published_name(name) if self.is_output else name
        if not can_name_column(published):
            raise self.source.error(where, f"`{published}` is reserved: choose another name with AS")
        if name.lower() in self.columns:
            raise self.source.error(where, f"`{name}` names two columns: choose another name with AS")
        self.columns[name.lower()] = (name, value)

    def _is_of_star(self, name: str, value: Value, where: exp.Expr) -> bool:
        """Return whether a column is one that a * before it gives already: *, telemetry.x => x"""
        if self.star_source.has(name):
            column = self.star_source.unqualified(_path_at(self.source, (name,), where))
            return column is not None and column.node == value.node
        starred = self.from_star.get(name.lower())
        return starred is not None and starred.node == value.node

    def _add_star(self, item: exp.Expr) -> None:
        """Add the columns of a *.

        * => id, site, …    with requests: only the columns that later steps use
        """
        names, from_clause = star_of(item), self.from_clause
        named = from_clause.named(names[0].name) if len(names) == 1 else None
        if names and named is None:
            if self.requests is not None and not from_clause.properties(names):
                self.stars.append(StarredRecord(self.source, from_clause, tuple(names)))
                return
            columns = self._properties(names)
        else:
            side = self._side(item, named) if from_clause.joins else from_clause
            if self.requests is not None:
                self.stars.append(side)
                return
            known = side.star(item)
            if known is None:
                raise self.source.error(item, f"* has no known columns here: {DECLARE}")
            columns = known
        for name, value in columns:
            if name.lower() not in self.columns:
                self._add(name, value, item)
                self.from_star[name.lower()] = value

    def _properties(self, record: list[exp.Identifier]) -> list[tuple[str, Value]]:
        """Return the declared properties of a record by name. Raise DefinitionError if there are none.

        CREATE TABLE telemetry (site.id bigint, site.name nvarchar(max)) … site.* => id, name
        """
        properties = self.from_clause.properties(record)
        if not properties:
            shown = ".".join(name.name for name in record)
            hint = "" if properties is None else f", or {DECLARE}"
            reason = f"`{shown}` is not the name of FROM, and the properties of a record are not known here"
            raise self.source.error(record[0], f"{reason}: name them, such as {shown}.id{hint}")
        return properties

    def _side(self, item: exp.Expr, named: NamedRelation | None) -> From:
        """Return the side of a JOIN that name.* stands for. Raise DefinitionError for a * of all sides."""
        if named is None:
            form = " and ".join(f"{relation.name}.*" for relation in self.from_clause.relations)
            message = f"* cannot be used next to JOIN, as in ASA: name the columns, or write {form}"
            raise self.source.error(item, message)
        return From(self.source, self.from_clause.types, [named], self.from_clause.table)

    def _request(self, where: exp.Expr) -> None:
        """Add the columns of a step's * that later steps use."""
        for path in self.requests or ():
            if path == WHOLE:
                self.requested.append((WHOLE_NAME, self.star_source.record(where)))
                continue
            value = self.star_source.unqualified(_path_at(self.source, path, where))
            if value is not None:
                self.requested.append((path_name(path), value))


@dataclass(frozen=True)
class SelectCompiler:
    """Compiles the SELECTs of one script."""

    source: Source
    types: FieldTypes
    from_: FromCompiler
    """Compiler of the FROM clauses, which also holds the steps."""

    def compile(self, select: exp.Select, requests: dict[Path, None] | None, is_output: bool) -> CompiledSelect:
        """Compile a SELECT. `requests` are the columns of its * that later steps use; None for all columns.

        SELECT x AS y FROM input WHERE x > 1 => Selection(`input input`, where (`x` > 1.0D), items `x` AS `y`)

        Raise DefinitionError for whatever is not supported.
        """
        self._check_clauses(select)
        from_clause, laterals = self.from_.compile(select)
        row = Expressions(self.source, self.types, RowScope(from_clause))
        where = row.condition(select.args["where"].this) if select.args.get("where") else None
        items = _SelectList(select, from_clause, requests, is_output)
        if select.args.get("group") is None:
            items.compile(row)
            if select.args.get("having"):
                where = self._filter(select, from_clause, row, where)
            grouping = None
        else:
            grouping = self._groups(items, row)
        columns = [*items.columns.values(), *items.requested]
        is_step = requests is not None
        selected = passed_on(columns) if is_step else [Item(name, value.node) for name, value in columns]
        selection = Selection(
            table=from_clause.table,
            analytics=from_clause.analytics,
            laterals=laterals,
            where=where,
            grouping=grouping,
            items=tuple(selected),
        )
        return CompiledSelect(
            select,
            selection,
            list(items.columns.values()),
            items.star_source,
            ordered=from_clause.ordered and grouping is None,
            has_row_column=from_clause.has_row_column and grouping is None,
            joined=from_clause.joined_table(),
        )

    def _filter(self, select: exp.Select, from_clause: From, row: Expressions, where: Expr | None) -> Expr:
        """Return the condition of WHERE and of a HAVING without GROUP BY, which filters rows as WHERE does.

        WHERE x > 1 HAVING y > 2 => ((`x` > 1.0D) AND (`y` > 2.0D))
        """
        having = select.args["having"].this
        new = {item.alias.lower() for item in select.expressions if isinstance(item, exp.Alias) and _is_renamed(item)}
        for column in having.find_all(exp.Column):
            names = identifiers(column) or []
            is_qualified = len(names) > 1 and from_clause.named(names[0].name) is not None
            if names and names[0].name.lower() in new and not is_qualified:
                reason = f"HAVING without GROUP BY is WHERE, which does not know `{names[0].name}` of SELECT"
                advice = "repeat its expression, or select it in a step of WITH"
                raise self.source.error(column, f"{reason}: {advice}")
        condition = row.condition(having)
        return condition if where is None else call(Op.AND, where, condition)

    def _groups(self, items: _SelectList, row: Expressions) -> Grouping:
        """Compile GROUP BY, the select list and HAVING.

        SELECT k, COUNT(*) AS n … GROUP BY k, Tumbling(minute, 1) HAVING n > 1
        => columns `_k0`, `_r0`; Grouping(windows, keys k, aggregates COUNT(*), having `_r0` > 1)
        """
        select, from_clause = items.select, items.from_clause
        scope = GroupScope(from_clause, row)
        windows = self._windows(select, scope)
        self._partition(scope, from_clause.relations[0], select.args["group"])
        group = Expressions(self.source, self.types, scope)
        items.compile(group)
        scope.select_columns = {name: value for name, (_, value) in items.columns.items()}
        having = group.condition(select.args["having"].this) if select.args.get("having") else None
        keys = tuple(key_of(value) for value, _ in scope.keys)
        return Grouping(windows, keys, tuple(scope.aggregates), having)

    def _partition(self, scope: GroupScope, named: NamedRelation, group: exp.Expr) -> None:
        """Add the keys of PARTITION BY to those of GROUP BY: each partition is aggregated by itself."""
        for path in named.partition_by:
            key = named.field(_path_at(self.source, path, group))
            if key is None:
                raise self.source.error(group, f"`{named.name}` has no column `{path[0]}`, which PARTITION BY names")
            scope.add_partition_key(key, group)

    def _check_clauses(self, select: exp.Select) -> None:
        """Raise DefinitionError for a clause that is not supported, or for clauses in the wrong order."""
        for name, message in _REFUSED_CLAUSES.items():
            clause = select.args.get(name)
            if clause:
                raise self.source.error(clause[0] if isinstance(clause, list) else clause, message)
        known = ("expressions", "into", "from_", "joins", "laterals", "where", "group", "having")
        require_only(self.source, select, *known)
        if not select.expressions:
            raise self.source.error(select, "SELECT names no column")
        clauses = [select.args[name] for name in ("where", "group", "having") if select.args.get(name)]
        placed = list(map(self.source.offset, clauses))
        if placed != sorted(placed):
            raise self.source.error(max(placed), "the order of a query is SELECT, INTO, FROM, WHERE, GROUP BY, HAVING")

    def _windows(self, select: exp.Select, scope: GroupScope) -> tuple[GroupedWindow, ...]:
        """Return the windows of GROUP BY, and add its keys to the scope.

        GROUP BY k, Tumbling(second, 1) => the window of one second; the scope's keys are [`k`]

        Next to a window, System.Timestamp() is a key: the time of each row.
        """
        group = select.args["group"]
        require_only(self.source, group, "expressions")
        window: exp.Expr | None = None
        timestamp: exp.Expr | None = None
        for node in (expression.unnest() for expression in group.expressions):
            if is_system_timestamp(node):
                timestamp = node
            elif not is_window(node):
                scope.add_key(node)
            elif window is None:
                window, calls = node, windows_of(self.source, node)
            else:
                message = "GROUP BY takes one window, and this is the second: Windows(…) takes several"
                raise self.source.error(node, message)
        if window is None and timestamp is None:
            raise self.source.error(group, "GROUP BY has no window: add one, such as TumblingWindow(minute, 5)")
        if window is None:
            return (GroupedWindow(SnapshotWindow(), None),)
        if timestamp is not None:
            scope.add_key(timestamp)
            scope.has_timestamp_key = True
        return tuple(GroupedWindow(call.window, call.id, tuple(map(scope.key_of, call.partition_by))) for call in calls)


def _path_at(source: Source, path: Path, where: exp.Expr) -> list[exp.Identifier]:
    """Return a dotted path as if it stood at another place in the query."""
    return [identifier_at(source.offset(where), name) for name in path]


def _is_star(item: exp.Expr) -> bool:
    """Return whether an item of a select list is * or a.*."""
    return isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star))


def _is_renamed(item: exp.Alias) -> bool:
    """Return whether an alias differs from the name of the selected field: x AS y, but not site.x AS x."""
    names = identifiers(item.this)
    return not names or names[-1].name.lower() != item.alias.lower()
