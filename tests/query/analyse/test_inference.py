"""How types follow from uses, pass by pass."""

import pytest
from sqlglot import exp

from recapture.errors import DefinitionError
from recapture.model import AsaType
from recapture.query.analyse.field_types import FieldTypes
from recapture.query.analyse.inference import compile_until_settled
from recapture.query.parse.names import InputField
from recapture.query.parse.source import Source
from tests.query.small_stream import compiled


def open_types() -> FieldTypes:
    return FieldTypes(Source("SELECT x"), declared={})


def test_the_last_pass_is_the_second_that_learns_nothing() -> None:
    types = open_types()
    passes: list[bool] = []

    def compile_script() -> int:
        passes.append(types.closed)
        if len(passes) < 3:
            types.decide([InputField("telemetry", (f"field {len(passes)}",))], AsaType.FLOAT, exp.Star())
        return len(passes)

    assert compile_until_settled(types, {}, compile_script, most_passes=100) == 4
    assert passes == [False, False, False, True]


def test_a_column_of_a_star_that_is_asked_for_takes_another_pass() -> None:
    types, requests = open_types(), {"step": dict[tuple[str, ...], None]()}
    passes: list[bool] = []

    def compile_script() -> None:
        passes.append(types.closed)
        requests["step"].setdefault(("x",))

    compile_until_settled(types, requests, compile_script, most_passes=100)
    assert passes == [False, False, True]


def test_uses_that_never_settle_are_refused() -> None:
    types = open_types()

    def compile_script() -> None:
        types.decide([InputField("telemetry", (f"field {len(types.state()[0])}",))], AsaType.FLOAT, exp.Star())

    with pytest.raises(DefinitionError, match=r"do not settle their types: declare them with CREATE TABLE"):
        compile_until_settled(types, {}, compile_script, most_passes=100)
    assert len(types.state()[0]) == 100


@pytest.mark.parametrize("length", [2, 40])
def test_a_type_passes_along_a_chain_of_comparisons(length: int) -> None:
    """The last comparison gives the type of its field; each pass gives that of the field before it."""
    chain = " AND ".join(f"x{n} = x{n + 1}" for n in range(length))
    query = compiled(f"SELECT x0 AS x INTO out FROM telemetry WHERE {chain} AND x{length} > 1.5")
    assert {column.name for column in query.inputs[0].columns if column.type is AsaType.FLOAT} == {"x0"}
