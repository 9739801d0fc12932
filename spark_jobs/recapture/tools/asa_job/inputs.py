"""Carry the inputs that a query reads over into the `input` sections of a pipeline file."""

from dataclasses import dataclass
from typing import Any

from recapture.formats.event_hubs import DEFAULT_PATH
from recapture.tools.asa_job import query_text
from recapture.tools.asa_job.draft import NO_CONTAINER, Draft, Place, listed, on_lines
from recapture.tools.asa_job.job import AsaJob, BlobFolder, BlobPath, EventHub, JobInput

CAPTURE_INTERVAL = 300
"""Default interval of Capture, in seconds."""
_DELIMITERS = (",", ";", "\t", "|", " ")
_CAPTURE_FIELDS = ("SequenceNumber", "Offset", "EnqueuedTimeUtc", "SystemProperties", "Properties", "Body")
_NO_CONTAINER = "has no valid storage account or container name: set container"


@dataclass(frozen=True)
class _Section:
    """Section of an input in the draft of a job."""

    draft: Draft
    job: AsaJob
    input: JobInput
    place: Place

    def add_missing(self, what: str, *keys: str) -> None:
        """Record what is wrong with the input, and note it above these keys of the section."""
        self.draft.add_missing(self.input.where, f"input {self.input.alias} {what}", self.place, *keys)


def input_sections(draft: Draft, job: AsaJob) -> dict[str, Any] | list[dict[str, Any]]:
    """Return the section of each input that the query reads: a list if there are several, else the only section.

    Add a finding for each part of an input that a pipeline cannot take, and for each input that is not read.
    """
    inputs = _read_inputs(job)
    several = len(inputs) > 1
    sections = []
    for number, input_ in enumerate(inputs):
        place: Place = ("input", number) if several else ("input",)
        if input_ is None:
            sections.append(_undefined_stream(draft, job, place))
        else:
            sections.append(_values(_Section(draft, job, input_, place)))
    for input_ in job.inputs:
        if input_ not in inputs:
            draft.add_different(input_.where, f"input {input_.alias} is not read by the query: left out")
    return sections if several else sections[0]


def _read_inputs(job: AsaJob) -> list[JobInput | None]:
    """Return the inputs that the query reads, in its order; without a stream, first the job's stream, or None."""
    names = [name.lower() for name in query_text.sources(job.query)]
    read = [input_ for input_ in job.inputs if input_.alias.lower() in names]
    read.sort(key=lambda input_: names.index(input_.alias.lower()))
    if any(not input_.reference for input_ in read):
        return [*read]
    return [next((input_ for input_ in job.inputs if not input_.reference), None), *read]


def _undefined_stream(draft: Draft, job: AsaJob, place: Place) -> dict[str, Any]:
    """Return the section of a stream that the job does not define."""
    reason = "the job defines no stream input: set container, namespace and event_hub to those of the Capture"
    draft.add_missing(job.origin, reason, place, "container", "namespace", "event_hub")
    references = [input_.alias.lower() for input_ in job.inputs]
    alias = next((name for name in query_text.sources(job.query) if name.lower() not in references), None)
    return _capture_section(alias, EventHub(None, None), None, "EventEnqueuedUtcTime")


def _values(section: _Section) -> dict[str, Any]:
    """Return the keys and values of a section."""
    input_, source = section.input, section.input.source
    if isinstance(source, BlobFolder) and input_.serialization in ("Json", "Csv"):
        if not input_.reference:
            return {**_blobs(section, source), "arrival_time": "BlobLastModified"}
        if input_.problem is None:
            return _reference_blobs(section, source)
    if input_.reference:
        return _other_reference(section)
    if isinstance(source, BlobFolder):
        return _capture_section(input_.alias, *_capture_blobs(section, source), "BlobLastModified")
    if isinstance(source, EventHub):
        bodies = _bodies(section)
        return _event_hub(section, source) | bodies
    advice = "set container, namespace and event_hub"
    if input_.problem is not None:
        reason = (
            f"is not defined, as {input_.problem}: {advice} to those of its Capture, or restore the file and import "
            "the job again"
        )
    else:
        reason = (
            f"is of kind {input_.kind}, but a pipeline reads only archives: route its events to an event hub with "
            f"Capture, and {advice}; or use another input format"
        )
    section.add_missing(reason, "container", "namespace", "event_hub")
    return _capture_section(input_.alias, EventHub(None, None), None, "EventEnqueuedUtcTime")


