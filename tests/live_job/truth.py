"""The truth about a case with faults: which rows differ, and because of which faults."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import combinations

from tests.live_job.case import Case, archived_rows, in_range, live_rows
from tests.live_job.faults import Fault, inject
from tests.live_job.windows import Identity, Row

Sides = tuple[tuple[Row, ...], tuple[Row, ...]]
"""The rows of one identity: those that the live job wrote, and those that a backfill publishes."""


@dataclass(frozen=True)
class Difference:
    """An identity whose rows differ, and why."""

    identity: Identity
    live: tuple[Row, ...]
    """The rows that the live job wrote; several if it wrote a row more than once."""
    archived: tuple[Row, ...]
    """The row that a backfill publishes; none if it publishes none."""
    reasons: tuple[frozenset[str], ...]
    """The smallest sets of faults that make this difference alone, by the names of the faults.

    Usually one. A row that two faults together have changed has one set of both. A row that either of two faults has
    removed has two sets, and either is a right answer.
    """


def differences(case: Case, faults: Collection[Fault]) -> list[Difference]:
    """Return the differences of a case in which these faults happened, in the order of their identities."""
    result = sides(inject(case, faults))
    reasons: dict[Identity, list[frozenset[str]]] = defaultdict(list)
    for size in range(1, len(faults) + 1):
        for some in combinations(faults, size):
            names = frozenset(fault.name for fault in some)
            alone = sides(inject(case, some))
            for identity, (live, archived) in result.items():
                is_explained = any(smaller < names for smaller in reasons[identity])
                if live != archived and not is_explained and alone.get(identity) == (live, archived):
                    reasons[identity].append(names)
    return [
        Difference(identity, live, archived, tuple(reasons[identity]))
        for identity, (live, archived) in sorted(result.items(), key=lambda item: in_order(item[0]))
        if live != archived
    ]


def sides(case: Case) -> dict[Identity, Sides]:
    """Return what both sides have in the range, by identity."""
    return both(live_rows(case), archived_rows(case))


def both(live: Iterable[Row], archived: Iterable[Row]) -> dict[Identity, Sides]:
    """Return the rows of the range of both sides, by identity."""
    rows_of: tuple[dict[Identity, list[Row]], ...] = (defaultdict(list), defaultdict(list))
    for rows, side in zip((live, archived), rows_of, strict=True):
        for row in in_range(rows):
            side[row.identity].append(row)
    first, second = rows_of
    return {identity: (tuple(first[identity]), tuple(second[identity])) for identity in {*first, *second}}


def in_order(identity: Identity) -> tuple[object, ...]:
    """Return the key that sorts identities: by window end, then by device, without a device first."""
    end, device = identity
    return end, device is not None, device or ""
