"""The pipeline file: what to read, the settings of the job, and where to publish. It is validated when it is loaded."""

import itertools
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, ValidationError

from recapture.archive.definitions import ArrivalTime
from recapture.definition.document import NAME, Document, KeyPath, read
from recapture.definition.key_names import event_key
from recapture.definition.sections import Approval, Function, Job, Notification, Output, Prices, Quality, Schedule
from recapture.definition.validation import definition_error
from recapture.errors import DefinitionError
from recapture.formats.base import Alias, Section, reject_none
from recapture.formats.events import Reader
from recapture.formats.reference_data import Reference, ReferenceInput
from recapture.formats.sections import AnyInput, Input
from recapture.model import AsaType, InputMetadata, JavaScriptFunction, Metadata, MetadataColumn, time_fields
from recapture.process.regular_files import read_regular
from recapture.query.compile import compile_query
from recapture.query.model import CompiledInput, CompiledOutput, CompiledQuery
from recapture.storage import Address, addresses
from recapture.storage.address import AzureAddress, normal_form, parse
from recapture.time_model.policies import EARLY_SECONDS, Policies
from recapture.time_model.ticks import from_datetime, from_seconds

Name = Annotated[str, Field(pattern=f"^{NAME.pattern}$")]

MAX_SCRIPT_BYTES = 1024 * 1024
"""Largest size of the script of a function."""
_SAME_IN_BLOB = (MetadataColumn(Metadata.BLOB_NAME), MetadataColumn(Metadata.OFFSET))
"""Metadata whose values say already in which blob an event is."""
_NOT_REPEATED = "runs do not repeat what the live job did"


def _as_list(advice: str) -> BeforeValidator:
    """Return a validator for which one section stands for a list of one; it refuses an empty list."""

    def as_list(sections: object) -> object:
        if sections == []:
            raise ValueError(advice)
        return sections if isinstance(sections, list) else [sections]

    return BeforeValidator(as_list)


_INPUTS = _as_list("name at least one input, with its alias and its container")
_OUTPUTS = _as_list("name at least one output, with its alias and its table")
_NOTIFICATIONS = _as_list("name at least one notifier, or remove the key")


