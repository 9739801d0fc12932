"""The command that names the events of a row that a page shows."""

import shlex
from collections.abc import Mapping

from recapture.definition.pipeline import Pipeline
from recapture.model import AsaType
from recapture.query.plan.relations import SLICE_START
from recapture.tools.events.row_time import is_time

_COMPARED = (AsaType.BIGINT, AsaType.BIT, AsaType.DATETIME, AsaType.STRING)
"""Types whose texts are exact: a float is shown with fewer digits than it has."""
_NULL = "null"
"""How `sentences.value_text` shows NULL, and the string of the same letters."""


def row_command(pipeline: Pipeline, alias: str, row: Mapping[str, str], run: str | None) -> str | None:
    """Return the command that explains a published row, given texts of its values, as pages show them.

    Of a group, the window and the keys are enough. `run` has computed the row; None for what is published. Return None
    if the texts do not say in which slice the row is.
    """
    output = next((output for output in pipeline.query.outputs if output.alias == alias), None)
    if output is None:
        return None
    types = {column.name: column.type for column in output.columns if column.type in _COMPARED}
    names = [name for name in row if name in types and (not output.group_columns or name in output.group_columns)]
    if SLICE_START not in row and not any(is_time(output.plan, name) for name in names):
        return None
    values = {name: row[name] for name in [SLICE_START, *names] if name in row}
    shown = [
        f"{name}={'NULL' if text == _NULL else text}"
        for name, text in values.items()
        if text != _NULL or types.get(name) is not AsaType.STRING
    ]
    more = ["--output", alias] if len(pipeline.query.outputs) > 1 else []
    more += [] if run is None else ["--run", run]
    return shlex.join(["recapture", "explain", pipeline.file.name, "--row", ",".join(shown), *more])
