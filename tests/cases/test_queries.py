"""Every case in `queries/` and every recipe publishes its rows, from the events of one slice, without an archive."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from recapture.archive.references import PinnedVersion, PlannedReference
from recapture.execute import references
from recapture.formats.bodies import Projection
from recapture.formats.event_hubs import CaptureInput
from recapture.formats.json_bodies.decoder import JsonBodies
from recapture.formats.json_lines import JsonReader
from recapture.model import InputColumn, Metadata
from recapture.query.compile import compile_query
from recapture.query.model import CompiledInput, CompiledQuery, CompiledReference
from recapture.storage import open_container
from recapture.time_model import timestamps
from recapture.time_model.slices import Slice
from recapture.time_model.ticks import from_datetime
from tests.cases.case import PARTITION, Case, Row, arrival, body, parse
from tests.paths import ROOT
from tests.query.outputs import rows_of_outputs

TEXTS = {file.stem: file.read_text("utf-8") for file in sorted(Path(__file__).parent.glob("queries/*.txt"))}
PAGE = (ROOT / "docs/recipes.md").read_text("utf-8")
RECIPES = re.findall(r"^## ([^\n]+)(?:\n(?!```|#)[^\n]*)*\n```\n([^`]+)^```", PAGE, re.MULTILINE)
CASES = {name: parse(text) for name, text in (TEXTS | dict(RECIPES)).items()}


@pytest.mark.parametrize("name", CASES)
def test_a_case_of_queries(tmp_path: Path, name: str) -> None:
    """Its rows come from events, and from what tasks aggregate if they do."""
    case = CASES[name]
    require_rows(tmp_path, case, compiled(case, in_tasks=False))
    in_tasks = compiled(case)
    if any(read.aggregations for read in in_tasks.inputs):
        require_rows(tmp_path, case, in_tasks)


def compiled(case: Case, *, in_tasks: bool = True) -> CompiledQuery:
    return compile_query(
        case.query,
        inputs=dict.fromkeys(case.inputs, CaptureInput.metadata) | dict.fromkeys(case.references),
        output_aliases=list(case.outputs),
        functions=case.functions,
        in_tasks=in_tasks,
    )


def require_rows(folder: Path, case: Case, query: CompiledQuery) -> None:
    """Fail unless the rows are the expected ones."""
    slice_ = Slice(*map(from_datetime, case.span))
    events = {read.alias: list(view_rows(read, case.inputs[read.alias], slice_)) for read in query.inputs}
    rows_by_view = {
        reference.view: reference_rows(folder, reference, case.references[reference.alias])
        for reference in query.references
    }
    tables = rows_of_outputs(query, events, rows_by_view)
    for output, table in zip(query.outputs, tables, strict=True):
        if difference := case.difference(output.alias, output.columns, table.to_pylist()):
            pytest.fail(difference, pytrace=False)


def view_rows(read: CompiledInput, rows: Sequence[Row], slice_: Slice) -> Iterator[dict[str, Any]]:
    """Yield the events of an input as rows of its view; each has the time of TIMESTAMP BY, or that of its arrival."""
    by_field = [read.timestamp_by] if isinstance(read.timestamp_by, InputColumn) else []
    projection = Projection(read.columns, by_field, read.columns_to_check)
    bodies = JsonBodies().decode(pa.array(map(body, rows), pa.binary()), projection)
    assert bodies.malformed.null_count == len(rows), bodies.malformed
    times = [from_datetime(arrival(row)) for row in rows]
    if by_field:
        times = timestamps.parse(bodies.strings[by_field[0]])[0].tolist()
    for number, (row, time) in enumerate(zip(rows, times, strict=True)):
        partition = row.get(PARTITION, 0)
        yield {
            **{column.name: values[number].as_py() for column, values in bodies.columns.items()},
            **{f"@{Metadata.PARTITION_ID}": partition, f"@{Metadata.EVENT_ENQUEUED}": from_datetime(arrival(row))},
            f"@{Metadata.SEQUENCE_NUMBER}": number,
            **{"_partition": str(partition), "_slice_start": slice_.start, "_slice_end": slice_.end},
            **{"_system_timestamp": time, "_arrival": number},
        }


def reference_rows(folder: Path, reference: CompiledReference, rows: list[Row]) -> pa.Table:
    """Return the rows of reference data."""
    (folder / f"{reference.alias}.json").write_text(json.dumps(rows))
    container = open_container(folder.as_uri())
    versions = tuple(PinnedVersion(0, blob) for blob in container.list(f"{reference.alias}.json"))
    planned = PlannedReference(reference.alias, container.url, 0, versions)
    return references.rows(planned, reference, JsonReader(), container)
