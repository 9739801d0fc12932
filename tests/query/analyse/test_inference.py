"""How types follow from uses."""

import cProfile
import pstats

import pytest

from recapture.formats.event_hubs import CaptureInput
from recapture.model import AsaType
from recapture.query.compile import compile_query
from tests.query.small_stream import compiled


def float_columns(text: str) -> set[str]:
    [read] = compiled(text).inputs
    return {column.name for column in read.columns if column.type is AsaType.FLOAT}


def test_a_use_of_open_fields_takes_the_type_that_a_later_use_decides() -> None:
    assert float_columns("SELECT COALESCE(x, y) AS z, y * 2 AS v INTO out FROM telemetry") == {"x", "y"}


def test_a_type_goes_from_field_to_field_against_the_order_of_the_query() -> None:
    items = "COALESCE(a, b) AS p, IIF(k = 'x', b, c) AS q, CASE WHEN k = 'y' THEN c ELSE d END AS r, SQRT(d) AS t"
    assert float_columns(f"SELECT {items} INTO out FROM telemetry") == {"a", "b", "c", "d"}


def test_a_type_goes_through_the_columns_of_steps_and_of_a_star() -> None:
    steps = "WITH s AS (SELECT *, x AS v FROM telemetry), u AS (SELECT COALESCE(v, y) AS w, y FROM s)"
    assert float_columns(f"{steps} SELECT w, SQRT(y) AS z INTO out FROM u") == {"x", "y"}


@pytest.mark.parametrize("length", [2, 40])
def test_a_type_passes_along_a_chain_of_comparisons(length: int) -> None:
    """The last comparison gives the type of its field, which gives that of the field before it, and so on."""
    chain = " AND ".join(f"x{n} = x{n + 1}" for n in range(length))
    assert float_columns(f"SELECT x0 AS x INTO out FROM telemetry WHERE {chain} AND x{length} > 1.5") == {"x0"}


def test_a_field_whose_use_comes_between_two_values_is_read_in_its_type_in_both() -> None:
    """`z` is a float because of `y = z`, which stands within the comparison of `z` with a bigint."""
    text = "SELECT u INTO out FROM telemetry WHERE z >= CASE WHEN y = z THEN y ELSE ~y END"
    inputs = {"telemetry": CaptureInput.metadata}
    [read] = compile_query(text, inputs=inputs, output_aliases=["out"], only_strings=["telemetry"]).inputs
    types = {column.name: column.type for column in read.columns}
    assert types == {"z": AsaType.FLOAT, "y": AsaType.BIGINT, "u": AsaType.STRING}


def test_a_script_is_compiled_twice_however_far_a_type_has_to_go() -> None:
    def calls(length: int) -> int:
        items = ", ".join(f"COALESCE(x{n}, x{n + 1}) AS c{n}" for n in range(length))
        profile = cProfile.Profile()
        with profile:
            compiled(f"SELECT {items}, SQRT(x{length}) AS root INTO out FROM telemetry")
        return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]

    assert calls(60) < 10 * calls(15)
