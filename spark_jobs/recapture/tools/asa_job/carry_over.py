"""Carry an ASA job over into a pipeline file, and list what cannot be carried over."""

import os
import re
from collections.abc import Mapping
from typing import Any

from recapture.errors import DefinitionError
from recapture.formats.sections import DEFAULT_FORMAT, FORMATS
from recapture.model import AsaType, InputMetadata, JavaScriptFunction
from recapture.query.compile import compile_query
from recapture.query.model import CompiledQuery
from recapture.tools.asa_job import query_text
from recapture.tools.asa_job.clouds import in_its_cloud
from recapture.tools.asa_job.compatibility import LEVELS, all_differences, differences
from recapture.tools.asa_job.documents import OPEN_VALUE
from recapture.tools.asa_job.draft import NO_CONTAINER, Draft, Place, on_lines
from recapture.tools.asa_job.inputs import input_sections
from recapture.tools.asa_job.job import AsaJob, JobFunction

_FUNCTION_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_LONGEST_NAME = 63
"""Largest number of characters of a job's name in Azure."""


def carry_over(job: AsaJob, environment: Mapping[str, str] = os.environ) -> Draft:
    """Return the draft of a pipeline file for the job, with the findings about what cannot be carried over."""
    job = in_its_cloud(job, environment)
    name = _slug(job.name) or _slug(job.origin.partition(".")[0]) or "job"
    draft = Draft(name[:_LONGEST_NAME].rstrip("_"), {})
    if len(name) > _LONGEST_NAME:
        reason = f"the name of the job has {len(job.name)} characters: the pipeline's has the first {_LONGEST_NAME}"
        draft.add_different(job.origin, reason)
    draft.values["name"] = draft.name
    draft.values["input"] = input_sections(draft, job)
    for finding in job.missing:
        draft.add_missing(finding.where, finding.what, ("job",), "query")
    draft.different += job.different
    _functions(draft, job)
    draft.values["job"] = _settings(draft, job)
    aliases = query_text.outputs(job.query)
    several = len(aliases) > 1
    outputs = [
        _output(draft, job, alias, ("output", number) if several else ("output",))
        for number, alias in enumerate(aliases)
    ]
    draft.values["output"] = outputs if several else outputs[0]
    _left_out(draft, job)
    _open_values(draft, job)
    _compatibility(draft, job, _query(draft, job))
    return draft


def _functions(draft: Draft, job: AsaJob) -> None:
    """Carry over each JavaScript function that the query calls, and add a finding for each other function."""
    for function in job.functions:
        name, lines = f"function {function.name}", query_text.lines_calling(job.query, function.name)
        if not lines:
            draft.add_different(function.where, f"{name} is not called by the query: left out")
        elif function.language != "JavaScript":
            reason = (
                f"{name} is written in {function.language} ({on_lines(lines)}), but only JavaScript runs: write what "
                "it computes in the query language, or compute it after the backfill"
            )
            draft.add_missing(function.where, reason, ("job",), "query")
        elif not _FUNCTION_NAME.fullmatch(function.name):
            reason = f"{name} has a name that no query can call ({on_lines(lines)}): rename it"
            draft.add_missing(function.where, reason, ("job",), "query")
        else:
            draft.values.setdefault("functions", {})[function.name] = _javascript(draft, function, on_lines(lines))


def _javascript(draft: Draft, function: JobFunction, lines: str) -> dict[str, Any]:
    """Return the section of a JavaScript function, which is called on these lines, and add its script to the draft."""
    where, name, place = function.where, f"function {function.name}", ("functions", function.name)
    path = f"{draft.name}_functions/{function.name}.js"
    if function.script is None:
        draft.add_missing(
            where, f"{name} has no script that can be read ({lines}): set script to its file", place, "script"
        )
    else:
        draft.scripts[path] = function.script
    if function.problem is not None:
        reason = (
            f"{name} ({lines}) is not defined, as {function.problem}: set output_type, and add kind: aggregate if it "
            "is an aggregate"
        )
        draft.add_missing(where, reason, place, "output_type")
    elif function.output_type == "any":
        reason = f"{name} returns a value of any type ({lines}), but a published column has one: set output_type"
        draft.add_missing(where, reason, place, "output_type")
    kind = {"kind": "aggregate"} if function.is_aggregate else {}
    # A job may list the timestamp of `accumulate` as the second argument of an aggregate.
    argument_types = function.argument_types[:1] if function.is_aggregate else function.argument_types
    types = {"argument_types": list(argument_types)} if argument_types else {}
    return {**kind, "script": path, "output_type": function.output_type, **types}


