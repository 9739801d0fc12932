"""The tables of a pipeline, by the names under which a publication lists their files."""

from recapture.definition.pipeline import Pipeline
from recapture.definition.sections import Output
from recapture.model import published_schema
from recapture.ordering.quarantine import QUARANTINE_SCHEMA
from recapture.ordering.verdict_rows import VERDICTS_SCHEMA
from recapture.quality import metrics
from recapture.table.delta import Table
from recapture.table.publications import SCHEMA as PUBLICATIONS
from recapture.table.publish import Tables

QUARANTINE = "@quarantine"
"""Name of the quarantine table; no output can have this alias."""
VERDICTS = "@verdicts"
"""Name of the table of verdicts."""
MAY_LACK_SLICES = (QUARANTINE, VERDICTS)
"""Names of the tables in which a slice has no file if it has no rows."""


def tables_of(pipeline: Pipeline) -> Tables:
    """Return the tables of a pipeline, in the order in which they are committed to."""
    writer, first = (pipeline.name, pipeline.slice_hours), pipeline.outputs[0]
    others: dict[str, Table] = {}
    for output in pipeline.outputs:
        columns = published_schema(pipeline.compiled(output).columns)
        others[output.alias] = Table(output.table, columns, *writer, change_feed=output.change_feed)
        others[metrics_key(output)] = Table(output.metrics_table, metrics.TABLE_SCHEMA, *writer)
    others[QUARANTINE] = Table(first.quarantine_table, QUARANTINE_SCHEMA, *writer)
    if pipeline.verdicts is not None:
        others[VERDICTS] = Table(first.verdicts_table, VERDICTS_SCHEMA, *writer)
    return Tables(Table(first.publications_table, PUBLICATIONS, *writer), others)


def metrics_key(output: Output) -> str:
    """Return the name under which a publication lists the files of an output's metrics; no alias contains a space."""
    return f"{output.alias} metrics"
