"""The parts of a pipeline that decide its rows."""

from dataclasses import asdict, replace

from recapture import __version__
from recapture.archive.definitions import InputDefinition, ReferenceDefinition, RunDefinition
from recapture.definition.pipeline import Pipeline
from recapture.formats.sections import Input


def run_definition(pipeline: Pipeline) -> RunDefinition:
    """Return the parts of a pipeline that decide which blobs a slice needs and what becomes of their events."""
    query = pipeline.query
    return RunDefinition(
        name=pipeline.name,
        engine=__version__,
        canonical_query=query.canonical,
        inputs=[
            replace(
                definition_without_query(pipeline.section(compiled.alias)),
                policies=pipeline.policies(compiled),
                look_back=compiled.look_back,
            )
            for compiled in query.inputs
        ],
        references=[
            ReferenceDefinition(alias=section.alias, names=section.names, reading=section.reading)
            for section in pipeline.references
        ],
        functions=[asdict(function) for function in query.functions],
    )


def definition_without_query(section: Input) -> InputDefinition:
    """Return the parts of an input that decide which blobs arrived in a range, for a query that may not compile."""
    return InputDefinition(
        alias=section.alias,
        names=section.names,
        policies=None,
        look_back=0,
        interval_seconds=section.interval_seconds,
        reading=section.reading,
        arrival_time=section.arrival_time,
        search_hours=section.search_hours,
        partitions=section.partitions,
        empty_blobs=section.empty_blobs,
    )
