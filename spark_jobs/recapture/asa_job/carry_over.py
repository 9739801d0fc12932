"""What of an ASA job a pipeline file takes over, and what it cannot: each with its place, the reason and what to do."""

import re
from dataclasses import dataclass, field
from typing import Any

from recapture.asa_job import query_text
from recapture.asa_job.job import HOLE, AsaJob, BlobFolder, BlobPath, EventHub, JobInput
from recapture.errors import DefinitionError
from recapture.formats.sections import DEFAULT_FORMAT, FORMATS
from recapture.query import compile_query

CAPTURE_INTERVAL = 300
"""Seconds; what Capture is set to unless somebody says otherwise."""

NO_CONTAINER = "https://ACCOUNT.blob.core.windows.net/CONTAINER"
"""Stands for an unknown container; no pipeline with it can be loaded, for a container's name has small letters."""

_DELIMITERS = (",", ";", "\t", "|", " ")
_CAPTURE_FIELDS = ("SequenceNumber", "Offset", "EnqueuedTimeUtc", "SystemProperties", "Properties", "Body")
_BEFORE_1_2 = "a JSON true or false is a bit here and was a bigint, 1 or 0: CAST it where the query counts on that"
_LEVELS = {
    "1.1": _BEFORE_1_2,
    "1.0": f"{_BEFORE_1_2}; field names keep their letter case and became lower case, a text that looks like a time "
    "stays text and became a datetime in UTC, and CREATE TABLE refuses NaN as a float",
}

Place = tuple[str | int, ...]


@dataclass(frozen=True)
class Finding:
    """Something that is not carried over as it was."""

    where: str
    """The file and, in a template, the resource."""
    what: str
    """What it is, why, and what to do."""

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


@dataclass
class Draft:
    """What the pipeline file says, None where the job does not tell, and what is to be known of it."""

    name: str
    values: dict[str, Any]
    missing: list[Finding] = field(default_factory=list)
    """To be done before the pipeline runs as the job did."""
    different: list[Finding] = field(default_factory=list)
    """Carried over or left out, and not quite as in the job."""
    notes: dict[Place, list[str]] = field(default_factory=dict)
    """What the file says above the line of a key."""

    def lacks(self, finding: Finding, *places: Place) -> None:
        self.missing.append(finding)
        for place in places:
            self.notes.setdefault(place, []).append(f"TO DO: {finding.what}")


def carry_over(job: AsaJob) -> Draft:
    """Take over what a pipeline has a place for, and find what it has none for."""
    draft = Draft(_slug(job.name) or _slug(job.origin.partition(".")[0]) or "job", {})
    draft.values["name"] = draft.name
    stream = _stream(job)
    draft.values["input"] = _input(draft, job, stream)
    _other_inputs(draft, job, stream)
    _functions(draft, job)
    draft.values["job"] = _settings(draft, job)
    outputs = [_output(draft, job, alias, number) for number, alias in enumerate(query_text.written(job.query))]
    draft.values["output"] = outputs if len(outputs) > 1 else outputs[0]
    _left_out(draft, job)
    _holes(draft, job)
    _query(draft, job)
    return draft


def _stream(job: AsaJob) -> JobInput | None:
    """The stream that the pipeline reads: the first that the query names, else the first there is."""
    streams = [each for each in job.inputs if not each.reference]
    read = [name.lower() for name in query_text.sources(job.query)]
    used = [each for each in streams if each.alias.lower() in read]
    return min(used, key=lambda each: read.index(each.alias.lower())) if used else next(iter(streams), None)


def _input(draft: Draft, job: AsaJob, stream: JobInput | None) -> dict[str, Any]:
    if stream and isinstance(stream.source, BlobFolder) and stream.serialization in ("Json", "Csv"):
        return _plain(draft, stream, stream.source)
    hub, container = EventHub(None, None), None
    if stream is None:
        read = query_text.sources(job.query)
        alias = read[0] if read else None
        reason = "the job defines no stream input: set the container, namespace and event hub that Capture wrote"
        finding = Finding(job.origin, reason)
        draft.lacks(finding, ("input", "container"), ("input", "namespace"), ("input", "event_hub"))
    else:
        alias = stream.alias
        hub, container = _where_capture_is(draft, job, stream)
    source = stream.source if stream else None
    return {
        "alias": alias,
        "container": container or NO_CONTAINER,
        "namespace": hub.namespace,
        "event_hub": hub.name,
        "capture_interval_seconds": CAPTURE_INTERVAL,
        "arrival_time": "BlobLastModified" if isinstance(source, BlobFolder) else "EventEnqueuedUtcTime",
    }


