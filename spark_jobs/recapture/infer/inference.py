"""Infer the CREATE TABLE of a pipeline's input, and write it in front of the query."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from recapture.archive.definitions import InputDefinition
from recapture.archive.newest import newest_blobs
from recapture.archive.pinning import PinnedBlob, blobs_for, in_order, no_partitions, survey
from recapture.definition.digest import definition_without_query
from recapture.definition.pipeline import Pipeline
from recapture.definition.query_text import write_in_front
from recapture.errors import DefinitionError, RunError
from recapture.infer.create_table import TypedField, statement, typed
from recapture.infer.sample import Sample, read_sample
from recapture.model import AsaType
from recapture.query.compile import fields_used, has_create_table
from recapture.storage import Container, open_container
from recapture.time_model import ticks
from recapture.time_model.slices import Arrivals
from recapture.wording import counted

_LOG = logging.getLogger(__name__)
_HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class Inference:
    """The CREATE TABLE of an input, and where it comes from."""

    statement: str
    """CREATE TABLE with a comment on each field, ending with a line break."""
    fields: tuple[TypedField, ...]
    sample: Sample
    start: datetime
    """Start of the range, exclusive."""
    end: datetime
    """End of the range, inclusive."""
    refusal: DefinitionError | None
    """Why the query does not compile with the statement; None if it does, or if it has a CREATE TABLE already."""

    @property
    def summary(self) -> dict[str, Any]:
        """The inference in JSON types."""
        return {
            "statement": self.statement,
            "from": _text(self.start),
            "to": _text(self.end),
            "blobs": self.sample.blobs,
            "events": self.sample.events,
            "fields": [
                {
                    "name": typed_field.field.name,
                    "type": str(typed_field.type),
                    "events": typed_field.field.events,
                    "values": {str(kind or "null"): events for kind, events in typed_field.field.kinds.items()},
                    "spellings": typed_field.field.spellings,
                }
                for typed_field in self.fields
            ],
            "warnings": self.warnings,
        }

    @property
    def warnings(self) -> list[str]:
        """Warnings about the sample and the query, one sentence each."""
        warnings = []
        if self.sample.damaged:
            count = counted(len(self.sample.damaged), "blob is damaged and was", "blobs are damaged and were")
            warnings.append(f"{count} left out, for example {self.sample.damaged[0]}")
        if self.sample.objects < self.sample.events:
            others = counted(self.sample.events - self.sample.objects, "event", "events")
            warnings.append(f"{others} of the sample cannot be read: a run quarantines such events")
        if self.refusal is not None:
            warnings.append(f"with this CREATE TABLE the query does not compile: {self.refusal}")
        return warnings


def infer(pipeline: Pipeline, start: datetime | None, end: datetime | None) -> Inference:
    """Infer the CREATE TABLE of the input from what arrived in a range, or else in the newest hour.

    Raise DefinitionError for an empty range, and RunError if nothing arrived in it.
    """
    container, definition = open_container(pipeline.input.container), definition_without_query(pipeline.input)
    if start is None or end is None:
        start, end = _newest_hour(definition, container)
    if start >= end:
        raise DefinitionError(f"the range is empty: from {_text(start)} is not before to {_text(end)}")
    blobs = _arrived(definition, container, start, end)
    sample = read_sample(container, pipeline.input.reader(()), blobs, pipeline.input.only_texts)
    if not sample.fields:
        raise RunError(
            f"none of the {counted(sample.events, 'event')} in {counted(sample.blobs, 'blob')} from {_text(start)} to "
            f"{_text(end)} has fields: choose another range with --from and --to"
        )
    _LOG.info(
        "infer %s, input %s: read %s (%d bytes) of %s",
        *(pipeline.name, pipeline.input.alias, counted(sample.blobs, "blob"), sample.size, f"{len(blobs):,}"),
    )
    fields = typed(sample.fields, _used(pipeline, typed(sample.fields, {})))
    origin = (
        f"recapture infer, {_text(start)} to {_text(end)}: {counted(sample.events, 'event')} in {sample.blobs:,} of "
        f"{counted(len(blobs), 'blob')}"
    )
    text = statement(pipeline.input.alias, fields, sample.objects, origin)
    return Inference(text, tuple(fields), sample, start, end, _refusal(pipeline, text))


def require_no_create_table(pipeline: Pipeline) -> None:
    """Raise DefinitionError if the query has a CREATE TABLE, which `write` never overwrites, or cannot be parsed."""
    if has_create_table(pipeline.job.query):
        raise DefinitionError(
            f"{pipeline.file}: the query has a CREATE TABLE, which is not overwritten: remove it, or leave out --write "
            "and compare"
        )


def write(pipeline: Pipeline, inference: Inference) -> None:
    """Write the statement in front of the query in the pipeline file.

    Raise DefinitionError if the query does not compile with it, or if the file has a form that cannot be edited.
    """
    require_no_create_table(pipeline)
    if inference.refusal is not None:
        raise DefinitionError(
            f"{pipeline.file} is unchanged, because with this CREATE TABLE the query does not compile: correct it "
            f"first. {inference.refusal}"
        )
    write_in_front(pipeline.file, pipeline.job.query, inference.statement)


def _newest_hour(definition: InputDefinition, container: Container) -> tuple[datetime, datetime]:
    """Return the hour before the newest arrival among the blobs whose names have the newest hour."""
    blobs = newest_blobs(definition.names, container, datetime.now(UTC))
    if not blobs:
        raise no_partitions(definition.names, container)
    newest = max(blob.last_modified for blob in blobs)
    if definition.by_enqueued_time:
        times = [parsed[1] for parsed in (definition.names.parse(blob.name) for blob in blobs) if parsed]
        newest = max(time for time in times if time) + timedelta(seconds=definition.interval_seconds)
    return newest - _HOUR, newest


def _arrived(definition: InputDefinition, container: Container, start: datetime, end: datetime) -> list[PinnedBlob]:
    """Return the blobs whose events may have arrived in (start, end]. Raise RunError if there are none."""
    arrivals = Arrivals(ticks.from_datetime(start) + 1, ticks.from_datetime(end))
    listing, partitions = survey(definition, container, [arrivals], datetime.now(UTC))
    if not partitions:
        raise no_partitions(definition.names, container)
    [blobs] = blobs_for(in_order(listing.blobs, definition), [arrivals])
    if not blobs:
        raise RunError(
            f"no blob arrived from {_text(start)} to {_text(end)}: choose another range with --from and --to, or leave "
            "them out for the newest hour"
        )
    return blobs


def _used(pipeline: Pipeline, sampled: list[TypedField]) -> Mapping[str, AsaType | None]:
    """Return the sampled fields and those that the query reads, with the types that their use decides.

    A query that does not compile with open types, such as one that groups by a field and also uses it as a number, is
    compiled with the types of the values. Nothing is known of a query that does not compile either way.
    """
    for types in (
        {typed_field.field.name: None for typed_field in sampled},
        {typed_field.field.name: typed_field.type for typed_field in sampled},
    ):
        try:
            used = fields_used(
                pipeline.job.query,
                {pipeline.input.alias: types},
                inputs={section.alias: section.metadata for section in pipeline.inputs},
                output_aliases=[output.alias for output in pipeline.outputs],
                functions=pipeline.javascript,
            )
            return used[pipeline.input.alias]
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


def _text(instant: datetime) -> str:
    return ticks.to_text(ticks.from_datetime(instant))