def _settings(draft: Draft, job: AsaJob) -> dict[str, Any]:
    """Return the job section: the settings with ASA's defaults, and the query."""
    settings, where = job.settings, job.settings_where
    late, level = settings.events_late_arrival_max_delay_in_seconds, settings.compatibility_level
    if not job.settings_exist:
        reason = (
            "the settings of the job are not known, as this file does not exist: the pipeline file has ASA's defaults; "
            "set the policies and the tolerances of the job"
        )
        draft.add_missing(where, reason, ("job",), "eventsOutOfOrderPolicy")
    elif late is None:
        draft.add_different(
            where, "eventsLateArrivalMaxDelayInSeconds is not set: the file says -1 (no limit), as ASA does by default"
        )
    if settings.data_locale and settings.data_locale.lower() != "en-us":
        draft.add_different(
            where, f"dataLocale is {settings.data_locale}, but numbers and times in strings are read as in en-US"
        )
    values: dict[str, Any] = {
        "eventsOutOfOrderPolicy": settings.events_out_of_order_policy or "Adjust",
        "eventsOutOfOrderMaxDelayInSeconds": settings.events_out_of_order_max_delay_in_seconds or 0,
        "eventsLateArrivalMaxDelayInSeconds": -1 if late is None else late,
    }
    if settings.output_error_policy:
        values["outputErrorPolicy"] = settings.output_error_policy
        draft.add_different(
            where,
            f"outputErrorPolicy {settings.output_error_policy} is written to the file but never applies: a table takes "
            "every row of its query, and an arithmetic error in the query stops the run",
        )
    draft.notes["job",] = [f"compatibility level of the job: {level or 'not stated'}"]
    return {**values, "query": job.query}


def _output(draft: Draft, job: AsaJob, alias: str, place: Place) -> dict[str, Any]:
    """Return the output entry of one INTO, which is at this place."""
    output = next((output for output in job.outputs if output.alias.lower() == alias.lower()), None)
    folder = re.sub(r"[^A-Za-z0-9_-]+", "-", alias)
    container = output.target.url if output and output.target else None
    where = output.where if output else job.query_where
    problem = None
    if output is None:
        lines = query_text.lines_into(job.query, alias)
        statement = f"writes to {alias} ({on_lines(lines)})" if lines else "has no INTO, so it writes to `output`"
        problem = f"the query {statement}, which the job does not define"
    elif output.problem is not None:
        problem = f"output {alias} is not defined, as {output.problem}"
    elif output.table is not None:
        draft.add_different(
            where, f"output {alias} goes to a table, but its rows are published in a table next to it, {output.table}"
        )
        return {"alias": alias, "table": output.table}
    elif output.target is None:
        problem = f"output {alias} goes to {output.kind}, but the pipeline publishes to a Delta table of its own"
    elif container is None:
        problem = f"output {alias} has no valid storage account or container name"
    else:
        draft.add_different(
            where,
            f"output {alias} goes to {output.serialization} blobs, but its rows are published in a Delta table in the "
            f"same container, recapture/{folder}",
        )
    if problem is not None:
        draft.add_missing(where, f"{problem}: set the url of its table", place, "table")
    if output and output.has_watermark_settings:
        draft.add_different(
            where, f"the watermark settings of output {alias} only decide when the live job sends a row: left out"
        )
    table = f"{container}/recapture/{folder}" if container else f"{NO_CONTAINER}/{folder}"
    return {"alias": alias, "table": table}