def _plain(draft: Draft, stream: JobInput, folder: BlobFolder) -> dict[str, Any]:
    """A Blob input of JSON lines or CSV."""
    name = f"input {stream.alias}"
    container = _container_url(folder)
    if container is None:
        finding = Finding(stream.where, f"{name} names no storage account or no container: set container")
        draft.lacks(finding, ("input", "container"))
    if stream.compression not in ("None", "GZip"):
        reason = f"{name} holds blobs compressed with {stream.compression}, and only plain ones and GZip are read"
        draft.lacks(Finding(stream.where, f"{reason}: have the writer leave them plain"), ("input", "container"))
    path = stream.path or BlobPath("", "", "")
    values = {
        "alias": stream.alias,
        "format": stream.serialization,
        "container": container or NO_CONTAINER,
        "path": path.pattern,
        "date_format": path.date_format,
        "time_format": path.time_format,
        "delimiter": (stream.delimiter or ",") if stream.serialization == "Csv" else "",
        "arrival_time": "BlobLastModified",
    }
    for key in ("path", "date_format", "time_format"):
        if values[key] is None:
            finding = Finding(stream.where, f"{name} has a {key.replace('_', ' ')} that cannot be read: set {key}")
            draft.lacks(finding, ("input", key))
    if values["delimiter"] not in ("", *_DELIMITERS):
        values["delimiter"] = None
        finding = Finding(stream.where, f"{name} has a delimiter that ASA does not have: set delimiter")
        draft.lacks(finding, ("input", "delimiter"))
    return {key: value for key, value in values.items() if value != ""}


def _where_capture_is(draft: Draft, job: AsaJob, stream: JobInput) -> tuple[EventHub, str | None]:
    """The event hub and the container, as far as the input tells."""
    name = f"input {stream.alias}"
    if isinstance(stream.source, EventHub):
        _bodies(draft, stream)
        reason = (
            f"{name} does not tell where Capture writes its events: set container, and capture_interval_seconds if it "
            f"is not {CAPTURE_INTERVAL}"
        )
        draft.lacks(Finding(stream.where, reason), ("input", "container"))
        _names(draft, stream.where, name, stream.source)
        return stream.source, None
    if isinstance(stream.source, BlobFolder):
        return _captured(draft, job, stream, stream.source)
    reason = (
        f"{name} is of kind {stream.kind}, and only an archive is read: route its events to an event hub with "
        "Capture, and set container, namespace and event_hub; or write the input of another format"
    )
    finding = Finding(stream.where, reason)
    draft.lacks(finding, ("input", "container"), ("input", "namespace"), ("input", "event_hub"))
    return EventHub(None, None), None


def _bodies(draft: Draft, stream: JobInput) -> None:
    name = f"input {stream.alias}"
    if stream.serialization.lower() != "json":
        reason = f"holds {stream.serialization} bodies, and only JSON is read: every event would be malformed"
        draft.lacks(Finding(stream.where, f"{name} {reason}; have the senders write JSON"), ("input", "alias"))
    if stream.compression.lower() != "none":
        reason = f"holds bodies compressed with {stream.compression}, and only plain JSON is read"
        advice = "every event would be malformed; have the senders write plain JSON"
        draft.lacks(Finding(stream.where, f"{name} {reason}: {advice}"), ("input", "alias"))


