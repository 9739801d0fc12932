"""Carry an ASA job over into a pipeline file, and list what cannot be carried over.

Every finding says where it is, why, and what to do.
"""

import re
from dataclasses import dataclass, field
from typing import Any

from recapture.asa_job import query_text
from recapture.asa_job.job import OPEN_VALUE, AsaJob, BlobFolder, BlobPath, EventHub, JobFunction, JobInput
from recapture.errors import DefinitionError
from recapture.formats.sections import DEFAULT_FORMAT, FORMATS
from recapture.model import AsaType, JavaScriptFunction
from recapture.query.compile import compile_query

CAPTURE_INTERVAL = 300
"""Default interval of Capture, in seconds."""

NO_CONTAINER = "https://ACCOUNT.blob.core.windows.net/CONTAINER"
"""Placeholder for an unknown container. A pipeline with it cannot be loaded: container names are in lower case."""

_DELIMITERS = (",", ";", "\t", "|", " ")
_CAPTURE_FIELDS = ("SequenceNumber", "Offset", "EnqueuedTimeUtc", "SystemProperties", "Properties", "Body")
_FUNCTION_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_BEFORE_1_2 = (
    "true and false in JSON are bit instead of bigint 1 and 0, so add a CAST if the query relies on bigint, and "
    "geospatial functions compare shapes on a plane instead of on the globe"
)
_LEVELS = {
    "1.1": _BEFORE_1_2,
    "1.0": f"{_BEFORE_1_2}; field names keep their letter case instead of becoming lower case, a text that looks "
    "like a time stays text instead of becoming a datetime in UTC, and CREATE TABLE rejects NaN as a float",
}

Place = tuple[str | int, ...]


@dataclass(frozen=True)
class Finding:
    """Part of a job that is not carried over, or not unchanged."""

    where: str
    """File and, in a template, the resource."""
    what: str
    """Description: what it is, why, and what to do."""

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


@dataclass
class Draft:
    """Content of the pipeline file, and the findings about it."""

    name: str
    values: dict[str, Any]
    """Content of the file; None where the job does not give the value."""
    missing: list[Finding] = field(default_factory=list)
    """Findings to resolve before the pipeline runs as the job did."""
    different: list[Finding] = field(default_factory=list)
    """Findings about parts that are carried over or left out, and differ slightly from the job."""
    scripts: dict[str, str] = field(default_factory=dict)
    """Texts of the scripts of functions, by their paths relative to the file."""
    notes: dict[Place, list[str]] = field(default_factory=dict)
    """Comments above the line of a key, by its place."""

    def add_missing(self, finding: Finding, *places: Place) -> None:
        """Record a missing part, and note it above the keys at these places."""
        self.missing.append(finding)
        for place in places:
            self.notes.setdefault(place, []).append(f"TO DO: {finding.what}")


def carry_over(job: AsaJob) -> Draft:
    """Return the draft of a pipeline file for the job, with the findings about what cannot be carried over."""
    draft = Draft(_slug(job.name) or _slug(job.origin.partition(".")[0]) or "job", {})
    draft.values["name"] = draft.name
    stream = _stream(job)
    draft.values["input"] = _input(draft, job, stream)
    _other_inputs(draft, job, stream)
    _functions(draft, job)
    draft.values["job"] = _settings(draft, job)
    outputs = [_output(draft, job, alias, number) for number, alias in enumerate(query_text.outputs(job.query))]
    draft.values["output"] = outputs if len(outputs) > 1 else outputs[0]
    _left_out(draft, job)
    _open_values(draft, job)
    _query(draft, job)
    return draft


def _stream(job: AsaJob) -> JobInput | None:
    """Return the first stream that the query reads; if it reads none, the first stream of the job."""
    streams = [input_ for input_ in job.inputs if not input_.reference]
    read = [name.lower() for name in query_text.sources(job.query)]
    used = [stream for stream in streams if stream.alias.lower() in read]
    return min(used, key=lambda stream: read.index(stream.alias.lower())) if used else next(iter(streams), None)


