"""The mathematical functions, after ASA's reference."""

import pyarrow as pa
import pytest

from recapture.errors import RunError
from recapture.model import AsaType
from recapture.query.analyse.values import Value
from recapture.query.plan.expressions import column
from tests.query.functions.calls import Given, call, check, columns, computed


def test_a_result_has_the_type_of_the_argument() -> None:
    check(
        ("ABS", (-3,), 3),
        ("ABS", (-3.5,), 3.5),
        ("SIGN", (-3,), -1),
        ("SIGN", (0,), 0),
        ("SIGN", (2.5,), 1.0),
        ("FLOOR", (7,), 7),
        ("FLOOR", (2.7,), 2.0),
        ("FLOOR", (-2.1,), -3.0),
        ("FLOOR", (1e300,), 1e300),
        ("CEILING", (2.1,), 3.0),
        ("CEILING", (-2.9,), -2.0),
        ("CEILING", (2**62 + 1,), 2**62 + 1),
        ("POWER", (2, 10), 1024),
        ("POWER", (2, -1), 0),
        ("POWER", (2.0, -1), 0.5),
        ("POWER", (4, 0.5), 2),
        ("SQUARE", (3,), 9.0),
        ("SQUARE", (-1.5,), 2.25),
        ("SQRT", (9,), 3.0),
        ("EXP", (0,), 1.0),
        *[(name, (None,), None) for name in ("ABS", "SIGN", "FLOOR", "CEILING", "SQUARE", "SQRT", "EXP")],
        ("POWER", (None, 2), None),
        ("POWER", (2, None), None),
    )


def test_rounding_is_half_away_from_zero_on_either_side_of_the_point() -> None:
    cases: list[tuple[int | float | None, int, int | float | None]] = [
        (1, 0, 1),
        (0, 0, 0),
        (-1, 0, -1),
        (1.0, 0, 1.0),
        (0.5, 0, 1.0),
        (-0.5, 0, -1.0),
        (1.234, 2, 1.23),
        (1.234, 10, 1.234),
        (123.4, -1, 120.0),
        (123.4, -10, 0.0),
        (501.0101, -3, 1000.0),
        (123.9995, 3, 124.0),
        (2.675, 2, 2.68),
        (15, -1, 20),
        (-15, -1, -20),
        (2**53 + 1, 3, 2**53 + 1),
        (5, -(2**40), 0),
        (None, 1, None),
    ]
    check(*[("ROUND", (number, places), expected) for number, places, expected in cases])


def test_each_row_may_have_its_own_number_of_decimals() -> None:
    rows = pa.table({"x": [1.256, 1.256, None, 150.0, 1.256, 1.26], "n": [1, None, 2, -2, 1, 2]})
    rounded = call("ROUND", Value(column("x"), AsaType.FLOAT), Value(column("n"), AsaType.BIGINT))
    assert columns([rounded.node], rows)[0].to_pylist() == [1.3, None, None, 200.0, 1.3, 1.26]


@pytest.mark.parametrize(
    ("name", "given"),
    [("SQRT", (-1,)), ("EXP", (1000,)), ("SQUARE", (1e200,)), ("POWER", (0.0, -1)), ("POWER", (-8.0, 0.5))],
)
def test_a_result_that_is_not_a_finite_number_stops_the_run(name: str, given: tuple[Given, ...]) -> None:
    with pytest.raises(RunError, match=f"{name}: the result is not a finite number"):
        computed([call(name, *given).node])


@pytest.mark.parametrize(("name", "given"), [("POWER", (10, 19)), ("ABS", (-(2**63),))])
def test_a_bigint_that_overflows_stops_the_run(name: str, given: tuple[Given, ...]) -> None:
    with pytest.raises(RunError, match="OVERFLOW"):
        computed([call(name, *given).node])