def _captured(draft: Draft, job: AsaJob, stream: JobInput, folder: BlobFolder) -> tuple[EventHub, str | None]:
    """A Blob input: of Capture's files, when they are Avro. The pattern may begin with namespace and event hub."""
    name = f"input {stream.alias}"
    if stream.serialization.lower() != "avro":
        reason = f"reads {stream.serialization} blobs, and only JSON, CSV and the Avro blobs of Capture are read"
        draft.lacks(Finding(stream.where, f"{name} {reason}: set the container of a Capture"), ("input", "container"))
    lines = sorted({line for field in _CAPTURE_FIELDS for line in query_text.lines_naming(job.query, field)})
    if lines:
        reason = (
            f"{name} reads Capture's records ({_on(lines)} one of {', '.join(_CAPTURE_FIELDS)}), and a pipeline "
            "reads the fields of the body: name these fields themselves in the query"
        )
        draft.lacks(Finding(stream.where, reason), ("job", "query"))
    *prefix, namespace, event_hub = folder.folders if len(folder.folders) >= 2 else (None, None)
    hub = EventHub(namespace, event_hub)
    _names(draft, stream.where, name, hub)
    container = _container_url(folder)
    if container is None:
        finding = Finding(stream.where, f"{name} names no storage account or no container: set container")
        draft.lacks(finding, ("input", "container"))
        return hub, None
    reason = f"{name} does not tell Capture's interval: set capture_interval_seconds if it is not {CAPTURE_INTERVAL}"
    draft.different.append(Finding(stream.where, reason))
    return hub, "/".join([container, *prefix])


def _names(draft: Draft, where: str, name: str, hub: EventHub) -> None:
    for key, value in (("namespace", hub.namespace), ("event_hub", hub.name)):
        if value is None:
            draft.lacks(Finding(where, f"{name} has no {key.replace('_', ' ')}: set {key}"), ("input", key))


def _other_inputs(draft: Draft, job: AsaJob, stream: JobInput | None) -> None:
    for each in job.inputs:
        if each is stream:
            continue
        lines = query_text.lines_from(job.query, each.alias)
        if not lines:
            draft.different.append(Finding(each.where, f"input {each.alias} is not read by the query: left out"))
        elif each.reference:
            reason = (
                f"input {each.alias} is reference data ({_on(lines)}), and a pipeline reads none: take its JOIN out "
                "of the query, and join the published table with it"
            )
            draft.lacks(Finding(each.where, reason), ("job", "query"))
        else:
            reason = (
                f"input {each.alias} is one more stream ({_on(lines)}), and a pipeline reads one: take it out of the "
                "query, and write a pipeline of its own for it"
            )
            draft.lacks(Finding(each.where, reason), ("job", "query"))


def _functions(draft: Draft, job: AsaJob) -> None:
    for each in job.functions:
        lines = query_text.lines_calling(job.query, each.name)
        if not lines:
            reason = f"function {each.name} is not called by the query: left out"
            draft.different.append(Finding(each.where, reason))
            continue
        reason = (
            f"function {each.name} is written in {each.language} ({_on(lines)}), and no such function runs here: "
            "write what it computes in the query language"
        )
        draft.lacks(Finding(each.where, reason), ("job", "query"))


def _settings(draft: Draft, job: AsaJob) -> dict[str, Any]:
    settings = job.settings
    late = settings.late_seconds
    if late is None:
        reason = "eventsLateArrivalMaxDelayInSeconds is not set, which is -1, no limit, in ASA: written down so"
        draft.different.append(Finding(settings.where, reason))
    level = settings.compatibility_level
    if level is None or HOLE.search(level):
        reason = f"the job names no compatibility level, and its query runs as in 1.2: below it, {_BEFORE_1_2}"
        draft.different.append(Finding(settings.where, reason))
    elif level != "1.2":
        differs = _LEVELS.get(level, "what differs is not known")
        reason = f"compatibility level {level}, and the query runs as in 1.2: {differs}"
        draft.different.append(Finding(settings.where, reason))
    if settings.data_locale and settings.data_locale.lower() != "en-us":
        reason = f"dataLocale is {settings.data_locale}: numbers and times in texts are read as in en-US"
        draft.different.append(Finding(settings.where, reason))
    values: dict[str, Any] = {
        "eventsOutOfOrderPolicy": settings.out_of_order_policy or "Adjust",
        "eventsOutOfOrderMaxDelayInSeconds": settings.out_of_order_seconds or 0,
        "eventsLateArrivalMaxDelayInSeconds": -1 if late is None else late,
    }
    if settings.output_error_policy:
        values["outputErrorPolicy"] = settings.output_error_policy
        reason = (
            f"outputErrorPolicy {settings.output_error_policy} is written down and never applies: a table takes every "
            "row of its query, and an arithmetic error in the query stops the run"
        )
        draft.different.append(Finding(settings.where, reason))
    draft.notes["job",] = [f"compatibility level of the ASA job: {level or 'not stated'}"]
    return {**values, "query": job.query}


