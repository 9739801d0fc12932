"""From the text of an ASAQL query to what the Spark job runs."""

import re
from dataclasses import dataclass, field

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from spark_jobs.query.aggregates import Aggregate, Function
from spark_jobs.query.asaql import Parsed, parse
from spark_jobs.query.declared import declared_types
from spark_jobs.query.expressions import Expressions, Scope, Value, quoted_name
from spark_jobs.query.fields import Fields, Path, identifiers, is_system_timestamp
from spark_jobs.query.inference import Inference
from spark_jobs.query.model import AsaType, CompiledQuery, InputColumn, OutputColumn
from spark_jobs.query.source import Source, only
from spark_jobs.query.spark_sql import Plan, instant, spark_sql
from spark_jobs.query.window_calls import is_window, window_of
from spark_jobs.time_model.windows import HoppingWindow

_CLAUSES = {
    "with_": "WITH is not supported: a pipeline has one SELECT",
    "joins": "JOIN is not supported: a pipeline has one input",
    "laterals": "APPLY is not supported",
    "distinct": "DISTINCT is not supported: GROUP BY gives each group once",
    "limit": "TOP is not supported; leave it out",
    "order": "ORDER BY is not supported: a table has no order; leave it out",
}
_NOT_IN_DELTA = re.compile(r"[ ,;{}()\n\t=]|\$\{")
_SLICE_START = "slice_start"


def compile_query(text: str, *, input_alias: str, output_alias: str) -> CompiledQuery:
    """Compile a query that reads `input_alias` and writes `output_alias`.

    Raises DefinitionError, with line and column of the text, for a syntax error and for whatever is not supported.
    """
    try:
        parsed = parse(text)
        return _Compilation.of(parsed, input_alias, output_alias).result()
    except RecursionError:
        raise Source(text).refuse(0, "the query is nested too deep") from None


