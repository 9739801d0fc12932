"""The parts of a pipeline that decide its rows."""

from dataclasses import asdict

from recapture import __version__
from recapture.archive.manifest import RunDefinition
from recapture.definition.pipeline import Pipeline


def run_definition(pipeline: Pipeline) -> RunDefinition:
    """Return the parts of a pipeline that decide which blobs a slice needs and what becomes of their events."""
    return RunDefinition(
        name=pipeline.name,
        names=pipeline.input.names,
        engine=__version__,
        canonical_query=pipeline.query.canonical,
        policies=pipeline.policies,
        look_back=pipeline.query.look_back,
        interval_seconds=pipeline.input.interval_seconds,
        input=pipeline.input.alias,
        reading=pipeline.input.reading,
        arrival_time=pipeline.input.arrival_time,
        search_hours=pipeline.input.search_hours,
        partitions=pipeline.input.partitions,
        functions=[asdict(function) for function in pipeline.query.functions],
    )
