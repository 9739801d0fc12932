"""ON in parts: keys, time bounds and the rest."""

import pytest

from recapture.evaluate.conditions import parts_of
from recapture.query.plan.expressions import columns_of
from recapture.query.plan.joins import Join
from recapture.time_model.joins import TimeBound
from recapture.time_model.ticks import TICKS_PER_SECOND
from tests.evaluate.relations import DECLARED, relations

SECOND = TICKS_PER_SECOND


@pytest.mark.parametrize(
    ("on", "keys", "bounds", "rest"),
    [
        (
            "a.k = b.k AND DATEDIFF(second, a, b) BETWEEN 0 AND 5",
            [("0.k", "1.k")],
            [TimeBound(0, 0, None), TimeBound(0, None, 5 * SECOND)],
            None,
        ),
        (
            "b.n = a.n + 1 AND DATEDIFF(second, b, a) BETWEEN -2 AND 5",
            [("add(0.n, 1)", "1.n")],
            [TimeBound(0, None, 2 * SECOND), TimeBound(0, -5 * SECOND, None)],
            None,
        ),
        (
            "a.n + b.n = 3 AND a.x < b.x AND DATEDIFF(second, a, b) = 0 AND a.k = 'x'",
            [],
            [TimeBound(0, 0, None), TimeBound(0, None, 0)],
            "and(and(equal(add(0.n, 1.n), 3), less(0.x, 1.x)), equal(0.k, 'x'))",
        ),
        (
            "b.x > 0.0 AND (a.k = b.k OR a.n = b.n) AND DATEDIFF(second, a, b) BETWEEN 0 AND 1",
            [],
            [TimeBound(0, 0, None), TimeBound(0, None, SECOND)],
            "and(greater(1.x, 0.0), or(equal(0.k, 1.k), equal(0.n, 1.n)))",
        ),
    ],
)
def test_on_is_divided_into_keys_time_bounds_and_the_rest(
    on: str, keys: list[tuple[str, str]], bounds: list[TimeBound], rest: str | None
) -> None:
    text = f"SELECT a.id INTO out FROM telemetry a TIMESTAMP BY t JOIN telemetry b TIMESTAMP BY t ON {on}"
    _, [table] = relations(DECLARED + text)
    [join] = table.joins
    assert isinstance(join, Join)
    parts = parts_of(join.condition, 1)
    assert [(str(one), str(other)) for one, other in parts.keys] == keys
    assert list(parts.bounds) == bounds
    assert (parts.rest and str(parts.rest)) == rest


def test_the_conditions_on_one_side_guard_the_keys_of_that_side() -> None:
    on = "b.x > 0.0 AND a.n = 4 / b.n AND a.x < b.x AND b.k = 'x' AND a.b = 1 AND DATEDIFF(second, a, b) = 0"
    _, [table] = relations(
        f"{DECLARED}SELECT a.id INTO out FROM telemetry a TIMESTAMP BY t JOIN telemetry b TIMESTAMP BY t ON {on}"
    )
    [join] = table.joins
    parts = parts_of(join.condition, 1)
    assert parts.new_guard is not None
    assert parts.earlier_guard is not None
    assert columns_of(parts.new_guard).keys() == {"1.x", "1.k"}
    assert columns_of(parts.earlier_guard).keys() == {"0.b"}
    assert parts.without_earlier_guard().earlier_guard is None
