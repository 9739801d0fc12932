"""A pipeline that travels as JSON is the same pipeline where its file cannot be read."""

import json
from pathlib import Path

import pytest

from recapture.definition.digest import run_definition
from recapture.definition.packed import pack, unpack
from recapture.definition.pipeline import Pipeline, load
from recapture.errors import PermanentError
from recapture.run.outdated import parts_of
from tests.worlds import TELEMETRY, World

SUITE = {
    "name": "own",
    "expectations": [{"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "n"}, "severity": "warning"}],
}


@pytest.fixture
def pipeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    """A pipeline with a script, a suite, a relative container, a variable and an early window that is switched off."""
    monkeypatch.setenv("PLACE", "table")
    home = tmp_path / "home"
    home.mkdir()
    (home / "double.js").write_text("function main(x) { return 2 * x; }\n")
    (home / "own.json").write_text(json.dumps(SUITE))
    world = World(home)
    query = (
        "SELECT COUNT(*) AS n, SUM(udf.double(v)) AS twice INTO rows FROM telemetry TIMESTAMP BY t "
        "GROUP BY TumblingWindow(minute, 5)"
    )
    world.define(
        query,
        inputs=[TELEMETRY | {"container": "archive"}],
        outputs=[{"alias": "rows", "table": "${PLACE}"}],
        functions={"double": {"script": "double.js", "output_type": "float", "argument_types": ["any"]}},
        quality="own.json",
        early_arrival_seconds=None,
    )
    world.amend(schedule={"since": "2026-03-01T06:00:00Z"}, approval={"wait_hours": 3})
    return load(world.file)


def test_what_is_unpacked_elsewhere_has_the_same_digests_addresses_and_settings(
    pipeline: Pipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    travelling, parts, definition = json.dumps(pack(pipeline)), parts_of(pipeline), run_definition(pipeline)
    assert not parts["suite"].startswith("refused"), parts
    monkeypatch.delenv("PLACE")
    for name in ("double.js", "own.json"):
        (pipeline.file.parent / name).unlink()
    pipeline.file.unlink()
    unpacked = unpack(json.loads(travelling), tmp_path)
    assert (parts_of(unpacked), run_definition(unpacked)) == (parts, definition)
    assert unpacked.model_dump(exclude={"functions", "quality"}) == pipeline.model_dump(
        exclude={"functions", "quality"}
    )
    assert unpacked.file.name == pipeline.file.name
    assert load(unpacked.file).model_dump() == unpacked.model_dump()


def test_a_suite_that_is_missing_is_refused_there_too(pipeline: Pipeline, tmp_path: Path) -> None:
    (pipeline.file.parent / "own.json").unlink()
    assert parts_of(unpack(pack(pipeline), tmp_path))["suite"].startswith("refused")


@pytest.mark.parametrize("name", ["../evil.js", "/tmp/evil.js", "evil.py", "a/b.js"])
def test_no_file_is_written_outside_the_folder(pipeline: Pipeline, tmp_path: Path, name: str) -> None:
    packed = pack(pipeline)
    with pytest.raises(PermanentError, match="is not the name of a script or a suite"):
        unpack(packed | {"files": {name: ""}}, tmp_path)


@pytest.mark.parametrize("packed", [{}, {"files": {}}, {"files": {}, "file": "a.yaml", "sections": {"name": "a"}}])
def test_what_another_version_packed_is_refused(packed: dict[str, object], tmp_path: Path) -> None:
    with pytest.raises(PermanentError, match="the stored definition cannot be read"):
        unpack(packed, tmp_path)
