"""The rules of a pipeline file that concern several of its keys, or the files that it names."""

import itertools
from typing import TYPE_CHECKING

from recapture.definition.document import Document, KeyPath
from recapture.definition.key_names import event_key
from recapture.definition.scripts import javascript_function
from recapture.definition.sections import Output, Quality, Schedule
from recapture.formats.reference_data import ReferenceInput
from recapture.formats.sections import Input
from recapture.model import AsaType, Metadata, MetadataColumn
from recapture.storage import addresses
from recapture.storage.address import AzureAddress, normal_form, parse
from recapture.time_model.ticks import from_datetime, from_seconds

if TYPE_CHECKING:
    from recapture.definition.pipeline import Pipeline

_SAME_IN_BLOB = (MetadataColumn(Metadata.BLOB_NAME), MetadataColumn(Metadata.OFFSET))
"""Metadata whose values say already in which blob an event is."""


def require_addresses(pipeline: "Pipeline", document: Document) -> None:
    """Raise DefinitionError unless the container and the tables have addresses that storage can open."""
    containers: list[tuple[KeyPath, str]] = [
        (("input", index, "container"), address)
        for index, section in enumerate(pipeline.all_inputs)
        for address in addresses(section.container)
    ]
    for key_path, address in (*containers, *_tables(pipeline)):
        with document.at(key_path):
            parse(address)


def require_distinct_containers(pipeline: "Pipeline", document: Document) -> None:
    """Raise DefinitionError if an input names a container twice, or one inside another."""
    for index, section in enumerate(pipeline.all_inputs):
        for left, right in itertools.combinations(map(normal_form, addresses(section.container)), 2):
            if _overlap(left, right):
                raise document.error(("input", index, "container"), "two of these addresses overlap: remove one")


def require_unambiguous_path(pipeline: "Pipeline", document: Document) -> None:
    """Raise DefinitionError if the path is not a valid pattern, or if names of other inputs could also match it."""
    for index, section in enumerate(pipeline.all_inputs):
        with document.at(("input", index, "path")):
            _ = section.names


def require_inputs_without_conflicts(pipeline: "Pipeline", document: Document) -> None:
    """Raise DefinitionError if keys of an input contradict each other."""
    for index, section in enumerate(pipeline.all_inputs):
        for key, reason in section.conflicts():
            raise document.error(("input", index, key), reason)


def require_index_of_strings(pipeline: "Pipeline", document: Document) -> None:
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


def require_one_suite_per_output(pipeline: "Pipeline", document: Document) -> None:
    """Raise DefinitionError for a top-level suite if there are several outputs, or if the only one has its own."""
    if pipeline.quality is not None and len(pipeline.outputs) > 1:
        reason = "there are several outputs: write quality under each output that has a suite"
        raise document.error(("quality",), reason)
    if pipeline.quality is not None and pipeline.outputs[0].quality is not None:
        raise document.error(("quality",), "the output has its own suite: remove one of the two quality keys")


def require_suites_of_parameters(pipeline: "Pipeline", document: Document) -> None:
    """Raise DefinitionError for parameters without a suite that uses them."""
    places: list[tuple[KeyPath, Quality | None]] = [(("quality",), pipeline.quality)]
    places += [(("output", index, "quality"), output.quality) for index, output in enumerate(pipeline.outputs)]
    for key_path, quality in places:
        if quality is not None and quality.suite is None and quality.parameters:
            raise document.error((*key_path, "parameters"), "no suite uses them: add suite")


def require_named_tables(pipeline: "Pipeline", document: Document) -> None:
    """Raise DefinitionError for a table that is a whole container: its metrics could not be next to it."""
    for key_path, table in _tables(pipeline):
        address = parse(table)
        if isinstance(address, AzureAddress) and not address.prefix:
            reason = "a table needs a name in its container: its metrics are next to it, in the table NAME_metrics"
            raise document.error(key_path, reason)


def require_outputs_outside_input(pipeline: "Pipeline", document: Document) -> None:
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


