"""What a live job may have done differently: the settings with which slices are computed again."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

from recapture.archive.definitions import ArrivalTime
from recapture.definition.pipeline import Pipeline
from recapture.errors import DefinitionError
from recapture.run_files.computed import Computed
from recapture.run_files.planned import PlannedRun
from recapture.table.publications import Entry
from recapture.time_model.slices import Slice
from recapture.tools.compare.words import CHANGED_ARCHIVE, ENQUEUED, OTHER_DEFINITION
from recapture.tools.diff.document import of_other_definition, with_changed_blobs
from recapture.tools.diff.files import StoredFile
from recapture.tools.diff.tried import Tried, tried_pipeline, try_slices

Compute = Callable[[Pipeline], Callable[[PlannedRun], Computed]]
"""Returns the function that stages the rows of the runs of a pipeline."""
Published = tuple[Sequence[Slice], Mapping[str, Entry]]
"""Slices, and their entries in the publications by slice_start."""
_WORDS = {
    "query": "the query in {}",
    "late_seconds": "a late tolerance of {} s",
    "out_of_order_seconds": "an out-of-order tolerance of {} s",
    "policy": "the policy {}",
}


@dataclass(frozen=True)
class Assumption:
    """Something that the live job may have done differently."""

    reason: str
    """Reason of the differences that it explains."""
    is_given: bool
    """Whether it is known: given by the user, or a change of the archive or the definition."""
    files: Callable[[Sequence[Slice]], list[StoredFile]]
    """Function that computes slices under the assumption, and returns the files of their rows."""


def assumptions(
    pipeline: Pipeline,
    alias: str,
    published: Published,
    given: Tried,
    folder: Path,
    compute: Compute,
) -> Iterator[Assumption]:
    """Yield the assumptions in the order in which they are tried; each computes its rows in a folder.

    They are the archive or the definition as it is now, if that has changed since the slices were published; each given
    setting; all of them; and arrival by enqueued time, alone and with all given settings. Raise DefinitionError if a
    given setting or query is wrong.
    """
    for number, (reason, changes) in enumerate([*_changes(pipeline, published), *_tried(pipeline, given)]):
        try:
            changed = tried_pipeline(pipeline, changes, folder / f"run-{number}")
        except DefinitionError:
            if changes.arrival_time is None:
                raise
            continue  # this format has no enqueued time

        def files(slices: Sequence[Slice], changed: Pipeline = changed) -> list[StoredFile]:
            stored = try_slices(changed, slices, compute(changed)).files
            return [file for (output, _), file in stored.items() if output == alias]

        yield Assumption(reason, changes.arrival_time is None, files)


def _changes(pipeline: Pipeline, published: Published) -> Iterator[tuple[str, Tried]]:
    """Yield what has changed since the slices were published, with nothing else that is tried."""
    slices, entries = published
    if with_changed_blobs(pipeline, slices, entries):
        yield CHANGED_ARCHIVE, Tried()
    elif of_other_definition(pipeline, entries):
        yield OTHER_DEFINITION, Tried()


def _tried(pipeline: Pipeline, given: Tried) -> Iterator[tuple[str, Tried]]:
    """Yield the reasons with what is tried."""
    values = {field.name: getattr(given, field.name) for field in fields(given)}
    settings = {name: value for name, value in values.items() if value is not None}
    reasons = {name: _WORDS[name].format(value) for name, value in settings.items()}
    for name, reason in reasons.items():
        yield reason, Tried(**{name: settings[name]})
    if len(settings) > 1:
        yield ", ".join(reasons.values()), given
    if any(section.arrival_time is ArrivalTime.BLOB_LAST_MODIFIED for section in pipeline.inputs):
        yield ENQUEUED, Tried(arrival_time=ArrivalTime.EVENT_ENQUEUED)
        if settings:
            together = ", ".join([*reasons.values(), ENQUEUED])
            yield together, replace(given, arrival_time=ArrivalTime.EVENT_ENQUEUED)
