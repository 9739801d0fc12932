"""The truth about a case with faults: which rows differ, and because of which faults."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from itertools import combinations

from tests.live_job.case import Case, archived_rows, in_range, live_rows
from tests.live_job.faults import EnqueuedArrival, Fault, LateBlob, inject
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
        for subset in combinations(faults, size):
            names = frozenset(fault.name for fault in subset)
            alone = sides(inject(case, subset))
            for identity, (live, archived) in result.items():
                is_explained = any(smaller < names for smaller in reasons[identity])
                if live != archived and not is_explained and alone.get(identity) == (live, archived):
                    reasons[identity].append(names)
    return [
        Difference(identity, live, archived, tuple(reasons[identity]))
        for identity, (live, archived) in sorted(result.items(), key=lambda item: in_order(item[0]))
        if live != archived
    ]


class Explanations:
    """Which faults explain the rows that the live job wrote of a case in which faults happened.

    Some of the faults explain a row if a job for which only these of its faults happened writes the same, and reads an
    archive in which only the other faults of the archive happened: if a backfill that takes these faults into account
    publishes the row of the live job. Often, fewer faults explain a row than make its difference: after a downtime,
    a row is missing whatever happened to the archive.

    A backfill that takes a late blob into account reads it as it came. If it arrives at LastModified, that is hours
    after the live job received its events. Only their enqueued times place them then, so a late blob explains a row
    together with enqueued arrival, even if that did not happen. `in_time` asks for what a backfill would have
    published if no blob had come late: nothing can be computed again from a blob that is a hole.
    """

    def __init__(self, case: Case, faults: Collection[Fault]) -> None:
        self._case, self._faults = case, list(faults)
        self._written: dict[tuple[frozenset[str], bool], dict[Identity, list[Row]]] = {}
        everything = inject(case, faults)
        self._live = _by_identity(live_rows(everything))
        self._published = _by_identity(archived_rows(everything))

    def different(self) -> list[Identity]:
        """Return the identities whose rows differ."""
        identities = {*self._live, *self._published}
        return sorted(
            (identity for identity in identities if self._live[identity] != self._published[identity]), key=in_order
        )

    def explains(self, names: frozenset[str], identity: Identity, *, in_time: bool = False) -> bool:
        """Return whether faults of these names explain a row."""
        if (names, in_time) not in self._written:
            is_late = LateBlob.name in names & {fault.name for fault in self._faults}
            means = [EnqueuedArrival()] if is_late else []
            named_faults = [fault for fault in (*self._faults, *means) if fault.name in names]
            others = [
                fault
                for fault in self._faults
                if fault.name not in names or (isinstance(fault, LateBlob) and not in_time)
            ]
            archive = inject(self._case, others)
            blobs = (*archive.archive, *(archive.written_later if is_late else ()))
            live = replace(inject(self._case, named_faults), blobs=blobs)
            self._written[names, in_time] = _by_identity(live_rows(live, with_duplicates=False))
        return self._written[names, in_time][identity] == self._live[identity]

    def is_smallest(self, names: frozenset[str], identity: Identity) -> bool:
        """Return whether faults of these names explain a row, and no fewer of them do."""
        smaller = (frozenset(subset) for size in range(1, len(names)) for subset in combinations(sorted(names), size))
        return self.explains(names, identity) and not any(self.explains(subset, identity) for subset in smaller)

    def smallest(self, identity: Identity, *, in_time: bool = False) -> list[frozenset[str]]:
        """Return the smallest sets of faults that explain a row."""
        found: list[frozenset[str]] = []
        for size in range(1, len(self._faults) + 1):
            for subset in combinations(self._faults, size):
                names = frozenset(fault.name for fault in subset)
                if not any(smaller < names for smaller in found) and self.explains(names, identity, in_time=in_time):
                    found.append(names)
        return found


def _by_identity(rows: Iterable[Row]) -> dict[Identity, list[Row]]:
    result: dict[Identity, list[Row]] = defaultdict(list)
    for row in in_range(rows):
        result[row.identity].append(row)
    return result


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
