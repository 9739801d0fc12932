"""Read an ARM template with a Microsoft.StreamAnalytics/streamingjobs resource, as the portal exports it.

The parts of a job are in its properties, in resources inside it, or in resources next to it with names JOB/PART.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from recapture.errors import DefinitionError
from recapture.tools.asa_job import sources
from recapture.tools.asa_job.capture import Captures
from recapture.tools.asa_job.capture_settings import PARENTS, captures_in
from recapture.tools.asa_job.documents import Format, JobPart, Kind, SettingsPart, SourcePart, parse_json, parse_part
from recapture.tools.asa_job.expressions import Expansion, TemplateScope
from recapture.tools.asa_job.folder import JobFolder, read_text
from recapture.tools.asa_job.job import AsaJob, BlobFolder, EventHub, JobFunction, JobInput, JobOutput

JOB = "microsoft.streamanalytics/streamingjobs"
_DEPLOYMENT = "microsoft.resources/deployments"
_KINDS = {
    "microsoft.servicebus/eventhub": "Event Hub",
    "microsoft.eventhub/eventhub": "Event Hub",
    "microsoft.devices/iothubs": "IoT Hub",
    "microsoft.storage/blob": "Blob storage",
    "microsoft.storage/table": "Table storage",
    "microsoft.storage/documentdb": "Cosmos DB",
    "microsoft.datalake/accounts": "Data Lake Storage Gen1",
    "microsoft.sql/server/database": "SQL Database",
    "microsoft.sql/server/datawarehouse": "Synapse Analytics",
    "microsoft.servicebus/queue": "Service Bus queue",
    "microsoft.servicebus/topic": "Service Bus topic",
    "microsoft.azurefunction": "Azure Function",
    "microsoft.kusto/clusters/databases": "Data Explorer",
    "microsoft.dbforpostgresql/servers/databases": "PostgreSQL",
    "powerbi": "Power BI",
}
_PARTS = ("inputs", "outputs", "functions", "transformations")
_LANGUAGES = {
    "microsoft.streamanalytics/javascriptudf": "JavaScript",
    "microsoft.streamanalytics/clrudf": "C#",
    "microsoft.machinelearning/webservice": "machine learning",
    "microsoft.machinelearningservices": "machine learning",
}


_Resources = Annotated[
    tuple[Any, ...], BeforeValidator(lambda listed: tuple(listed.values()) if isinstance(listed, dict) else listed)
]
"""Resources: a list, or an object with their symbolic names as keys."""


class _Template(JobPart):
    parameters: dict[str, Any] = Field(default_factory=dict)
    variables: dict[str, Any] = Field(default_factory=dict)
    resources: _Resources = ()


class _ResourcePart(JobPart):
    type: str
    name: str = ""
    location: str = ""
    properties: dict[str, Any] = Field(default_factory=dict)
    resources: _Resources = ()


class _Delimited(JobPart):
    field_delimiter: str | None = None


class _Serialization(JobPart):
    type: Format = "Json"
    properties: _Delimited = _Delimited()


class _Compression(JobPart):
    type: Format = "None"


class _DataSource(JobPart):
    type: Kind = "unknown"
    properties: SourcePart = SourcePart()


class _InputProperties(JobPart):
    type: str = "Stream"
    datasource: _DataSource = _DataSource()
    serialization: _Serialization = _Serialization()
    compression: _Compression = _Compression()


class _OutputProperties(JobPart):
    datasource: _DataSource = _DataSource()
    serialization: _Serialization = _Serialization()
    watermark_settings: Any = None


class _Script(JobPart):
    script: str | None = None


class _Binding(JobPart):
    type: Kind = "unknown"
    properties: _Script = _Script()


class _DataType(JobPart):
    data_type: str = "any"


class _Signature(JobPart):
    binding: _Binding = _Binding()
    inputs: tuple[_DataType, ...] = ()
    output: _DataType = _DataType()


class _FunctionProperties(JobPart):
    type: str = "Scalar"
    properties: _Signature = _Signature()


class _Query(JobPart):
    query: str | None = None


class _Named(JobPart):
    name: str
    properties: dict[str, Any] = Field(default_factory=dict)


class _Transformation(JobPart):
    properties: _Query = _Query()


class _JobProperties(JobPart):
    inputs: tuple[_Named, ...] = ()
    outputs: tuple[_Named, ...] = ()
    functions: tuple[_Named, ...] = ()
    transformation: _Transformation = _Transformation()


@dataclass(frozen=True)
class _Resource:
    """Resource with its expressions resolved. `type` is in lower case; `name` includes the names of its parents."""

    type: str
    name: str
    properties: dict[str, Any]
    location: str
    """Region; `${NAME}` or empty if the template does not say it."""


def read_template(path: Path, job_name: str | None) -> AsaJob:
    """Return the job in a template; `job_name` chooses one of several.

    The file NAME.parameters.json next to NAME.json has values of its parameters. Raise DefinitionError if the template
    has no such job, or is damaged.
    """
    file = path.name
    document = parse_json(read_text(path, file), file)
    if is_answer(document):
        return read_answers([document], file)
    return _asa_job(file, _resources_of(document, path), job_name)


def read_answers(answers: list[Any], origin: str) -> AsaJob:
    """Return the job in answers of Azure's REST API, which have no expressions: a job, and event hubs."""
    document = {"resources": [_literal(answer) for answer in answers]}
    return _asa_job(origin, list(_in_template(document, TemplateScope(Expansion(origin)))), None)


