"""What of a pipeline decides its rows."""

from recapture import __version__
from recapture.archive.manifest import Definition
from recapture.definition.pipeline import Pipeline


def definition_of(pipeline: Pipeline) -> Definition:
    """Return what of a pipeline decides which blobs a slice needs and what becomes of their events."""
    return Definition(
        pipeline.name,
        pipeline.input.names,
        __version__,
        pipeline.query.canonical,
        pipeline.policies,
        pipeline.query.look_back,
        pipeline.input.interval_seconds,
        pipeline.input.arrival_time,
        pipeline.input.search_hours,
        pipeline.input.partitions,
        pipeline.input.reading,
        pipeline.input.alias,
    )