class Pipeline(Section):
    """One pipeline file."""

    name: Name
    """Name of the pipeline: lower case, for runs, DAGs and messages."""
    all_inputs: Annotated[tuple[AnyInput, ...], Field(alias="input"), _INPUTS]
    """Inputs and reference data, at least one, each in the section of its format."""
    job: Job
    """Query and time settings."""
    outputs: Annotated[tuple[Output, ...], Field(alias="output"), _OUTPUTS]
    """Outputs, at least one. The folder of the first one holds the run files."""
    functions: dict[Alias, Function] = Field(default_factory=dict)
    """JavaScript functions, by their names after `udf.` or `uda.`."""
    quality: Quality | None = None
    """What the output must pass, if there is only one."""
    approval: Annotated[Approval | None, reject_none("write {} for the default, or remove the key")] = None
    """Whether a person may approve a run that its audit stopped; None if nobody can."""
    notifications: Annotated[tuple[Notification, ...], _NOTIFICATIONS] = ()
    """Notifiers of Airflow that tell what happens to runs."""
    verdicts: Annotated[Literal["table"] | None, reject_none("write table, or remove the key")] = None
    """Whether the events that are not on time are published, in a table next to the first output's."""
    slice_hours: Literal[1, 2, 3, 4, 6, 8, 12, 24] = 1
    engine: Annotated[
        Literal["processes", "spark"] | None, reject_none("write processes or spark, or remove the key")
    ] = None
    """What computes the rows; None for Spark in Airflow and where the query needs it, else for processes."""
    schedule: Annotated[Schedule | None, reject_none("write its keys, or remove the key")] = None
    """Rules of `recapture update` and of the schedule in Airflow; None for the defaults."""
    prices: Annotated[Prices | None, reject_none("write its keys, or remove the key")] = None
    """Prices for estimates; None if they say nothing of money."""
    file: Annotated[Path, Field(exclude=True)]
    """Absolute path of the pipeline file."""

    @cached_property
    def query(self) -> CompiledQuery:
        return self.compile(self.job.query)

    def compile(self, query: str, *, in_tasks: bool = True) -> CompiledQuery:
        """Compile a query with this pipeline's inputs, outputs and functions; see `compile_query` for `in_tasks`."""
        return compile_query(
            query,
            inputs=self.metadata,
            output_aliases=[output.alias for output in self.outputs],
            functions=self.javascript,
            in_tasks=in_tasks,
            only_strings=[section.alias for section in self.all_inputs if section.only_strings],
        )

    def with_sections(self, **sections: object) -> "Pipeline":
        """Return the pipeline with other sections, by the names of their fields. Its query is compiled anew."""
        changed = self.model_copy(update=sections)
        changed.__dict__.pop("query", None)
        return changed

    @cached_property
    def javascript(self) -> tuple[JavaScriptFunction, ...]:
        """The JavaScript functions, with the texts of their scripts. Raise DefinitionError if one cannot be read."""
        return tuple(_javascript(self.file.parent, name, function) for name, function in self.functions.items())

    def compiled(self, output: Output) -> CompiledOutput:
        """Return what the query writes into an output."""
        return next(compiled for compiled in self.query.outputs if compiled.alias.lower() == output.alias.lower())

    @property
    def inputs(self) -> tuple[Input, ...]:
        return tuple(section for section in self.all_inputs if not isinstance(section, ReferenceInput))

    @property
    def references(self) -> tuple[Reference, ...]:
        return tuple(section for section in self.all_inputs if isinstance(section, ReferenceInput))

    @property
    def metadata(self) -> dict[str, InputMetadata | None]:
        """Metadata of the events of each input, by alias; None for reference data."""
        return {section.alias: section.metadata for section in self.all_inputs}

    def section(self, alias: str) -> Input:
        """Return the section of an input of events."""
        return next(section for section in self.inputs if section.alias == alias)

    def reference(self, alias: str) -> Reference:
        """Return the section of reference data."""
        return next(section for section in self.references if section.alias == alias)

    def reader(self, compiled: CompiledInput) -> Reader:
        """Return the reader of an input's blobs. It travels to the executors."""
        return self.section(compiled.alias).reader((*compiled.body_columns, *time_fields(compiled.timestamp_by)))

    def policies(self, compiled: CompiledInput) -> Policies | None:
        """Return the event ordering policies of an input; None without TIMESTAMP BY: none applies to arrival times."""
        if compiled.timestamp_by is None:
            return None
        late, early = self.job.late_seconds, self.job.early_arrival_seconds
        return Policies(
            out_of_order_tolerance=from_seconds(self.job.out_of_order_seconds),
            late_tolerance=None if late == -1 else from_seconds(late),
            early_window=None if early is None else from_seconds(early),
            adjust=self.job.policy == "Adjust",
            adjust_early=self.job.early_policy == "Adjust",
        )

    def quality_of(self, output: Output) -> Quality | None:
        """Return the section on the quality of an output; None if it has none."""
        return output.quality or self.quality

    def expects_rows(self, output: Output) -> bool:
        """Return whether an output should have rows in every slice in which the query reads events."""
        quality = self.quality_of(output)
        return quality is None or quality.expect_rows

    def suite_path(self, output: Output) -> Path | None:
        """Return the path of an output's suite; None if it has none.

        A `.json` path is relative to the pipeline file. Another name stands for NAME.json in the nearest folder
        `expectations/` at or above the folder of the pipeline file.
        """
        quality = self.quality_of(output)
        if quality is None or quality.suite is None:
            return None
        next_to = self.file.parent / quality.suite
        if next_to.suffix == ".json":
            return next_to
        for folder in self.file.resolve().parents:
            if (folder / "expectations").is_dir():
                return folder / "expectations" / f"{quality.suite}.json"
        return self.file.parent / "expectations" / f"{quality.suite}.json"

    @property
    def warnings(self) -> list[str]:
        """Warnings about settings that are allowed but probably not intended, one sentence each."""
        timed = [compiled for compiled in self.query.inputs if compiled.timestamp_by is not None]
        if not timed:
            return []
        late = (warning for compiled in timed for warning in self._late_warnings(self.section(compiled.alias)))
        return [f"{self.file}: {warning}" for warning in (*dict.fromkeys(late), *self._early_warnings())]

    def _late_warnings(self, section: Input) -> Iterator[str]:
        late, interval = self.job.late_seconds, section.interval_seconds
        by_blob = section.arrival_time is ArrivalTime.BLOB_LAST_MODIFIED
        if late == -1:
            yield (
                "eventsLateArrivalMaxDelayInSeconds is -1: every later arrival counts, so a slice is read up to the "
                "newest blob and is never final; the counts of its verdicts depend on where reading begins"
            )
        elif late < interval and by_blob and section.names.on_schedule:
            yield (
                f"eventsLateArrivalMaxDelayInSeconds is {late}, less than the {section.interval_name} of "
                f"{interval}: with the blob's LastModified as arrival time almost every event will be late; set it to "
                f"at least {interval}"
            )

    def _early_warnings(self) -> Iterator[str]:
        early = self.job.early_arrival_seconds
        if early is None:
            yield (
                f"the early window is off: {_NOT_REPEATED}; a slice gets the same rows every time, "
                f"but not the rows that one long run would give; set early_arrival_seconds to {EARLY_SECONDS}"
            )
        elif early != EARLY_SECONDS:
            yield f"early_arrival_seconds is {early}, but {EARLY_SECONDS} in ASA: {_NOT_REPEATED}"
        if early is not None and self.job.early_policy == "Adjust":
            yield f"early_policy is Adjust, but ASA drops early events: {_NOT_REPEATED}"