def read_template_captures(path: Path, document: Any) -> Captures:
    """Return what a template says about Capture. Raise DefinitionError if it is damaged."""
    return _captures(path.name, _resources_of(document, path))


def _resources_of(document: Any, path: Path) -> list["_Resource"]:
    """Return the resources of a template, with the values of its parameters file."""
    if not isinstance(document, dict) or "resources" not in {key.lower() for key in document}:
        raise DefinitionError(f"{path.name}: not an ARM template: it has no resources")
    return list(_in_template(document, TemplateScope(Expansion(path.name), arguments=_given(path))))


def _captures(file: str, resources: list["_Resource"]) -> Captures:
    return captures_in(file, ((resource.type, resource.name, resource.properties) for resource in resources))


def _asa_job(file: str, resources: list["_Resource"], job_name: str | None) -> AsaJob:
    """Return the job of this name, or the only job, in the resources of a file."""
    jobs = [resource for resource in resources if resource.type == JOB]
    job = _job(file, jobs, job_name)
    prefix = "" if len(jobs) == 1 else f"{job.name.lower()}/"
    own = [
        resource
        for resource in resources
        if resource.type.startswith(f"{JOB}/") and resource.name.lower().startswith(prefix)
    ]
    where = f"{file}, {job.name}"
    settings, read = parse_part(SettingsPart, job.properties, where), parse_part(_JobProperties, job.properties, where)

    def parts(kind: str, nested: tuple[_Named, ...]) -> list[tuple[str, dict[str, Any], str]]:
        """Return the name, the properties and the place of the job's parts of this kind."""
        separate = [resource for resource in own if resource.type == f"{JOB}/{kind}"]
        named = [(part.name.rpartition("/")[2], part.properties) for part in separate]
        named = [*((part.name, part.properties) for part in nested), *named]
        return [(name, properties, f"{file}, {kind}/{name}") for name, properties in named]

    query, query_where = read.transformation.properties.query, where
    for _, properties, query_where in parts("transformations", ()):
        query = parse_part(_Query, properties, query_where).query
    if query is None:
        raise DefinitionError(f"{file}: the job {job.name} has no query: export it with its transformation")
    return AsaJob(
        name=job.name,
        origin=file,
        query=query.replace("\r\n", "\n").replace("\r", "\n"),
        query_where=query_where,
        settings=settings,
        settings_where=where,
        settings_exist=True,
        inputs=tuple(_input(*item) for item in parts("inputs", read.inputs)),
        outputs=tuple(_output(*item) for item in parts("outputs", read.outputs)),
        functions=tuple(_function(*item) for item in parts("functions", read.functions)),
        unread=tuple(
            f"{file}, {resource.name}" for resource in own if resource.type.removeprefix(f"{JOB}/") not in _PARTS
        ),
        captures=_captures(file, resources),
        region=job.location,
    )


def is_answer(document: Any) -> bool:
    """Return whether a document is a job as Azure's REST API answers, not a template."""
    return isinstance(document, dict) and str(document.get("type", "")).lower() == JOB and "properties" in document