def _input(draft: Draft, job: AsaJob, stream: JobInput | None) -> dict[str, Any]:
    if stream and isinstance(stream.source, BlobFolder) and stream.serialization in ("Json", "Csv"):
        return _json_or_csv(draft, stream, stream.source)
    hub, container = EventHub(None, None), None
    if stream is None:
        read = query_text.sources(job.query)
        alias = read[0] if read else None
        reason = "the job defines no stream input: set container, namespace and event_hub to those of the Capture"
        finding = Finding(job.origin, reason)
        draft.add_missing(finding, ("input", "container"), ("input", "namespace"), ("input", "event_hub"))
    else:
        alias = stream.alias
        hub, container = _capture(draft, job, stream)
    source = stream.source if stream else None
    return {
        "alias": alias,
        "container": container or NO_CONTAINER,
        "namespace": hub.namespace,
        "event_hub": hub.name,
        "capture_interval_seconds": CAPTURE_INTERVAL,
        "arrival_time": "BlobLastModified" if isinstance(source, BlobFolder) else "EventEnqueuedUtcTime",
    }


def _json_or_csv(draft: Draft, stream: JobInput, folder: BlobFolder) -> dict[str, Any]:
    """Return the input section of a Blob input of JSON lines or CSV."""
    name = f"input {stream.alias}"
    container = _container_url(folder)
    if container is None:
        finding = Finding(stream.where, f"{name} has no valid storage account or container name: set container")
        draft.add_missing(finding, ("input", "container"))
    if stream.compression not in ("None", "GZip"):
        reason = f"{name} holds blobs compressed with {stream.compression}, but only GZip is supported"
        advice = "have the writer leave them uncompressed"
        draft.add_missing(Finding(stream.where, f"{reason}: {advice}"), ("input", "container"))
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
            draft.add_missing(finding, ("input", key))
    if values["delimiter"] not in ("", *_DELIMITERS):
        values["delimiter"] = None
        finding = Finding(stream.where, f"{name} has a delimiter that ASA does not support: set delimiter")
        draft.add_missing(finding, ("input", "delimiter"))
    return {key: value for key, value in values.items() if value != ""}


def _capture(draft: Draft, job: AsaJob, stream: JobInput) -> tuple[EventHub, str | None]:
    """Return the event hub and the url of Capture's container; None where the input does not give a name."""
    name = f"input {stream.alias}"
    if isinstance(stream.source, EventHub):
        _bodies(draft, stream)
        reason = (
            f"{name} does not say where Capture writes its events: set container, and capture_interval_seconds if it "
            f"is not {CAPTURE_INTERVAL}"
        )
        draft.add_missing(Finding(stream.where, reason), ("input", "container"))
        _names(draft, stream.where, name, stream.source)
        return stream.source, None
    if isinstance(stream.source, BlobFolder):
        return _capture_blobs(draft, job, stream, stream.source)
    advice = "set container, namespace and event_hub"
    if stream.problem is not None:
        reason = f"{name} is not defined, as {stream.problem}: {advice} to those of its Capture, or restore the file"
    else:
        reason = (
            f"{name} is of kind {stream.kind}, but a pipeline reads only archives: route its events to an event hub "
            f"with Capture, and {advice}; or use another input format"
        )
    finding = Finding(stream.where, reason)
    draft.add_missing(finding, ("input", "container"), ("input", "namespace"), ("input", "event_hub"))
    return EventHub(None, None), None


def _bodies(draft: Draft, stream: JobInput) -> None:
    """Add a finding if the bodies are not plain JSON."""
    name = f"input {stream.alias}"
    if stream.serialization.lower() != "json":
        reason = f"holds {stream.serialization} bodies, but only JSON is supported: every event would be malformed"
        draft.add_missing(Finding(stream.where, f"{name} {reason}; have the senders write JSON"), ("input", "alias"))
    if stream.compression.lower() != "none":
        reason = f"holds bodies compressed with {stream.compression}, but only plain JSON is supported"
        advice = "every event would be malformed; have the senders write plain JSON"
        draft.add_missing(Finding(stream.where, f"{name} {reason}: {advice}"), ("input", "alias"))