@dataclass
class _Compilation:
    parsed: Parsed
    source: Source
    fields: Fields
    timestamp_by: Path | None
    over: dict[Path, exp.Expr]
    window: HoppingWindow
    keys: dict[Path, exp.Expr]
    types: dict[Path, AsaType]
    declared: bool
    read: dict[Path, InputColumn] = field(default_factory=dict)
    aggregates: list[Aggregate] = field(default_factory=list)

    @classmethod
    def of(cls, parsed: Parsed, input_alias: str, output_alias: str) -> "_Compilation":
        source, select = parsed.source, parsed.select
        _check_clauses(source, select)
        _check_into(source, select, output_alias)
        table = _table(source, select, input_alias)
        alias = table.args.get("alias")
        fields = Fields(source, alias.name if alias else input_alias, input_alias)
        timestamp_by = _timestamp_by(fields, table)
        over = _over(fields, table)
        window, keys = _group_by(fields, select)
        types = declared_types(source, parsed.declarations, input_alias, fields.exact)
        if types is None:
            inference = Inference(fields, timestamp_by, {**over, **keys})
            inferred = inference.types(_uses(select))
            return cls(parsed, source, fields, timestamp_by, over, window, keys, inferred, False)
        return cls(parsed, source, fields, timestamp_by, over, window, keys, types, True)

    def result(self) -> CompiledQuery:
        select = self.parsed.select
        event = Expressions(self.source, Scope(self._event_field, self._no_system_timestamp, self._no_aggregate))
        group = Expressions(self.source, Scope(self._group_field, _window_end, self._aggregate))
        timestamp_by = self._timestamp_column()
        over = tuple(self._column(path, node) for path, node in self.over.items())
        keys = [self._event_column(path, node).sql for path, node in self.keys.items()]
        where = event.condition(select.args["where"].this) if select.args.get("where") else None
        outputs = self._outputs(group)
        having = group.condition(select.args["having"].this) if select.args.get("having") else None
        plan = Plan(
            self.window, where, keys, self.aggregates, having, [(value.sql, name) for name, value, _ in outputs]
        )
        return CompiledQuery(
            columns=tuple(self.read.values()),
            timestamp_by=timestamp_by,
            over=over,
            window=self.window,
            output=tuple(OutputColumn(name, value.type) for name, value, _ in outputs if value.type),
            identity=self._identity([(name, node) for name, _, node in outputs]),
            sql=spark_sql(plan),
            canonical=_canonical(self.source, self.parsed.tokens, self.fields.exact),
        )

    def _timestamp_column(self) -> InputColumn | None:
        if self.timestamp_by is None:
            return None
        node = self.parsed.select.args["from_"].this.args["timestamp_by"]
        column = self._column(self.timestamp_by, node)
        if column.type is not AsaType.DATETIME:
            raise self.source.refuse(node, f"`{column.name}` is declared {column.type}: TIMESTAMP BY takes a datetime")
        return column

    def _column(self, path: Path, where: exp.Expr) -> InputColumn:
        if self.declared and path not in self.types:
            raise self.source.refuse(where, f"`{'.'.join(path)}` is missing in CREATE TABLE: declare every field")
        return InputColumn(path, self.types.get(path, AsaType.TEXT))

    def _event_column(self, path: Path, where: exp.Expr) -> Value:
        column = self.read.setdefault(path, self._column(path, where))
        return Value(quoted_name(column.name), column.type)

    def _event_field(self, node: exp.Expr) -> Value | None:
        path = self.fields.path(node)
        return None if path is None else self._event_column(path, node)

    def _group_field(self, node: exp.Expr) -> Value | None:
        path = self.fields.path(node)
        if path is None:
            return None
        if path not in self.keys:
            raise self.source.refuse(node, f"`{'.'.join(path)}` is neither in GROUP BY nor in an aggregate")
        return Value(f"`_k{list(self.keys).index(path)}`", self._column(path, node).type)

    def _no_system_timestamp(self, node: exp.Expr) -> Value:
        raise self.source.refuse(node, "System.Timestamp() is the window's end: it stands in SELECT and HAVING only")

    def _no_aggregate(self, node: exp.Expr) -> Value:
        word = self.source.word(node)
        raise self.source.refuse(node, f"{word} cannot stand in WHERE or in an aggregate: use HAVING")

    def _aggregate(self, node: exp.Expr) -> Value:
        aggregate = self._read_aggregate(node)
        if aggregate not in self.aggregates:
            self.aggregates.append(aggregate)
        return Value(f"`_r{self.aggregates.index(aggregate)}`", aggregate.type)

    def _read_aggregate(self, node: exp.Expr) -> Aggregate:
        function, argument, name = Function(node.key), node.this, node.key.upper()
        only(self.source, node, "this")
        if argument is None:
            raise self.source.refuse(node, f"{name} takes one argument; COUNT(*) counts events")
        if isinstance(argument, exp.Star):
            only(self.source, argument)
            if function is not Function.COUNT:
                raise self.source.refuse(argument, f"{name}(*) is not supported: {name} takes one argument")
            return Aggregate(function, None, None)
        if isinstance(argument, exp.Distinct):
            raise self.source.refuse(argument, f"{name}(DISTINCT …) is not supported")
        event = Expressions(self.source, Scope(self._event_field, self._no_system_timestamp, self._no_aggregate))
        value = event.value(argument)
        if value.type is None:
            raise self.source.refuse(argument, "NULL alone has no type here")
        if function in (Function.SUM, Function.AVG) and value.type not in (AsaType.BIGINT, AsaType.FLOAT):
            raise self.source.refuse(argument, f"{name} takes bigint or float, and this is {value.type}")
        if function in (Function.MIN, Function.MAX) and value.type is AsaType.TEXT:
            raise self.source.refuse(argument, f"{name} of nvarchar(max) is not supported: declare a number")
        return Aggregate(function, value.sql, value.type)

    def _outputs(self, group: Expressions) -> list[tuple[str, Value, exp.Expr]]:
        outputs: list[tuple[str, Value, exp.Expr]] = []
        for item in self.parsed.select.expressions:
            node = item.this if isinstance(item, exp.Alias) else item
            value = group.value(node)
            name, where = self._output_name(item)
            if value.type is None:
                raise self.source.refuse(node, "NULL alone has no type here")
            if not name or _NOT_IN_DELTA.search(name):
                raise self.source.refuse(where, f"`{name}` cannot name a column: leave out blanks and ,;{{}}()=")
            if name.lower() == _SLICE_START:
                raise self.source.refuse(where, f"the pipeline itself adds `{name}`: choose another name")
            if name.lower() in (other.lower() for other, _, _ in outputs):
                raise self.source.refuse(where, f"`{name}` names two columns: choose another name with AS")
            outputs.append((name, value, node))
        return outputs

    def _output_name(self, item: exp.Expr) -> tuple[str, exp.Expr]:
        if not isinstance(item, exp.Alias):
            path = self.fields.path(item)
            if path is None:
                raise self.source.refuse(item, "this column has no name: write AS and a name after it")
            return path[-1], item
        only(self.source, item, "this", "alias")
        alias = item.args["alias"]
        start = alias.meta["start"]
        before = [token for token in self.parsed.tokens if token.end < start]
        if before[-1].token_type != TokenType.ALIAS or self.source.text[start] == "'":
            raise self.source.refuse(alias, f"write AS before the name, expression AS {alias.name}")
        self.fields.exact.add(start)
        return alias.name, alias

    def _identity(self, outputs: list[tuple[str, exp.Expr]]) -> tuple[str, ...]:
        plain = [(name, node.unnest()) for name, node in outputs]
        ends = [name for name, node in plain if is_system_timestamp(node)]
        keys = [(self.fields.path(node), name) for name, node in plain]
        return (*ends, *(name for key in self.keys for path, name in keys if path == key))


def _window_end(_: exp.Expr) -> Value:
    return Value(instant("`_window_end`"), AsaType.DATETIME)


