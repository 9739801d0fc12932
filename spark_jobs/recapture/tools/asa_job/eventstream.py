"""Read the definition of a Fabric eventstream: its operators become the query of a job.

A definition is the file eventstream.json of a Git repository, or an answer of the Fabric REST API: "Get Eventstream
Definition", which contains this file, or "Get Eventstream Topology", which has the same parts.
"""

import base64
import binascii
import re
from collections import Counter
from pathlib import Path
from typing import Any

from pydantic import Field

from recapture.errors import DefinitionError
from recapture.tools.asa_job.documents import Format, JobPart, Kind, SettingsPart, parse_json, parse_part
from recapture.tools.asa_job.draft import Finding
from recapture.tools.asa_job.eventstream_query import (
    TYPES,
    NotExpressibleError,
    Operator,
    computed_columns,
    conditions_of,
    quoted,
    select,
)
from recapture.tools.asa_job.folder import JobFolder
from recapture.tools.asa_job.job import AsaJob, EventHub, JobInput, JobOutput

EVENTSTREAM_FILE = "eventstream.json"
_PLATFORM = ".platform"
_GUID = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_NO_WORKSPACE = "00000000-0000-0000-0000-000000000000"
"""Id that stands for the workspace of the eventstream in the files of a Git repository."""
_LONGEST_CHAIN = 200
_TABLE = re.compile(r"[A-Za-z0-9_]{1,128}")
_EVENT_HUBS = ("azureeventhub", "azureeventhubextended")
_NOT_IN_BODIES = ("EventEnqueuedUtcTime", "EventProcessedUtcTime", "PartitionId")
"""Columns that Stream Analytics adds to the fields of a body."""
_KINDS = {"azureiothub": "IoT Hub", "azureiothubextended": "IoT Hub"}


class _Name(JobPart):
    name: str


class _ColumnSchema(JobPart):
    name: str = ""
    type: str = "Any"


class _Schema(JobPart):
    columns: tuple[_ColumnSchema, ...] = ()


class _InputSchema(JobPart):
    name: str = ""
    schema_: _Schema = Field(default=_Schema(), alias="schema")