def load(path: Path) -> Pipeline:
    """Read and validate a pipeline file and its query. Raise DefinitionError with the file, the line and what to do."""
    pipeline, document = _load(path)
    require_compiling_query(pipeline, document)
    return pipeline


def load_without_query(path: Path) -> Pipeline:
    """Read and validate a pipeline file, whose query may not compile. Errors are those of `load`."""
    pipeline, _ = _load(path)
    return pipeline


def _load(path: Path) -> tuple[Pipeline, Document]:
    document = read(path)
    if "file" in document.values:
        raise document.error(("file",), "unknown key: remove it or correct its name")
    values = document.with_environment(verbatim=("job", "query"))
    try:
        pipeline = Pipeline(**values, file=path.absolute())
    except ValidationError as error:
        raise definition_error(error, document, Pipeline) from error
    pipeline = _with_absolute_addresses(pipeline)
    for require in (
        require_addresses,
        require_distinct_containers,
        require_unambiguous_path,
        require_inputs_without_conflicts,
        require_index_of_strings,
        require_one_suite_per_output,
        require_suites_of_parameters,
        require_named_tables,
        require_outputs_outside_input,
        require_events,
        require_distinct_aliases,
        require_distinct_tables,
        require_distinct_functions,
        require_readable_scripts,
        require_schedule_of_slices,
    ):
        require(pipeline, document)
    return pipeline, document


def require_addresses(pipeline: Pipeline, document: Document) -> None:
    """Raise DefinitionError unless the container and the tables have addresses that storage can open."""
    containers: list[tuple[KeyPath, str]] = [
        (("input", index, "container"), address)
        for index, section in enumerate(pipeline.all_inputs)
        for address in addresses(section.container)
    ]
    for key_path, address in (*containers, *_tables(pipeline)):
        with document.at(key_path):
            parse(address)


def require_distinct_containers(pipeline: Pipeline, document: Document) -> None:
    """Raise DefinitionError if an input names a container twice, or one inside another."""
    for index, section in enumerate(pipeline.all_inputs):
        for left, right in itertools.combinations(map(normal_form, addresses(section.container)), 2):
            if _overlap(left, right):
                raise document.error(("input", index, "container"), "two of these addresses overlap: remove one")


def require_unambiguous_path(pipeline: Pipeline, document: Document) -> None:
    """Raise DefinitionError if the path is not a valid pattern, or if names of other inputs could also match it."""
    for index, section in enumerate(pipeline.all_inputs):
        with document.at(("input", index, "path")):
            _ = section.names


