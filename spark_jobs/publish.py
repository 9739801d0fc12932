"""A published Delta table: one commit replaces exactly the slices of a run, or takes them back.

A staged file is named by no commit. A commit's metadata says of every slice which file it holds, which it held
before, and why; `status` and `rollback` read nothing else. Delta has no commit over several tables: those of a
pipeline are committed to one after the other, and the digest that a slice holds in each tells which are done.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
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
KEPT_LOG: dict[str, str | None] = {"delta.enableExpiredLogCleanup": "false"}
"""A table's properties: its commits say what its slices hold, so none is tidied away after a month."""
_DELTA_TYPES = {
    AsaType.BIGINT: "long",
    AsaType.FLOAT: "double",
    AsaType.TEXT: "string",
    AsaType.DATETIME: "timestamp",
    AsaType.BIT: "boolean",
    AsaType.RECORD: "string",
    AsaType.ARRAY: "string",
}


@dataclass(frozen=True)
class Table:
    """Where a Delta table is, and its columns besides slice_start."""

    url: str
    columns: tuple[OutputColumn, ...]
    binary: tuple[str, ...] = ()
    """Columns of bytes, behind the others."""


@dataclass(frozen=True)
class Holding:
    """What one slice of the table holds since one commit."""

    slice_start: str
    """ISO 8601, UTC."""
    path: str | None
    """The slice's file; None where there are no rows, or a rollback left it empty."""
    size: int
    rows: int
    digest: str
    """Of the slice's input; equal in all tables that one run published to."""
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
    """By slice_start: the metrics of time model, section 5, over all partitions and of each."""


@dataclass(frozen=True)
class Note:
    """What a commit says of its run."""

    run: str
    quality: str
    manifest_digest: str
    query_digest: str
    metrics: dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Change:
    """What a stage did to a table."""

    version: int | None
    """The table's version then; None where there is no table."""
    slices: tuple[str, ...]
    """Those that hold something else now; where there are none, nothing was committed."""


def require_columns(table: Table) -> None:
    """Raise DefinitionError where the table exists with other columns."""
    found = _open(table.url)
    if found is not None:
        _require_columns(found, table)


def publish(table: Table, holdings: Sequence[Holding], note: Note) -> Change:
    """Let the slices hold these files, in one commit.

    A slice that already holds its file is left alone, and where there are no files, no table is made. Raises RunError
    where another writer kept winning.
    """

    def change(held: Mapping[str, Holding]) -> Iterator[Holding]:
        for holding in holdings:
            before = held.get(holding.slice_start)
            if (None if before is None else before.path) != holding.path:
                yield _after(holding, before)

    if not any(holding.path for holding in holdings) and _open(table.url) is None:
        return Change(None, ())
    return _commit(table, "publish", change, note)


def rollback(tables: Sequence[Table], slice_starts: Sequence[str], run: str) -> list[Change]:
    """Give the slices back what they held before, in each of the tables; these in the order in which they publish.

    They are taken back in the opposite order, and where tables differ in what a slice holds, because a stage was
    interrupted, only those that are ahead: so this may be run again, and ends where it would have ended.
    Raises RunError where a slice was never published, or where a file that it held was removed since.
    """
    opened = [_open(table.url) for table in tables]
    held = [{} if found is None else _held(found) for found in opened]
    leaving: dict[str, str] = {}
    for start in slice_starts:
        newest = next((of_table[start] for of_table in held if start in of_table and of_table[start].path), None)
        if newest is None:
            raise RunError(f"nothing is published for slice {start} in {tables[0].url}: see recapture status")
        leaving[start] = newest.digest
    for table, of_table in zip(tables, held, strict=True):
        _require_files(table.url, [each.previous for each in _taken_back(of_table, leaving)])

    def change(now: Mapping[str, Holding]) -> Iterator[Holding]:
        for holding in _taken_back(now, leaving):
            yield holding.previous or Holding(holding.slice_start, None, 0, 0, "")

    note = Note(run, "rolled back", "", "", {})
    changes = []
    for table, found in reversed(list(zip(tables, opened, strict=True))):
        changes.append(Change(None, ()) if found is None else _commit(table, "rollback", change, note, found))
    return changes[::-1]