def require_inputs_outside_tables(pipeline: "Pipeline", document: Document) -> None:
    """Raise DefinitionError if the folder that all blobs of an input share is in the folder of a table.

    A vacuum of the table may delete them.
    """
    for (key_path, _), output in zip(_tables(pipeline), pipeline.outputs, strict=True):
        for section in pipeline.all_inputs:
            shared = section.names.prefix.rpartition("/")[0]
            archives = [f"{normal_form(address)}/{shared}/" for address in addresses(section.container)]
            folders = _folders(pipeline, output)
            if any(archive.startswith(f"{folder}/") for archive in archives for folder in folders):
                reason = (
                    f"a vacuum of this table, or of one next to it, could delete the blobs of input {section.alias}: "
                    "choose another folder"
                )
                raise document.error(key_path, reason)


def require_schedule_of_slices(pipeline: "Pipeline", document: Document) -> None:
    """Raise DefinitionError if the table is kept from or until a time within a slice, or for no slice at all."""
    schedule = pipeline.schedule or Schedule()
    for name, time in (("since", schedule.since), ("until", schedule.until)):
        if time is not None and from_datetime(time) % from_seconds(3600 * pipeline.slice_hours):
            reason = f"it is not on a slice border: slices last {pipeline.slice_hours} h, from midnight UTC"
            raise document.error(("schedule", name), reason)
    if schedule.since is not None and schedule.until is not None and schedule.until <= schedule.since:
        raise document.error(("schedule", "until"), "it is not later than schedule.since: no slice would be kept")


def require_events(pipeline: "Pipeline", document: Document) -> None:
    """Raise DefinitionError for a pipeline of reference data alone."""
    if not pipeline.inputs:
        raise document.error(("input",), "this is reference data only: add the input whose events are joined with it")


def require_distinct_aliases(pipeline: "Pipeline", document: Document) -> None:
    """Raise DefinitionError if two inputs, or two outputs, have the same alias, ignoring case."""
    for key, named in (("input", pipeline.all_inputs), ("output", pipeline.outputs)):
        aliases: dict[str, str] = {}
        for index, section in enumerate(named):
            other = aliases.setdefault(section.alias.lower(), section.alias)
            if len(aliases) <= index:
                raise document.error((key, index, "alias"), f"another {key} is named {other} too: rename one")


def require_distinct_tables(pipeline: "Pipeline", document: Document) -> None:
    """Raise DefinitionError if the tables of two outputs, or those next to them, share a folder."""
    for index, output in enumerate(pipeline.outputs):
        for other in pipeline.outputs[:index]:
            pairs = itertools.product(_folders(pipeline, output), _folders(pipeline, other))
            if any(_overlap(left, right) for left, right in pairs):
                reason = f"it shares a folder with the table of {other.alias}, or with one next to it: choose another"
                raise document.error(("output", index, "table"), reason)


def require_distinct_functions(pipeline: "Pipeline", document: Document) -> None:
    """Raise DefinitionError if two functions have the same name, ignoring case."""
    names: dict[str, str] = {}
    for name in pipeline.functions:
        other = names.setdefault(name.lower(), name)
        if other != name:
            raise document.error(("functions", name), f"another function is named {other}: rename one")


def require_readable_scripts(pipeline: "Pipeline", document: Document) -> None:
    """Raise DefinitionError if the script of a function cannot be read."""
    for name, function in pipeline.functions.items():
        with document.at(("functions", name, "script")):
            javascript_function(pipeline.file.parent, name, function)


def _tables(pipeline: "Pipeline") -> list[tuple[KeyPath, str]]:
    return [(("output", index, "table"), output.table) for index, output in enumerate(pipeline.outputs)]


def _folders(pipeline: "Pipeline", output: Output) -> list[str]:
    """Return the folders of an output's tables, in normal form."""
    has_verdicts = pipeline.verdicts is not None and output is pipeline.outputs[0]
    return [normal_form(table) for table in (*output.tables, *([output.verdicts_table] if has_verdicts else []))]


def _overlap(left: str, right: str) -> bool:
    return f"{left}/".startswith(f"{right}/") or f"{right}/".startswith(f"{left}/")


CHECKS = (
    require_addresses,
    require_distinct_containers,
    require_unambiguous_path,
    require_inputs_without_conflicts,
    require_index_of_strings,
    require_one_suite_per_output,
    require_suites_of_parameters,
    require_named_tables,
    require_outputs_outside_input,
    require_inputs_outside_tables,
    require_events,
    require_distinct_aliases,
    require_distinct_tables,
    require_distinct_functions,
    require_readable_scripts,
    require_schedule_of_slices,
)
"""Each takes a pipeline and its document, and raises DefinitionError for what breaks its rule."""
