"""Propose a suite for an output from what is published of it."""

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from recapture.definition.pipeline import Pipeline
from recapture.definition.sections import Output
from recapture.errors import DefinitionError, RunError
from recapture.quality import suites
from recapture.run.published import metrics_of, published_files, rows_of
from recapture.run.slices import require_whole_slices, slices_of
from recapture.run.tables import metrics_key, tables_of
from recapture.table.delta import SLICE_COLUMN, OpenTable
from recapture.time_model import ticks

DEFAULT_DAYS = 28
"""Number of days, up to the newest published slice, from which a suite is proposed without a range."""


@dataclass(frozen=True)
class Proposal:
    """A proposed suite, and what it comes from."""

    output: str
    suite: dict[str, Any]
    slices: int
    rows: int

    @property
    def text(self) -> str:
        """The suite file."""
        return json.dumps(self.suite, indent=2, ensure_ascii=False) + "\n"


def propose(pipeline: Pipeline, alias: str | None, start: datetime | None, end: datetime | None) -> Proposal:
    """Return a suite that the published slices of a range pass.

    Without a range, they are those of the DEFAULT_DAYS up to the newest one. `alias` names the output if there are
    several. Raise DefinitionError for an unknown output, or a range that is not whole slices. Raise RunError if nothing
    is published in the range.
    """
    suites.require_installed()
    output = _output(pipeline, alias)
    if start is not None and end is not None:
        require_whole_slices(pipeline, start, end)
    tables = tables_of(pipeline).others
    starts = _starts(pipeline, OpenTable(tables[output.alias]), start, end)
    rows = published_files(tables[output.alias], starts)
    metrics = published_files(tables[metrics_key(output)], starts)
    if not rows or not metrics:
        raise RunError(f"nothing is published in this range of {output.table}: see recapture status")
    from recapture.quality import proposal

    published = proposal.published_slices(rows_of(rows), metrics_of(metrics), list(rows), pipeline.slice_hours)
    return Proposal(output.alias, proposal.propose(output.alias, published), len(rows), len(published.rows))


def write(pipeline: Pipeline, proposal: Proposal, path: Path) -> None:
    """Write the suite file. Raise DefinitionError if it exists, or cannot be written."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(proposal.text)
    except FileExistsError:
        raise DefinitionError(f"{path} already exists and is not overwritten: choose another file with --out") from None
    except OSError as error:
        raise DefinitionError(f"{path} cannot be written ({error.strerror}): choose another with --out") from error
    output = _output(pipeline, proposal.output)
    suites.load(path, [*(column.name for column in pipeline.compiled(output).columns), SLICE_COLUMN])


def _output(pipeline: Pipeline, alias: str | None) -> Output:
    by_alias = {output.alias: output for output in pipeline.outputs}
    if alias is None and len(by_alias) == 1:
        return pipeline.outputs[0]
    if alias not in by_alias:
        asked = "there are several outputs" if alias is None else f"there is no output {alias}"
        raise DefinitionError(f"{asked}: choose one with --alias, of {', '.join(by_alias)}")
    return by_alias[alias]


def _starts(pipeline: Pipeline, table: OpenTable, start: datetime | None, end: datetime | None) -> list[int]:
    if start is not None and end is not None:
        return [slice_.start for slice_ in slices_of(pipeline, start, end)]
    published = [datetime.fromisoformat(text) for text in table.slices()]
    newest = max(published, default=None)
    return [
        ticks.from_datetime(instant) for instant in published if newest and instant > newest - timedelta(DEFAULT_DAYS)
    ]