def _left_out(draft: Draft, job: AsaJob) -> None:
    """Add a finding for each output that the query does not write to, and for each part of an unknown kind."""
    written = [alias.lower() for alias in query_text.outputs(job.query)]
    for output in job.outputs:
        if output.alias.lower() not in written:
            draft.add_different(output.where, f"output {output.alias} is not written by the query: left out")
    for where in job.unread:
        draft.add_different(where, "unknown kind of file or resource: left out")


def _open_values(draft: Draft, job: AsaJob) -> None:
    """Add a finding for each value that a template leaves open: an environment variable, except in the query."""
    for place, value in _leaves(draft.values):
        for name in dict.fromkeys(OPEN_VALUE.findall(str(value))):
            if place == ("job", "query"):
                where, user, advice = job.query_where, "the query", "write its value in the query"
            else:
                where, user = job.origin, ".".join(map(str, place))
                advice = f"set the environment variable {name}, or write the value"
            reason = f"{user} uses ${{{name}}}, which the template leaves open: {advice}"
            draft.add_missing(where, reason, place[:-1], place[-1])


def _leaves(value: Any, place: Place = ()) -> list[tuple[Place, Any]]:
    """Return the values that are not mappings or lists, each with its place."""
    if isinstance(value, dict):
        return [leaf for key, item in value.items() for leaf in _leaves(item, (*place, key))]
    if isinstance(value, list):
        return [leaf for index, item in enumerate(value) for leaf in _leaves(item, (*place, index))]
    return [(place, value)]


def _query(draft: Draft, job: AsaJob) -> CompiledQuery | None:
    """Return the compiled query; None, and maybe a finding, if it does not compile.

    It needs the types of all functions that it calls.
    """
    functions = draft.values.get("functions", {})
    if any(section["output_type"] == "any" for section in functions.values()):
        return None
    try:
        return compile_query(
            job.query,
            inputs=_metadata(draft.values["input"]),
            output_aliases=query_text.outputs(job.query),
            functions=[_declared(name, section) for name, section in functions.items()],
        )
    except DefinitionError as error:
        draft.add_missing(job.query_where, str(error), ("job",), "query")
        return None


def _compatibility(draft: Draft, job: AsaJob, query: CompiledQuery | None) -> None:
    """Add a finding if a difference between the job's compatibility level and 1.2 touches the query."""
    level, runs = job.settings.compatibility_level, "runs as in 1.2"
    if level == "1.2":
        return
    is_open = level is None or OPEN_VALUE.search(level)
    if not is_open and level not in LEVELS:
        where = f"the compatibility level is {level}, but the query {runs}: the differences are not known"
        draft.add_different(job.settings_where, where)
        return
    lower = "1.0" if is_open or level is None else level
    changes = "; ".join(all_differences(lower) if query is None else differences(lower, query))
    if changes:
        said = (
            f"the job sets no compatibility level, and its query {runs}: if it was 1.0, {changes}"
            if is_open
            else f"the compatibility level is {level}, but the query {runs}: {changes}"
        )
        draft.add_different(job.settings_where, said)


def _metadata(sections: dict[str, Any] | list[dict[str, Any]]) -> dict[str, InputMetadata | None]:
    """Return the metadata of the events of each input, by alias; None for reference data."""
    return {
        section["alias"] or "input": None
        if section.get("type") == "Reference"
        else FORMATS[section.get("format", DEFAULT_FORMAT)].metadata
        for section in (sections if isinstance(sections, list) else [sections])
    }


def _declared(name: str, section: dict[str, Any]) -> JavaScriptFunction:
    types = section.get("argument_types")
    arguments = None if types is None else tuple(None if type_ == "any" else AsaType(type_) for type_ in types)
    is_aggregate = section.get("kind") == "aggregate"
    return JavaScriptFunction(name, "", AsaType(section["output_type"]), arguments, is_aggregate)


def _slug(name: str) -> str:
    """Return a pipeline name; empty if no letter or digit is left, or if a template leaves it open."""
    if OPEN_VALUE.search(name):
        return ""
    words = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    return f"job_{words}" if words[:1].isdigit() else words
