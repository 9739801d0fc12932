"""Read an ASA job from what `terraform show -json` prints of a state or a plan: the resources of the azurerm provider.

Terraform has evaluated all expressions there. Source: "JSON Output Format" of Terraform, and the pages of the resources
`azurerm_stream_analytics_*` and `azurerm_eventhub`.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from recapture.errors import DefinitionError
from recapture.tools.asa_job import sources
from recapture.tools.asa_job.capture import Capture, Captures
from recapture.tools.asa_job.documents import Format, JobPart, Kind, SettingsPart, SourcePart, parse_json, parse_part
from recapture.tools.asa_job.folder import read_text
from recapture.tools.asa_job.job import AsaJob, BlobFolder, EventHub, JobFunction, JobInput, JobOutput

ADVICE = (
    "run terraform show -json > job.json next to it, after terraform apply, or of the file of terraform plan -out, and "
    "import job.json"
)
"""What to do with Terraform's own files."""
_PREFIX = "azurerm_stream_analytics_"
_EVENT_HUB = "azurerm_eventhub"
_INPUTS = {
    "stream_input_eventhub": "Event Hub",
    "stream_input_eventhub_v2": "Event Hub",
    "stream_input_iothub": "IoT Hub",
    "stream_input_blob": "Blob storage",
    "reference_input_blob": "Blob storage",
    "reference_input_mssql": "SQL Database",
}
_OUTPUTS = {
    "output_blob": "Blob storage",
    "output_cosmosdb": "Cosmos DB",
    "output_eventhub": "Event Hub",
    "output_function": "Azure Function",
    "output_mssql": "SQL Database",
    "output_powerbi": "Power BI",
    "output_servicebus_queue": "Service Bus queue",
    "output_servicebus_topic": "Service Bus topic",
    "output_synapse": "Synapse Analytics",
    "output_table": "Table storage",
}
_FUNCTIONS = {"function_javascript_udf": False, "function_javascript_uda": True}
"""Whether a function of this kind is an aggregate."""
_OTHERS = ("cluster", "job_schedule", "managed_private_endpoint", "job_storage_account")
"""Resources that change no row."""


def _keys(value: Any) -> Any:
    """Return an object with the keys of Terraform as those of the other files: eventhub_name => eventhubname"""
    if isinstance(value, dict):
        return {key.replace("_", ""): item for key, item in value.items()}
    return value


def _block(value: Any) -> Any:
    """Return the object of a block, which is a list of one object in a state."""
    return _keys(value[0] if isinstance(value, list) and value else value or {})


class _Module(JobPart):
    resources: tuple[Any, ...] = ()
    child_modules: Annotated[tuple[Any, ...], BeforeValidator(lambda value: value or ())] = Field(
        default=(), alias="child_modules"
    )


class _Values(JobPart):
    root_module: dict[str, Any] = Field(default_factory=dict, alias="root_module")


class _Shown(JobPart):
    planned_values: _Values | None = Field(default=None, alias="planned_values")
    values: _Values = _Values()


class _Resource(JobPart):
    type: str
    address: str = ""
    mode: str = "managed"
    values: dict[str, Any] = Field(default_factory=dict)


class _Serialization(JobPart):
    type: Format = "Json"
    field_delimiter: str | None = None


class _Part(JobPart):
    """Input, output or function."""

    name: str
    stream_analytics_job_name: str | None = None
    stream_analytics_job_id: str | None = None
    servicebus_namespace: str | None = None
    eventhub_name: str | None = None
    storage_account_name: str | None = None
    storage_container_name: str | None = None
    path_pattern: str = ""
    date_format: str = ""
    time_format: str = ""
    serialization: Annotated[_Serialization, BeforeValidator(_block)] = _Serialization()
    script: str | None = None
    input: tuple[dict[str, Any], ...] = ()
    output: Annotated[dict[str, Any], BeforeValidator(_block)] = Field(default_factory=dict)

    @property
    def source(self) -> SourcePart:
        """Names of the event hub or of the container."""
        return SourcePart.model_validate(
            {
                "servicebusnamespace": self.servicebus_namespace,
                "eventhubname": self.eventhub_name,
                "storageaccounts": [{"accountname": self.storage_account_name}],
                "container": self.storage_container_name,
                "pathpattern": self.path_pattern,
                "dateformat": self.date_format,
                "timeformat": self.time_format,
            }
        )

    def belongs_to(self, job: str) -> bool:
        """Return whether the part is of a job; a plan does not know the id of a job that does not exist yet."""
        name = self.stream_analytics_job_name or (self.stream_analytics_job_id or "").rpartition("/")[2]
        return name.lower() in ("", job.lower())


class _Destination(JobPart):
    storage_account_id: str | None = None
    blob_container_name: str | None = None
    archive_name_format: str | None = None


class _CaptureDescription(JobPart):
    enabled: bool = False
    interval_in_seconds: int | None = None
    skip_empty_archives: bool = False
    destination: Annotated[_Destination, BeforeValidator(_block)] = _Destination()


class _EventHub(JobPart):
    name: str
    namespace_name: str | None = None
    namespace_id: str | None = None
    capture_description: Annotated[_CaptureDescription, BeforeValidator(_block)] = _CaptureDescription()

    def capture(self) -> Capture | None:
        """Return the settings of Capture; None if Capture is off."""
        description, destination = self.capture_description, self.capture_description.destination
        if not description.enabled:
            return None
        hub = sources.hub_of(self.namespace_name or (self.namespace_id or "").rpartition("/")[2], self.name)
        return Capture(
            hub.namespace,
            hub.name,
            sources.container_url(destination.storage_account_id, destination.blob_container_name),
            destination.archive_name_format,
            description.interval_in_seconds,
            not description.skip_empty_archives,
        )