def _output(draft: Draft, job: AsaJob, alias: str, number: int) -> dict[str, Any]:
    """The table of one INTO; `number` is its place among several."""
    several = len(query_text.written(job.query)) > 1
    place: Place = ("output", number, "table") if several else ("output", "table")
    output = next((each for each in job.outputs if each.alias.lower() == alias.lower()), None)
    folder = re.sub(r"[^A-Za-z0-9_-]+", "-", alias)
    container = _container_url(output.target) if output and output.target else None
    if output is None:
        lines = query_text.lines_into(job.query, alias)
        written = f"writes to {alias} ({_on(lines)})" if lines else "has no INTO, so it writes to `output`"
        reason = f"the query {written}, which the job does not define: set the url of its table"
        draft.lacks(Finding(job.query_where, reason), place)
    elif output.target is None:
        reason = f"output {alias} goes to {output.kind}, and rows are published in a Delta table: set its url"
        draft.lacks(Finding(output.where, reason), place)
    elif container is None:
        reason = f"output {alias} names no storage account or no container: set the url of its table"
        draft.lacks(Finding(output.where, reason), place)
    else:
        reason = (
            f"output {alias} goes to {output.serialization} blobs; here its rows go to a Delta table in the same "
            f"container, recapture/{folder}"
        )
        draft.different.append(Finding(output.where, reason))
    if output and output.has_watermark_settings:
        reason = f"the watermark settings of output {alias} decide only when the live job sends a row: left out"
        draft.different.append(Finding(output.where, reason))
    table = f"{container}/recapture/{folder}" if container else f"{NO_CONTAINER}/{folder}"
    return {"alias": alias, "table": table}


def _left_out(draft: Draft, job: AsaJob) -> None:
    written = [alias.lower() for alias in query_text.written(job.query)]
    for each in job.outputs:
        if each.alias.lower() not in written:
            draft.different.append(Finding(each.where, f"output {each.alias} is not written by the query: left out"))
    draft.different.extend(Finding(where, "of a kind that is not known here: left out") for where in job.unread)


def _holes(draft: Draft, job: AsaJob) -> None:
    """What a template leaves open is an environment variable of the pipeline; in the query it is nothing."""
    for place, value in _leaves(draft.values):
        for name in dict.fromkeys(HOLE.findall(str(value))):
            if place == ("job", "query"):
                reason = f"the query is made with {name}, which the template leaves open: write its value in the query"
                draft.lacks(Finding(job.query_where, reason), place)
            else:
                key = ".".join(str(step) for step in place)
                reason = (
                    f"{key} is made with {name}, which the template leaves open: set the environment variable {name}, "
                    "or write the value"
                )
                draft.lacks(Finding(job.origin, reason), place)


def _leaves(value: Any, place: Place = ()) -> list[tuple[Place, Any]]:
    if isinstance(value, dict):
        return [leaf for key, item in value.items() for leaf in _leaves(item, (*place, key))]
    if isinstance(value, list):
        return [leaf for index, item in enumerate(value) for leaf in _leaves(item, (*place, index))]
    return [(place, value)]


def _query(draft: Draft, job: AsaJob) -> None:
    alias = draft.values["input"]["alias"] or "input"
    try:
        compile_query(
            job.query,
            input_alias=alias,
            output_aliases=query_text.written(job.query),
            input_metadata=FORMATS[draft.values["input"].get("format", DEFAULT_FORMAT)].metadata,
        )
    except DefinitionError as error:
        draft.lacks(Finding(job.query_where, str(error)), ("job", "query"))


def _container_url(folder: BlobFolder) -> str | None:
    if folder.account is None or folder.container is None:
        return None
    return f"https://{folder.account}.blob.core.windows.net/{folder.container}"


def _slug(name: str) -> str:
    """A pipeline's name: [a-z][a-z0-9_]*; empty where nothing of the job's name is left, or a part of it is open."""
    if HOLE.search(name):
        return ""
    words = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    return f"job_{words}" if words[:1].isdigit() else words


def _on(lines: list[int]) -> str:
    if len(lines) == 1:
        return f"query line {lines[0]}"
    return f"query lines {', '.join(map(str, lines[:-1]))} and {lines[-1]}"
