"""Carry the inputs that a query reads over into the `input` sections of a pipeline file."""

from typing import Any

from recapture.tools.asa_job import query_text
from recapture.tools.asa_job.draft import NO_CONTAINER, Draft, Finding, Place, on_lines
from recapture.tools.asa_job.job import AsaJob, BlobFolder, BlobPath, EventHub, JobInput

CAPTURE_INTERVAL = 300
"""Default interval of Capture, in seconds."""

_DELIMITERS = (",", ";", "\t", "|", " ")
_CAPTURE_FIELDS = ("SequenceNumber", "Offset", "EnqueuedTimeUtc", "SystemProperties", "Properties", "Body")


def input_sections(draft: Draft, job: AsaJob) -> dict[str, Any] | list[dict[str, Any]]:
    """Return the section of each input that the query reads: a list if there are several, else the only section.

    Add a finding for each part of an input that a pipeline cannot take, and for each input that is not read.
    """
    inputs = _read_inputs(job)
    several = len(inputs) > 1
    sections = [
        _section(draft, job, input_, ("input", number) if several else ("input",))
        for number, input_ in enumerate(inputs)
    ]
    for input_ in job.inputs:
        if input_ not in inputs:
            draft.different.append(Finding(input_.where, f"input {input_.alias} is not read by the query: left out"))
    return sections if several else sections[0]


def _read_inputs(job: AsaJob) -> list[JobInput | None]:
    """Return the inputs that the query reads, in its order, with at least one stream.

    If the query reads no stream of the job, the first is that of the job, or None without any.
    """
    names = [name.lower() for name in query_text.sources(job.query)]
    read = [input_ for input_ in job.inputs if input_.alias.lower() in names]
    read.sort(key=lambda input_: names.index(input_.alias.lower()))
    if any(not input_.reference for input_ in read):
        return [*read]
    return [next((input_ for input_ in job.inputs if not input_.reference), None), *read]


def _section(draft: Draft, job: AsaJob, input_: JobInput | None, place: Place) -> dict[str, Any]:
    """Return the section of an input, which is at this place; None stands for a stream that the job does not define."""
    if input_ is None:
        return _undefined_stream(draft, job, place)
    if input_.reference:
        return _reference(draft, input_, place)
    if isinstance(input_.source, BlobFolder) and input_.serialization in ("Json", "Csv"):
        return {**_blobs(draft, input_, input_.source, place), "arrival_time": "BlobLastModified"}
    hub, container = _capture(draft, job, input_, place)
    arrival_time = "BlobLastModified" if isinstance(input_.source, BlobFolder) else "EventEnqueuedUtcTime"
    return _capture_section(input_.alias, hub, container, arrival_time)


def _undefined_stream(draft: Draft, job: AsaJob, place: Place) -> dict[str, Any]:
    reason = "the job defines no stream input: set container, namespace and event_hub to those of the Capture"
    _add_missing(draft, job.origin, reason, place, "container", "namespace", "event_hub")
    references = [input_.alias.lower() for input_ in job.inputs]
    alias = next((name for name in query_text.sources(job.query) if name.lower() not in references), None)
    return _capture_section(alias, EventHub(None, None), None, "EventEnqueuedUtcTime")


def _capture_section(alias: str | None, hub: EventHub, container: str | None, arrival_time: str) -> dict[str, Any]:
    return {
        "alias": alias,
        "container": container or NO_CONTAINER,
        "namespace": hub.namespace,
        "event_hub": hub.name,
        "capture_interval_seconds": CAPTURE_INTERVAL,
        "arrival_time": arrival_time,
    }


def _reference(draft: Draft, input_: JobInput, place: Place) -> dict[str, Any]:
    """Return the section of reference data."""
    if input_.problem is None and isinstance(input_.source, BlobFolder) and input_.serialization in ("Json", "Csv"):
        return _reference_blobs(draft, input_, input_.source, place)
    name = f"input {input_.alias}"
    if input_.problem is not None:
        reason = (
            f"{name} is not defined, as {input_.problem}: set format, container and path to those of its blobs, or "
            "restore the file and import the job again"
        )
    else:
        source = f"in {input_.serialization}" if isinstance(input_.source, BlobFolder) else f"of kind {input_.kind}"
        reason = (
            f"{name} is reference data {source}, but a pipeline reads it from JSON or CSV blobs: export all rows each "
            "time they change, to a blob with that time in its name, and set container and path; if they never change, "
            "take {date} and {time} out of path"
        )
    _add_missing(draft, input_.where, reason, place, "container", "path")
    return {
        "type": "Reference",
        "alias": input_.alias,
        "format": "Json",
        "container": NO_CONTAINER,
        "path": f"{input_.alias}/{{date}}/{{time}}/{input_.alias}.json",
    }


def _reference_blobs(draft: Draft, input_: JobInput, folder: BlobFolder, place: Place) -> dict[str, Any]:
    section = {"type": "Reference", **_blobs(draft, input_, folder, place)}
    if "path" not in section:
        section["path"] = None
        reason = f"input {input_.alias} has no path: set path to the name of the blob"
        _add_missing(draft, input_.where, reason, place, "path")
    if input_.path and input_.path.has_deltas:
        reason = (
            f"input {input_.alias} has blobs of changes (deltaPathPattern), but a pipeline reads only blobs of all "
            "rows: write a blob of all rows for each change"
        )
        _add_missing(draft, input_.where, reason, place, "path")
    return section


