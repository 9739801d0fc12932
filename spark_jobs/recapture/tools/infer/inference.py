"""Infer the CREATE TABLE of each input, reference data included, and write them in front of the query."""

import json
import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from recapture.archive.definitions import InputDefinition
from recapture.archive.newest import newest_blobs
from recapture.archive.pinning import PinnedBlob, blobs_for, in_order, no_partitions, survey
from recapture.archive.references import versions
from recapture.definition.digest import definition_without_query
from recapture.definition.pipeline import Pipeline
from recapture.definition.query_text import write_in_front
from recapture.errors import DefinitionError, RunError
from recapture.formats.reference_data import Reference, ReferenceInput
from recapture.formats.sections import Input
from recapture.model import AsaType
from recapture.process.wording import counted, of_input, values_of_only
from recapture.query.compile import fields_used, has_create_table
from recapture.query.parse.names import Path
from recapture.storage import Archive, open_container
from recapture.time_model import ticks
from recapture.time_model.slices import Arrivals
from recapture.tools.infer.create_table import Sampled, TypedField, statement, typed
from recapture.tools.infer.sample import MAX_FIELDS, Sample, read_sample
from recapture.tools.infer.starred_records import starred_records
from recapture.tools.infer.timing_fields import timing_fields

_LOG = logging.getLogger(__name__)
_OTHER_RANGE = "choose another range with --from and --to"
_HOUR = timedelta(hours=1)
Paths = TypeVar("Paths", bound=Collection[Path])


@dataclass(frozen=True)
class InputSample:
    """A sample of what arrived at an input in a range, or of the newest version of reference data."""

    content: Sample
    arrived: int
    """Number of blobs that arrived, including those that the sample leaves out."""
    range: tuple[datetime, datetime] | None
    """Start, exclusive, and end, inclusive; None for reference data."""

    @property
    def sampled(self) -> Sampled:
        """What the sample consists of."""
        return Sampled(self.content.objects, self.content.decoder.only_strings, self.range is None)

    @property
    def origin(self) -> str:
        """Where the sample comes from."""
        if self.range is None:
            return f"recapture infer, newest version: {counted(self.content.events, 'row')}"
        start, end = map(ticks.text_of, self.range)
        blobs = f"{self.content.blobs:,} of {counted(self.arrived, 'blob')}"
        return f"recapture infer, {start} to {end}: {counted(self.content.events, 'event')} in {blobs}"


@dataclass(frozen=True)
class InputInference:
    """The CREATE TABLE of an input, and where it comes from."""

    alias: str
    statement: str
    """CREATE TABLE with a comment on each field, ending with a line break."""
    fields: tuple[TypedField, ...]
    sample: InputSample

    @property
    def summary(self) -> dict[str, Any]:
        """The inference in JSON types."""
        start, end = map(ticks.text_of, self.sample.range) if self.sample.range else (None, None)
        return {
            "alias": self.alias,
            "from": start,
            "to": end,
            "blobs": self.sample.content.blobs,
            "events": self.sample.content.events,
            "fields": [
                {
                    "name": typed_field.field.dotted,
                    "type": typed_field.type and str(typed_field.type),
                    "left_out": typed_field.left_out,
                    "events": typed_field.field.events,
                    "values": {str(kind or "null"): events for kind, events in typed_field.field.kinds.items()},
                    "spellings": typed_field.field.spellings,
                }
                for typed_field in self.fields
            ],
        }

    def warnings(self, name_input: bool) -> Iterator[str]:
        """Yield the warnings about the sample, one sentence each. If `name_input`, they name the input."""
        place, sample = of_input(self.alias if name_input else None), self.sample.content
        if sample.damaged:
            count = counted(
                len(sample.damaged), f"blob{place} is damaged and was", f"blobs{place} are damaged and were"
            )
            yield f"{count} left out, for example {sample.damaged[0]}"
        if sample.wide:
            yield _left_out(sample, place)
        if sample.rare is not None:
            yield (
                f"only the {MAX_FIELDS:,} most frequent fields{place} are declared: others, such as "
                f"{json.dumps(sample.rare)}, are left out"
            )
        if sample.objects < sample.events and self.sample.range is None:
            rows = counted(sample.events - sample.objects, "row")
            yield f"{rows} of reference data {self.alias} cannot be read: such a row stops a run"
        elif sample.objects < sample.events:
            others = counted(sample.events - sample.objects, "event", "events")
            yield f"{others} of the sample{place} cannot be read: a run quarantines such events"
        left_out = [typed_field.field.dotted for typed_field in self.fields if typed_field.left_out]
        if left_out:
            yield (
                f"CREATE TABLE {self.alias} leaves out {', '.join(left_out)}: its comments say why; * does not "
                "include these fields, and a query that reads one of them does not compile with this CREATE TABLE"
            )


