"""The ASA types of values in JSON bodies."""

from collections.abc import Sequence

from recapture.formats.duckdb_sql import pointer
from recapture.model import AsaType

KINDS = {
    "UBIGINT": AsaType.BIGINT,
    "BIGINT": AsaType.BIGINT,
    "DOUBLE": AsaType.FLOAT,
    "VARCHAR": AsaType.STRING,
    "BOOLEAN": AsaType.BIT,
    "OBJECT": AsaType.RECORD,
    "ARRAY": AsaType.ARRAY,
}
"""ASA's type of each JSON type of DuckDB."""


def asa_kind(json_type: str) -> str:
    """Return the SQL of the ASA type (string) of a JSON type of DuckDB; NULL for JSON null and a missing value."""
    kinds = " ".join(f"WHEN '{name}' THEN '{kind}'" for name, kind in KINDS.items())
    return f"CASE {json_type} {kinds} END"


def kind_at(path: Sequence[str]) -> str:
    """Return the SQL of DuckDB's type of the value at a path of `body`; NULL if there is no value."""
    records = [path[:depth] for depth in range(1, len(path))]
    steps = (f"json_type(body, {pointer(record)}) = 'OBJECT'" for record in records)
    readable = " AND ".join(["json_valid(body)", *steps])
    return f"CASE WHEN {readable} THEN json_type(body, {pointer(path)}) END"
