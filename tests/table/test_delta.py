"""A Delta table as several writers see it, and the table in memory that replaces it where many are needed."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from recapture.table.delta import OpenTable, Table
from recapture.table.snapshot import File
from tests.draws import examples
from tests.table.interleavings import InMemory, Logs, Schedule
from tests.table.publishing import NINE, TEN, WRITTEN_BY

NUMBERS = st.one_of(st.none(), st.integers(1, 3))
CHANGES = st.dictionaries(st.sampled_from([NINE, TEN]), NUMBERS, min_size=1).map(
    lambda numbers: {start: number and File(f"{start}/{number}.parquet", 1, 1) for start, number in numbers.items()}
)
STEPS = st.lists(st.tuples(st.integers(0, 1), st.one_of(st.just("refresh"), st.just("create"), CHANGES)), max_size=12)


def observations(kind: Callable[[Table], Any], url: str, steps: list[tuple[int, Any]]) -> list[object]:
    """Return what two writers see after each of their steps."""
    table = Table(url, WRITTEN_BY)
    writers = [kind(table), kind(table)]
    observed: list[object] = []
    for number, step in steps:
        writer = writers[number]
        if step == "refresh":
            writer.refresh()
        elif step == "create":
            writer.create()
        elif writer.version is not None:
            observed.append(writer.commit(step, {}))
            writer.refresh()
        observed.append((writer.version, writer.held([NINE, TEN])))
    return observed


@settings(max_examples=examples(40))
@given(STEPS)
def test_two_writers_see_the_same_in_a_delta_table_as_in_a_table_in_memory(
    steps: list[tuple[int, Any]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        on_disk = observations(OpenTable, Path(folder, "table").as_uri(), steps)
    logs: Logs = {}
    assert on_disk == observations(lambda table: InMemory(table, logs, Schedule()), "file:///table", steps)
