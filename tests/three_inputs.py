"""JOINs of three inputs, a, b and c: each of the second and the third, with the bounds that the oracle takes."""

from tests.oracle_joins import Bound
from tests.query.streams import seconds

THREE_INPUTS = [
    (
        "JOIN {b} ON a.k = b.k AND DATEDIFF(second, a, b) BETWEEN 0 AND 5",
        [Bound(0, 0, seconds(5))],
        "JOIN {c} ON a.k = c.k AND DATEDIFF(second, a, c) >= 0 AND DATEDIFF(second, b, c) < 0",
        [Bound(0, 0, None), Bound(1, None, -1)],
    ),
    (
        "LEFT JOIN {b} ON a.k = b.k AND DATEDIFF(second, a, b) BETWEEN 1 AND 4",
        [Bound(0, seconds(1), seconds(4))],
        "LEFT JOIN {c} ON a.k = c.k AND DATEDIFF(second, a, c) BETWEEN -6 AND -2",
        [Bound(0, -seconds(6), -seconds(2))],
    ),
    (
        "LEFT JOIN {b} ON a.k = b.k AND DATEDIFF(second, a, b) BETWEEN 1 AND 4",
        [Bound(0, seconds(1), seconds(4))],
        "JOIN {c} ON a.k = c.k AND DATEDIFF(second, b, c) BETWEEN -1 AND 2",
        [Bound(1, -seconds(1), seconds(2))],
    ),
    (
        "JOIN {b} ON a.k = b.k AND DATEDIFF(second, a, b) BETWEEN 0 AND 3",
        [Bound(0, 0, seconds(3))],
        "LEFT JOIN {c} ON a.k = c.k AND DATEDIFF(second, a, c) BETWEEN 1 AND 6 AND DATEDIFF(second, b, c) <= 4",
        [Bound(0, seconds(1), seconds(6)), Bound(1, None, seconds(4))],
    ),
]
