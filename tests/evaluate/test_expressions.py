"""Expressions have the values of a naive oracle, row by row: values, NULL, NaN, and what stops the run."""

import itertools
import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest

from recapture.errors import RunError
from recapture.evaluate.bounds import SliceBounds
from recapture.evaluate.expressions import project
from recapture.model import AsaType
from recapture.query.plan.expressions import (
    NULL,
    Expr,
    bigint,
    call,
    case_when,
    cast_as,
    column,
    double,
    failure,
    string,
)
from recapture.query.plan.operations import Op
from tests.evaluate import naive
from tests.evaluate.naive import StoppedError

BOUNDS = SliceBounds(1_000, 2_000)
BIGINTS = [0, 1, -1, 2, 7, -7, 10, 2**31, -(2**31) - 1, 2**53 + 1, 2**62, 2**63 - 1, -(2**63), None]
FLOATS = [
    *(0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 0.1, 1e-5, 9.999e-6, 123456.789, 1e15, 1e16, 2.0**53, 2.0**63),
    *(-(2.0**63), 9.3e18, 1e300, 5e-324, 1.7976931348623157e308, math.inf, -math.inf, math.nan, None),
]
STRINGS = ["", "a", " Ab ", "ß", "é😀茶x", "banana", "12", "a\n", " ", None]
ARRAYS = ['["x", "y"]', "[1, [2, 3], null]", "[]", '["\\u00e9"]', "{}", "[", None]
TIMES = [0, 638_000_000_123_456_789, 630_822_816_000_000_000, 3_155_378_975_999_999_999, None]
N, M, X, Y, P, Q, S, T, A, D = map(column, "nmxypqstad")
COMPARISONS = (Op.EQUAL, Op.NOT_EQUAL, Op.LESS, Op.LESS_OR_EQUAL, Op.GREATER, Op.GREATER_OR_EQUAL)


def rows(**columns: tuple[Sequence[object], pa.DataType]) -> pa.Table:
    """Return a row for each combination of values."""
    combinations = list(itertools.product(*(values for values, _ in columns.values())))
    turned = list(zip(*combinations, strict=True))
    return pa.table(
        {name: pa.array(values, type_) for (name, (_, type_)), values in zip(columns.items(), turned, strict=True)}
    )


NUMBERS = rows(n=(BIGINTS, pa.int64()), m=(BIGINTS, pa.int64()))
DOUBLES = rows(x=(FLOATS, pa.float64()), y=(FLOATS, pa.float64()))
LOGIC = rows(p=([True, False, None], pa.bool_()), q=([True, False, None], pa.bool_()))
PLACES = rows(
    s=(STRINGS, pa.string()),
    t=(["", "a", "é", "an", None], pa.string()),
    n=([-(2**63), -1, 0, 1, 3, 2**40, None], pa.int64()),
    m=([-1, 0, 2, 2**40, None], pa.int64()),
)


def computed(expression: Expr, table: pa.Table, where: Expr | None = None) -> list[object]:
    """Return the values of an expression, which are equal only if their bits are."""
    return [exact(given) for given in project(table, [("v", expression)], where, BOUNDS)["v"].to_pylist()]


def exact(given: object) -> object:
    """Return a value so that NaN equals NaN, and -0.0 is not 0.0."""
    return given.hex() if isinstance(given, float) else given


def require_same(expression: Expr, table: pa.Table) -> None:
    """Raise AssertionError unless an expression has the values of the oracle, and stops the run for the same rows."""
    given, expected, stops = table.to_pylist(), [], []
    for number, row in enumerate(given):
        try:
            expected.append((number, exact(naive.value(expression, row))))
        except StoppedError:
            stops.append(number)
    places = [number for number, _ in expected]
    actual = computed(expression, table.take(pa.array(places, pa.int64())))
    wrong = [place for place, one, (_, other) in zip(places, actual, expected, strict=True) if one != other]
    assert not wrong, (expression, given[wrong[0]], actual[places.index(wrong[0])])
    for number in stops[:20]:
        with pytest.raises(RunError):
            computed(expression, table.slice(number, 1))


def test_comparisons_and_conditions() -> None:
    for op in COMPARISONS:
        require_same(call(op, N, M), NUMBERS)
        require_same(call(op, X, Y), DOUBLES)
        require_same(call(op, S, T), PLACES)
    for op in (Op.EQUAL, Op.NOT_EQUAL, Op.AND, Op.OR):
        require_same(call(op, P, Q), LOGIC)
    for expression in (call(Op.NOT, P), call(Op.IS_NULL, P), call(Op.IS_NOT_NULL, P)):
        require_same(expression, LOGIC)
    require_same(call(Op.IN, N, bigint(1), M, NULL), NUMBERS)
    require_same(call(Op.IN, X, Y, double(1.0)), DOUBLES)


