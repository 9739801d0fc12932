"""The published Delta table: one commit replaces exactly the slices of a run, or takes them back.

A staged file is named by no commit. A commit's metadata says of every slice which file it holds, which it held
before, and why; `status` and `rollback` read nothing else.
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from deltalake import CommitProperties, DeltaTable, Field, Schema
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.schema import PrimitiveType
from deltalake.transaction import AddAction

from spark_jobs.errors import DefinitionError, RunError
from spark_jobs.query.model import AsaType, OutputColumn
from spark_jobs.storage import delta_storage_options, delta_table_uri, open_container

METADATA = "recapture"
SLICE = "slice_start"
TRIES = 10
REMEMBERED = 10
"""How many publications of a slice rollback can go back."""
_DELTA_TYPES = {
    AsaType.BIGINT: "long",
    AsaType.FLOAT: "double",
    AsaType.TEXT: "string",
    AsaType.DATETIME: "timestamp",
    AsaType.BIT: "boolean",
}


@dataclass(frozen=True)
class Holding:
    """What one slice of the table holds since one commit."""

    slice_start: str
    """ISO 8601, UTC."""
    path: str | None
    """The slice's file; None where a rollback left it empty."""
    size: int
    rows: int
    digest: str
    """Of the slice's input."""
    previous: "Holding | None" = None
    """What it held before, as far back as REMEMBERED."""


@dataclass(frozen=True)
class Commit:
    """One commit of ours, as the table's history tells it."""

    version: int
    time: datetime
    kind: str
    """publish or rollback."""
    run: str
    quality: str
    slices: tuple[Holding, ...]
    metrics: dict[str, dict[str, Any]]
    """By slice_start: the counts of time model, section 5, over all partitions."""


@dataclass(frozen=True)
class Note:
    """What a commit says of its run."""

    run: str
    quality: str
    manifest_digest: str
    query_digest: str
    metrics: dict[str, dict[str, Any]]


def require_columns(url: str, output: Sequence[OutputColumn]) -> None:
    """Raise DefinitionError where the table exists with other columns than the query's."""
    table = _open(url)
    if table is None:
        return
    has = {field.name: _type_name(field) for field in table.schema().fields}
    wants = {field.name: _type_name(field) for field in _schema(output).fields}
    if has == wants:
        return
    differing = [
        f"{name} is {has.get(name, 'absent')} in the table and {wants.get(name, 'absent')} in the query"
        for name in [*wants, *(name for name in has if name not in wants)]
        if has.get(name) != wants.get(name)
    ]
    raise DefinitionError(
        f"the table {url} has other columns than the query: {'; '.join(differing)}; publish to a new table"
    )


def publish(url: str, output: Sequence[OutputColumn], holdings: Sequence[Holding], note: Note) -> tuple[int, bool]:
    """Let the slices hold these files, in one commit; the table's version then, and whether anything changed.

    A slice that already holds its file is left alone. Raises RunError where another writer kept winning.
    """

    def change(table: DeltaTable) -> list[Holding]:
        held = _held(table)
        changed = []
        for holding in holdings:
            before = held.get(holding.slice_start)
            if before is None or before.path != holding.path:
                changed.append(_after(holding, before))
        return changed

    return _commit(url, output, "publish", change, note)


def rollback(url: str, output: Sequence[OutputColumn], slice_starts: Sequence[str], run: str) -> tuple[int, list[str]]:
    """Give the slices back what they held before; the table's version then, and the slices that changed.

    Raises RunError where a slice was never published, or where a file that it held was removed since.
    """
    table = _open(url)
    held = {} if table is None else _held(table)
    unknown = [start for start in slice_starts if start not in held or held[start].path is None]
    if unknown:
        raise RunError(f"nothing is published for slice {unknown[0]} in {url}: see recapture status")
    folder = open_container(url)
    for start in slice_starts:
        before = held[start].previous
        if before is not None and before.path is not None and not any(folder.list(before.path)):
            raise RunError(
                f"{before.path}, which slice {start} held before, is gone from {url}, by a vacuum perhaps: "
                "backfill the slice again instead"
            )

    def change(table: DeltaTable) -> list[Holding]:
        current = _held(table)
        return [current[start].previous or Holding(start, None, 0, 0, "") for start in slice_starts]

    version, _ = _commit(url, output, "rollback", change, Note(run, "rolled back", "", "", {}))
    return version, list(slice_starts)


def history(url: str) -> list[Commit]:
    """Our commits, oldest first; none where there is no table."""
    table = _open(url)
    if table is None:
        return []
    return _commits(table)


def current(url: str) -> dict[str, tuple[Holding, Commit]]:
    """What each slice holds now and the commit that put it there, by slice_start."""
    holds = {holding.slice_start: (holding, commit) for commit in history(url) for holding in commit.slices}
    return {start: (holding, commit) for start, (holding, commit) in sorted(holds.items()) if holding.path}