def _check_clauses(source: Source, select: exp.Select) -> None:
    for part, message in _CLAUSES.items():
        found = select.args.get(part)
        if found:
            where = found[0] if isinstance(found, list) else found
            raise source.refuse(where, message)
    only(source, select, "expressions", "into", "from_", "where", "group", "having")
    if not select.expressions:
        raise source.refuse(0, "SELECT names no column")
    starts = [source.offset(select.args[part]) for part in ("where", "group", "having") if select.args.get(part)]
    if starts != sorted(starts):
        raise source.refuse(max(starts), "the order of a query is SELECT, INTO, FROM, WHERE, GROUP BY, HAVING")


def _check_into(source: Source, select: exp.Select, output_alias: str) -> None:
    into = select.args.get("into")
    if into is None:
        if output_alias.lower() != "output":
            message = f"without INTO a query writes to `output`: write INTO {output_alias} before FROM"
            raise source.refuse(select.args.get("from_") or 0, message)
        return
    only(source, into, "this")
    only(source, into.this, "this")
    name = into.this.name
    if not isinstance(into.this.this, exp.Identifier) or name.lower() != output_alias.lower():
        raise source.refuse(into, f"INTO {name}: the pipeline's output is `{output_alias}`")


def _table(source: Source, select: exp.Select, input_alias: str) -> exp.Table:
    clause = select.args.get("from_")
    if clause is None:
        raise source.refuse(len(source.text.rstrip()), f"the query has no FROM: write FROM {input_alias}")
    only(source, clause, "this")
    table = clause.this
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        raise source.refuse(table, f"FROM takes the pipeline's input, `{input_alias}`: no query and no function")
    if table.args.get("joins"):
        raise source.refuse(table.args["joins"][0], _CLAUSES["joins"])
    only(source, table, "this", "alias", "timestamp_by", "over")
    if table.name.lower() != input_alias.lower():
        raise source.refuse(table, f"FROM {table.name}: the pipeline's input is `{input_alias}`")
    if table.args.get("alias"):
        only(source, table.args["alias"], "this")
    return table


def _timestamp_by(fields: Fields, table: exp.Table) -> Path | None:
    node = table.args.get("timestamp_by")
    if node is None:
        return None
    path = fields.path(node)
    if path is None:
        raise fields.source.refuse(node, "TIMESTAMP BY takes a field, not an expression")
    return path


def _over(fields: Fields, table: exp.Table) -> dict[Path, exp.Expr]:
    """The keys of OVER. PartitionId adds nothing to them: no scope spans partitions (time model, section 2)."""
    keys: dict[Path, exp.Expr] = {}
    for node in table.args.get("over") or []:
        if _is_partition_id(fields, node):
            continue
        path = fields.path(node)
        if path is None:
            raise fields.source.refuse(node, "OVER takes fields, not expressions")
        keys.setdefault(path, node)
    return keys


def _is_partition_id(fields: Fields, node: exp.Expr) -> bool:
    names = [name.name.lower() for name in identifiers(node) or []]
    return names in (["partitionid"], [fields.qualifier.lower(), "partitionid"])


def _group_by(fields: Fields, select: exp.Select) -> tuple[HoppingWindow, dict[Path, exp.Expr]]:
    source, group = fields.source, select.args.get("group")
    if group is None:
        where = len(source.text.rstrip())
        raise source.refuse(where, "the query has no window: write GROUP BY …, TumblingWindow(minute, 5)")
    only(source, group, "expressions")
    window: HoppingWindow | None = None
    keys: dict[Path, exp.Expr] = {}
    for node in group.expressions:
        if is_window(node):
            if window is not None:
                raise source.refuse(node, "GROUP BY takes one window, and this is the second")
            window = window_of(source, node)
        elif is_system_timestamp(node):
            raise source.refuse(node, "GROUP BY System.Timestamp() is the snapshot window, which is not supported yet")
        else:
            path = fields.path(node)
            if path is None:
                raise source.refuse(node, f"GROUP BY takes fields and one window, and `{source.word(node)}` is neither")
            keys.setdefault(path, node)
    if window is None:
        raise source.refuse(group, "GROUP BY has no window: add one, such as TumblingWindow(minute, 5)")
    return window, keys


def _uses(select: exp.Select) -> list[exp.Expr]:
    clauses = [select.args[part].this for part in ("where", "having") if select.args.get(part)]
    return [*select.expressions, *clauses]


def _canonical(source: Source, tokens: list[Token], exact: set[int]) -> str:
    """The tokens with blanks between: names in brackets, literals as they are, keywords and aliases in capitals."""
    words = []
    for token in tokens:
        written = source.text[token.start : token.end + 1]
        if token.start in exact:
            words.append("[" + token.text.replace("]", "]]") + "]")
        elif token.token_type == TokenType.STRING:
            words.append(written)
        elif token.token_type != TokenType.SEMICOLON:
            words.append(written.upper())
    return " ".join(words)