def test_arithmetic() -> None:
    for op in (Op.ADD, Op.SUBTRACT, Op.MULTIPLY, Op.INTEGER_DIVIDE, Op.MODULO, Op.LEAST):
        require_same(call(op, N, M), NUMBERS)
    for op in (Op.ADD, Op.SUBTRACT, Op.MULTIPLY, Op.DIVIDE):
        require_same(call(op, X, Y), DOUBLES)
    for op in (Op.NEGATE, Op.ABSOLUTE):
        require_same(call(op, N), NUMBERS)
        require_same(call(op, X), DOUBLES)
    for op in (Op.SIGN, Op.FLOOR, Op.CEILING, Op.SQUARE, Op.SQUARE_ROOT):
        require_same(call(op, X), DOUBLES.filter(pa.compute.not_equal(DOUBLES["x"], -math.inf)))
    for places in (-19, -1, 0, 2):
        require_same(Expr(Op.ROUND, [N], [places]), NUMBERS)


def test_casts_of_numbers() -> None:
    for lenient in (False, True):
        require_same(cast_as(X, AsaType.BIGINT, lenient), DOUBLES)
    for expression in (cast_as(N, AsaType.FLOAT), cast_as(cast_as(N, AsaType.BIT), AsaType.BIGINT)):
        require_same(expression, NUMBERS)
    require_same(cast_as(X, AsaType.BIT), DOUBLES)
    require_same(call(Op.FINITE, X, NULL), DOUBLES)
    require_same(call(Op.FINITE, X, failure("not finite")), DOUBLES)


def test_a_condition_guards_what_comes_after_it() -> None:
    is_zero, remainder = call(Op.EQUAL, M, bigint(0)), call(Op.MODULO, N, M)
    is_one = call(Op.EQUAL, remainder, bigint(1))
    for expression in (
        case_when([(is_zero, NULL), (call(Op.IN, M, bigint(1)), bigint(-5))], call(Op.INTEGER_DIVIDE, N, M)),
        case_when([(call(Op.AND, call(Op.NOT, is_zero), is_one), string("one"))], NULL),
        call(Op.COALESCE, case_when([(is_zero, bigint(1))], NULL), remainder),
        call(Op.OR, is_zero, is_one),
        call(Op.AND, call(Op.NOT, is_zero), call(Op.AND, is_one, call(Op.NOT_EQUAL, M, bigint(2)))),
    ):
        require_same(expression, NUMBERS)
    where = call(Op.AND, call(Op.NOT, is_zero), is_one)
    kept = [row for row in NUMBERS.to_pylist() if naive.value(where, row)]
    assert computed(remainder, NUMBERS, where) == [1] * len(kept)


def test_strings() -> None:
    negative = failure("the length is negative")
    for expression in (
        *(call(op, S) for op in (Op.REVERSE, Op.LENGTH, Op.CODE_POINT)),
        call(Op.CONCAT, S, T, S),
        call(Op.JOIN_STRINGS, T, S, T),
        call(Op.REPLACE, S, T, string("x")),
        call(Op.REPEAT, S, case_when([(call(Op.LESS, M, bigint(9)), M)], NULL)),
        *(Expr(Op.POSITION, [T, S, start], [False, False]) for start in (bigint(1), N)),
        call(Op.POSITION, string("a"), S, bigint(1)),
        *(call(op, S, M, negative) for op in (Op.LEFT, Op.RIGHT)),
        call(Op.LEFT, S, bigint(2), NULL),
        call(Op.SUBSTRING, S, N, M, negative),
        call(Op.SUBSTRING, S, bigint(2), bigint(1), NULL),
        call(Op.STUFF, S, N, M, string("--"), negative),
        *(call(Op.TRANSLATE, S, string(old), string("xyz"), failure("lists")) for old in ("a12", "éba", "aab", "ab")),
        call(Op.TRANSLATE, S, T, call(Op.REVERSE, T), failure("lists")),
    ):
        require_same(expression, PLACES)


def test_elements_of_arrays() -> None:
    arrays = rows(a=(ARRAYS, pa.string()), n=([-1, 0, 1, 2, 2**40, None], pa.int64()))
    for table in (arrays, arrays.slice(0, 6)):
        require_same(call(Op.ARRAY_ELEMENT, A, N), table)
        require_same(call(Op.ARRAY_ELEMENT, A, bigint(1)), table)
        require_same(call(Op.ARRAY_LENGTH, A), table)


PARTS = ("year", "quarter", "month", "dayofyear", "day", "week", "weekday", "hour", "minute", "second", "millisecond")


