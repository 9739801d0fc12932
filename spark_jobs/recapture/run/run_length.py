"""How long a run may be. A longer range is computed in several runs, so that one process can hold each of them."""

from collections.abc import Sequence

from recapture.archive.listing import partition_folders
from recapture.archive.manifest import Manifest
from recapture.definition.digest import run_definition
from recapture.definition.pipeline import Pipeline
from recapture.run.slices import slice_length
from recapture.storage import open_container
from recapture.time_model.slices import Slice

MOST_BLOBS = 300_000
"""Largest number of blobs that a run is planned for: those of a hub of 32 partitions in a month."""
MOST_COUNTED = 24_000
"""Largest number of slices that a run is planned for, each counted once for each partition."""
MOST_BYTES = 2 << 40
"""Largest size of the blobs that a run is planned for, in bytes: those of 8,192 tasks on a cluster."""
_SURELY = 24
"""Number of slices that are planned without a look at the partitions."""


def beginning(pipeline: Pipeline, slices: Sequence[Slice]) -> Sequence[Slice]:
    """Return the slices of the first run: all, or as many that all runs have about the same number of slices.

    What a run reads is estimated from the partition folders and the intervals of the inputs.
    """
    most = len(slices) if len(slices) <= _SURELY else _most_slices(pipeline)
    runs = -(-len(slices) // most)
    return slices[: -(-len(slices) // runs)]


def is_too_long(manifest: Manifest) -> bool:
    """Return whether a run reads more than a run may, and has several slices."""
    return len(manifest.slices) > 1 and (manifest.blob_count > MOST_BLOBS or manifest.size > MOST_BYTES)


def _most_slices(pipeline: Pipeline) -> int:
    partitions = blobs = 0
    for definition in run_definition(pipeline).inputs:
        folders, _ = partition_folders(definition.names, open_container(pipeline.section(definition.alias).container))
        count = max(len(folders), definition.partitions or 1)
        blobs_of_slice = slice_length(pipeline) // definition.interval if definition.names.on_schedule else 1
        partitions += count
        blobs += count * max(blobs_of_slice, 1)
    return max(1, min(MOST_COUNTED // partitions, MOST_BLOBS // blobs))