@dataclass(frozen=True)
class Inference:
    """The CREATE TABLE of each input of a pipeline."""

    inputs: tuple[InputInference, ...]
    refusal: DefinitionError | None
    """Why the query does not compile with the statements; None if it does, or if it has a CREATE TABLE already."""

    @property
    def statement(self) -> str:
        """CREATE TABLE of every input."""
        return "".join(inferred.statement for inferred in self.inputs)

    @property
    def summary(self) -> dict[str, Any]:
        """The inference in JSON types. If there is one input, its values are also at the top level."""
        inputs = [inferred.summary for inferred in self.inputs]
        return {
            "statement": self.statement,
            "inputs": inputs,
            **values_of_only(inputs, "from", "to", "blobs", "events", "fields"),
            "warnings": self.warnings,
        }

    @property
    def warnings(self) -> list[str]:
        """Warnings about the samples and the query, one sentence each."""
        warnings = [warning for inferred in self.inputs for warning in inferred.warnings(len(self.inputs) > 1)]
        if self.refusal is not None:
            warnings.append(f"with this CREATE TABLE the query does not compile: {self.refusal}")
        return warnings


def infer(pipeline: Pipeline, start: datetime | None, end: datetime | None) -> Inference:
    """Infer the CREATE TABLE of each input from what arrived in a range, or else in the newest hour of the input.

    The CREATE TABLE of reference data comes from its newest version. Raise DefinitionError for an empty range, and
    RunError if nothing arrived in it, or if reference data has no version.
    """
    records, timing = _paths(pipeline, starred_records), _paths(pipeline, timing_fields)
    samples = {
        section.alias: _sampled_reference(section, records.get(section.alias, []))
        if isinstance(section, ReferenceInput)
        else _sampled(pipeline, section, start, end, records.get(section.alias, []))
        for section in pipeline.all_inputs
    }

    def typed_fields(alias: str, used: Mapping[Path, AsaType | None]) -> list[TypedField]:
        return typed(samples[alias].content.fields, used, samples[alias].sampled, timing.get(alias, ()))

    used = _used(pipeline, {alias: typed_fields(alias, {}) for alias in samples})
    inputs = []
    for alias, sample in samples.items():
        fields = typed_fields(alias, used.get(alias, {}))
        text = statement(alias, fields, sample.sampled, sample.origin)
        inputs.append(InputInference(alias, text, tuple(fields), sample))
    return Inference(tuple(inputs), _refusal(pipeline, "".join(inferred.statement for inferred in inputs)))


def _sampled(
    pipeline: Pipeline, section: Input, start: datetime | None, end: datetime | None, records: Sequence[Path]
) -> InputSample:
    """Return a sample of an input, with the properties of `records`. Errors are those of `infer`."""
    container, definition = open_container(section.container), definition_without_query(section)
    if start is None or end is None:
        start, end = _newest_hour(definition, container)
    if start >= end:
        raise DefinitionError(f"the range is empty: from {ticks.text_of(start)} is not before to {ticks.text_of(end)}")
    place = of_input(section.alias if len(pipeline.inputs) > 1 else None)
    blobs = _arrived(definition, container, start, end, place)
    sample = read_sample(container, section.reader(()), blobs, records)
    if not sample.fields and sample.wide:
        raise RunError(f"{_left_out(sample, place)}, and no other has fields: {_OTHER_RANGE}")
    if not sample.fields:
        raise RunError(
            f"none of the {counted(sample.events, 'event')} in {counted(sample.blobs, 'blob')}{place} from "
            f"{ticks.text_of(start)} to {ticks.text_of(end)} has fields: {_OTHER_RANGE}"
        )
    _LOG.info(
        "infer %s, input %s: read %s (%d bytes) of %s",
        *(pipeline.name, section.alias, counted(sample.blobs, "blob"), sample.size, f"{len(blobs):,}"),
    )
    return InputSample(sample, len(blobs), (start, end))