def test_parts_of_dates_and_dates_that_are_moved() -> None:
    times = rows(d=(TIMES, pa.int64()), n=([0, 1, -1, 11, -13, 2**40, -(2**63), None], pa.int64()))
    for part in (*PARTS, "microsecond"):
        require_same(Expr(Op.DATE_PART, [D], [part]), times)
    for moved in [Expr(Op.MOVED, [D, N], [unit]) for unit in (1, naive.TICKS_OF_DAY)] + [
        Expr(Op.MOVED_BY_MONTHS, [D, N], [unit]) for unit in (1, 3, 12)
    ]:
        for other in (NULL, failure("outside the calendar")):
            require_same(call(Op.WITHIN_CALENDAR, moved, other), times)


Draw = Callable[[int], Expr]


def expressions(draw: random.Random) -> dict[str, Draw]:
    """Return functions that draw expressions of a bigint, a float, a string or a condition, up to a depth."""

    def of(leaves: Sequence[Expr], writes: Callable[[int], Sequence[Callable[[], Expr]]]) -> Draw:
        def drawn(depth: int) -> Expr:
            return draw.choice(leaves) if depth == 0 or draw.random() < 0.2 else draw.choice(writes(depth - 1))()

        return drawn

    numbers = of(
        [N, M, bigint(3), bigint(0), NULL],
        lambda depth: [
            lambda: call(draw.choice([Op.ADD, Op.MULTIPLY, Op.MODULO, Op.INTEGER_DIVIDE]), *_two(numbers, depth)),
            lambda: case_when([(conditions(depth), numbers(depth))], numbers(depth)),
            lambda: call(Op.COALESCE, numbers(depth), numbers(depth)),
            lambda: cast_as(floats(depth), AsaType.BIGINT, draw.random() < 0.5),
            lambda: call(Op.LENGTH, strings(depth)),
        ],
    )
    floats = of(
        [X, Y, double(0.5), double(0.0)],
        lambda depth: [
            lambda: call(draw.choice([Op.ADD, Op.SUBTRACT, Op.DIVIDE]), *_two(floats, depth)),
            lambda: cast_as(numbers(depth), AsaType.FLOAT),
            lambda: case_when([(conditions(depth), floats(depth))], failure("stop")),
        ],
    )
    strings = of(
        [S, T, string("a"), NULL],
        lambda depth: [
            lambda: call(Op.CONCAT, *_two(strings, depth)),
            lambda: call(Op.COALESCE, strings(depth), failure("stop")),
            lambda: call(Op.LEFT, S, call(Op.LENGTH, strings(depth)), failure("stop")),
        ],
    )
    conditions = of(
        [P, Q],
        lambda depth: [
            lambda: call(draw.choice([Op.AND, Op.OR]), *_two(conditions, depth)),
            lambda: call(Op.NOT, conditions(depth)),
            lambda: call(draw.choice(COMPARISONS), *_two(draw.choice([numbers, floats, strings]), depth)),
            lambda: call(Op.IS_NULL, draw.choice([numbers, floats, strings])(depth)),
        ],
    )
    return {"bigint": numbers, "float": floats, "string": strings, "condition": conditions}


def _two(draw: Draw, depth: int) -> tuple[Expr, Expr]:
    return draw(depth), draw(depth)


@pytest.mark.parametrize("kind", ["bigint", "float", "string", "condition"])
def test_nested_expressions(kind: str) -> None:
    draw = random.Random(kind)
    drawn = expressions(draw)[kind]
    columns: dict[str, list[Any]] = {
        "n": BIGINTS,
        "m": [0, 1, 2, -3, None],
        "x": FLOATS,
        "y": [0.0, 1.5, None],
        "s": STRINGS,
        "t": STRINGS,
    }
    for _ in range(150):
        values = {name: [draw.choice(given) for _ in range(40)] for name, given in columns.items()}
        bits = {name: pa.array([draw.choice([True, False, None]) for _ in range(40)], pa.bool_()) for name in "pq"}
        require_same(drawn(4), pa.table(values | bits))


def test_a_value_that_is_null_guards_the_arguments_after_it() -> None:
    divided = call(Op.INTEGER_DIVIDE, bigint(1), M)
    table = pa.table({"n": [None, 1], "m": [0, 2]}, pa.schema([("n", pa.int64()), ("m", pa.int64())]))
    assert computed(call(Op.ADD, N, divided), table) == [None, 1]


def test_without_rows_nothing_stops() -> None:
    for expression in (call(Op.DIVIDE, double(1.0), double(0.0)), call(Op.ADD, bigint(2**63 - 1), bigint(1))):
        assert computed(expression, NUMBERS.slice(0, 0)) == []
