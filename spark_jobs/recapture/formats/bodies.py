"""Bodies as typed columns: what a query reads of them, and what the decoder of each body format provides.

A source says where the blobs are and how events lie in them: its `Reader` turns a blob into events, each with the bytes
of its body. A `BodyDecoder` says how these bytes are written. Neither knows the other.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recapture.model import InputColumn


@dataclass(frozen=True)
class Projection:
    """What is read of bodies."""

    columns: Collection[InputColumn] = ()
    """Columns whose values the query needs."""
    timestamp_fields: Collection[InputColumn] = ()
    """Fields that TIMESTAMP BY reads as strings. Their values do not make a body malformed: the policies decide."""
    declared: Collection[InputColumn] = ()
    """Columns of CREATE TABLE: a body without one, or with a value of another type, is malformed."""

    @property
    def valued(self) -> tuple[InputColumn, ...]:
        """Columns whose values are read: those that the query needs, and those that are only checked."""
        return tuple(dict.fromkeys([*self.columns, *self.declared]))


@dataclass(frozen=True)
class Bodies:
    """The columns of some bodies; every array has one entry per body."""

    columns: dict[InputColumn, pa.Array]
    """Values of the columns that the query needs, in the types of the view."""
    strings: dict[InputColumn, pa.Array]
    """Values of the timestamp fields as strings, or as tokens where the column has them; NULL if the body lacks it."""
    malformed: pa.Array
    """Reason why a body cannot be used (string), or NULL."""

    def replaced(self, rows: NDArray[np.intp], others: "Bodies") -> "Bodies":
        """Return the bodies with others at some rows, which ascend."""
        return Bodies(
            {column: replaced(values, rows, others.columns[column]) for column, values in self.columns.items()},
            {column: replaced(values, rows, others.strings[column]) for column, values in self.strings.items()},
            replaced(self.malformed, rows, others.malformed),
        )


def replaced(values: pa.Array, rows: NDArray[np.intp], others: pa.Array) -> pa.Array:
    """Return the values with others at some rows, which ascend."""
    mask = np.zeros(len(values), dtype=bool)
    mask[rows] = True
    return pc.replace_with_mask(values, pa.array(mask), others)


class BodyDecoder(Protocol):
    """Decodes the bodies of one input, whatever their source. It is pickled and sent to the executors.

    A bad body never fails the others, and never raises: it is malformed, with a reason of a few words in one line. Its
    event is counted and quarantined with the verdict `malformed`. A bad body is one that is not written in the format,
    or that has a value which its column cannot hold (docs/time-model.md, section 6). A name finds its field in any
    case. A body that is NULL has the reason "no body".
    """

    @property
    def only_strings(self) -> bool:
        """Whether bodies have no other values than strings and null: strings are converted to declared types."""

    def decode(self, bodies: pa.Array, projection: Projection, unreadable: pa.Array | None = None) -> Bodies:
        """Return the columns of bodies (binary, or views; none at all is allowed).

        `unreadable` holds the reason why a reader could not read a body (string), or NULL; it takes precedence over any
        other reason.
        """

    def as_json(self, bodies: pa.Array) -> pa.Array:
        """Return bodies (binary, or views) as JSON (string, or views), to see which fields they have.

        A malformed body is NULL, or a string that is not a JSON object.
        """


def first_reasons(reasons: pa.Array, later: pa.Array) -> pa.Array:
    """Return why each event cannot be used: the first of these reasons (string), or NULL."""
    if later.null_count == len(later):
        return reasons
    later = later.cast(pa.string())
    return later if reasons.null_count == len(reasons) else pc.coalesce(reasons, later)