def _blobs(draft: Draft, input_: JobInput, folder: BlobFolder, place: Place) -> dict[str, Any]:
    """Return the keys of a Blob input of JSON or CSV, other than its type and arrival time."""
    name = f"input {input_.alias}"
    if folder.url is None:
        reason = f"{name} has no valid storage account or container name: set container"
        _add_missing(draft, input_.where, reason, place, "container")
    if input_.compression not in ("None", "GZip"):
        reason = f"{name} holds blobs compressed with {input_.compression}, but only GZip is supported"
        advice = "have the writer leave them uncompressed"
        _add_missing(draft, input_.where, f"{reason}: {advice}", place, "container")
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
            reason = f"{name} has a {key.replace('_', ' ')} that cannot be read: set {key}"
            _add_missing(draft, input_.where, reason, place, key)
    if values["delimiter"] not in ("", *_DELIMITERS):
        values["delimiter"] = None
        reason = f"{name} has a delimiter that ASA does not support: set delimiter"
        _add_missing(draft, input_.where, reason, place, "delimiter")
    return {key: value for key, value in values.items() if value != ""}


def _capture(draft: Draft, job: AsaJob, stream: JobInput, place: Place) -> tuple[EventHub, str | None]:
    """Return the event hub and the url of Capture's container; None where the input does not give a name."""
    name = f"input {stream.alias}"
    if isinstance(stream.source, EventHub):
        _bodies(draft, stream, place)
        reason = (
            f"{name} does not say where Capture writes its events: set container, and capture_interval_seconds if it "
            f"is not {CAPTURE_INTERVAL}"
        )
        _add_missing(draft, stream.where, reason, place, "container")
        _names(draft, stream, stream.source, place)
        return stream.source, None
    if isinstance(stream.source, BlobFolder):
        return _capture_blobs(draft, job, stream, stream.source, place)
    advice = "set container, namespace and event_hub"
    if stream.problem is not None:
        reason = (
            f"{name} is not defined, as {stream.problem}: {advice} to those of its Capture, or restore the file and "
            "import the job again"
        )
    else:
        reason = (
            f"{name} is of kind {stream.kind}, but a pipeline reads only archives: route its events to an event hub "
            f"with Capture, and {advice}; or use another input format"
        )
    _add_missing(draft, stream.where, reason, place, "container", "namespace", "event_hub")
    return EventHub(None, None), None


def _bodies(draft: Draft, stream: JobInput, place: Place) -> None:
    """Add a finding if the bodies are not plain JSON."""
    name = f"input {stream.alias}"
    if stream.serialization.lower() != "json":
        reason = f"holds {stream.serialization} bodies, but only JSON is supported: every event would be malformed"
        _add_missing(draft, stream.where, f"{name} {reason}; have the senders write JSON", place, "alias")
    if stream.compression.lower() != "none":
        reason = f"holds bodies compressed with {stream.compression}, but only plain JSON is supported"
        advice = "every event would be malformed; have the senders write plain JSON"
        _add_missing(draft, stream.where, f"{name} {reason}: {advice}", place, "alias")


def _capture_blobs(
    draft: Draft, job: AsaJob, stream: JobInput, folder: BlobFolder, place: Place
) -> tuple[EventHub, str | None]:
    """Return the event hub and the container url of a Blob input that reads Capture's Avro blobs.

    The names of the namespace and event hub are the last two folders before the path pattern's first token.
    """
    name = f"input {stream.alias}"
    if stream.serialization.lower() != "avro":
        reason = f"reads {stream.serialization} blobs, but only JSON, CSV and Capture's Avro blobs are supported"
        advice = "set container to one that Capture writes to"
        _add_missing(draft, stream.where, f"{name} {reason}: {advice}", place, "container")
    lines = sorted({line for field in _CAPTURE_FIELDS for line in query_text.lines_naming(job.query, field)})
    if lines:
        reason = (
            f"{name} reads Capture's records ({on_lines(lines)}: one of {', '.join(_CAPTURE_FIELDS)}), but a pipeline "
            "reads the fields of the body: use these fields in the query"
        )
        draft.add_missing(Finding(stream.where, reason), ("job", "query"))
    *prefix, namespace, event_hub = folder.folders if len(folder.folders) >= 2 else (None, None)
    hub = EventHub(namespace, event_hub)
    _names(draft, stream, hub, place)
    if folder.url is None:
        reason = f"{name} has no valid storage account or container name: set container"
        _add_missing(draft, stream.where, reason, place, "container")
        return hub, None
    reason = f"{name} does not give Capture's interval: set capture_interval_seconds if it is not {CAPTURE_INTERVAL}"
    draft.different.append(Finding(stream.where, reason))
    return hub, "/".join([folder.url, *prefix])


def _names(draft: Draft, stream: JobInput, hub: EventHub, place: Place) -> None:
    """Add a finding for each name of the event hub that the job does not give."""
    for key, value in (("namespace", hub.namespace), ("event_hub", hub.name)):
        if value is None:
            reason = f"input {stream.alias} has no {key.replace('_', ' ')}: set {key}"
            _add_missing(draft, stream.where, reason, place, key)


def _add_missing(draft: Draft, where: str, reason: str, place: Place, *keys: str) -> None:
    """Record a missing part of an input, and note it above these keys of the section at `place`."""
    draft.add_missing(Finding(where, reason), *((*place, key) for key in keys))
