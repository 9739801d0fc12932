"""Read and replace the files of a Delta table in which each slice holds at most one file.

The table's snapshot says what a slice holds. The snapshot comes from the newest checkpoint and the few commits after
it, so its cost does not grow with the number of commits.
"""

import json
import os
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Field
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from recapture.errors import RunError
from recapture.storage import Container, delta_storage_options, delta_table_uri, open_container
from recapture.storage.delta import refusal_of_delta
from recapture.table.change_feed import PROPERTY as FEED
from recapture.table.change_feed import SliceFiles, UnreadableFileError, needs_change_files, write_change_files
from recapture.table.log import Action, Added, ChangeFile, Removed, statistics, write_commit
from recapture.table.schema import SLICE_COLUMN, new_columns, partition_values, schema_of
from recapture.table.snapshot import File, HeldFile, Snapshot
from recapture.table.writable import PIPELINE, SLICE_HOURS, require_slice_hours, require_writable, retention_of

METADATA = "recapture"
"""Key of Recapture's entry in a commit's metadata."""
PROPERTIES: dict[str, str | None] = {"delta.checkpointInterval": "5"}
"""Properties of a new table. To open it, one checkpoint and at most four commits are read, each twice."""
CLAIMS = 10
"""Maximum number of attempts to claim a table while other writers commit first."""
TRY_LATER = "run the same command again when they are done"


@dataclass(frozen=True)
class Table:
    """Place and schema of a Delta table."""

    url: str
    schema: pa.Schema
    """Columns of the rows that the pipeline publishes, without slice_start. The table may have fewer, and others."""
    pipeline: str | None = None
    """Name of the pipeline that writes to the table; None if the table is only read."""
    slice_hours: int | None = None
    """Length of its slices in hours; None if the table is only read."""
    change_feed: bool = False
    """Whether the pipeline turns on the table's change data feed. Another program may have turned it on, too."""


