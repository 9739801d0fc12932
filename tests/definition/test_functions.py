"""The section `functions` of a pipeline file: what it takes, and what a definition is made of."""

import os
from pathlib import Path
from typing import Any

import pytest

from recapture.definition.digest import run_definition
from recapture.definition.pipeline import Pipeline
from recapture.errors import DefinitionError
from recapture.model import AsaType, JavaScriptFunction
from recapture.run.plan import preview
from tests.worlds import TEN, World, at

SCRIPT = "function main(x) { return x + 1; }\n"
QUERY = "SELECT udf.next(temperature) AS t INTO aggregates FROM telemetry TIMESTAMP BY eventTime"
NEXT: dict[str, Any] = {"script": "scripts/next.js", "output_type": "float", "argument_types": ["float"]}


@pytest.fixture
def world(tmp_path: Path) -> World:
    tmp_path.joinpath("scripts").mkdir()
    tmp_path.joinpath("scripts", "next.js").write_text(SCRIPT)
    return World(tmp_path)


def defined(world: World, **changes: Any) -> Pipeline:
    return world.define(QUERY, functions={"next": NEXT | changes})


def refusal(world: World, functions: dict[str, Any]) -> str:
    with pytest.raises(DefinitionError) as error:
        world.define(QUERY, functions=functions)
    return str(error.value).removeprefix(f"{world.file}:1: ")


def test_a_function_has_its_script_and_its_types(world: World) -> None:
    expected = JavaScriptFunction("next", SCRIPT, AsaType.FLOAT, (AsaType.FLOAT,))
    assert defined(world).query.functions == (expected,)


def test_an_argument_may_have_any_type(world: World) -> None:
    query = QUERY.replace("temperature", "CAST(temperature AS float)")
    pipeline = world.define(query, functions={"next": NEXT | {"argument_types": ["any"]}})
    assert [function.arguments for function in pipeline.query.functions] == [(None,)]


def test_an_aggregate_has_its_kind(world: World) -> None:
    script = (
        "function main() { this.init = () => { this.sum = 0; }; this.accumulate = (x) => { this.sum += x; };"
        " this.computeResult = () => this.sum; }"
    )
    world.home.joinpath("scripts", "next.js").write_text(script)
    query = "SELECT uda.next(temperature) AS t INTO aggregates FROM telemetry GROUP BY Tumbling(minute, 1)"
    pipeline = world.define(query, functions={"next": NEXT | {"kind": "aggregate"}})
    assert pipeline.query.functions == (JavaScriptFunction("next", script, AsaType.FLOAT, (AsaType.FLOAT,), True),)


def test_a_script_that_is_a_pipe_is_refused(world: World) -> None:
    world.home.joinpath("scripts", "next.js").unlink()
    os.mkfifo(world.home / "scripts" / "next.js")
    assert "next.js cannot be read (not a regular file): correct the path" in refusal(world, {"next": NEXT})


@pytest.mark.parametrize(
    ("functions", "message"),
    [
        (
            {"next": NEXT | {"kind": "Aggregate"}},
            "functions.next.kind: should be 'scalar' or 'aggregate' ('Aggregate' given)",
        ),
        ({"next": {"script": "scripts/next.js"}}, "functions.next.output_type is missing: add it"),
        ({"next": {"output_type": "float"}}, "functions.next.script is missing: add it"),
        (
            {"next": NEXT | {"output_type": "any"}},
            "functions.next.output_type: a published column has one type: write bigint, float, nvarchar(max), "
            "datetime, bit, record, array ('any' given)",
        ),
        (
            {"next": NEXT | {"output_type": "int"}},
            "functions.next.output_type: should be one of bigint, float, nvarchar(max), datetime, bit, record, array "
            "('int' given)",
        ),
        ({"next": NEXT | {"language": "C#"}}, "functions.next.language: unknown key: remove it or correct its name"),
        ({"next": NEXT, "Next": NEXT}, "functions.Next: another function is named next: rename one"),
    ],
)
def test_a_mistake_is_named(world: World, functions: dict[str, Any], message: str) -> None:
    assert refusal(world, functions) == message


def test_a_script_that_cannot_be_read_is_named(world: World) -> None:
    path = world.home / "scripts" / "next.js"
    path.write_bytes(b"\xff")
    assert refusal(world, {"next": NEXT}) == f"functions.next.script: {path} is not UTF-8 text: save it as UTF-8"
    path.unlink()
    assert refusal(world, {"next": NEXT}) == (
        f"functions.next.script: {path} cannot be read (No such file or directory): correct the path"
    )


def test_another_script_or_type_is_another_definition(world: World) -> None:
    script = world.home / "scripts" / "next.js"
    digests = [run_definition(defined(world)).digest]
    script.write_text(SCRIPT.replace("1", "2"))
    digests.append(run_definition(defined(world)).digest)
    digests.append(run_definition(defined(world, output_type="bigint")).digest)
    assert len(set(digests)) == 3
    script.write_bytes(SCRIPT.replace("\n", "\r\n").encode())
    assert run_definition(defined(world)).digest == digests[0]


def test_a_function_that_the_query_does_not_call_does_not_matter(world: World) -> None:
    other = world.home / "other.js"
    other.write_text(SCRIPT)
    functions = {"next": NEXT, "other": {"script": "other.js", "output_type": "bit"}}
    assert run_definition(world.define(QUERY, functions=functions)).digest == run_definition(defined(world)).digest


def test_a_script_with_a_syntax_error_is_refused_before_anything_is_read(world: World) -> None:
    world.home.joinpath("scripts", "next.js").write_text("function main(x) {\n  return x +;\n}")
    with pytest.raises(DefinitionError) as error:
        preview(defined(world), TEN, at(60))
    assert str(error.value) == "the script of udf.next cannot run: SyntaxError: Unexpected token ';' (line 2)"
