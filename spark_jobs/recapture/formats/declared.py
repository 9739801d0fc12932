"""What CREATE TABLE declares: an event without one of the fields, or with a value of another type, is malformed.

ASA drops such an event: CREATE TABLE says which types to expect, and converts nothing (source: "CREATE TABLE (Stream
Analytics)"). Numbers convert to each other if nothing is lost, and NULL is of every type (docs/time-model.md, section
6). In a format that has only texts, a text is converted.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recapture.formats.duckdb_sql import literal, one_array, pointer, select
from recapture.formats.views import copies
from recapture.model import AsaType, InputColumn

KINDS = {
    "UBIGINT": AsaType.BIGINT,
    "BIGINT": AsaType.BIGINT,
    "DOUBLE": AsaType.FLOAT,
    "VARCHAR": AsaType.TEXT,
    "BOOLEAN": AsaType.BIT,
    "OBJECT": AsaType.RECORD,
    "ARRAY": AsaType.ARRAY,
}
"""ASA's type of each JSON type of DuckDB."""


@dataclass(frozen=True)
class Declared:
    """The fields that CREATE TABLE declares."""

    columns: tuple[InputColumn, ...] = ()
    only_texts: bool = False
    """Whether bodies have no other values than texts and null."""

    def is_strict(self, column: InputColumn) -> bool:
        """Return whether a text is never converted to the type of a column, nor another value to a text."""
        return column in self.columns and not self.only_texts

    def reasons(self, text: pa.Array, values: pa.Array, column: InputColumn, path: Sequence[str]) -> pa.Array:
        """Return why some bodies deviate from the declaration of a column (string), or NULL.

        `values` are those of the column, which bodies spell as `path`; a value of another type is NULL.
        """
        rows = pc.indices_nonzero(pc.and_(pc.is_null(values), pc.is_valid(text))).to_numpy()
        reasons = pa.nulls(len(values), pa.string())
        if not len(rows):
            return reasons
        found = select({"body": copies(text, rows)}, self._reading(column, path))["reason"]
        mask = np.zeros(len(values), bool)
        mask[rows] = True
        return pc.replace_with_mask(reasons, pa.array(mask), one_array(found).cast(pa.string()))

    def _reading(self, column: InputColumn, path: Sequence[str]) -> str:
        """Return the SQL that reads the reason of each body. A property of a record may be missing."""
        number = f"json_extract(body, {pointer(path)})::VARCHAR"
        missing = literal(f"{column.name} is missing") if len(column.path) == 1 else "NULL"
        fitting = "kind = 'NULL'"
        too_large = (
            f"WHEN regexp_full_match({number}, '-?[0-9]+') THEN {literal(f'{column.name} does not fit a bigint')}"
        )
        if self.only_texts and column.type is AsaType.BIT:
            fitting += f" OR lower(json_extract_string(body, {pointer(path)})) = 'null'"
        wrong = f"{column.name} is not {'an' if column.type in (AsaType.ARRAY, AsaType.TEXT) else 'a'} {column.type}"
        others = " ".join(
            f"WHEN '{name}' THEN {literal(f'{wrong} but {kind}')}"
            for name, kind in KINDS.items()
            if kind not in (column.type, AsaType.TEXT if self.only_texts or column.type is AsaType.DATETIME else None)
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


NOTHING_DECLARED = Declared()
"""Without CREATE TABLE."""


def texts_in(values: pa.Array) -> pa.Array:
    """Return the texts among JSON values, and NULL for all others: "a" => a, 12 => NULL"""
    written = values.cast(pa.string())
    is_text = pc.starts_with(written, '"')
    texts = pc.binary_slice(written.cast(pa.binary()), 1, -1).cast(pa.string())
    if pc.all(is_text).as_py() is False:
        texts = pc.if_else(is_text, texts, None)
    escaped = pc.fill_null(pc.match_substring(texts, "\\"), False)
    if not pc.any(escaped).as_py():
        return texts
    unescaped = select({"value": written.filter(escaped)}, "SELECT value::JSON->>'$' AS value FROM bodies")["value"]
    return pc.replace_with_mask(texts, escaped, one_array(unescaped))


def kind_at(path: Sequence[str]) -> str:
    """Return the SQL of DuckDB's type of the value at a path of `body`; NULL if there is no value."""
    records = [path[:depth] for depth in range(1, len(path))]
    steps = (f"json_type(body, {pointer(record)}) = 'OBJECT'" for record in records)
    readable = " AND ".join(["json_valid(body)", *steps])
    return f"CASE WHEN {readable} THEN json_type(body, {pointer(path)}) END"
