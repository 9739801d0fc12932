"""Read an ASA project of the tools for Visual Studio Code (asaproj.json) or Visual Studio (*.asaproj)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from recapture.errors import DefinitionError
from recapture.tools.asa_job import sources
from recapture.tools.asa_job.documents import Format, JobPart, Kind, P, SettingsPart, SourcePart, parse_json, parse_part
from recapture.tools.asa_job.folder import JobFolder
from recapture.tools.asa_job.job import AsaJob, BlobFolder, EventHub, JobFunction, JobInput, JobOutput

_ABSENT = "its file does not exist"
_PLACEHOLDER = "its file is a placeholder of Visual Studio, without a name"
_LANGUAGES = {"js": "JavaScript", "javascript": "JavaScript", "csharp": "C#", "aml": "machine learning"}


class _Configuration(JobPart):
    file_path: str
    sub_type: Kind

    @property
    def path(self) -> str:
        """Path relative to the project's folder, with slashes; Visual Studio writes backslashes."""
        return self.file_path.replace("\\", "/")

    @property
    def kind(self) -> str:
        """Kind of the part, in lower case."""
        return self.sub_type.lower()


class _Project(JobPart):
    name: str | None = None
    start_file: str | None = None
    configurations: tuple[_Configuration, ...] = ()


class _Serialization(JobPart):
    type: Format = "Json"
    field_delimiter: str | None = None


class _Input(JobPart):
    name: str
    type: str = ""
    data_source_type: Kind = "unknown"
    event_hub_properties: SourcePart | None = None
    blob_storage_properties: SourcePart | None = None
    blob_reference_properties: SourcePart | None = None
    serialization: _Serialization = _Serialization()
    compression_type: Format = "None"
    compresssion_type: Format = "None"
    """Compression as Visual Studio spells the key."""

    @property
    def blobs(self) -> SourcePart | None:
        """Blobs of events or of reference data."""
        return self.blob_storage_properties or self.blob_reference_properties


class _Output(JobPart):
    name: str
    data_source_type: Kind = "unknown"
    blob_storage_properties: SourcePart | None = None
    serialization: _Serialization = _Serialization()
    watermark_settings: Any = None


class _FunctionInput(JobPart):
    data_type: str = "any"


class _Function(JobPart):
    name: str
    type: str = "Scalar"
    output_type: str = "any"
    function_inputs: tuple[_FunctionInput, ...] = ()


def read_project(file: Path) -> AsaJob:
    """Return the job of the project in this file.

    A part whose file does not exist, or is Visual Studio's placeholder, has the name of its file, and the problem.
    Raise DefinitionError if the query does not exist, or a file is damaged.
    """
    folder = JobFolder(file.parent)
    text = folder.read(file.name)
    is_xml = file.suffix.lower() == ".asaproj"
    project = _from_xml(text, file) if is_xml else parse_part(_Project, parse_json(text, file.name), file.name)
    query_file = _query_file(file.name, folder, project)
    config = next(_of_kind(project, "jobconfig"), None)
    where = config.path if config else file.name
    has_settings = config is not None and folder.has(where)
    return AsaJob(
        name=project.name or folder.path.resolve().name,
        origin=file.name,
        query=folder.read(query_file),
        query_where=Path(query_file).name,
        settings=parse_part(SettingsPart, parse_json(folder.read(where), where) if has_settings else {}, where),
        settings_where=where,
        settings_exist=has_settings or config is None,
        inputs=tuple(_inputs(folder, project)),
        outputs=tuple(_outputs(folder, project)),
        functions=tuple(_functions(folder, project)),
        unread=tuple(part.path for part in project.configurations if not _is_known(part)),
    )


def _query_file(file: str, folder: JobFolder, project: _Project) -> str:
    """Return the relative path of the query. Raise DefinitionError if the project names none, or a missing one."""
    queries = ", ".join(sorted(path.name for path in folder.path.glob("*.asaql")))
    if project.start_file is None:
        choice = f"one of {queries}" if queries else "an .asaql file"
        raise DefinitionError(f"{file}: no query file is set: set startFile to {choice}")
    path = project.start_file.replace("\\", "/")
    if not folder.has(path):
        choice = f"; the folder has {queries}" if queries else ""
        raise DefinitionError(f"{file}: the query file {project.start_file} does not exist: correct it{choice}")
    return path


