"""What CREATE TABLE declares: an event without one of the fields, or with a value of another type, is malformed.

ASA drops such an event: CREATE TABLE says which types to expect, and converts nothing (source: "CREATE TABLE (Stream
Analytics)"). Numbers convert to each other if nothing is lost, and NULL is of every type (docs/time-model.md, section
6). If bodies have only strings, a string is converted.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from recapture.formats.duckdb_sql import literal, pointer
from recapture.formats.json_bodies.kinds import KINDS, kind_at
from recapture.formats.json_bodies.values import reasons_in
from recapture.model import AsaType, InputColumn


@dataclass(frozen=True)
class Declared:
    """The fields that CREATE TABLE declares."""

    columns: tuple[InputColumn, ...]
    only_strings: bool
    """Whether bodies have no other values than strings and null."""

    def is_strict(self, column: InputColumn) -> bool:
        """Return whether a string is never converted to the type of a column, nor another value to a string."""
        if column.is_token:
            return True
        is_number = not column.declared and column.type in (AsaType.BIGINT, AsaType.FLOAT)
        return (column in self.columns or is_number) and not self.only_strings

    def reasons(self, documents: pa.Array, values: pa.Array, column: InputColumn, path: Sequence[str]) -> pa.Array:
        """Return why some bodies deviate from the declaration of a column (string), or NULL.

        `values` are those of the column, which bodies spell as `path`; a value of another type is NULL.
        """
        suspects = pc.indices_nonzero(pc.and_(pc.is_null(values), pc.is_valid(documents)))
        return reasons_in(documents, suspects, self._reading(column, path))

    def _reading(self, column: InputColumn, path: Sequence[str]) -> str:
        """Return the SQL that reads the reason of each body. A property of a record may be missing."""
        number = f"json_extract(body, {pointer(path)})::VARCHAR"
        missing = literal(f"{column.name} is missing") if len(column.path) == 1 else "NULL"
        fitting = "kind = 'NULL'"
        too_large = (
            f"WHEN regexp_full_match({number}, '-?[0-9]+') THEN {literal(f'{column.name} does not fit a bigint')}"
        )
        if self.only_strings and column.type is AsaType.BIT:
            fitting += f" OR lower(json_extract_string(body, {pointer(path)})) = 'null'"
        wrong = f"{column.name} is not {'an' if column.type in (AsaType.ARRAY, AsaType.STRING) else 'a'} {column.type}"
        others = " ".join(
            f"WHEN '{name}' THEN {literal(f'{wrong} but {kind}')}"
            for name, kind in KINDS.items()
            if kind
            not in (column.type, AsaType.STRING if self.only_strings or column.type is AsaType.DATETIME else None)
        )
        return f"""
            SELECT CASE
                WHEN kind IS NULL THEN {missing}
                WHEN {fitting} THEN NULL
                {too_large if column.type is AsaType.BIGINT else ""}
                ELSE CASE kind {others} ELSE {literal(wrong)} END
            END AS reason
            FROM (SELECT body, {kind_at(path)} AS kind FROM bodies)
        """
