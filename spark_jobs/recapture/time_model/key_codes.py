"""Numbers for the values of a key, the same in every chunk of events."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recapture.time_model.string_codes import StringCodes


class KeyCodes:
    """Assigns a number to each distinct value of a key column, the same number in every chunk."""

    def __init__(self) -> None:
        self._known: pa.Array | None = None
        self._parts: list[KeyCodes] = []
        self._strings = StringCodes()

    @property
    def values(self) -> pa.Array:
        """The distinct values so far, by number; none of a struct, nor of a dictionary."""
        return self._strings.values if self._known is None else self._known

    def encode(self, keys: pa.Array) -> NDArray[np.int64]:
        """Return the number of each key, from 0. The keys must not be NULL or contain NULL.

        If keys come with a dictionary, their numbers are its own, as those of `StringCodes`.
        """
        if pa.types.is_struct(keys.type):
            return self._encode_struct(keys)
        if pa.types.is_string(keys.type):
            keys = self._strings.encode(keys)
        if pa.types.is_dictionary(keys.type):
            return keys.indices.to_numpy().astype(np.int64)
        known = keys[:0] if self._known is None else self._known
        # The known values come first, so they keep their numbers.
        encoded = pa.concat_arrays([known, keys]).dictionary_encode()
        self._known = encoded.dictionary
        return encoded.indices[len(known) :].to_numpy().astype(np.int64)

    def _encode_struct(self, keys: pa.StructArray) -> NDArray[np.int64]:
        members = keys.flatten()
        if not self._parts:
            self._parts = [KeyCodes() for _ in range(2 * len(members) - 1)]
        combined = self._parts[0].encode(members[0])
        for index, member in enumerate(members[1:]):
            number, pair = self._parts[2 * index + 1 : 2 * index + 3]
            combined = pair.encode(pa.array(combined << 32 | number.encode(member)))
        return combined


def has_key(scope: pa.Array) -> NDArray[np.bool_]:
    """Return which events have a key, with a value in each of its columns."""
    members = scope.flatten() if pa.types.is_struct(scope.type) else [scope]
    present = pc.is_valid(scope)
    for member in members:
        present = pc.and_(present, pc.is_valid(member))
    return present.to_numpy(zero_copy_only=False)