def _event_hub(section: _Section, hub: EventHub) -> dict[str, Any]:
    """Return the section of an event hub: the address of its Capture, or a finding that asks for exactly that."""
    values = _capture_section(section.input.alias, hub, None, "EventEnqueuedUtcTime")
    unknown = [key for key in ("namespace", "event_hub") if values[key] is None]
    captures = section.job.captures
    capture = captures.of(hub.namespace, hub.name) if hub.namespace and hub.name else None
    folder = captures.folder_of(hub.namespace, hub.name) if hub.namespace and hub.name else None
    if capture and capture.container:
        values["container"] = capture.container
        if capture.name_format not in (None, "", DEFAULT_PATH):
            values["path"] = capture.name_format
        if capture.interval_seconds is not None:
            values["capture_interval_seconds"] = capture.interval_seconds
        if not capture.writes_empty_blobs:
            values["empty_blobs"] = False
    elif folder:
        values["container"], dataset = folder
        section.draft.add_different(
            dataset.where,
            f"this dataset reads Avro files of input {section.input.alias}: the pipeline file has its container; set "
            f"capture_interval_seconds if it is not {CAPTURE_INTERVAL}",
        )
    else:
        section.add_missing(
            f"does not say where Capture writes its events: set {listed(['container', *unknown])}, and "
            f"capture_interval_seconds if it is not {CAPTURE_INTERVAL}",
            "container",
        )
    return values


def _capture_section(alias: str | None, hub: EventHub, container: str | None, arrival_time: str) -> dict[str, Any]:
    return {
        "alias": alias,
        "container": container or NO_CONTAINER,
        "namespace": hub.namespace,
        "event_hub": hub.name,
        "capture_interval_seconds": CAPTURE_INTERVAL,
        "arrival_time": arrival_time,
    }


def _other_reference(section: _Section) -> dict[str, Any]:
    """Return the section of reference data that is not in blobs of JSON or CSV."""
    input_ = section.input
    if input_.problem is not None:
        reason = (
            f"is not defined, as {input_.problem}: set format, container and path to those of its blobs, or restore "
            "the file and import the job again"
        )
    else:
        source = f"in {input_.serialization}" if isinstance(input_.source, BlobFolder) else f"of kind {input_.kind}"
        reason = (
            f"is reference data {source}, but a pipeline reads it from JSON or CSV blobs: export all rows each time "
            "they change, to a blob with that time in its name, and set container and path; if they never change, take "
            "{date} and {time} out of path"
        )
    section.add_missing(reason, "container", "path")
    path = f"{input_.alias}/{{date}}/{{time}}/{input_.alias}.json"
    return {"type": "Reference", "alias": input_.alias, "format": "Json", "container": NO_CONTAINER, "path": path}


def _reference_blobs(section: _Section, folder: BlobFolder) -> dict[str, Any]:
    values = {"type": "Reference", **_blobs(section, folder)}
    if "path" not in values:
        values["path"] = None
        section.add_missing("has no path: set path to the name of the blob", "path")
    if section.input.path and section.input.path.has_deltas:
        section.add_missing(
            "has blobs of changes (deltaPathPattern), but a pipeline reads only blobs of all rows: write a blob of all "
            "rows for each change",
            "path",
        )
    return values


