"""The pipeline file: what to read, the settings of the job, and where to publish. It is validated when it is loaded."""

import re
from collections.abc import Iterator
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, ValidationError

from recapture.archive.definitions import ArrivalTime
from recapture.definition.checks import CHECKS
from recapture.definition.document import NAME, Document, read
from recapture.definition.scripts import javascript_function
from recapture.definition.sections import Approval, Function, Job, Notification, Output, Prices, Quality, Schedule
from recapture.definition.validation import definition_error
from recapture.formats.base import Alias, Section, reject_none
from recapture.formats.events import Reader
from recapture.formats.reference_data import Reference, ReferenceInput
from recapture.formats.sections import AnyInput, Input
from recapture.model import InputMetadata, JavaScriptFunction, time_fields
from recapture.query.compile import compile_query
from recapture.query.model import CompiledInput, CompiledOutput, CompiledQuery
from recapture.storage import Address
from recapture.time_model.policies import EARLY_SECONDS, Policies
from recapture.time_model.ticks import from_seconds

Name = Annotated[str, Field(pattern=f"^{NAME.pattern}$")]

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
        return _compiled(
            query,
            inputs=tuple(self.metadata.items()),
            output_aliases=tuple(output.alias for output in self.outputs),
            functions=self.javascript,
            in_tasks=in_tasks,
            only_strings=tuple(section.alias for section in self.all_inputs if section.only_strings),
        )

    def with_sections(self, **sections: object) -> "Pipeline":
        """Return the pipeline with other sections, by the names of their fields.

        Its query is compiled again if one of them is among what the query depends on.
        """
        changed = self.model_copy(update=sections)
        changed.__dict__.pop("query", None)
        return changed

    @cached_property
    def javascript(self) -> tuple[JavaScriptFunction, ...]:
        """The JavaScript functions, with the texts of their scripts. Raise DefinitionError if one cannot be read."""
        return tuple(javascript_function(self.file.parent, name, function) for name, function in self.functions.items())

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


@lru_cache(maxsize=32)
def _compiled(
    query: str,
    *,
    inputs: tuple[tuple[str, InputMetadata | None], ...],
    output_aliases: tuple[str, ...],
    functions: tuple[JavaScriptFunction, ...],
    in_tasks: bool,
    only_strings: tuple[str, ...],
) -> CompiledQuery:
    """Compile a query, or return what was compiled of the same arguments before: pipelines may differ in tolerances."""
    return compile_query(
        query,
        inputs=dict(inputs),
        output_aliases=output_aliases,
        functions=functions,
        in_tasks=in_tasks,
        only_strings=only_strings,
    )


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
    for require in CHECKS:
        require(pipeline, document)
    return pipeline, document


def require_compiling_query(pipeline: Pipeline, document: Document) -> None:
    """Raise DefinitionError, with line and column of the query, if it does not compile."""
    with document.at(("job", "query")):
        _ = pipeline.query


def _with_absolute_addresses(pipeline: Pipeline) -> Pipeline:
    def absolute(address: str) -> str:
        is_url = re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", address)
        return address if is_url else (pipeline.file.parent / address).resolve().as_uri()

    def all_absolute(address: Address) -> Address:
        return absolute(address) if isinstance(address, str) else tuple(map(absolute, address))

    inputs = (read.model_copy(update={"container": all_absolute(read.container)}) for read in pipeline.all_inputs)
    outputs = (output.model_copy(update={"table": absolute(output.table)}) for output in pipeline.outputs)
    return pipeline.model_copy(update={"all_inputs": tuple(inputs), "outputs": tuple(outputs)})
