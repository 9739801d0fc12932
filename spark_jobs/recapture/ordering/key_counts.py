"""What became of the events of each key in one slice and partition: who is late, who is dropped, who is gone.

The key is that of OVER, or else the one that groups (`CompiledInput.keys`): it tells the senders apart.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recapture.ordering.chunks import RowIndex
from recapture.ordering.keys import first_rows, without_gaps
from recapture.time_model.partition_metrics import KeyEvents, KeyMetrics
from recapture.time_model.policies import Judged
from recapture.time_model.string_codes import StringCodes
from recapture.time_model.verdicts import DROPPED, TROUBLES, Verdict
from recapture.tokens import MARK

Int64s = NDArray[np.int64]

SHOWN_KEYS = 10
"""Number of keys that are kept of each kind of trouble, and of those without a processed event."""
LONGEST_KEY = 200
"""Number of characters that are kept of a key."""
_COMPACT_ROWS = 500_000
_COLUMNS = ("events", "processed", *TROUBLES)


@dataclass(eq=False)
class KeyCounts:
    """Counts of the events that arrived, by key."""

    columns: tuple[str, ...]
    """Names of the columns of the key; none if there is no key."""
    _codes: StringCodes = field(default_factory=StringCodes)
    _keys: pa.Array = field(default_factory=lambda: pa.array([], pa.large_string()))
    """Keys by number."""
    _counts: list[Int64s] = field(default_factory=list)
    """The number of each key plus one, 0 for NULL, and its counts; a column for each key of some chunks."""
    _rows: int = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeyCounts) and self.columns == other.columns and self.table() == other.table()

    def observe(self, keys: Mapping[str, pa.Array], judged: Judged, rows: RowIndex) -> None:
        """Count the events at these rows of a chunk. `keys` are the columns of the key over the chunk, by name.

        A single column may come with the numbers of `StringCodes`, in all chunks or in none.
        """
        if not self.columns:
            return
        column = _as_one([_taken(column, rows) for column in keys.values()])
        column = column if pa.types.is_dictionary(column.type) else self._codes.encode(column)
        self._keys = column.dictionary
        index = column.indices.cast(pa.int64()).fill_null(-1).to_numpy() + 1
        verdict = judged.verdict[rows]
        masks: dict[str, NDArray[np.bool_]] = {
            "processed": judged.processed[rows],
            "early": judged.early[rows],
            "late": judged.late[rows],
            "out_of_order": judged.out_of_order[rows],
            "dropped": np.isin(verdict, DROPPED),
            "malformed": verdict == Verdict.MALFORMED,
            "invalid_timestamp": verdict == Verdict.INVALID_TIMESTAMP,
        }
        codes, count = without_gaps(index, len(self._keys) + 1)
        events = np.bincount(codes, minlength=count)
        counts = [events, *(_counted(codes, masks[name], events) for name in _COLUMNS[1:])]
        self._counts.append(np.stack([index[first_rows(codes)], *counts]))
        self._rows += count
        if self._rows > _COMPACT_ROWS:
            self._counts = [self._summed()]
            self._rows = self._counts[0].shape[1]

    def _summed(self) -> Int64s:
        """Return what `_counts` holds, with one column for each key."""
        parts = np.hstack([np.empty((1 + len(_COLUMNS), 0), np.int64), *self._counts])
        numbers = np.bincount(parts[0])
        (seen,) = np.nonzero(numbers)
        sums = np.zeros((len(_COLUMNS), len(numbers)), np.int64)
        for sum_, part in zip(sums, parts[1:], strict=True):
            np.add.at(sum_, parts[0], part)
        return np.vstack([seen, sums[:, seen]])

    def table(self) -> pa.Table:
        """Return a row for each key, in the order of the keys: `key` (string, null if it is missing) and the counts."""
        return self._table().sort_by("key")

    def _table(self) -> pa.Table:
        numbers, *counts = self._summed()
        keys = self._keys.take(pa.array(numbers - 1, mask=numbers == 0)).cast(pa.string())
        return pa.table([keys, *counts], ["key", *_COLUMNS])

    def metrics(self) -> KeyMetrics | None:
        """Return the keys with the most trouble; None without a key."""
        if not self.columns:
            return None
        table = self._table()
        unreached = table.filter(pc.and_(pc.equal(table["processed"], 0), pc.is_valid(table["key"])))
        return KeyMetrics(
            columns=self.columns,
            keys=table.num_rows,
            most={name: _largest(table.filter(pc.greater(table[name], 0)), name) for name in TROUBLES},
            unreached=_largest(unreached, "events"),
            unreached_count=unreached.num_rows,
        )


def _largest(table: pa.Table, name: str) -> tuple[KeyEvents, ...]:
    """Return the keys with the largest counts of one kind; of equal ones those that come first."""
    if not table.num_rows:
        return ()
    if len(table) > SHOWN_KEYS:
        counts = table[name].to_numpy()
        table = table.filter(counts >= np.partition(counts, -SHOWN_KEYS)[-SHOWN_KEYS])
    first = table.sort_by([(name, "descending"), ("key", "ascending")]).slice(0, SHOWN_KEYS).to_pylist()
    keys = [row.pop("key") for row in first]
    return tuple(
        KeyEvents(key and key.replace(MARK, "")[:LONGEST_KEY], row) for key, row in zip(keys, first, strict=True)
    )


def _counted(index: NDArray[np.int64], mask: NDArray[np.bool_], every: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of events for which the mask is True, by key; `every` is that of all events."""
    if mask.all():
        return every
    return np.bincount(index[mask], minlength=len(every)) if mask.any() else np.zeros(len(every), np.int64)


def _taken(column: pa.Array, rows: RowIndex) -> pa.Array:
    return column[rows] if isinstance(rows, slice) else column.take(pa.array(rows))


def _as_one(columns: Sequence[pa.Array]) -> pa.Array:
    """Return the columns of a key as one of strings, in which NULL stands for a part that is missing."""
    if len(columns) == 1 and (pa.types.is_string(columns[0].type) or pa.types.is_dictionary(columns[0].type)):
        return columns[0]
    texts = [pc.cast(column, pa.string()) for column in columns]
    if len(texts) == 1:
        return texts[0]
    return pc.binary_join_element_wise(*texts, ", ", null_handling="replace", null_replacement="NULL")
