"""Find published slices whose blobs were added, modified or deleted since they were read, and record them."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from recapture.definition.pipeline import Pipeline
from recapture.keep.state import Reader, sources_of
from recapture.run.slices import require_whole_slices, slices_of
from recapture.run_files.changes import read_changes, write_changes
from recapture.time_model import ticks


def check(pipeline: Pipeline, start: datetime, end: datetime) -> dict[str, Any]:
    """Compare the archives with what the published slices of a range read of them, record the result, and return it.

    `unknown` lists slices that an older version published and whose manifest cannot be read. Two checks must not run at
    the same time: the record is one file. Raise DefinitionError if the tables belong to another pipeline.
    """
    require_whole_slices(pipeline, start, end)
    sources, now = sources_of(pipeline), datetime.now(UTC)
    sources.publications.require_writable()
    starts = [slice_.start for slice_ in slices_of(pipeline, start, end)]
    runs, changed, unknown = Reader(sources, now).compare(starts)
    record = read_changes(sources.run_files)
    texts = set(map(ticks.to_text, starts))
    before = {text: run for text, run in record.slices.items() if text not in texts}
    first, last = ticks.text_of(start), ticks.text_of(end)
    record = replace(record, slices=before | changed, checked=ticks.whole_seconds(now), start=first, end=last)
    write_changes(sources.run_files, replace(record, unknown=tuple(unknown)))
    return {"from": first, "to": last, "checked": len(runs), "changed": list(changed), "unknown": unknown}


def is_up_to_date(pipeline: Pipeline, start: datetime, end: datetime) -> bool:
    """Return whether a run of whole slices would publish nothing new: see `Reader.are_up_to_date`."""
    reader = Reader(sources_of(pipeline), datetime.now(UTC))
    return reader.are_up_to_date([slice_.start for slice_ in slices_of(pipeline, start, end)])