def _literal(value: Any) -> Any:
    """Return a value in a template's notation: [a] => [[a]"""
    if isinstance(value, dict):
        return {key: _literal(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_literal(item) for item in value]
    return f"[{value}" if isinstance(value, str) and value.startswith("[") and value.endswith("]") else value


def _given(path: Path) -> dict[str, Any]:
    """Return the values in the parameters file of a template; none without such a file."""
    folder, file = JobFolder(path.parent), f"{path.stem}.parameters.json"
    if not folder.has(file):
        return {}
    return parse_part(_Arguments, parse_json(folder.read(file), file), file).values


def _job(file: str, jobs: list[_Resource], job_name: str | None) -> _Resource:
    """Return the job of this name. Raise DefinitionError if there is none, or if there are several and no name."""
    names = ", ".join(job.name for job in jobs)
    if not jobs:
        raise DefinitionError(f"{file}: the template has no Microsoft.StreamAnalytics/streamingjobs resource")
    if job_name is not None:
        jobs = [job for job in jobs if job.name.lower() == job_name.lower()]
        if not jobs:
            raise DefinitionError(f"{file}: no job {job_name}: choose one of {names}")
    if len(jobs) > 1:
        raise DefinitionError(f"{file}: has several jobs, {names}: choose one with --job NAME")
    return jobs[0]


def _in_template(document: Any, outer: TemplateScope) -> Iterator[_Resource]:
    template = parse_part(_Template, document, outer.file)
    scope = TemplateScope(outer.expansion, template.parameters, template.variables, outer.arguments)
    yield from _resources(template.resources, scope, "", "")


def _resources(
    listed: tuple[Any, ...], scope: TemplateScope, parent_type: str, parent_name: str
) -> Iterator[_Resource]:
    """Yield the resources that a job is read from, including those inside others and in nested deployments."""
    for item in listed:
        resource = parse_part(_ResourcePart, item, f"{scope.file}, resources")
        kind, name = resource.type.lower(), str(scope.resolve(resource.name))
        if parent_type and not kind.startswith(f"{parent_type}/"):
            kind, name = f"{parent_type}/{kind}", f"{parent_name}/{name}"
        if kind == _DEPLOYMENT:
            yield from _in_deployment(resource.properties, scope)
        if kind.startswith((JOB, *PARENTS)):
            location = str(scope.resolve(resource.location))
            yield _Resource(kind, name, scope.resolve(resource.properties), location)
            yield from _resources(resource.resources, scope, kind, name)


class _Arguments(JobPart):
    parameters: dict[str, Any] = Field(default_factory=dict)

    @property
    def values(self) -> dict[str, Any]:
        """Values of the parameters, by name."""
        return {name: item.get("value") for name, item in self.parameters.items() if isinstance(item, dict)}


class _Deployment(_Arguments):
    template: dict[str, Any] | None = None


def _in_deployment(properties: dict[str, Any], scope: TemplateScope) -> Iterator[_Resource]:
    deployment = parse_part(_Deployment, properties, f"{scope.file}, a nested deployment")
    if deployment.template is None:
        return
    arguments = {name: scope.resolve(value) for name, value in deployment.values.items()}
    yield from _in_template(deployment.template, TemplateScope(scope.expansion, arguments=arguments))


def _input(name: str, properties: dict[str, Any], where: str) -> JobInput:
    read = parse_part(_InputProperties, properties, where)
    kind = _kind(read.datasource)
    source: EventHub | BlobFolder | None = None
    path = None
    if kind == "Event Hub":
        source = sources.event_hub(read.datasource.properties)
    elif kind == "Blob storage":
        source = sources.blob_folder(read.datasource.properties)
        path = sources.blob_path(read.datasource.properties)
    return JobInput(
        alias=name,
        where=where,
        kind=kind,
        reference=read.type.lower().startswith("reference"),
        source=source,
        serialization=read.serialization.type,
        compression=read.compression.type,
        path=path,
        delimiter=read.serialization.properties.field_delimiter,
    )


def _output(name: str, properties: dict[str, Any], where: str) -> JobOutput:
    read = parse_part(_OutputProperties, properties, where)
    kind = _kind(read.datasource)
    return JobOutput(
        alias=name,
        where=where,
        kind=kind,
        target=sources.blob_folder(read.datasource.properties) if kind == "Blob storage" else None,
        serialization=read.serialization.type,
        has_watermark_settings=read.watermark_settings is not None,
    )


def _function(name: str, properties: dict[str, Any], where: str) -> JobFunction:
    read = parse_part(_FunctionProperties, properties, where)
    signature, kind = read.properties, read.properties.binding.type
    language = _LANGUAGES.get(kind.lower(), kind)
    return JobFunction(
        name=name,
        where=where,
        language=language,
        is_aggregate=read.type.lower() == "aggregate",
        script=signature.binding.properties.script if language == "JavaScript" else None,
        output_type=sources.data_type(signature.output.data_type),
        argument_types=tuple(sources.data_type(argument.data_type) for argument in signature.inputs),
    )


def _kind(source: _DataSource) -> str:
    return _KINDS.get(source.type.lower(), source.type)