class OpenTable:
    """Table as it was when it was last read. Opening it reads it. The table need not exist."""

    whole_in_feed: frozenset[str] = frozenset()
    """Slices whose rows a commit could not compare: the change data feed deletes and inserts all of them."""

    def __init__(self, table: Table, environment: Mapping[str, str] = os.environ) -> None:
        """Read the table with the credentials of the environment. Raise RunError if the storage refuses."""
        self.table = table
        self._columns = table.schema
        """Columns of the files that commits add."""
        self._environment = environment
        self._delta: DeltaTable | None = None
        self._made_snapshot = Snapshot()
        self._known_columns: tuple[int, pa.Schema] | None = None
        """Version of the table, and columns of rows that it needs no other columns for."""
        self._open()

    @property
    def version(self) -> int | None:
        """Return the version of the table; None if it does not exist."""
        return None if self._delta is None else self._delta.version()

    def refresh(self) -> None:
        """Read the table again. Raise RunError if the storage refuses."""
        if self._delta is None:
            self._open()
            return
        with self._refusals():
            self._delta.update_incremental()

    @property
    def _snapshot(self) -> Snapshot:
        """Snapshot of the version that was read last. It is made when it is first asked for."""
        if self._delta is not None and self._delta.version() != self._made_snapshot.version:
            self._made_snapshot = Snapshot.of(self._delta)
        return self._made_snapshot

    @property
    def _container(self) -> Container:
        return open_container(self.table.url, self._environment)

    @property
    def pipeline(self) -> str | None:
        """Return the name of the pipeline that the table belongs to; None if no pipeline has claimed it."""
        return self._properties().get(PIPELINE)

    @property
    def retention(self) -> timedelta:
        """Return the age from which a vacuum deletes files that no version names."""
        return retention_of(self._properties())

    def held(self, slice_starts: Collection[str] | None = None) -> dict[str, tuple[HeldFile, ...]]:
        """Return the files that slices hold, by slice_start; slices that hold nothing are left out. None means all."""
        return self._snapshot.held(slice_starts)

    def slices(self) -> dict[str, dict[str, Any]]:
        """Return all slices that hold a file, in order: its `path`, its `rows` and its `File.values`."""
        return self._snapshot.slices()

    def shown_values(self, columns: Iterable[str]) -> Iterator[tuple[Any, ...]]:
        """Yield slice_start and the values of these columns, for each slice that holds a file and in order.

        The values are those of `File.values`, None for a column that no file shows.
        """
        return self._snapshot.values(columns)

    def slices_since(self, version: int) -> set[str] | None:
        """Return the slices that Recapture's commits after a version changed; None if some are not in the log any more.

        The table must exist. This reads the file of each of these commits.
        """
        assert self._delta is not None
        number = self._delta.version() - version
        with self._refusals():
            commits = self._delta.history(number)
        if len(commits) < number:
            return None
        return {start for commit in commits for start in json.loads(commit.get(METADATA, "{}")).get("slices", ())}

    def replaceable(self, files: Mapping[str, File | None]) -> dict[str, File | None]:
        """Return the slices, with their files, whose file may be added in the commit that removes what they hold.

        Delta does not allow a commit to add and remove the same file. Only a deletion vector makes it another one.
        """
        present = self.held(files).items()
        whole = {start: {file.path for file in held if not file.has_deletions} for start, held in present}
        return {start: file for start, file in files.items() if file is None or file.path not in whole.get(start, ())}

    def commit(self, files: Mapping[str, File | None], metadata: Mapping[str, Any]) -> bool:
        """Replace what the slices hold by their files, in one commit; None empties a slice.

        The slices are all replaceable or all not. If they are not, the commit removes what they hold apart from their
        files. It then also removes a file that must be added again, by the next commit: one whose size or number of
        rows is wrong in the log, or one next to a file with a deletion vector, which cannot be removed by itself.

        Return False if the table must be read again first, because another writer committed or columns were added;
        else True. Raise RunError if the storage refuses; whether the commit took place is then unknown. Raise
        DefinitionError if the table cannot hold the columns of the files. The table must exist.
        """
        assert self._delta is not None
        if replaceable := self.replaceable(files):
            actions: list[AddAction | RemoveAction] = [_add(start, file) for start, file in files.items() if file]
            mode, partitions = (
                "overwrite",
                [(SLICE_COLUMN, "in", [partition_values(start)[SLICE_COLUMN] for start in files])],
            )
        else:
            actions = [_remove(start, held) for start, held in self._others(files)]
            mode, partitions = "append", None
        try:
            if not self._has_columns():
                return False
            with self._refusals():
                if replaceable and (changes := self._write_change_files(files)) is not None:
                    return self._commit_with_changes(files, changes, metadata)
                self._delta.create_write_transaction(
                    actions,
                    mode,
                    self._delta.schema(),
                    partition_by=[SLICE_COLUMN],
                    partition_filters=partitions,
                    commit_properties=CommitProperties({METADATA: json.dumps(metadata)}, max_commit_retries=0),
                )
        except CommitFailedError:
            return False
        return True

    def _write_change_files(self, files: Mapping[str, File | None]) -> dict[str, ChangeFile] | None:
        """Write the change files of the next version, and return them by slice_start.

        None if the table has no change data feed, or if the commit needs no change files or cannot have any.
        """
        assert self.version is not None
        if self._properties().get(FEED, "").lower() != "true":
            return None
        slices, held = {}, self.held(files)
        for start, file in files.items():
            before = held.get(start, ())
            size = sum(other.size for other in before) + (file.size if file else 0)
            slices[start] = SliceFiles([other.path for other in before], file.path if file else None, size)
        if not needs_change_files(slices.values()):
            return None
        try:
            if any(file.has_deletions for shown in held.values() for file in shown):
                raise UnreadableFileError
            written = write_change_files(self._container, self.version + 1, slices, self._rows)
        except UnreadableFileError:
            self.whole_in_feed |= slices.keys()
            return None
        self.whole_in_feed -= slices.keys()
        return {start: ChangeFile(*change, partition_values(start)) for start, change in written.items()}

    def _commit_with_changes(
        self, files: Mapping[str, File | None], changes: Mapping[str, ChangeFile], metadata: Mapping[str, Any]
    ) -> bool:
        """Replace what slices hold in a commit that names change files; the result is as that of `commit`."""
        assert self._delta is not None
        assert self.version is not None
        removed = [
            Removed(other.logged_path, other.size, partition_values(start), start in changes)
            for start, held in self.held(files).items()
            for other in held
        ]
        added = [
            Added(file.path, file.size, partition_values(start), statistics(file.rows, file.values), start in changes)
            for start, file in files.items()
            if file is not None
        ]
        version = self.version + 1
        actions: list[Action] = [*removed, *added, *changes.values()]
        if not write_commit(self._container, version, actions, {METADATA: json.dumps(metadata)}):
            return False
        if (version + 1) % int(self._properties().get("delta.checkpointInterval", 100)) == 0:
            self._delta.update_incremental()
            self._delta.create_checkpoint()
            self._delta.cleanup_metadata()
        return True

    def _others(self, files: Mapping[str, File | None]) -> Iterator[tuple[str, HeldFile]]:
        """Yield the files that slices hold and should not, with slice_start."""
        for start, held in self.held(files).items():
            file = files[start]
            add_again = any(other.has_deletions for other in held)
            for other in held:
                if not other.has_deletions and (add_again or file is None or not other.is_file(file)):
                    yield start, other

    def claim(self, take_over: bool = False, columns: pa.Schema | None = None) -> None:
        """Create the table unless it exists, give it the properties of `Table`, and add new columns.

        `columns` are those of the files that commits will add, None for those of `Table`. If the storage refuses once,
        it is attempted again. Raise DefinitionError as `require_publishable` does, and RunError if the storage refuses
        twice or other writers do not stop.
        """
        self._columns = self.table.schema if columns is None else columns
        has_failed = False
        for _ in range(CLAIMS):
            try:
                if self._delta is None:
                    self.create()
                self.require_writable(take_over)
                has_properties = self._own_properties().items() <= self._properties().items()
                if (has_properties or self._set_properties()) and self._has_columns():
                    return
            except RunError:
                if has_failed:
                    raise
                has_failed = True
            self.refresh()
        raise RunError(f"other writers kept committing to {self.table.url}: {TRY_LATER}")

    def _own_properties(self) -> dict[str, str]:
        """Return the properties that `Table` asks for."""
        feed = "true" if self.table.change_feed else None
        properties = {PIPELINE: self.table.pipeline, SLICE_HOURS: self.table.slice_hours, FEED: feed}
        return {name: str(value) for name, value in properties.items() if value is not None}

    def _set_properties(self) -> bool:
        """Set these properties in a commit; return False if another writer committed since the table was read."""
        assert self._delta is not None
        try:
            with self._refusals():
                self._delta.alter.set_table_properties(
                    self._own_properties(),
                    raise_if_not_exists=False,
                    commit_properties=CommitProperties(max_commit_retries=0),
                )
        except CommitFailedError:
            return False
        self.refresh()
        return True

    def _has_columns(self) -> bool:
        """Return whether the table had the columns of the files; else add them, and the table must be read again.

        Raise DefinitionError if the table cannot hold them.
        """
        assert self._delta is not None
        new = self._new_columns(self._columns) if self._columns else []
        if new:
            with suppress(CommitFailedError), self._refusals():
                self._delta.alter.add_columns(new, commit_properties=CommitProperties(max_commit_retries=0))
        return not new

    def _new_columns(self, columns: pa.Schema) -> list[Field]:
        """Return the columns that the table lacks for rows with these. Raise DefinitionError if it cannot have them."""
        assert self._delta is not None
        version_and_columns = self._delta.version(), columns
        if version_and_columns == self._known_columns:
            return []
        new = new_columns(self._delta, columns, self.table.url)
        if not new:
            self._known_columns = version_and_columns
        return new

    def require_publishable(self, take_over: bool = False) -> None:
        """Raise DefinitionError if the table exists and takes no rows of the pipeline.

        See `table.writable` for who may write to it, and `table.schema` for the columns.
        """
        self.require_writable(take_over)
        if self._delta is not None:
            self._new_columns(self.table.schema)

    def require_writable(self, take_over: bool = False) -> None:
        """Raise DefinitionError if the table exists and the pipeline may not write to it: see `table.writable`."""
        if self._delta is not None:
            require_writable(self._delta, self.table.url, self.table.pipeline, take_over)
        if self.table.slice_hours is not None:
            require_slice_hours(self._properties(), self._snapshot.starts, self.table.url, self.table.slice_hours)

    @property
    def _rows(self) -> pa.Schema:
        """Columns of the table without slice_start."""
        assert self._delta is not None
        columns = pa.schema(self._delta.schema().to_arrow())
        return columns.remove(columns.get_field_index(SLICE_COLUMN))

    def _properties(self) -> Mapping[str, str]:
        return {} if self._delta is None else self._delta.metadata().configuration

    def _open(self) -> None:
        """Read the table if it exists."""
        try:
            with self._refusals():
                self._delta = DeltaTable(
                    delta_table_uri(self.table.url),
                    storage_options=delta_storage_options(self.table.url, self._environment),
                )
        except TableNotFoundError:
            return

    def create(self) -> None:
        """Create the table unless another writer has, and read it. It belongs to the pipeline of `Table`."""
        url = self.table.url
        try:
            with self._refusals():
                self._delta = DeltaTable.create(
                    delta_table_uri(url),
                    schema_of(self._columns),
                    mode="ignore",
                    partition_by=[SLICE_COLUMN],
                    configuration=PROPERTIES | self._own_properties(),
                    raise_if_key_not_exists=False,
                    storage_options=delta_storage_options(url, self._environment),
                    commit_properties=CommitProperties(max_commit_retries=0),
                )
        except TableNotFoundError as error:  # its folder cannot be created
            raise refusal_of_delta(url, error, self._environment) from error
        except (CommitFailedError, RunError):
            self._open()
            if self._delta is None:
                raise

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        """Raise RunError if the storage refuses. A lost race and a table that does not exist keep their own errors."""
        try:
            yield
        except (CommitFailedError, TableNotFoundError):
            raise
        except (DeltaError, OSError) as error:
            raise refusal_of_delta(self.table.url, error, self._environment) from error


def _add(slice_start: str, file: File) -> AddAction:
    """Return the action that adds a slice's file."""
    stats, now = statistics(file.rows, file.values), int(time.time() * 1000)
    return AddAction(file.path, file.size, partition_values(slice_start), now, data_change=True, stats=stats)


def _remove(slice_start: str, held: HeldFile) -> RemoveAction:
    now = int(time.time() * 1000)
    return RemoveAction(held.path, True, now, held.size, {**partition_values(slice_start)})
