"""What became of the events of each key in one slice and partition: who is late, who is dropped, who is gone.

The key is that of OVER, or else the one that groups (`CompiledInput.keys`): it tells the senders apart.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recapture.ordering.chunks import RowIndex
from recapture.process.compilation import compiled, frozen
from recapture.time_model.partition_metrics import KeyEvents, KeyMetrics
from recapture.time_model.policies import Judged
from recapture.time_model.string_codes import StringCodes
from recapture.time_model.verdicts import DROPPED, PROCESSED, TROUBLES, Verdict
from recapture.tokens import MARK

Int64s = NDArray[np.int64]
_N = TypeVar("_N", bound=np.generic)

SHOWN_KEYS = 10
"""Number of keys that are kept of each kind of trouble, and of those without a processed event."""
LONGEST_KEY = 200
"""Number of characters that are kept of a key."""
_COLUMNS = ("events", "processed", *TROUBLES)
_EARLY, _LATE, _OUT_OF_ORDER = 2, 3, 4
"""Places in _COLUMNS of what does not follow from the verdict."""
_VERDICTS = {
    "events": tuple(Verdict),
    "processed": PROCESSED,
    "dropped": DROPPED,
    "malformed": (Verdict.MALFORMED,),
    "invalid_timestamp": (Verdict.INVALID_TIMESTAMP,),
}
"""The verdicts of the events that a column counts."""
_ADDED = frozen(np.array([[verdict in _VERDICTS.get(name, ()) for name in _COLUMNS] for verdict in Verdict], np.int64))
"""What an event with each verdict adds to each of _COLUMNS."""


@dataclass(eq=False)
class KeyCounts:
    """Counts of the events that arrived, by key."""

    columns: tuple[str, ...]
    """Names of the columns of the key; none if there is no key."""
    _codes: StringCodes = field(default_factory=StringCodes)
    _keys: pa.Array = field(default_factory=lambda: pa.array([], pa.large_string()))
    """Keys by number."""
    _places: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    """Row of `_counts` by the number of the key plus one, 0 for NULL; -1 for a key that did not arrive."""
    _counts: Int64s = field(default_factory=lambda: np.zeros((0, len(_COLUMNS)), np.int64))
    """Counts of the keys that arrived, with room for more keys."""
    _count: int = 0
    """Number of keys that arrived."""

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
        numbers = frozen((column.indices.fill_null(-1) if column.null_count else column.indices).to_numpy())
        keys_and_null = len(self._keys) + 1
        self._places = _with_room(self._places, keys_and_null, -1)
        self._counts = _with_room(self._counts, min(self._count + len(numbers), keys_and_null), 0)
        self._count = count_keys(numbers, judged.at(rows), _ADDED, self._places, self._counts, self._count)

    def table(self) -> pa.Table:
        """Return a row for each key, in the order of the keys: `key` (string, null if it is missing) and the counts."""
        return self._table().sort_by("key")

    def _table(self) -> pa.Table:
        numbers = np.flatnonzero(self._places >= 0)
        keys = self._keys.take(pa.array(numbers - 1, mask=numbers == 0)).cast(pa.string())
        return pa.table([keys, *self._counts[self._places[numbers]].T], ["key", *_COLUMNS])

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


@compiled
def count_keys(
    numbers: NDArray[np.int32], judged: Judged, added: Int64s, places: NDArray[np.int32], counts: Int64s, count: int
) -> int:
    """Count the events of each key, and return how many keys have arrived; they were `count` before.

    `numbers` has the number of each event's key, -1 for NULL; `places` and `counts` are those of `KeyCounts`, with room
    for all keys. `added` has what an event with each verdict adds to the counts.
    """
    for event in range(len(numbers)):
        key = numbers[event] + 1
        place = places[key]
        if place < 0:
            place = places[key] = count
            count += 1
        verdict = judged.verdict[event]
        for column in range(added.shape[1]):
            counts[place, column] += added[verdict, column]
        counts[place, _EARLY] += judged.early[event]
        counts[place, _LATE] += judged.late[event]
        counts[place, _OUT_OF_ORDER] += judged.out_of_order[event]
    return count


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


def _with_room(values: NDArray[_N], rows: int, value: int) -> NDArray[_N]:
    """Return an array with at least this many rows. New ones have the value, and room for more of them."""
    if rows <= len(values):
        return values
    larger = np.full((max(rows, 2 * len(values)), *values.shape[1:]), value, values.dtype)
    larger[: len(values)] = values
    return larger


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
