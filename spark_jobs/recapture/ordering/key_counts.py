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
from recapture.time_model.partition_metrics import KeyEvents, KeyMetrics
from recapture.time_model.policies import Judged
from recapture.time_model.verdicts import DROPPED, TROUBLES, Verdict
from recapture.tokens import MARK

SHOWN_KEYS = 10
"""Number of keys that are kept of each kind of trouble, and of those without a processed event."""
LONGEST_KEY = 200
"""Number of characters that are kept of a key."""
_COMPACT_ROWS = 500_000
_COLUMNS = ("events", "processed", *TROUBLES)


@dataclass
class KeyCounts:
    """Counts of the events that arrived, by key."""

    columns: tuple[str, ...]
    """Names of the columns of the key; none if there is no key."""
    _counts: list[pa.Table] = field(default_factory=list)
    _rows: int = 0

    def observe(self, keys: Mapping[str, pa.Array], judged: Judged, rows: RowIndex) -> None:
        """Count the events at these rows of a chunk. `keys` are the columns of the key over the chunk, by name."""
        if not self.columns:
            return
        encoded = _as_one([_taken(column, rows) for column in keys.values()]).dictionary_encode(null_encoding="encode")
        index, count = encoded.indices.to_numpy(), len(encoded.dictionary)
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
        counts = {"events": np.bincount(index, minlength=count)}
        counts |= {name: _counted(index, mask, counts["events"]) for name, mask in masks.items()}
        self._counts.append(pa.table({"key": encoded.dictionary, **counts}))
        self._rows += count
        if self._rows > _COMPACT_ROWS:
            self._counts = [self.table()]
            self._rows = self._counts[0].num_rows

    def table(self) -> pa.Table:
        """Return a row for each key, in the order of the keys: `key` (string, null if it is missing) and the counts."""
        if not self._counts:
            return pa.table({"key": pa.array([], pa.string()), **{name: pa.array([], pa.int64()) for name in _COLUMNS}})
        summed = pa.concat_tables(self._counts).group_by("key").aggregate([(name, "sum") for name in _COLUMNS])
        return summed.rename_columns(["key", *_COLUMNS]).sort_by("key")

    def metrics(self) -> KeyMetrics | None:
        """Return the keys with the most trouble; None without a key."""
        if not self.columns:
            return None
        table = self.table()
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
    texts = [column if pa.types.is_string(column.type) else pc.cast(column, pa.string()) for column in columns]
    if len(texts) == 1:
        return texts[0]
    return pc.binary_join_element_wise(*texts, ", ", null_handling="replace", null_replacement="NULL")
