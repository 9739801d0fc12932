"""What is wrong in the tables of a pipeline, whatever the range."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from recapture.definition.pipeline import Pipeline
from recapture.errors import DefinitionError
from recapture.run.slice_state import Standing, standing_of
from recapture.run.tables import MAY_LACK_SLICES, tables_of
from recapture.storage import in_parallel
from recapture.table.delta import OpenTable
from recapture.table.faults import DELETED, UNPUBLISHED, faults_of

REMEDY = "backfill again, or repeat an interrupted backfill or rollback, to restore what is published"
"""What to do about slices that a table does not hold as they are published."""
REMEDIES = {UNPUBLISHED: "backfill these slices, repeat an interrupted rollback, or delete the rows"}
"""What to do instead about other faults."""
ENTRY_REMEDY = "restore the file, or delete the rows of these slices (docs/tables-and-files.md, Other programs)"
"""What to do about slices whose entry in the publications is lost or ambiguous."""


@dataclass(frozen=True)
class Problem:
    """Something that is wrong in a table."""

    table: str
    problem: str
    slices: list[str]
    """Starts of the slices that it concerns; none if it concerns the table."""
    remedy: str | None
    """What to do; None if the problem says it."""


@dataclass(frozen=True)
class TableState:
    """The tables of a pipeline as they are now, next to what is published."""

    publications: OpenTable
    others: Mapping[str, OpenTable]
    """The other tables, by the names under which a publication lists their files."""
    standing: Standing

    @cached_property
    def faults(self) -> dict[str, dict[str, str]]:
        """Faults of the slices of the other tables, by the name of the table and slice_start."""
        published = self.standing.published.items()
        digests = {name: {start: entry.input_of(name) for start, entry in published} for name in self.others}
        return {
            name: faults_of(table, digests[name], has_empty_slices=name in MAY_LACK_SLICES)
            for name, table in self.others.items()
        }

    def problems(self) -> Iterator[Problem]:
        """Yield what is wrong in each table: why it takes no rows of the pipeline, and each fault with its slices."""
        entry_faults = faults_of(self.publications, dict.fromkeys(self.standing.entries))
        yield from _problems(self.publications, entry_faults, is_publications=True)
        for name, table in self.others.items():
            yield from _problems(table, self.faults[name], is_publications=False)


def read_tables(pipeline: Pipeline) -> TableState:
    """Return all tables of a pipeline as they are now."""
    named = tables_of(pipeline)
    publications, *others = in_parallel(OpenTable, (named.publications, *named.others.values()))
    standing = standing_of(pipeline, publications)
    return TableState(publications, dict(zip(named.others, others, strict=True)), standing)


def open_others(pipeline: Pipeline) -> dict[str, OpenTable]:
    """Return the tables of a pipeline as they are now, without that of the publications."""
    others = tables_of(pipeline).others
    return dict(zip(others, in_parallel(OpenTable, others.values()), strict=True))


def _problems(table: OpenTable, faults: Mapping[str, str], *, is_publications: bool) -> Iterator[Problem]:
    try:
        table.require_publishable()
    except DefinitionError as error:
        yield Problem(table.table.url, str(error), [], None)
    for fault in dict.fromkeys(faults.values()):
        slices = [start for start, other in faults.items() if other == fault]
        remedy = ENTRY_REMEDY if is_publications and fault != DELETED else REMEDIES.get(fault, REMEDY)
        yield Problem(table.table.url, fault, slices, remedy)
