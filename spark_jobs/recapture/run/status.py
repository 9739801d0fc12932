"""Report what a pipeline has published."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from recapture.definition.pipeline import Pipeline
from recapture.run.slices import slice_length
from recapture.run.tables import QUARANTINE, tables_of
from recapture.storage import in_parallel
from recapture.table.delta import HeldFile, OpenTable
from recapture.table.faults import DELETED, UNPUBLISHED, faults_of, refusal_of
from recapture.time_model import ticks
from recapture.wording import values_of_only

REMEDY = "backfill again, or repeat an interrupted backfill or rollback, to restore what is published"
"""What to do about slices that a table does not hold as they are published."""
REMEDIES = {UNPUBLISHED: "backfill these slices, repeat an interrupted rollback, or delete the rows"}
"""What to do instead about other faults."""
ENTRY_REMEDY = "restore the file, or forget what these slices held (docs/operating.md, Other programs)"
"""What to do about slices whose entry in the publications is lost or ambiguous."""


def status(pipeline: Pipeline) -> dict[str, Any]:
    """Return the published slices of each output, their quality and lateness, and the unpublished ranges between them.

    `problems` has what is wrong in any table of the pipeline, and what to do. If the pipeline has one output, its
    values are also at the top level of the result.
    """
    tables = tables_of(pipeline)
    publications, *opened = in_parallel(OpenTable, (tables.publications, *tables.others.values()))
    others = dict(zip(tables.others, opened, strict=True))
    entries = publications.slices()
    published = {start: entry for start, entry in entries.items() if entry["run"] is not None}
    unpublished = _unpublished_ranges(published, slice_length(pipeline))
    digests: dict[str, str | None] = {start: entry["digest"] for start, entry in published.items()}
    faults = {name: faults_of(table, digests, has_empty_slices=name == QUARANTINE) for name, table in others.items()}
    outputs = []
    for output in pipeline.outputs:
        held, fault_by_slice = others[output.alias].held(), faults[output.alias]
        slices = [
            _published_slice(start, held.get(start, ()), fault_by_slice.get(start), entry)
            for start, entry in published.items()
        ]
        outputs.append({"alias": output.alias, "table": output.table, "slices": slices, "unpublished": unpublished})
    in_publications = faults_of(publications, dict.fromkeys(entries))
    return {
        "pipeline": pipeline.name,
        "outputs": outputs,
        "problems": [
            problem
            for table, fault_by_slice in ((publications, in_publications), *zip(opened, faults.values(), strict=True))
            for problem in _problems(table, fault_by_slice, of_publications=table is publications)
        ],
        **values_of_only(outputs, "table", "slices", "unpublished"),
    }


def _problems(
    table: OpenTable, fault_by_slice: Mapping[str, str], *, of_publications: bool
) -> Iterator[dict[str, Any]]:
    """Yield what is wrong in a table: why the pipeline may not write to it, and each fault with its slices."""
    refusal = refusal_of(table)
    if refusal is not None:
        yield {"table": table.table.url, "problem": refusal, "slices": [], "remedy": None}
    for fault in dict.fromkeys(fault_by_slice.values()):
        slices = [start for start, other in fault_by_slice.items() if other == fault]
        remedy = ENTRY_REMEDY if of_publications and fault != DELETED else REMEDIES.get(fault, REMEDY)
        yield {"table": table.table.url, "problem": fault, "slices": slices, "remedy": remedy}


def _published_slice(
    start: str, held: Sequence[HeldFile], fault: str | None, entry: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the status of a slice from what an output's table holds, and from the entry in the publications."""
    events = entry["input_events"]
    return {
        "slice_start": start,
        "rows": held[0].rows if fault is None else None,
        "quality": entry["quality"],
        "late_share": entry["late_events"] / events if events else None,
        "published": entry["published"],
        "run": entry["run"],
        "finished": fault is None,
        "problem": fault,
    }


def _unpublished_ranges(slice_starts: Iterable[str], length: int) -> list[dict[str, str]]:
    """Return the ranges without publications between the first and the last published slice.

    `length` is the length of a slice in ticks.
    """
    starts = (ticks.from_datetime(datetime.fromisoformat(start)) for start in slice_starts)
    return [
        {"from": ticks.to_text(before + length), "to": ticks.to_text(after)}
        for before, after in itertools.pairwise(starts)
        if after - before > length
    ]