def _capture_blobs(draft: Draft, job: AsaJob, stream: JobInput, folder: BlobFolder) -> tuple[EventHub, str | None]:
    """Return the event hub and the container url of a Blob input that reads Capture's Avro blobs.

    The names of the namespace and event hub are the last two folders before the path pattern's first token.
    """
    name = f"input {stream.alias}"
    if stream.serialization.lower() != "avro":
        reason = f"reads {stream.serialization} blobs, but only JSON, CSV and Capture's Avro blobs are supported"
        advice = "set container to one that Capture writes to"
        draft.add_missing(Finding(stream.where, f"{name} {reason}: {advice}"), ("input", "container"))
    lines = sorted({line for field in _CAPTURE_FIELDS for line in query_text.lines_naming(job.query, field)})
    if lines:
        reason = (
            f"{name} reads Capture's records ({_on(lines)}: one of {', '.join(_CAPTURE_FIELDS)}), but a pipeline "
            "reads the fields of the body: use these fields in the query"
        )
        draft.add_missing(Finding(stream.where, reason), ("job", "query"))
    *prefix, namespace, event_hub = folder.folders if len(folder.folders) >= 2 else (None, None)
    hub = EventHub(namespace, event_hub)
    _names(draft, stream.where, name, hub)
    container = _container_url(folder)
    if container is None:
        finding = Finding(stream.where, f"{name} has no valid storage account or container name: set container")
        draft.add_missing(finding, ("input", "container"))
        return hub, None
    reason = f"{name} does not give Capture's interval: set capture_interval_seconds if it is not {CAPTURE_INTERVAL}"
    draft.different.append(Finding(stream.where, reason))
    return hub, "/".join([container, *prefix])


def _names(draft: Draft, where: str, name: str, hub: EventHub) -> None:
    """Add a finding for each name of the event hub that the job does not give."""
    for key, value in (("namespace", hub.namespace), ("event_hub", hub.name)):
        if value is None:
            draft.add_missing(Finding(where, f"{name} has no {key.replace('_', ' ')}: set {key}"), ("input", key))


def _other_inputs(draft: Draft, job: AsaJob, stream: JobInput | None) -> None:
    """Add a finding for each input other than the stream that the pipeline reads."""
    for input_ in job.inputs:
        if input_ is stream:
            continue
        lines = query_text.lines_from(job.query, input_.alias)
        if not lines:
            draft.different.append(Finding(input_.where, f"input {input_.alias} is not read by the query: left out"))
        elif input_.problem is not None:
            reason = (
                f"input {input_.alias} ({_on(lines)}) is not defined, as {input_.problem}: restore the file, and "
                "import the job again"
            )
            draft.add_missing(Finding(input_.where, reason), ("job", "query"))
        elif input_.reference:
            reason = (
                f"input {input_.alias} is reference data ({_on(lines)}), which a pipeline cannot read: remove its JOIN "
                "from the query, and join the published table with the reference data"
            )
            draft.add_missing(Finding(input_.where, reason), ("job", "query"))
        else:
            reason = (
                f"input {input_.alias} is another stream ({_on(lines)}), but a pipeline reads only one: remove it from "
                "the query, and write a separate pipeline for it"
            )
            draft.add_missing(Finding(input_.where, reason), ("job", "query"))


def _functions(draft: Draft, job: AsaJob) -> None:
    """Carry over each JavaScript function that the query calls, and add a finding for each other function."""
    for function in job.functions:
        lines = query_text.lines_calling(job.query, function.name)
        if not lines:
            reason = f"function {function.name} is not called by the query: left out"
            draft.different.append(Finding(function.where, reason))
            continue
        if function.language != "JavaScript":
            reason = (
                f"function {function.name} is written in {function.language} ({_on(lines)}), but only JavaScript runs: "
                "write what it computes in the query language, or compute it after the backfill"
            )
            draft.add_missing(Finding(function.where, reason), ("job", "query"))
        elif not _FUNCTION_NAME.fullmatch(function.name):
            reason = f"function {function.name} has a name that no query can call ({_on(lines)}): rename it"
            draft.add_missing(Finding(function.where, reason), ("job", "query"))
        else:
            draft.values.setdefault("functions", {})[function.name] = _javascript(draft, function, lines)


