"""The compiler of ASAQL: from the text of a query to what a run computes."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from recapture.model import TYPES, AsaType, InputColumn, InputMetadata, JavaScriptFunction, MetadataColumn, OutputColumn
from recapture.query.analyse.field_types import FieldTypes
from recapture.query.analyse.from_clauses import FromCompiler
from recapture.query.analyse.input_relation import InputRelation
from recapture.query.analyse.matches import MatchCompiler
from recapture.query.analyse.selects import CompiledSelect, SelectCompiler
from recapture.query.analyse.stars import StarSource, StarSources
from recapture.query.analyse.step_relation import StepRelation, taken_over
from recapture.query.analyse.unions import check_union, united, with_published_names
from recapture.query.analyse.values import Value
from recapture.query.model import CompiledInput, CompiledOutput, CompiledQuery, CompiledReference
from recapture.query.parse.asaql import Script, Step, parse, selects_of
from recapture.query.parse.create_table import declared_types
from recapture.query.parse.names import Path
from recapture.query.parse.nesting import compiler_room
from recapture.query.parse.source import Source, require_only
from recapture.query.parse.user_functions import bind_functions, geography_functions
from recapture.query.plan.in_tasks import Assignment, InTasks
from recapture.query.plan.look_backs import Planned, planned
from recapture.query.plan.matches import MatchedTable
from recapture.query.plan.merged import Merger
from recapture.query.plan.panes import GroupsView
from recapture.query.plan.relations import SelectedTable, Table
from recapture.query.plan.rewrites import rewritten
from recapture.time_model.windows import Reach, SnapshotWindow

_DEFAULT_OUTPUT = "output"
_COUNTED = (Reach(SnapshotWindow()),)
"""What an input needs that only steps without readers read: its events are ordered and counted."""


def compile_query(
    text: str,
    *,
    inputs: Mapping[str, InputMetadata | None],
    output_aliases: Sequence[str],
    functions: Sequence[JavaScriptFunction] = (),
    in_tasks: bool = True,
    only_strings: Collection[str] = (),
) -> CompiledQuery:
    """Compile a query that reads `inputs`, writes `output_aliases` and may call `functions`.

    `inputs` maps the alias of each input to the metadata of its events, or to None for reference data. Without
    `in_tasks`, all events are aggregated slice by slice, and the rows are the same. `only_strings` are the aliases of
    the inputs whose bodies have only strings.

    Raise DefinitionError, with line and column of the text, for a syntax error and for whatever is not supported.
    """
    source = Source(text)
    with compiler_room(source):
        script = parse(text)
        called = bind_functions(script, functions)
        declared = declared_types(script.source, script.declarations, inputs)
        types = FieldTypes(script.source, declared, only_strings=only_strings)
        compiled = _compiled(script, types, inputs, output_aliases).result(in_tasks)
        return replace(compiled, functions=called, geography=geography_functions(script))


def fields_used(
    text: str,
    types: Mapping[str, Mapping[Path, AsaType | None]],
    *,
    inputs: Mapping[str, InputMetadata | None],
    output_aliases: Sequence[str],
    functions: Sequence[JavaScriptFunction] = (),
) -> dict[str, dict[Path, AsaType | None]]:
    """Return, for each input, the fields of bodies that a query reads and those of `types`, with their types.

    `types` has the fields that * stands for, and the properties that record.* stands for, by input. The use of a field
    decides a type that is None or missing. A type stays None if no use decides it. Of properties, the result has those
    of `types` only. A CREATE TABLE in the text is ignored.

    SELECT *, site.id, AVG(y) … FROM a; {"a": {("x",): None, ("z",): BIT}}
    => {"a": {("x",): None, ("z",): BIT, ("site",): RECORD, ("y",): FLOAT}}

    Raise DefinitionError as `compile_query` does.
    """
    source = Source(text)
    with compiler_room(source):
        script = parse(text)
        bind_functions(script, functions)
        fields = FieldTypes(script.source, types, only_declared=False)
        _compiled(script, fields, inputs, output_aliases)
        return {alias: fields.used(alias) for alias in inputs}


def has_create_table(text: str) -> bool:
    """Return whether a query declares its fields. Raise DefinitionError for a syntax error."""
    return bool(parse(text).declarations)


def _compiled(
    script: Script, types: FieldTypes, inputs: Mapping[str, InputMetadata | None], output_aliases: Sequence[str]
) -> "_Pass":
    """Return the second pass over a script, which knows all types; the first one collects what decides them."""
    requests: dict[str, dict[Path, None]] = {step.key: {} for step in script.steps}
    _Pass(script, types, requests, inputs, output_aliases).compile()
    types.solve()
    return _Pass(script, types, requests, inputs, output_aliases).compile()


@dataclass
class _Output:
    """All that is written to an output."""

    alias: str
    """Name after INTO, as the pipeline spells it."""
    table: SelectedTable
    columns: tuple[OutputColumn, ...]
    """Published columns, in order."""


@dataclass
class _Pass:
    """One of two passes over a script."""

    script: Script
    types: FieldTypes
    requests: Mapping[str, dict[Path, None]]
    """Columns of a step's * that later steps use, in order, by the step's name in lower case."""
    inputs: Mapping[str, InputMetadata | None]
    """Metadata of the events of each input, by alias; None for reference data."""
    output_aliases: Sequence[str]
    tables: list[Table] = field(default_factory=list)
    """Tables of the steps compiled so far, and of the JOINs."""
    writes: dict[str, list[CompiledSelect]] = field(default_factory=dict)
    """SELECTs compiled so far that write to outputs, by alias."""
    outputs: list[_Output] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.source = self.script.source
        relations = {
            alias.lower(): InputRelation(self.source, alias, self.types, offered)
            for alias, offered in self.inputs.items()
        }
        self.from_ = FromCompiler(self.source, self.types, relations, [step.key for step in self.script.steps])
        self.selects = SelectCompiler(self.source, self.types, self.from_)

    def compile(self) -> "_Pass":
        """Compile the steps and the outputs with the types that are known. Return the pass."""
        for step in self.script.steps:
            self._step(step)
        for statement in self.script.statements:
            self._statement(statement)
        for alias, writes in self.writes.items():
            self.outputs.append(self._output(alias, writes))
        self._check_use()
        return self

    def result(self, in_tasks: bool) -> CompiledQuery:
        """Return the compiled query. With `in_tasks`, tasks aggregate what they can."""
        inputs = [read for read in self.from_.inputs.values() if not read.is_reference]
        types = {
            read.table: {column.name: TYPES[column.type].view for column in read.columns.values()} for read in inputs
        }
        query = rewritten(self.tables, {output.alias: output.table for output in self.outputs})
        assignment = Assignment({table.name: table for table in query.steps}, types)
        keys = assignment.keys([*query.steps, *query.outputs])
        computed = assignment.of_outputs(query.outputs) if in_tasks else dict.fromkeys(types, InTasks())
        merger = Merger(assignment, computed)
        steps = [
            merger.reading_groups(table, table.name) if isinstance(table, SelectedTable) else table
            for table in query.steps
        ]
        outputs = [
            replace(output, table=merger.reading_groups(table, f"output {output.alias}"))
            for output, table in zip(self.outputs, query.outputs, strict=True)
        ]
        plans = [planned(steps, output.table) for output in outputs]
        return CompiledQuery(
            inputs=tuple(self._input(read, plans, computed[read.table], keys.get(read.table, ())) for read in inputs),
            references=tuple(self._reference(read) for read in self.from_.inputs.values() if read.is_reference),
            windows=tuple(dict.fromkeys(window for plan in plans for window in plan.windows)),
            outputs=tuple(
                CompiledOutput(
                    output.alias,
                    output.columns,
                    plan.plan,
                    *(merger.selects(output.table, output.columns) if in_tasks else ((), None)),
                    output.table.key_columns,
                    output.table.group_columns,
                )
                for output, plan in zip(outputs, plans, strict=True)
            ),
            canonical=self.script.canonical,
            rewrites=query.notes,
            groups=tuple(_with_longest_look_backs(view for plan in plans for view in plan.groups)),
        )

    def _input(
        self, relation: InputRelation, plans: list[Planned], in_tasks: InTasks, keys: tuple[str, ...]
    ) -> CompiledInput:
        time, over = self.from_.timing[relation.alias]
        columns = relation.columns.values()
        by_name = {column.name: column for column in columns}
        reaches = [reach for plan in plans for reach in plan.reaches.get(relation.table, ())]
        return CompiledInput(
            alias=relation.alias,
            columns=tuple(column for column in columns if isinstance(column, InputColumn)),
            columns_to_check=relation.columns_to_check(),
            metadata=tuple(column for column in columns if isinstance(column, MetadataColumn)),
            timestamp_by=time,
            over=over,
            keys=over or tuple(by_name[name] for name in keys),
            reaches=tuple(dict.fromkeys(reaches)) or _COUNTED,
            aggregations=in_tasks.aggregations,
            not_aggregated_because=in_tasks.because,
        )

    def _reference(self, relation: InputRelation) -> CompiledReference:
        columns = tuple(column for column in relation.columns.values() if isinstance(column, InputColumn))
        return CompiledReference(relation.alias, columns, relation.columns_to_check())

    def _step(self, step: Step) -> None:
        """Compile a step, so that later steps and outputs can read it.

        WITH a AS (SELECT x FROM input) => the table `step 0`, which `FROM a` then reads
        """
        if step.key in self.from_.steps or step.key in self.from_.inputs:
            raise self.source.error(step.name, f"`{step.name.name}` is taken: choose another name for this step")
        selects = selects_of(self.source, step.query)
        if step.query.args.get("match"):
            self._matched(step, selects[0])
            return
        for select in selects:
            if select.args.get("into"):
                raise self.source.error(select.args["into"], "INTO belongs to the SELECTs after WITH, outside of FROM")
        requests = self.requests[step.key] if len(selects) == 1 else None
        parts = [self._select(select, requests, is_output=False) for select in selects]
        check_union(self.source, parts)
        columns, selections = united(self.source, self.types, parts)
        table = SelectedTable(f"step {len(self.tables)}", selections)
        first, is_single = parts[0], len(parts) == 1
        ordered, has_row_column = is_single and first.ordered, is_single and first.has_row_column
        self._add_step(step, table, columns, first.star_source, ordered, has_row_column)

    def _matched(self, step: Step, select: exp.Select) -> None:
        """Compile a MATCH_RECOGNIZE, so that the SELECT around it can read the matches."""
        from_clause, _ = self.from_.compile(select)
        compiler = MatchCompiler(self.source, self.types, from_clause, select.args["match"])
        table, columns = compiler.compile(f"matches {len(self.tables)}")
        self._add_step(step, table, columns, StarSources(self.source), ordered=False, has_row_column=False)

    def _add_step(
        self,
        step: Step,
        table: SelectedTable | MatchedTable,
        columns: list[tuple[str, Value]],
        star_source: StarSource,
        ordered: bool,
        has_row_column: bool,
    ) -> None:
        self.tables.append(table)
        self.from_.steps[step.key] = StepRelation(
            self.source,
            step.name.name,
            table.name,
            [(name, taken_over(name, value)) for name, value in columns],
            star_source,
            self.requests[step.key],
            self.types,
            ordered,
            has_row_column,
        )

    def _statement(self, query: exp.Query) -> None:
        """Compile a SELECT … INTO, or a UNION of several, and add it to those that write to its output."""
        selects = selects_of(self.source, query)
        for select in selects[1:]:
            if select.args.get("into"):
                raise self.source.error(select.args["into"], "INTO belongs to the first SELECT of a UNION")
        if not selects[0].expressions:
            raise self.source.error(selects[0], "SELECT names no column")
        alias = self._into(selects[0])
        parts = [self._select(select, None, is_output=True) for select in selects]
        check_union(self.source, parts)
        self.writes.setdefault(alias, []).extend(parts)

    def _output(self, alias: str, parts: list[CompiledSelect]) -> _Output:
        """Put together all that is written to an output.

        SELECT x INTO o …; SELECT y INTO o … => _Output("o", table `output`, columns x and y)
        """
        parts, written = with_published_names(self.source, parts)
        values, selections = united(self.source, self.types, parts, is_output=True)
        self.types.publish([field for _, value in values for field in value.fields])
        types = {name: value.type for name, value in values if not value.is_json_element}
        columns = (OutputColumn(name, types.get(name) or AsaType.STRING, written.get(name)) for name, _ in values)
        return _Output(alias, SelectedTable("output", selections), tuple(columns))

    def _select(self, select: exp.Select, requests: dict[Path, None] | None, is_output: bool) -> CompiledSelect:
        """Compile a SELECT, and keep the table of its JOINs."""
        part = self.selects.compile(select, requests, is_output)
        if part.joined is not None:
            self.tables.append(part.joined)
        return part

    def _into(self, select: exp.Select) -> str:
        """Return the alias of the output that a SELECT writes to, as the pipeline spells it."""
        into, name = select.args.get("into"), _DEFAULT_OUTPUT
        if into is not None:
            require_only(self.source, into, "this")
            require_only(self.source, into.this, "this")
            name = into.this.name.lower() if isinstance(into.this.this, exp.Identifier) else ""
        for alias in self.output_aliases:
            if alias.lower() == name:
                return alias
        known = ", ".join(f"`{alias}`" for alias in self.output_aliases)
        if into is not None:
            raise self.source.error(into, f"INTO {into.this.name}: the pipeline's output is {known}")
        message = f"without INTO a query writes to `output`, and the pipeline's output is {known}: write INTO …"
        raise self.source.error(select.args.get("from_") or 0, message)

    def _check_use(self) -> None:
        """Raise DefinitionError unless a SELECT reads each input, and one writes to each output."""
        for relation in self.from_.inputs.values():
            if relation.alias not in self.from_.read:
                message = f"no SELECT reads `{relation.alias}`, which is an input of the pipeline: remove the input"
                raise self.source.error(0, message)
        for alias in self.output_aliases:
            if alias not in self.writes:
                raise self.source.error(0, f"no SELECT writes INTO {alias}, which is an output of the pipeline")


def _with_longest_look_backs(views: Iterable[GroupsView]) -> Iterable[GroupsView]:
    """Return each view of groups once. It serves the statement that looks back the longest."""
    longest: dict[str, GroupsView] = {}
    for view in views:
        longest[view.name] = max(view, longest.get(view.name, view), key=lambda view: view.groups.look_back)
    return longest.values()
