"""The parts of a pipeline that decide its rows."""

from dataclasses import asdict, replace

from recapture import __version__
from recapture.archive.manifest import RunDefinition
from recapture.definition.pipeline import Pipeline


def run_definition(pipeline: Pipeline) -> RunDefinition:
    """Return the parts of a pipeline that decide which blobs a slice needs and what becomes of their events."""
    query = pipeline.query
    definition = definition_without_query(pipeline)
    return replace(
        definition,
        canonical_query=query.canonical,
        policies=pipeline.policies(query.inputs[0]),
        look_back=query.inputs[0].look_back,
        functions=[asdict(function) for function in query.functions],
    )


def definition_without_query(pipeline: Pipeline) -> RunDefinition:
    """Return the parts of a pipeline that decide which blobs arrived in a range, for a query that may not compile."""
    return RunDefinition(
        name=pipeline.name,
        names=pipeline.input.names,
        engine=__version__,
        canonical_query="",
        policies=None,
        look_back=0,
        interval_seconds=pipeline.input.interval_seconds,
        input=pipeline.input.alias,
        reading=pipeline.input.reading,
        arrival_time=pipeline.input.arrival_time,
        search_hours=pipeline.input.search_hours,
        partitions=pipeline.input.partitions,
        functions=[],
    )