def _javascript(draft: Draft, function: JobFunction, lines: list[int]) -> dict[str, Any]:
    """Return the section of a JavaScript function, and add its script to the draft."""
    place: Place = ("functions", function.name)
    path = f"{draft.name}_functions/{function.name}.js"
    if function.script is None:
        reason = f"function {function.name} has no script that can be read ({_on(lines)}): set script to its file"
        draft.add_missing(Finding(function.where, reason), (*place, "script"))
    else:
        draft.scripts[path] = function.script
    if function.problem is not None:
        reason = (
            f"function {function.name} ({_on(lines)}) is not defined, as {function.problem}: set output_type, and add "
            "kind: aggregate if it is an aggregate"
        )
        draft.add_missing(Finding(function.where, reason), (*place, "output_type"))
    elif function.output_type == "any":
        reason = (
            f"function {function.name} returns a value of any type ({_on(lines)}), but a published column has one: "
            "set output_type"
        )
        draft.add_missing(Finding(function.where, reason), (*place, "output_type"))
    kind = {"kind": "aggregate"} if function.is_aggregate else {}
    # A job may list the timestamp of `accumulate` as the second argument of an aggregate.
    given = function.argument_types[:1] if function.is_aggregate else function.argument_types
    types = {"argument_types": list(given)} if given else {}
    return {**kind, "script": path, "output_type": function.output_type, **types}


def _settings(draft: Draft, job: AsaJob) -> dict[str, Any]:
    """Return the job section: the settings with ASA's defaults, and the query."""
    settings = job.settings
    late = settings.late_seconds
    if not settings.is_known:
        reason = (
            "the settings of the job are not known, as this file does not exist: the pipeline file has ASA's defaults; "
            "set the policies and the tolerances of the job"
        )
        draft.add_missing(Finding(settings.where, reason), ("job", "eventsOutOfOrderPolicy"))
    elif late is None:
        reason = "eventsLateArrivalMaxDelayInSeconds is not set: the file says -1 (no limit), as ASA does by default"
        draft.different.append(Finding(settings.where, reason))
    level = settings.compatibility_level
    if level is None or OPEN_VALUE.search(level):
        reason = f"the job sets no compatibility level, and its query runs as in 1.2: if it was lower, {_BEFORE_1_2}"
        draft.different.append(Finding(settings.where, reason))
    elif level != "1.2":
        differs = _LEVELS.get(level, "the differences are not known")
        reason = f"the compatibility level is {level}, but the query runs as in 1.2: {differs}"
        draft.different.append(Finding(settings.where, reason))
    if settings.data_locale and settings.data_locale.lower() != "en-us":
        reason = f"dataLocale is {settings.data_locale}, but numbers and times in texts are read as in en-US"
        draft.different.append(Finding(settings.where, reason))
    values: dict[str, Any] = {
        "eventsOutOfOrderPolicy": settings.out_of_order_policy or "Adjust",
        "eventsOutOfOrderMaxDelayInSeconds": settings.out_of_order_seconds or 0,
        "eventsLateArrivalMaxDelayInSeconds": -1 if late is None else late,
    }
    if settings.output_error_policy:
        values["outputErrorPolicy"] = settings.output_error_policy
        reason = (
            f"outputErrorPolicy {settings.output_error_policy} is written to the file but never applies: a table takes "
            "every row of its query, and an arithmetic error in the query stops the run"
        )
        draft.different.append(Finding(settings.where, reason))
    draft.notes["job",] = [f"compatibility level of the ASA job: {level or 'not stated'}"]
    return {**values, "query": job.query}


def _output(draft: Draft, job: AsaJob, alias: str, number: int) -> dict[str, Any]:
    """Return the output entry of one INTO. `number` is its index if there are several."""
    several = len(query_text.outputs(job.query)) > 1
    place: Place = ("output", number, "table") if several else ("output", "table")
    output = next((output for output in job.outputs if output.alias.lower() == alias.lower()), None)
    folder = re.sub(r"[^A-Za-z0-9_-]+", "-", alias)
    container = _container_url(output.target) if output and output.target else None
    if output is None:
        lines = query_text.lines_into(job.query, alias)
        statement = f"writes to {alias} ({_on(lines)})" if lines else "has no INTO, so it writes to `output`"
        reason = f"the query {statement}, which the job does not define: set the url of its table"
        draft.add_missing(Finding(job.query_where, reason), place)
    elif output.problem is not None:
        reason = f"output {alias} is not defined, as {output.problem}: set the url of its table"
        draft.add_missing(Finding(output.where, reason), place)
    elif output.target is None:
        reason = (
            f"output {alias} goes to {output.kind}, but rows are published in Delta tables: set the url of its table"
        )
        draft.add_missing(Finding(output.where, reason), place)
    elif container is None:
        reason = f"output {alias} has no valid storage account or container name: set the url of its table"
        draft.add_missing(Finding(output.where, reason), place)
    else:
        reason = (
            f"output {alias} goes to {output.serialization} blobs, but its rows are published in a Delta table in the "
            f"same container, recapture/{folder}"
        )
        draft.different.append(Finding(output.where, reason))
    if output and output.has_watermark_settings:
        reason = f"the watermark settings of output {alias} only decide when the live job sends a row: left out"
        draft.different.append(Finding(output.where, reason))
    table = f"{container}/recapture/{folder}" if container else f"{NO_CONTAINER}/{folder}"
    return {"alias": alias, "table": table}


