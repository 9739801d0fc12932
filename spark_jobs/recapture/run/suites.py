"""The suites of a pipeline's outputs."""

from recapture.definition.pipeline import Pipeline
from recapture.quality import suites
from recapture.table.delta import SLICE_COLUMN


def load_suites(pipeline: Pipeline) -> dict[str, suites.Suite]:
    """Return the outputs' own suites, by alias; the built-in suite always runs as well."""
    loaded = {}
    for output in pipeline.outputs:
        path = pipeline.suite_path(output)
        if path is not None:
            columns = [column.name for column in pipeline.compiled(output).columns]
            loaded[output.alias] = suites.load(path, [*columns, SLICE_COLUMN])
    return loaded