class _Node(JobPart):
    name: str
    type: Kind
    properties: dict[str, Any] = Field(default_factory=dict)
    input_nodes: tuple[_Name, ...] = ()
    input_schemas: tuple[_InputSchema, ...] = ()

    @property
    def kind(self) -> str:
        """Type in lower case."""
        return self.type.lower()

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the nodes that this one reads."""
        return tuple(node.name for node in self.input_nodes)


class _Eventstream(JobPart):
    sources: tuple[_Node, ...] = ()
    destinations: tuple[_Node, ...] = ()
    streams: tuple[_Node, ...] = ()
    operators: tuple[_Node, ...] = ()


class _Serialization(JobPart):
    type: Format = "Json"
    properties: dict[str, Any] = Field(default_factory=dict)


class _Delimited(JobPart):
    field_delimiter: str | None = None


class _Source(JobPart):
    input_serialization: _Serialization = _Serialization()


class _Lakehouse(JobPart):
    workspace_id: str = ""
    item_id: str = ""
    schema_: str = Field(default="", alias="schema")
    delta_table: str = ""

    @property
    def table_next_to(self) -> str | None:
        """Url of a table next to that of the destination; None if the definition does not say where that is."""
        ids = (self.workspace_id, self.item_id)
        names = (self.delta_table, *([self.schema_] if self.schema_ else []))
        if not all(map(_GUID.fullmatch, ids)) or _NO_WORKSPACE in ids or not all(map(_TABLE.fullmatch, names)):
            return None
        folder = f"Tables/{self.schema_}" if self.schema_ else "Tables"
        return f"https://onelake.blob.fabric.microsoft.com/{'/'.join(ids)}/{folder}/{self.delta_table}_recapture"


class _Sql(JobPart):
    query: str
    advanced_settings: dict[str, Any] = Field(default_factory=dict)


class _Part(JobPart):
    path: str
    payload: str


class _Parts(JobPart):
    parts: tuple[_Part, ...]


class _Metadata(JobPart):
    display_name: str | None = None


class _Platform(JobPart):
    metadata: _Metadata = _Metadata()


def is_eventstream(document: Any) -> bool:
    """Return whether a document is the definition of an eventstream, or an answer that contains one."""
    keys = {key.lower() for key in document} if isinstance(document, dict) else set()
    return "definition" in keys or {"sources", "streams", "operators"} <= keys


def read_eventstream(path: Path, document: Any) -> AsaJob:
    """Return the job that an eventstream is. Raise DefinitionError if it is damaged, or no query can express it."""
    file = path.name
    keys = {key.lower(): value for key, value in document.items()}
    if "definition" in keys:
        files = _files(keys["definition"], file)
        if EVENTSTREAM_FILE not in files:
            raise DefinitionError(f"{file}: the definition has no {EVENTSTREAM_FILE}: export that of an eventstream")
        document, platform = parse_json(files[EVENTSTREAM_FILE], EVENTSTREAM_FILE), files.get(_PLATFORM)
    else:
        folder = JobFolder(path.parent)
        platform = folder.read(_PLATFORM) if folder.has(_PLATFORM) else None
    metadata = parse_part(_Platform, parse_json(platform, _PLATFORM) if platform else {}, _PLATFORM).metadata
    name = metadata.display_name or (path.resolve().parent.stem if file == EVENTSTREAM_FILE else path.stem)
    return _Reader(file, parse_part(_Eventstream, document, file)).job(name)


def _files(definition: Any, file: str) -> dict[str, str]:
    """Return the texts of the files in a definition, by name."""
    try:
        return {
            part.path: base64.b64decode(part.payload, validate=True).decode("utf-8-sig")
            for part in parse_part(_Parts, definition, file).parts
            if part.path in (EVENTSTREAM_FILE, _PLATFORM)
        }
    except (binascii.Error, UnicodeDecodeError):
        raise DefinitionError(f"{file}: a part of the definition is not text in Base64: download it again") from None


class _Reader:
    """Reader of one eventstream: a graph of sources, streams, operators and destinations that read each other."""

    def __init__(self, file: str, eventstream: _Eventstream) -> None:
        self.file = file
        self.eventstream = eventstream
        every = (*eventstream.sources, *eventstream.streams, *eventstream.operators)
        self.nodes = {node.name: node for node in every}
        for name, count in Counter(node.name for node in every).items():
            if count > 1:
                raise DefinitionError(f"{file}: {count} nodes are called {name}: export the eventstream again")
        self.sources = {node.name for node in eventstream.sources}
        self.operators = {node.name for node in eventstream.operators}
        readers = (*eventstream.operators, *eventstream.destinations)
        self.schemas = {schema.name: schema.schema_.columns for node in readers for schema in node.input_schemas}
        self.inputs: dict[str, _Node] = {}
        """Sources that the query reads, by the alias of the input."""
        self.steps: dict[str, str] = {}
        """SELECT statements by the name of the step. Each reads only earlier steps."""
        self.visited: list[str] = []
        """Nodes whose steps are being added: each reads the next."""
        self.refused: list[str] = []
        self.missing: list[Finding] = []
        self.has_casts = False

    def job(self, name: str) -> AsaJob:
        """Return the job. Raise DefinitionError if no query is known for one of its parts."""
        outputs = self._outputs()
        sql = [node for node in self.eventstream.operators if node.kind == "sql"]
        query = self._sql(sql, outputs) if sql else self._query(outputs)
        if self.refused:
            parts = "; ".join(self.refused)
            raise DefinitionError(f"{self.file}: no query is known for {parts}: write the pipeline file yourself")
        settings = parse_part(_Sql, sql[0].properties, self.file).advanced_settings if sql else {}
        different = [
            "the live operators take the time when an event arrived in the eventstream; the pipeline takes the time "
            "when the event hub received it, which is slightly earlier"
        ]
        if self.has_casts:
            different.append("fields have the types of the definition's schemas: a value of another type is NULL")
        return AsaJob(
            name=name,
            origin=self.file,
            query=query,
            query_where=self.file,
            settings=parse_part(SettingsPart, settings, self.file),
            settings_where=self.file,
            settings_exist=True,
            inputs=tuple(self._input(alias, source) for alias, source in self.inputs.items()),
            outputs=tuple(map(self._output, outputs)),
            functions=(),
            unread=(),
            missing=tuple(self.missing),
            different=tuple(Finding(self.file, what) for what in different),
        )

    def _where(self, node: _Node) -> str:
        return f"{self.file}, {node.name}"

    def _outputs(self) -> list[_Node]:
        """Return the destinations, and the derived streams that nothing reads. Raise DefinitionError if none reads."""
        eventstream = self.eventstream
        every = (*eventstream.streams, *eventstream.operators, *eventstream.destinations)
        read = {name for node in every for name in node.inputs}
        derived = [node for node in eventstream.streams if node.kind == "derivedstream" and node.name not in read]
        outputs = [node for node in (*eventstream.destinations, *derived) if node.inputs]
        if not outputs:
            raise DefinitionError(
                f"{self.file}: the eventstream has no destination that reads a stream: add one, and export it again"
            )
        return outputs

    def _sql(self, operators: list[_Node], outputs: list[_Node]) -> str:
        """Return the query of the only SQL operator. It cannot be combined with other operators."""
        operator = operators[0]
        others = [node for node in self.eventstream.operators if node is not operator]
        self.refused += [f"{node.type} {node.name} (it is next to SQL {operator.name})" for node in others]
        for name in operator.inputs:
            self._visit(name, operator)
        if self.steps:
            self.refused.append(f"SQL {operator.name} (it reads a stream of several sources)")
        for output in outputs:
            if operator.name not in output.inputs:
                what = (
                    f"{output.type} {output.name} does not read SQL {operator.name}: write a pipeline of its own for it"
                )
                self.missing.append(Finding(self._where(output), what))
        query = parse_part(_Sql, operator.properties, self._where(operator)).query
        return query.replace("\r\n", "\n").replace("\r", "\n")

    def _query(self, outputs: list[_Node]) -> str:
        """Return the query of all operators, which has a step for each, and a SELECT for each output."""
        statements = []
        for output in outputs:
            for name in output.inputs:
                self._visit(name, output)
                if not self.refused:
                    statements.append(self._statement(name, output))
        steps = ",\n".join(f"{quoted(name)} AS (\n    {step}\n)" for name, step in self.steps.items())
        return "".join([f"WITH {steps}\n" if steps else "", *statements])

    def _statement(self, name: str, output: _Node) -> str:
        """Return the SELECT that publishes a node; a reason if a name cannot be in a query."""
        try:
            columns = ", ".join(self._columns(name)) or "*"
            return f"SELECT {columns} INTO {quoted(output.name)} FROM {self._source(name)}\n"
        except NotExpressibleError as error:
            self.refused.append(f"{output.type} {output.name} ({error})")
            return ""

    def _visit(self, name: str, reader: _Node) -> None:
        """Add the inputs and the steps that a node needs, and its own step if it has one.

        Raise DefinitionError if the node is not in the definition, or reads itself.
        """
        node = self.nodes.get(name)
        if node is None:
            raise DefinitionError(f"{self.file}: {reader.name} reads {name}, which is not in the definition")
        if len(self.visited) > _LONGEST_CHAIN:
            reason = f"more than {_LONGEST_CHAIN} operators and streams read each other in a row: split the eventstream"
            raise DefinitionError(f"{self.file}: {reason}")
        if name in self.visited:
            raise DefinitionError(f"{self.file}: {name} reads itself: correct the definition")
        if name in self.steps:
            return
        if self._is_input(node):
            self.inputs[name] = self.nodes[node.inputs[0]] if node.inputs else node
            return
        self.visited.append(name)
        for input_ in node.inputs:
            self._visit(input_, node)
        self.visited.pop()
        if name in self.operators or len(node.inputs) != 1:
            self._add_step(node)

    def _is_input(self, node: _Node) -> bool:
        """Return whether a node is an input of the query: a source, or a stream of one source."""
        return node.name in self.sources or (len(node.inputs) == 1 and node.inputs[0] in self.sources)

    def _source(self, name: str) -> str:
        """Return what FROM names to read a node: a derived stream has the rows of what it reads."""
        node = self.nodes[name]
        is_step = self._is_input(node) or name in self.operators or len(node.inputs) != 1
        return quoted(name) if is_step else self._source(node.inputs[0])

    def _add_step(self, node: _Node) -> None:
        """Add the step of an operator, or of a stream of several sources; a reason if no query has its rows."""
        type_ = node.type if node.name in self.operators else "Union"
        try:
            inputs = [self._source(name) for name in node.inputs]
            quoted(node.name)
            columns = self._columns(node.name) if type_.lower() == "union" else []
            self.steps[node.name] = select(Operator(type_, node.properties, inputs, self._where(node), columns))
        except NotExpressibleError as error:
            self.steps[node.name] = ""
            self.refused.append(f"{type_} {node.name} ({error})")
        count = conditions_of(node.properties, self._where(node)) if type_.lower() == "filter" else 0
        if count > 1:
            what = (
                f"Filter {node.name} has {count} conditions, and the definition does not say whether an "
                "event must meet all or one of them: the query has AND; if one is enough, write OR"
            )
            self.missing.append(Finding(self._where(node), what))

    def _columns(self, name: str) -> list[str]:
        """Return the columns of the rows of a node, with their types; none if they are those of its step."""
        node = self.nodes[name]
        if node.kind in ("groupby", "managefields"):
            return []
        if node.kind == "aggregate":
            known = self._columns(node.inputs[0]) if node.inputs else []
            return [*known, *computed_columns(node.properties, self._where(node))] if known else []
        if name not in self.schemas and node.inputs and not self._is_input(node):
            first, *others = map(self._columns, node.inputs)
            return [column for column in first if all(column in columns for columns in others)]
        return [self._column(column) for column in self.schemas.get(name, ())]

    def _column(self, column: _ColumnSchema) -> str:
        """Return a column with its type, if that is not a record or an array."""
        type_ = column.type.lower()
        if type_ not in TYPES or column.name in _NOT_IN_BODIES:
            return quoted(column.name)
        self.has_casts = True
        return f"TRY_CAST({quoted(column.name)} AS {type_}) AS {quoted(column.name)}"

    def _output(self, node: _Node) -> JobOutput:
        """Return an output. In a lakehouse, its table is next to that of the destination."""
        table = None
        if node.kind == "lakehouse":
            table = parse_part(_Lakehouse, node.properties, self._where(node)).table_next_to
        return JobOutput(node.name, self._where(node), node.type, None, "", has_watermark_settings=False, table=table)

    def _input(self, alias: str, source: _Node) -> JobInput:
        is_hub = source.kind in _EVENT_HUBS
        serialization = parse_part(_Source, source.properties, self._where(source)).input_serialization
        delimiter = parse_part(_Delimited, serialization.properties, self._where(source)).field_delimiter
        return JobInput(
            alias=alias,
            where=self._where(source),
            kind="Event Hub" if is_hub else _KINDS.get(source.kind, source.type),
            reference=False,
            source=EventHub(None, None) if is_hub else None,
            serialization=serialization.type,
            compression="None",
            delimiter=delimiter,
        )