def _taken_back(held: Mapping[str, Holding], leaving: Mapping[str, str]) -> list[Holding]:
    """What of a table a rollback takes away: the slices that hold what came of the input which is to leave."""
    return [held[start] for start, digest in leaving.items() if start in held and held[start].digest == digest]


def _require_files(url: str, previous: Sequence[Holding | None]) -> None:
    folder = open_container(url)
    for holding in previous:
        if holding is not None and holding.path is not None and not any(folder.list(holding.path)):
            raise RunError(
                f"{holding.path}, which slice {holding.slice_start} held before, is gone from {url}, by a vacuum "
                "perhaps: backfill the slice again instead"
            )


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
    table: Table,
    kind: str,
    change: Callable[[Mapping[str, Holding]], Iterator[Holding]],
    note: Note,
    opened: DeltaTable | None = None,
) -> Change:
    """Commit what `change` makes of what the slices hold; when another writer was faster, of what that one left."""
    for attempt in range(TRIES):
        found = opened or _open(table.url) or _create(table)
        opened = None
        _require_columns(found, table)
        changed = list(change(_held(found)))
        if not changed:
            return Change(found.version(), ())
        metadata = {
            "kind": kind,
            "run": note.run,
            "quality": note.quality,
            "manifest": note.manifest_digest,
            "query": note.query_digest,
            "read_version": found.version(),
            "slices": [asdict(holding) for holding in changed],
            "metrics": note.metrics,
        }
        try:
            found.create_write_transaction(
                [_add(holding) for holding in changed if holding.path],
                "overwrite",
                found.schema(),
                partition_by=[SLICE],
                partition_filters=[(SLICE, "in", [_partition_value(holding.slice_start) for holding in changed])],
                commit_properties=CommitProperties({METADATA: json.dumps(metadata)}, max_commit_retries=0),
            )
        except CommitFailedError:
            time.sleep(0.1 * 2**attempt)
            continue
        except DeltaError as error:
            raise RunError(f"the table {table.url} could not be committed to: {str(error).splitlines()[0]}") from error
        return Change(found.version() + 1, tuple(holding.slice_start for holding in changed))
    raise RunError(f"another writer kept committing to {table.url}: publish again when it is done")


def _after(holding: Holding, before: Holding | None) -> Holding:
    """A holding with its past, in which an input has one place: another file of the same takes that of the first."""
    if before is not None and before.digest == holding.digest:
        before = before.previous
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
        _require_listing(url)
        raise RunError(f"the table {url} cannot be opened: {str(error).splitlines()[0]}") from error


def _require_listing(url: str) -> None:
    """Raise RunError where the storage itself is the reason: it names the credential, as delta-rs does not."""
    any(open_container(url).list("_delta_log/"))


def _require_columns(found: DeltaTable, table: Table) -> None:
    has = {field.name: _type_name(field) for field in found.schema().fields}
    wants = {field.name: _type_name(field) for field in _schema(table).fields}
    if has == wants:
        return
    differing = [
        f"{name} is {has.get(name, 'absent')} there and {wants.get(name, 'absent')} here"
        for name in [*wants, *(name for name in has if name not in wants)]
        if has.get(name) != wants.get(name)
    ]
    raise DefinitionError(
        f"the table {table.url} has other columns than what is to be published: {'; '.join(differing)}; "
        "publish to a new table"
    )


def _create(table: Table) -> DeltaTable:
    try:
        return DeltaTable.create(
            delta_table_uri(table.url),
            _schema(table),
            mode="ignore",
            partition_by=[SLICE],
            configuration=KEPT_LOG,
            storage_options=delta_storage_options(table.url),
            commit_properties=CommitProperties(max_commit_retries=0),
        )
    except CommitFailedError as error:
        made = _open(table.url)
        if made is None:
            raise RunError(f"the table {table.url} cannot be created: {str(error).splitlines()[0]}") from error
        return made
    except (DeltaError, OSError) as error:
        raise RunError(f"the table {table.url} cannot be created: {str(error).splitlines()[0]}") from error


def _schema(table: Table) -> Schema:
    fields = [Field(column.name, PrimitiveType(_DELTA_TYPES[column.type])) for column in table.columns]
    fields += [Field(name, PrimitiveType("binary")) for name in table.binary]
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
