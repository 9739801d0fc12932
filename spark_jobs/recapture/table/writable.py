"""Decide whether a pipeline may write to a Delta table, from the table's properties, features and columns."""

import re
from collections.abc import Iterable, Mapping
from datetime import timedelta

from deltalake import DeltaTable, Field

from recapture.errors import DefinitionError

PIPELINE = "recapture.pipeline"
"""Property with the name of the pipeline that a table belongs to."""
SLICE_HOURS = "recapture.sliceHours"
"""Property with the length of the slices of a table, in hours."""
WRITER_FEATURES = frozenset(
    (
        *("appendOnly", "changeDataFeed", "checkConstraints", "columnMapping", "deletionVectors", "generatedColumns"),
        *("invariants", "timestampNtz", "v2Checkpoint", "variantType", "variantType-preview"),
    )
)
"""Features of Delta tables that delta-rs writes; it rejects every commit to a table with any other."""
RETENTION = timedelta(days=7)
"""Value of delta.deletedFileRetentionDuration for a table without this property."""


def require_writable(delta: DeltaTable, url: str, pipeline: str | None, take_over: bool) -> None:
    """Raise DefinitionError unless the pipeline may replace slices of the table.

    It may not if the table belongs to another pipeline, unless `take_over`. No pipeline may if the table is
    append-only, has a feature that delta-rs does not write, or maps its columns to other names in the files.
    """
    properties = delta.metadata().configuration
    owner = properties.get(PIPELINE)
    if owner not in (None, pipeline) and not take_over:
        raise DefinitionError(
            f"table {url} belongs to pipeline {owner}, not to {pipeline}: publish to another table (output.table), or "
            "take the table over with recapture backfill --take-over"
        )
    if properties.get("delta.appendOnly", "").lower() == "true":
        raise DefinitionError(
            f"table {url} is append-only, so its slices cannot be replaced: unset its property delta.appendOnly, or "
            "publish to another table"
        )
    unsupported = sorted({*(delta.protocol().writer_features or ())} - WRITER_FEATURES)
    if unsupported:
        raise DefinitionError(
            f"table {url} has features that Recapture cannot write: {', '.join(unsupported)}; drop them (ALTER TABLE … "
            "DROP FEATURE), or publish to another table"
        )
    mode = properties.get("delta.columnMapping.mode", "none").lower()
    if mode == "id" or (mode == "name" and any(map(_is_renamed, delta.schema().fields))):
        raise DefinitionError(
            f"table {url} maps its columns (delta.columnMapping.mode is {mode}), so readers would find no values in "
            "Recapture's files: publish to another table"
        )


def require_slice_hours(properties: Mapping[str, str], starts: Iterable[str], url: str, hours: int) -> None:
    """Raise DefinitionError if the slices of the table have another length than `hours`.

    Slices of two lengths would overlap: rows would be published twice, or be lost. A table of an earlier version does
    not record the length; `starts`, the slices that it holds (ISO 8601), then show if it was shorter.
    """
    recorded = properties.get(SLICE_HOURS)
    is_other = recorded is not None and recorded != str(hours)
    if recorded is None:
        is_other = any(start.endswith(":00:00Z") and int(start[11:13]) % hours for start in starts)
    if is_other:
        length = f"slices of {recorded} h" if recorded else "shorter slices"
        raise DefinitionError(
            f"table {url} has {length}, but slice_hours is {hours}, so rows would be published twice or be lost: set "
            "slice_hours as it was, publish to another table (output.table), or start the pipeline's tables anew "
            "(docs/changes.md, What is refused)"
        )


def retention_of(properties: Mapping[str, str]) -> timedelta:
    """Return the age from which a vacuum deletes files that no version names; zero if the property is not readable."""
    text = properties.get("delta.deletedFileRetentionDuration")
    if text is None:
        return RETENTION
    parts = re.findall(r"(\d+)\s+(week|day|hour|minute|second)s?\b", text.lower())
    return sum((timedelta(**{f"{unit}s": int(number)}) for number, unit in parts), timedelta())


def _is_renamed(column: Field) -> bool:
    """Return whether a column has another name in the files."""
    return column.metadata.get("delta.columnMapping.physicalName", column.name) != column.name