def _sampled_reference(section: Reference, records: Sequence[Path]) -> InputSample:
    """Return a sample of the newest version of reference data. Raise RunError if there is none, or it has no rows."""
    container = open_container(section.container)
    newest = versions(section.alias, section.names, container)[-1].blob
    pinned = PinnedBlob(section.alias, "", newest)
    sample = read_sample(container, section.reader(()), [pinned], records)
    if not sample.fields and sample.wide:
        raise RunError(f"{_left_out(sample, f' of reference data {section.alias}')}: declare its fields yourself")
    if not sample.fields:
        raise RunError(f"reference data {section.alias}: {newest.name} has no rows, so it has no fields to declare")
    return InputSample(sample, 1, None)


def _left_out(sample: Sample, place: str) -> str:
    """Return how many events were left out as they have too many fields. `place` names the input."""
    fields = f"with more than {MAX_FIELDS:,} fields"
    return counted(sample.wide, f"event{place} {fields} was left out", f"events{place} {fields} were left out")


def require_no_create_table(pipeline: Pipeline) -> None:
    """Raise DefinitionError if the query has a CREATE TABLE, which `write` never overwrites, or cannot be parsed."""
    if has_create_table(pipeline.job.query):
        raise DefinitionError(
            f"{pipeline.file}: the query has a CREATE TABLE, which is not overwritten: remove it, or leave out --write "
            "and compare"
        )


def write(pipeline: Pipeline, inference: Inference) -> None:
    """Write the statements in front of the query in the pipeline file.

    Raise DefinitionError if the query does not compile with them, or if the file has a form that cannot be edited.
    """
    require_no_create_table(pipeline)
    if inference.refusal is not None:
        raise DefinitionError(
            f"{pipeline.file} is unchanged, because with this CREATE TABLE the query does not compile: correct it "
            f"first. {inference.refusal}"
        )
    write_in_front(pipeline.file, pipeline.job.query, inference.statement)


def _newest_hour(definition: InputDefinition, container: Archive) -> tuple[datetime, datetime]:
    """Return the hour before the newest arrival among the blobs whose names have the newest hour."""
    blobs = newest_blobs(definition.names, container, datetime.now(UTC))
    if not blobs:
        raise no_partitions(definition.names, container)
    newest = max(blob.last_modified for blob in blobs)
    if definition.by_enqueued_time:
        times = [parsed[1] for parsed in (definition.names.parse(blob.name) for blob in blobs) if parsed]
        newest = max(time for time in times if time) + timedelta(seconds=definition.interval_seconds)
    return newest - _HOUR, newest


def _arrived(
    definition: InputDefinition, container: Archive, start: datetime, end: datetime, place: str
) -> list[PinnedBlob]:
    """Return the blobs whose events may have arrived in (start, end]. Raise RunError, with `place`, without any."""
    arrivals = Arrivals(ticks.from_datetime(start) + 1, ticks.from_datetime(end))
    listing, partitions = survey(definition, container, [arrivals], datetime.now(UTC))
    if not partitions:
        raise no_partitions(definition.names, container)
    [blobs] = blobs_for(in_order(listing.blobs, definition), [arrivals])
    if not blobs:
        raise RunError(
            f"no blob{place} arrived from {ticks.text_of(start)} to {ticks.text_of(end)}: choose another range with "
            "--from and --to, or leave them out for the newest hour"
        )
    return blobs


def _paths(pipeline: Pipeline, find: Callable[[str, Collection[str]], dict[str, Paths]]) -> dict[str, Paths]:
    """Return the paths that a function finds in the query, by input; none if the query cannot be parsed."""
    try:
        return find(pipeline.job.query, list(pipeline.metadata))
    except DefinitionError:
        return {}


def _used(pipeline: Pipeline, sampled: Mapping[str, list[TypedField]]) -> Mapping[str, Mapping[Path, AsaType | None]]:
    """Return the sampled fields of each input and those that the query reads, with the types that their use decides.

    A query that does not compile with open types, such as one that groups by a field and also uses it as a number, is
    compiled with the types of the values. Nothing is known of a query that does not compile either way.
    """
    for is_open in (True, False):
        types = {
            alias: {typed_field.field.path: None if is_open else typed_field.type for typed_field in fields}
            for alias, fields in sampled.items()
        }
        try:
            return fields_used(
                pipeline.job.query,
                types,
                inputs=pipeline.metadata,
                output_aliases=[output.alias for output in pipeline.outputs],
                functions=pipeline.javascript,
            )
        except DefinitionError:
            continue
    return {}


def _refusal(pipeline: Pipeline, text: str) -> DefinitionError | None:
    """Return why the query does not compile after the statement; None if it does, or has a CREATE TABLE already."""
    query = pipeline.job.query
    try:
        if not has_create_table(query):
            pipeline.compile(text + query)
    except DefinitionError as error:
        return error
    return None