def _from_xml(text: str, file: Path) -> _Project:
    """Return the project in a Visual Studio file with MSBuild items. Raise DefinitionError if it is not such XML."""
    if "<!DOCTYPE" in text:
        raise DefinitionError(f"{file.name}: not a project file: it declares a document type")
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        line, column = error.position
        raise DefinitionError(f"{file.name}:{line}:{column + 1}: not XML") from None
    elements: dict[str, list[ElementTree.Element]] = {}
    for element in root.iter():
        elements.setdefault(element.tag.rpartition("}")[2], []).append(element)
    scripts = [script.get("Include", "") for script in elements.get("Script", [])]
    if len(scripts) > 1:
        raise DefinitionError(f"{file.name}: has several queries, {', '.join(scripts)}: keep one <Script>")
    names = [
        name.text for project in elements.get("PropertyGroup", []) for name in project if name.tag.endswith("}Name")
    ]
    listed = [{"filepath": item.get("Include"), "subtype": _sub_type(item)} for item in elements.get("Configure", [])]
    document = {
        "name": names[0] if names else file.stem,
        "startfile": scripts[0] if scripts else None,
        "configurations": listed,
    }
    return parse_part(_Project, document, file.name)


def _sub_type(item: ElementTree.Element) -> str:
    return next((child.text or "" for child in item if child.tag.rpartition("}")[2] == "SubType"), "")


def _of_kind(project: _Project, kind: str) -> Iterator[_Configuration]:
    """Return the files of the project that are of this kind."""
    return (configuration for configuration in project.configurations if configuration.kind == kind)


def _inputs(folder: JobFolder, project: _Project) -> Iterator[JobInput]:
    for configuration in _of_kind(project, "input"):
        read, problem = _definition(folder, configuration, _Input)
        kind, source = _source(read)
        compression = read.compression_type if read.compression_type != "None" else read.compresssion_type
        yield JobInput(
            alias=read.name,
            where=configuration.path,
            kind=kind,
            reference=read.type.lower().startswith("reference"),
            source=source,
            serialization=read.serialization.type,
            compression=compression,
            path=sources.blob_path(read.blobs) if read.blobs else None,
            delimiter=read.serialization.field_delimiter,
            problem=problem,
        )


def _source(read: _Input) -> tuple[str, EventHub | BlobFolder | None]:
    if read.event_hub_properties:
        return "Event Hub", sources.event_hub(read.event_hub_properties)
    if read.blobs:
        return "Blob storage", sources.blob_folder(read.blobs)
    return read.data_source_type, None


def _outputs(folder: JobFolder, project: _Project) -> Iterator[JobOutput]:
    for configuration in _of_kind(project, "output"):
        read, problem = _definition(folder, configuration, _Output)
        blobs = read.blob_storage_properties
        yield JobOutput(
            alias=read.name,
            where=configuration.path,
            kind="Blob storage" if blobs else read.data_source_type,
            target=sources.blob_folder(blobs) if blobs else None,
            serialization=read.serialization.type,
            has_watermark_settings=read.watermark_settings is not None,
            problem=problem,
        )


def _functions(folder: JobFolder, project: _Project) -> Iterator[JobFunction]:
    for configuration in project.configurations:
        if "function" not in configuration.kind:
            continue
        read, problem = _definition(folder, configuration, _Function)
        language = next((name for word, name in _LANGUAGES.items() if configuration.kind.startswith(word)), None)
        yield JobFunction(
            name=read.name,
            where=configuration.path,
            language=language or configuration.sub_type,
            is_aggregate=read.type.lower() == "aggregate",
            script=_script(folder, configuration) if language == "JavaScript" else None,
            output_type=sources.data_type(read.output_type),
            argument_types=tuple(sources.data_type(argument.data_type) for argument in read.function_inputs),
            problem=problem,
        )


def _script(folder: JobFolder, configuration: _Configuration) -> str | None:
    """Return the script of a function, which is next to its file: classify.js.json => classify.js; None without one."""
    script = configuration.path.removesuffix(".json")
    return folder.read(script) if script.lower().endswith(".js") and folder.has(script) else None


def _is_known(configuration: _Configuration) -> bool:
    """Return whether the kind of the file is known. InputMock is an input's local sample."""
    return configuration.kind in ("jobconfig", "input", "inputmock", "output") or "function" in configuration.kind


def _definition(folder: JobFolder, configuration: _Configuration, model: type[P]) -> tuple[P, str | None]:
    """Return what a part's file defines, and the problem if it does not define the part, which then has a name only.

    Inputs/telemetry.json, which does not exist => the name telemetry, "its file does not exist"
    """
    where = configuration.path
    named = {"Name": Path(where).name.removesuffix(".json").removesuffix(".js")}
    if not folder.has(where):
        return parse_part(model, named, where), _ABSENT
    document = parse_json(folder.read(where), where)
    if isinstance(document, dict) and all(key.lower() != "name" or item is None for key, item in document.items()):
        return parse_part(model, document | named, where), _PLACEHOLDER
    return parse_part(model, document, where), None
