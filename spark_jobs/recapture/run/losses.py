"""Find the slices of a run that would lose events against what is published for them."""

from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial

from recapture.archive.manifest import Manifest
from recapture.archive.pinning import blobs_for
from recapture.quality.archive_checks import Loss
from recapture.quality.metrics import Totals
from recapture.run.holes import inputs_read
from recapture.run_files.computed import Computed
from recapture.run_files.planned import PlannedRun, readable_manifest
from recapture.table.publications import InputRead, Publication, Publications
from recapture.time_model import ticks
from recapture.time_model.slices import Arrivals


def losses_of(run: PlannedRun, computed: Computed, publications: Publications) -> list[Loss]:
    """Return what a run would lose, by slice and input."""
    read = inputs_read(run.pipeline, computed.metrics)
    entries = publications.entries(list(run.slices))
    manifest_of = cache(partial(readable_manifest, run.pipeline))
    losses: list[Loss] = []
    for start, entry in entries.items():
        if entry.current is not None:
            losses += _of_slice(run, start, entry.current, read[start], computed.slices[start].totals, manifest_of)
    return losses


def _of_slice(
    run: PlannedRun,
    start: str,
    published: Publication,
    read: Mapping[str, InputRead],
    totals: Totals,
    manifest_of: Callable[[str], Manifest | None],
) -> Iterator[Loss]:
    if published.inputs is None:
        arrived = totals.count("InputEvents")
        if arrived < published.input_events:
            yield Loss(start, None, (), published.input_events, arrived, published.run, None)
        return
    for alias, before in published.inputs.items():
        now = read.get(alias)
        if now is None:  # the query does not read this input any more
            continue
        lacking = [name for name, events in before.events.items() if now.events.get(name, 0) < events]
        if lacking:
            yield Loss(
                start,
                alias,
                tuple(lacking),
                sum(before.events[name] for name in lacking),
                sum(now.events.get(name, 0) for name in lacking),
                published.run,
                _gone(run, start, alias, manifest_of(published.run)),
            )


def _gone(run: PlannedRun, start: str, alias: str, published: Manifest | None) -> tuple[str, ...] | None:
    """Return the names of the blobs that the published run read for a slice and that this run does not read."""
    if published is None:
        return None
    return tuple(sorted(_names(published, start, alias) - _names(run.manifest, start, alias)))


def _names(manifest: Manifest, start: str, alias: str) -> set[str]:
    """Return the names of the blobs that may hold the arrivals of a slice of an input."""
    slice_ = next(of.slice for of in manifest.slices if ticks.to_text(of.slice.start) == start)
    own = Arrivals(slice_.start + 1, slice_.end)
    blobs = next((planned.blobs for planned in manifest.inputs if planned.alias == alias), ())
    return {pinned.blob.name for slice_blobs in blobs_for(blobs, [own]) for pinned in slice_blobs}