def _left_out(draft: Draft, job: AsaJob) -> None:
    """Add a finding for each output that the query does not write to, and for each part of an unknown kind."""
    written = [alias.lower() for alias in query_text.outputs(job.query)]
    for output in job.outputs:
        if output.alias.lower() not in written:
            reason = f"output {output.alias} is not written by the query: left out"
            draft.different.append(Finding(output.where, reason))
    draft.different.extend(Finding(where, "unknown kind of file or resource: left out") for where in job.unread)


def _open_values(draft: Draft, job: AsaJob) -> None:
    """Add a finding for each value that a template leaves open.

    In the pipeline file it is an environment variable. In the query it has to be replaced by its value.
    """
    for place, value in _leaves(draft.values):
        for name in dict.fromkeys(OPEN_VALUE.findall(str(value))):
            if place == ("job", "query"):
                reason = f"the query uses ${{{name}}}, which the template leaves open: write its value in the query"
                draft.add_missing(Finding(job.query_where, reason), place)
            else:
                key = ".".join(str(step) for step in place)
                reason = (
                    f"{key} uses ${{{name}}}, which the template leaves open: set the environment variable {name}, or "
                    "write the value"
                )
                draft.add_missing(Finding(job.origin, reason), place)


def _leaves(value: Any, place: Place = ()) -> list[tuple[Place, Any]]:
    """Return the values that are not mappings or lists, each with its place."""
    if isinstance(value, dict):
        return [leaf for key, item in value.items() for leaf in _leaves(item, (*place, key))]
    if isinstance(value, list):
        return [leaf for index, item in enumerate(value) for leaf in _leaves(item, (*place, index))]
    return [(place, value)]


def _query(draft: Draft, job: AsaJob) -> None:
    """Add a finding if the query does not compile. It needs the types of all functions that it calls."""
    functions = draft.values.get("functions", {})
    if any(section["output_type"] == "any" for section in functions.values()):
        return
    alias = draft.values["input"]["alias"] or "input"
    try:
        compile_query(
            job.query,
            inputs={alias: FORMATS[draft.values["input"].get("format", DEFAULT_FORMAT)].metadata},
            output_aliases=query_text.outputs(job.query),
            functions=[_declared(name, section) for name, section in functions.items()],
        )
    except DefinitionError as error:
        draft.add_missing(Finding(job.query_where, str(error)), ("job", "query"))


def _declared(name: str, section: dict[str, Any]) -> JavaScriptFunction:
    types = section.get("argument_types")
    arguments = None if types is None else tuple(None if type_ == "any" else AsaType(type_) for type_ in types)
    is_aggregate = section.get("kind") == "aggregate"
    return JavaScriptFunction(name, "", AsaType(section["output_type"]), arguments, is_aggregate)


def _container_url(folder: BlobFolder) -> str | None:
    """Return the url of the container; None if its account or its name is not known."""
    if folder.account is None or folder.container is None:
        return None
    return f"https://{folder.account}.blob.core.windows.net/{folder.container}"


def _slug(name: str) -> str:
    """Return a pipeline name; empty if no letter or digit is left, or if a template leaves it open."""
    if OPEN_VALUE.search(name):
        return ""
    words = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    return f"job_{words}" if words[:1].isdigit() else words


def _on(lines: list[int]) -> str:
    """Return the lines as a message lists them: `query lines 1, 2 and 3`."""
    if len(lines) == 1:
        return f"query line {lines[0]}"
    return f"query lines {', '.join(map(str, lines[:-1]))} and {lines[-1]}"