class _Job(JobPart):
    name: str
    location: str = ""
    transformation_query: str | None = None


class _Named(JobPart):
    type: Kind = "unknown"


def is_terraform(document: Any) -> bool:
    """Return whether a document is what `terraform show -json` prints."""
    return isinstance(document, dict) and "format_version" in document and "terraform_version" in document


def read_terraform(path: Path, job_name: str | None) -> AsaJob:
    """Return the job in a state or a plan; `job_name` chooses one of several.

    Raise DefinitionError if it has no such job, or is damaged.
    """
    file = path.name
    every = _resources_of(parse_json(read_text(path, file), file), file)
    resources = [resource for resource in every if resource.type.startswith(_PREFIX)]
    where, job = _job_of(file, [item for item in resources if item.type == f"{_PREFIX}job"], job_name)
    read = parse_part(_Job, _keys(job.values), where)
    if read.transformation_query is None:
        raise DefinitionError(f"{where}: transformation_query is not known: apply the plan, and show the state")
    parts = [
        (
            item.type.removeprefix(_PREFIX),
            f"{file}, {item.address}",
            parse_part(_Part, _keys(item.values), item.address),
        )
        for item in resources
        if item.type.removeprefix(_PREFIX) in (*_INPUTS, *_OUTPUTS, *_FUNCTIONS)
    ]
    own = [(kind, place, part) for kind, place, part in parts if part.belongs_to(read.name)]
    known = {"job", *_INPUTS, *_OUTPUTS, *_FUNCTIONS, *_OTHERS}
    return AsaJob(
        name=read.name,
        origin=file,
        query=read.transformation_query.replace("\r\n", "\n").replace("\r", "\n"),
        query_where=where,
        settings=parse_part(SettingsPart, _keys(job.values), where),
        settings_where=where,
        settings_exist=True,
        inputs=tuple(_input(kind, place, part) for kind, place, part in own if kind in _INPUTS),
        outputs=tuple(_output(kind, place, part) for kind, place, part in own if kind in _OUTPUTS),
        functions=tuple(_function(kind, place, part) for kind, place, part in own if kind in _FUNCTIONS),
        unread=tuple(f"{file}, {item.address}" for item in resources if item.type.removeprefix(_PREFIX) not in known),
        captures=_captures(every, file),
        region=read.location,
    )


def read_terraform_captures(document: Any, file: str) -> Captures:
    """Return what a state or a plan says about Capture."""
    return _captures(_resources_of(document, file), file)


def _captures(resources: list[_Resource], file: str) -> Captures:
    """Return the settings of Capture of the event hubs."""
    hubs = (
        parse_part(_EventHub, _keys(resource.values), f"{file}, {resource.address}")
        for resource in resources
        if resource.type == _EVENT_HUB
    )
    return Captures(tuple(capture for hub in hubs if (capture := hub.capture())))


def _resources_of(document: Any, file: str) -> list[_Resource]:
    """Return the resources of a state or a plan that a job is read from."""
    shown = parse_part(_Shown, document, file)
    return list(_resources((shown.planned_values or shown.values).root_module, file))


def _resources(module: Any, file: str) -> Iterator[_Resource]:
    """Yield the Stream Analytics resources and the event hubs of a module and of those in it."""
    read = parse_part(_Module, module, f"{file}, a module")
    for item in read.resources:
        resource = parse_part(_Resource, item, f"{file}, resources")
        if (resource.type.startswith(_PREFIX) or resource.type == _EVENT_HUB) and resource.mode == "managed":
            yield resource
    for child in read.child_modules:
        yield from _resources(child, file)


def _job_of(file: str, jobs: list[_Resource], job_name: str | None) -> tuple[str, _Resource]:
    """Return the place of the job of this name, and the job. Raise DefinitionError unless there is exactly one."""
    named = {str(job.values.get("name")): job for job in jobs}
    names = ", ".join(named)
    if not jobs:
        raise DefinitionError(f"{file}: no resource azurerm_stream_analytics_job in it")
    if job_name is not None:
        named = {name: job for name, job in named.items() if name.lower() == job_name.lower()}
        if not named:
            raise DefinitionError(f"{file}: no job {job_name}: choose one of {names}")
    if len(named) > 1:
        raise DefinitionError(f"{file}: has several jobs, {names}: choose one with --job NAME")
    (job,) = named.values()
    return f"{file}, {job.address}", job


def _input(kind: str, where: str, part: _Part) -> JobInput:
    name = _INPUTS[kind]
    source: EventHub | BlobFolder | None = None
    if name == "Event Hub":
        source = sources.event_hub(part.source)
    elif name == "Blob storage":
        source = sources.blob_folder(part.source)
    return JobInput(
        alias=part.name,
        where=where,
        kind=name,
        reference=kind.startswith("reference"),
        source=source,
        serialization=part.serialization.type,
        compression="None",
        path=sources.blob_path(part.source) if name == "Blob storage" else None,
        delimiter=part.serialization.field_delimiter,
    )


def _output(kind: str, where: str, part: _Part) -> JobOutput:
    name = _OUTPUTS[kind]
    target = sources.blob_folder(part.source) if name == "Blob storage" else None
    return JobOutput(part.name, where, name, target, part.serialization.type, has_watermark_settings=False)


def _function(kind: str, where: str, part: _Part) -> JobFunction:
    return JobFunction(
        name=part.name,
        where=where,
        language="JavaScript",
        is_aggregate=_FUNCTIONS[kind],
        script=part.script,
        output_type=sources.data_type(parse_part(_Named, part.output, where).type),
        argument_types=tuple(sources.data_type(str(argument.get("type", "any"))) for argument in part.input),
    )