def _commit(
    url: str,
    output: Sequence[OutputColumn],
    kind: str,
    change: Callable[[DeltaTable], list[Holding]],
    note: Note,
) -> tuple[int, bool]:
    """Commit what `change` makes of the newest table; when another writer was faster, of the one it left behind."""
    require_columns(url, output)
    for attempt in range(TRIES):
        table = _open(url) or _create(url, output)
        changed = change(table)
        if not changed:
            return table.version(), False
        metadata = {
            "kind": kind,
            "run": note.run,
            "quality": note.quality,
            "manifest": note.manifest_digest,
            "query": note.query_digest,
            "read_version": table.version(),
            "slices": [asdict(holding) for holding in changed],
            "metrics": note.metrics,
        }
        try:
            table.create_write_transaction(
                [_add(holding) for holding in changed if holding.path],
                "overwrite",
                table.schema(),
                partition_by=[SLICE],
                partition_filters=[(SLICE, "in", [_partition_value(holding.slice_start) for holding in changed])],
                commit_properties=CommitProperties({METADATA: json.dumps(metadata)}, max_commit_retries=0),
            )
        except CommitFailedError:
            time.sleep(0.1 * 2**attempt)
            continue
        except DeltaError as error:
            raise RunError(f"the table {url} could not be committed to: {str(error).splitlines()[0]}") from error
        return DeltaTable(delta_table_uri(url), storage_options=delta_storage_options(url)).version(), True
    raise RunError(f"another writer kept committing to {url}: nothing was published; publish again when it is done")


def _after(holding: Holding, before: Holding | None) -> Holding:
    return replace(holding, previous=_recent(before, REMEMBERED))


def _recent(holding: Holding | None, steps: int) -> Holding | None:
    """A holding with so many steps of its past, itself included."""
    if holding is None or not steps:
        return None
    return replace(holding, previous=_recent(holding.previous, steps - 1))


def _held(table: DeltaTable) -> dict[str, Holding]:
    return {holding.slice_start: holding for commit in _commits(table) for holding in commit.slices}


def _commits(table: DeltaTable) -> list[Commit]:
    commits = []
    for entry in reversed(table.history()):
        if METADATA not in entry:
            continue
        metadata = json.loads(entry[METADATA])
        commits.append(
            Commit(
                entry["version"],
                datetime.fromtimestamp(entry["timestamp"] / 1000, UTC),
                metadata["kind"],
                metadata["run"],
                metadata["quality"],
                tuple(_holding(each) for each in metadata["slices"]),
                metadata["metrics"],
            )
        )
    return commits


def _holding(entry: dict[str, Any]) -> Holding:
    previous = entry.pop("previous")
    return Holding(**entry, previous=None if previous is None else _holding(previous))


def _open(url: str) -> DeltaTable | None:
    try:
        return DeltaTable(delta_table_uri(url), storage_options=delta_storage_options(url))
    except TableNotFoundError:
        return None
    except (DeltaError, OSError) as error:
        raise RunError(f"the table {url} cannot be opened: {str(error).splitlines()[0]}") from error


def _create(url: str, output: Sequence[OutputColumn]) -> DeltaTable:
    try:
        return DeltaTable.create(
            delta_table_uri(url),
            _schema(output),
            mode="ignore",
            partition_by=[SLICE],
            storage_options=delta_storage_options(url),
            commit_properties=CommitProperties(max_commit_retries=0),
        )
    except CommitFailedError as error:
        made = _open(url)
        if made is None:
            raise RunError(f"the table {url} cannot be created: {str(error).splitlines()[0]}") from error
        return made
    except (DeltaError, OSError) as error:
        raise RunError(f"the table {url} cannot be created: {str(error).splitlines()[0]}") from error


def _schema(output: Sequence[OutputColumn]) -> Schema:
    fields = [Field(column.name, PrimitiveType(_DELTA_TYPES[column.type])) for column in output]
    return Schema([*fields, Field(SLICE, PrimitiveType("timestamp"))])


def _type_name(field: Field) -> str:
    return field.type.type if isinstance(field.type, PrimitiveType) else str(field.type)


def _add(holding: Holding) -> AddAction:
    assert holding.path is not None
    return AddAction(
        path=holding.path,
        size=holding.size,
        partition_values={SLICE: _partition_value(holding.slice_start)},
        modification_time=int(time.time() * 1000),
        data_change=True,
        stats=json.dumps({"numRecords": holding.rows}),
    )


def _partition_value(slice_start: str) -> str:
    """How Delta spells a timestamp partition: 2026-03-01 10:00:00."""
    return slice_start.replace("T", " ").removesuffix("Z")
