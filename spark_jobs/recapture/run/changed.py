"""Find published slices whose blobs were added, modified or deleted since they were read, and record them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from recapture.archive import pinning
from recapture.archive.definitions import InputDefinition
from recapture.archive.manifest import Manifest
from recapture.archive.pinning import PlannedSlice
from recapture.definition.digest import run_definition
from recapture.definition.pipeline import Pipeline
from recapture.run.slices import require_whole_slices, slices_of
from recapture.run.tables import tables_of
from recapture.run_files.changes import read_changes, write_changes
from recapture.run_files.planned import files_of, readable_manifest
from recapture.storage import Container, in_parallel, open_container
from recapture.table.delta import OpenTable
from recapture.table.publications import NOTHING_SHOWN, shown_entries
from recapture.time_model import ticks


def check(pipeline: Pipeline, start: datetime, end: datetime) -> dict[str, Any]:
    """Compare the archives with what the published slices of a range read of them, record the result, and return it.

    Blobs of reference data are not compared. `unknown` lists slices whose manifest cannot be read. Two checks must not
    run at the same time: the record is one file. Raise DefinitionError if the tables belong to another pipeline.
    """
    require_whole_slices(pipeline, start, end)
    now = datetime.now(UTC)
    starts = [ticks.to_text(slice_.start) for slice_ in slices_of(pipeline, start, end)]
    publications = OpenTable(tables_of(pipeline).publications)
    publications.require_writable()
    entries = shown_entries(publications)
    runs = {text: run for text in starts if (run := entries.get(text, NOTHING_SHOWN).run)}
    names = sorted(set(runs.values()))
    readable = zip(names, in_parallel(partial(readable_manifest, pipeline), names), strict=True)
    manifests = {run: manifest for run, manifest in readable if manifest is not None}
    differing: set[str] = set()
    for definition in run_definition(pipeline).inputs:
        read = dict(_read_by_slice(runs, manifests, definition.alias))
        container = open_container(pipeline.section(definition.alias).container)
        differing.update(_differing(definition, container, read, now))
    changed = {text: runs[text] for text in sorted(differing)}
    container = files_of(pipeline, "").container
    record = read_changes(container)
    before = {text: run for text, run in record.slices.items() if text not in starts}
    unknown = [text for text, run in runs.items() if run not in manifests]
    first, last = ticks.text_of(start), ticks.text_of(end)
    record = replace(record, slices=before | changed, checked=ticks.whole_seconds(now), start=first, end=last)
    write_changes(container, replace(record, unknown=tuple(unknown)))
    return {"from": first, "to": last, "checked": len(runs), "changed": list(changed), "unknown": unknown}


def _read_by_slice(
    runs: Mapping[str, str], manifests: Mapping[str, Manifest], alias: str
) -> Iterator[tuple[str, PlannedSlice]]:
    """Yield the published slices, each with what its run read of an input."""
    for run, manifest in manifests.items():
        for planned in manifest.inputs:
            for planned_slice in planned.slices if planned.alias == alias else ():
                text = ticks.to_text(planned_slice.slice.start)
                if runs.get(text) == run:
                    yield text, planned_slice


def _differing(
    definition: InputDefinition, container: Container, read: Mapping[str, PlannedSlice], now: datetime
) -> Iterable[str]:
    """Return the slices for which an input has other blobs now than those that were read."""
    if not read:
        return []
    needed = [planned_slice.arrivals for planned_slice in read.values()]
    listing, _ = pinning.survey(definition, container, needed, now)
    blobs = pinning.blobs_for(pinning.in_order(listing.blobs, definition), needed)
    return [
        text
        for (text, planned_slice), slice_blobs in zip(read.items(), blobs, strict=True)
        if pinning.digest_of_blobs(slice_blobs) != planned_slice.digest
    ]