def require_inputs_without_conflicts(pipeline: Pipeline, document: Document) -> None:
    """Raise DefinitionError if keys of an input contradict each other."""
    for index, section in enumerate(pipeline.all_inputs):
        for key, reason in section.conflicts():
            raise document.error(("input", index, key), reason)


def require_index_of_strings(pipeline: Pipeline, document: Document) -> None:
    """Raise DefinitionError if a key of an index is neither a field of the body nor metadata that is a string."""
    for index, section in enumerate(pipeline.all_inputs):
        if isinstance(section, ReferenceInput):
            continue
        for name in section.index or ():
            with document.at(("input", index, "index")):
                key = event_key(name, section.metadata)
            if key.type is not AsaType.STRING or key in _SAME_IN_BLOB:
                reason = f"{name} needs no index: name fields of the body, or metadata of the device or sender"
                raise document.error(("input", index, "index"), reason)


def require_one_suite_per_output(pipeline: Pipeline, document: Document) -> None:
    """Raise DefinitionError for a top-level suite if there are several outputs, or if the only one has its own."""
    if pipeline.quality is not None and len(pipeline.outputs) > 1:
        reason = "there are several outputs: write quality under each output that has a suite"
        raise document.error(("quality",), reason)
    if pipeline.quality is not None and pipeline.outputs[0].quality is not None:
        raise document.error(("quality",), "the output has its own suite: remove one of the two quality keys")


def require_suites_of_parameters(pipeline: Pipeline, document: Document) -> None:
    """Raise DefinitionError for parameters without a suite that uses them."""
    places: list[tuple[KeyPath, Quality | None]] = [(("quality",), pipeline.quality)]
    places += [(("output", index, "quality"), output.quality) for index, output in enumerate(pipeline.outputs)]
    for key_path, quality in places:
        if quality is not None and quality.suite is None and quality.parameters:
            raise document.error((*key_path, "parameters"), "no suite uses them: add suite")


def require_named_tables(pipeline: Pipeline, document: Document) -> None:
    """Raise DefinitionError for a table that is a whole container: its metrics could not be next to it."""
    for key_path, table in _tables(pipeline):
        address = parse(table)
        if isinstance(address, AzureAddress) and not address.prefix:
            reason = "a table needs a name in its container: its metrics are next to it, in the table NAME_metrics"
            raise document.error(key_path, reason)


def require_outputs_outside_input(pipeline: Pipeline, document: Document) -> None:
    """Raise DefinitionError if the files of a table would be blobs of an input."""
    for (key_path, _), output in zip(_tables(pipeline), pipeline.outputs, strict=True):
        for section in pipeline.inputs:
            if any(_would_read(section, folder) for folder in _folders(pipeline, output)):
                reason = (
                    f"input {section.alias} would read this table's own files: choose another place, or set its path"
                )
                raise document.error(key_path, reason)


def _would_read(section: Input, folder: str) -> bool:
    """Return whether an input would read the files of a table in this folder, which is in normal form."""
    inside = f"{folder}/a/b.parquet"
    containers = (f"{normal_form(address)}/" for address in addresses(section.container))
    return any(
        inside.startswith(container) and section.names.parse(inside.removeprefix(container)) is not None
        for container in containers
    )


def require_schedule_of_slices(pipeline: Pipeline, document: Document) -> None:
    """Raise DefinitionError if the table is kept from or until a time within a slice, or for no slice at all."""
    schedule = pipeline.schedule or Schedule()
    for name, time in (("since", schedule.since), ("until", schedule.until)):
        if time is not None and from_datetime(time) % from_seconds(3600 * pipeline.slice_hours):
            reason = f"it is not on a slice border: slices last {pipeline.slice_hours} h, from midnight UTC"
            raise document.error(("schedule", name), reason)
    if schedule.since is not None and schedule.until is not None and schedule.until <= schedule.since:
        raise document.error(("schedule", "until"), "it is not later than schedule.since: no slice would be kept")


def require_events(pipeline: Pipeline, document: Document) -> None:
    """Raise DefinitionError for a pipeline of reference data alone."""
    if not pipeline.inputs:
        raise document.error(("input",), "this is reference data only: add the input whose events are joined with it")