def _blobs(section: _Section, folder: BlobFolder) -> dict[str, Any]:
    """Return the keys of a Blob input of JSON or CSV, other than its type and arrival time."""
    input_ = section.input
    if folder.url is None:
        section.add_missing(_NO_CONTAINER, "container")
    if input_.compression not in ("None", "GZip"):
        section.add_missing(
            f"holds blobs compressed with {input_.compression}, but only GZip is supported: have the writer leave them "
            "uncompressed",
            "container",
        )
    path = input_.path or BlobPath("", "", "")
    values = {
        "alias": input_.alias,
        "format": input_.serialization,
        "container": folder.url or NO_CONTAINER,
        "path": path.pattern,
        "date_format": path.date_format,
        "time_format": path.time_format,
        "delimiter": (input_.delimiter or ",") if input_.serialization == "Csv" else "",
    }
    for key in ("path", "date_format", "time_format"):
        if values[key] is None:
            section.add_missing(f"has a {key.replace('_', ' ')} that cannot be read: set {key}", key)
    if values["delimiter"] not in ("", *_DELIMITERS):
        values["delimiter"] = None
        section.add_missing("has a delimiter that ASA does not support: set delimiter", "delimiter")
    return {key: value for key, value in values.items() if value != ""}


def _bodies(section: _Section) -> dict[str, str]:
    """Return the keys that say how bodies of an event hub are written; none for plain JSON."""
    input_ = section.input
    keys: dict[str, str] = {}
    if input_.serialization not in ("Json", "Csv", "Avro"):
        section.add_missing(
            f"holds {input_.serialization} bodies, but only JSON, CSV and Avro are supported: every event would be "
            "malformed; have the senders write one of these",
            "alias",
        )
    elif input_.serialization != "Json":
        keys["body_format"] = input_.serialization
    if input_.serialization == "Csv" and input_.delimiter not in (None, ""):
        keys["body_delimiter"] = input_.delimiter
        if input_.delimiter not in _DELIMITERS:
            section.add_missing("has a delimiter that ASA does not support: set body_delimiter", "body_delimiter")
    if input_.compression in ("GZip", "Deflate") and input_.serialization != "Avro":
        keys["body_compression"] = input_.compression
    elif input_.compression not in ("None", "GZip", "Deflate"):
        section.add_missing("has an unknown compression: set body_compression", "alias")
    return keys


def _capture_blobs(section: _Section, folder: BlobFolder) -> tuple[EventHub, str | None]:
    """Return the event hub, which the last two folders before the path's first token name, and the container's url."""
    draft, query = section.draft, section.job.query
    where, name = section.input.where, f"input {section.input.alias}"
    if section.input.serialization.lower() != "avro":
        section.add_missing(
            f"reads {section.input.serialization} blobs, but only JSON, CSV and Capture's Avro blobs are supported: "
            "set container to one that Capture writes to",
            "container",
        )
    lines = sorted({line for field in _CAPTURE_FIELDS for line in query_text.lines_naming(query, field)})
    if lines:
        reason = (
            f"{name} reads Capture's records ({on_lines(lines)}: one of {', '.join(_CAPTURE_FIELDS)}), but a pipeline "
            "reads the fields of the body: use these fields in the query"
        )
        draft.add_missing(where, reason, ("job",), "query")
    *prefix, namespace, event_hub = folder.folders if len(folder.folders) >= 2 else (None, None)
    hub = EventHub(namespace, event_hub)
    _check_names(section, hub)
    if folder.url is None:
        section.add_missing(_NO_CONTAINER, "container")
        return hub, None
    reason = f"{name} does not give Capture's interval: set capture_interval_seconds if it is not {CAPTURE_INTERVAL}"
    draft.add_different(where, reason)
    return hub, "/".join([folder.url, *prefix])


def _check_names(section: _Section, hub: EventHub) -> None:
    """Add a finding for each name of the event hub that the job does not give."""
    for key, value in (("namespace", hub.namespace), ("event_hub", hub.name)):
        if value is None:
            section.add_missing(f"has no {key.replace('_', ' ')}: set {key}", key)
