"""JOIN with reference data: each row of the stream gets the rows that are in force at its time."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recapture.archive.references import PinnedVersion, PlannedReference
from recapture.errors import RunError
from recapture.execute.references import rows as reference_rows
from recapture.formats.event_hubs import CaptureInput
from recapture.formats.json_lines import JsonReader
from recapture.query.compile import compile_query
from recapture.query.model import CompiledQuery
from recapture.storage import open_container
from recapture.time_model.ticks import TICKS_PER_SECOND
from tests.query.small_stream import START, Row, at, published


def compiled(text: str) -> CompiledQuery:
    inputs = {"telemetry": CaptureInput.metadata, "devices": None}
    return compile_query(text, inputs=inputs, output_aliases=["out"])


def pinned(folder: Path, versions: Mapping[int, Iterable[Row]]) -> PlannedReference:
    """Write versions of `devices` that are in force from so many seconds after ten."""
    for seconds, rows in versions.items():
        folder.joinpath(f"{seconds}.json").write_text(json.dumps([*rows]))
    container = open_container(folder.as_uri())
    blobs = {blob.name: blob for blob in container.list()}
    pinned_versions = [
        PinnedVersion(START + seconds * TICKS_PER_SECOND, blobs[f"{seconds}.json"]) for seconds in sorted(versions)
    ]
    return PlannedReference("devices", container.url, 0, tuple(pinned_versions))


def joined(folder: Path, text: str, events: Iterable[Row], versions: Mapping[int, Iterable[Row]]) -> list[Row]:
    query = compiled(text)
    reference, devices = pinned(folder, versions), query.references[0]
    container = open_container(reference.container)
    rows = reference_rows(reference, devices, JsonReader(), container)
    [output] = published(query, events, {devices.view: rows})
    return output


SELECT = "SELECT t.x, d.site, System.Timestamp() AS at INTO out FROM telemetry t TIMESTAMP BY at"


def test_the_version_in_force_at_the_time_of_the_event_counts(tmp_path: Path) -> None:
    versions = {seconds: [{"id": "a", "site": f"from {seconds}"}] for seconds in (-3600, 2, 3)}
    events = [at(second, id="a", x=second) for second in (1, 2, 2.5, 3)]
    actual = joined(tmp_path, f"{SELECT} JOIN devices d ON t.id = d.id", events, versions)
    assert [row["site"] for row in actual] == ["from -3600", "from 2", "from 2", "from 3"]


def test_an_analytic_function_next_to_a_look_up_looks_back_by_its_length() -> None:
    lag = "LAG(t.x) OVER (LIMIT DURATION(minute, 5))"
    look_up = f"SELECT {lag} AS v INTO out FROM telemetry t JOIN devices d ON t.id = d.id"
    assert compiled(look_up).inputs[0].look_back == 300 * TICKS_PER_SECOND
    window = f"SELECT SUM({lag}) AS v INTO out FROM telemetry t JOIN devices d ON t.id = d.id GROUP BY Sliding(hour, 1)"
    assert compiled(window).inputs[0].look_back == 3900 * TICKS_PER_SECOND


def test_a_damaged_version_stops_the_run(tmp_path: Path) -> None:
    query = compiled(f"{SELECT} JOIN devices d ON t.id = d.id")
    reference = pinned(tmp_path, {0: []})
    tmp_path.joinpath("0.json").write_bytes(b"")
    [blob] = open_container(tmp_path.as_uri()).list()
    reference = replace(reference, versions=(PinnedVersion(0, blob),))
    with pytest.raises(RunError, match=r"reference data devices: 0\.json cannot be read: it has no bytes; restore it"):
        reference_rows(reference, query.references[0], JsonReader(), open_container(reference.container))


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"id": "1", "site": "y"}, r"id is not a bigint but nvarchar\(max\)"),
        ({"ID": 1, "Site": 5}, r"site is not an nvarchar\(max\) but bigint"),
        ({"id": 1}, "site is missing"),
    ],
)
def test_a_malformed_row_stops_the_run(tmp_path: Path, row: dict[str, Any], reason: str) -> None:
    query = compiled(f"CREATE TABLE devices (id bigint, site nvarchar(max)) {SELECT} JOIN devices d ON t.id = d.id")
    reference = pinned(tmp_path, {0: [{"id": 1, "site": "x"}, row]})
    message = rf"reference data devices: 1 row of 0.json cannot be used; the first is row 2: {reason}; correct"
    with pytest.raises(RunError, match=message):
        reference_rows(reference, query.references[0], JsonReader(), open_container(reference.container))


IDS = st.sampled_from(["a", "b", None])


@settings(max_examples=6)
@given(
    events=st.lists(st.tuples(st.integers(1, 20), IDS), max_size=8),
    versions=st.dictionaries(st.integers(-5, 18), st.lists(IDS, max_size=3), max_size=3),
    outer=st.booleans(),
)
def test_rows_are_those_of_a_nested_loop(
    tmp_path_factory: pytest.TempPathFactory,
    events: list[tuple[int, str | None]],
    versions: dict[int, list[str | None]],
    outer: bool,
) -> None:
    versions = {-10: ["a"], **versions}
    tables = {time: [{"id": id_, "n": n} for n, id_ in enumerate(ids)] for time, ids in versions.items()}
    text = (
        "SELECT t.id, d.n, System.Timestamp() AS at INTO out FROM telemetry t TIMESTAMP BY at"
        f" {'LEFT ' if outer else ''}JOIN devices d ON t.id = d.id"
    )
    stream = [at(second, id=id_) for second, id_ in events]
    actual = joined(tmp_path_factory.mktemp("reference"), text, stream, tables)
    expected: list[tuple[str | None, str | None, int]] = []
    for second, id_ in events:
        in_force = tables[max(time for time in versions if time <= second)]
        matches = [row["n"] for row in in_force if id_ is not None and row["id"] == id_]
        expected += [(id_, str(n), second) for n in matches] or ([(id_, None, second)] if outer else [])
    assert sorted([(row["id"], row["n"], row["at"]) for row in actual], key=str) == sorted(expected, key=str)