def require_distinct_aliases(pipeline: Pipeline, document: Document) -> None:
    """Raise DefinitionError if two inputs, or two outputs, have the same alias, ignoring case."""
    for key, named in (("input", pipeline.all_inputs), ("output", pipeline.outputs)):
        aliases: dict[str, str] = {}
        for index, section in enumerate(named):
            other = aliases.setdefault(section.alias.lower(), section.alias)
            if len(aliases) <= index:
                raise document.error((key, index, "alias"), f"another {key} is named {other} too: rename one")


def require_distinct_tables(pipeline: Pipeline, document: Document) -> None:
    """Raise DefinitionError if the tables of two outputs, or those next to them, share a folder."""
    for index, output in enumerate(pipeline.outputs):
        for other in pipeline.outputs[:index]:
            if any(_overlap(one, two) for one in _folders(pipeline, output) for two in _folders(pipeline, other)):
                reason = f"it shares a folder with the table of {other.alias}, or with one next to it: choose another"
                raise document.error(("output", index, "table"), reason)


def require_distinct_functions(pipeline: Pipeline, document: Document) -> None:
    """Raise DefinitionError if two functions have the same name, ignoring case."""
    names: dict[str, str] = {}
    for name in pipeline.functions:
        other = names.setdefault(name.lower(), name)
        if other != name:
            raise document.error(("functions", name), f"another function is named {other}: rename one")


def require_readable_scripts(pipeline: Pipeline, document: Document) -> None:
    """Raise DefinitionError if the script of a function cannot be read."""
    for name, function in pipeline.functions.items():
        with document.at(("functions", name, "script")):
            _javascript(pipeline.file.parent, name, function)


def require_compiling_query(pipeline: Pipeline, document: Document) -> None:
    """Raise DefinitionError, with line and column of the query, if it does not compile."""
    with document.at(("job", "query")):
        _ = pipeline.query


def _javascript(folder: Path, name: str, function: Function) -> JavaScriptFunction:
    """Return a function with the text of its script. Raise DefinitionError if the script cannot be read."""
    path = folder / function.script
    try:
        content = read_regular(path, MAX_SCRIPT_BYTES + 1)
        script = content.decode("utf-8-sig")
    except OSError as error:
        raise DefinitionError(f"{path} cannot be read ({error.strerror}): correct the path") from error
    except UnicodeDecodeError as error:
        raise DefinitionError(f"{path} is not UTF-8 text: save it as UTF-8") from error
    if len(content) > MAX_SCRIPT_BYTES:
        raise DefinitionError(f"{path} is larger than {MAX_SCRIPT_BYTES // 1024} KiB: shorten it")
    types = function.argument_types
    arguments = None if types is None else tuple(None if type_ == "any" else type_ for type_ in types)
    lines = script.replace("\r\n", "\n").replace("\r", "\n")
    return JavaScriptFunction(name, lines, function.output_type, arguments, function.kind == "aggregate")


def _tables(pipeline: Pipeline) -> list[tuple[KeyPath, str]]:
    return [(("output", index, "table"), output.table) for index, output in enumerate(pipeline.outputs)]


def _folders(pipeline: Pipeline, output: Output) -> list[str]:
    """Return the folders of an output's tables, in normal form."""
    has_verdicts = pipeline.verdicts is not None and output is pipeline.outputs[0]
    return [normal_form(table) for table in (*output.tables, *([output.verdicts_table] if has_verdicts else []))]


def _overlap(left: str, right: str) -> bool:
    return f"{left}/".startswith(f"{right}/") or f"{right}/".startswith(f"{left}/")


def _with_absolute_addresses(pipeline: Pipeline) -> Pipeline:
    def absolute(address: str) -> str:
        is_url = re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", address)
        return address if is_url else (pipeline.file.parent / address).resolve().as_uri()

    def all_absolute(address: Address) -> Address:
        return absolute(address) if isinstance(address, str) else tuple(map(absolute, address))

    inputs = (read.model_copy(update={"container": all_absolute(read.container)}) for read in pipeline.all_inputs)
    outputs = (output.model_copy(update={"table": absolute(output.table)}) for output in pipeline.outputs)
    return pipeline.model_copy(update={"all_inputs": tuple(inputs), "outputs": tuple(outputs)})
