"""Roll publications back."""

from datetime import datetime
from typing import Any

from recapture.definition.pipeline import Pipeline
from recapture.process.wording import values_of_only
from recapture.run.publish import warnings
from recapture.run.slices import require_whole_slices, slices_of
from recapture.run.tables import tables_of
from recapture.table import publish as table_publish
from recapture.time_model import ticks


def rollback(pipeline: Pipeline, start: datetime, end: datetime, run_id: str | None = None) -> dict[str, Any]:
    """Restore in every table what the range's slices held before their publication: see `table.publish.rollback`.

    If the pipeline has one output, its version and slices are also at the top level of the result.
    """
    require_whole_slices(pipeline, start, end)
    starts = [ticks.to_text(slice_.start) for slice_ in slices_of(pipeline, start, end)]
    outcome = table_publish.rollback(tables_of(pipeline), starts, run_id)
    outputs = [
        {
            "alias": output.alias,
            "table": output.table,
            "version": outcome.versions[output.alias],
            "slices": outcome.changed[output.alias],
        }
        for output in pipeline.outputs
    ]
    slices = [
        {
            "slice_start": slice_start,
            "taken_back": entry.taken_back,
            "run": entry.run,
            "changed": slice_start in outcome.recorded,
        }
        for slice_start, entry in outcome.entries.items()
    ]
    return {
        "pipeline": pipeline.name,
        "rolled_back": slices,
        "outputs": outputs,
        "warnings": list(warnings(outcome)),
        **values_of_only(outputs, "version", "slices"),
    }
