"""The tables of a pipeline without its runs: files of one row that names its run, and what readers see."""

import json
import os
import threading
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
from azure.storage.blob import ContainerClient
from deltalake import DeltaTable, QueryBuilder

from embedded.azurite import Azurite
from recapture.storage import Container, delta_storage_options, delta_table_uri, open_container
from recapture.storage.address import parse
from recapture.table import publish
from recapture.table.delta import METADATA, Table
from recapture.table.files import write_slice_file
from recapture.table.publications import SCHEMA, Entry, Publication
from recapture.table.publish import Outcome
from recapture.table.snapshot import File
from recapture.time_model import ticks

NINE, TEN, ELEVEN = (f"2024-03-01T{hour:02}:00:00Z" for hour in (9, 10, 11))
ROWS, METRICS, QUARANTINE = "rows", "rows metrics", "@quarantine"
WRITTEN_BY = pa.schema([("run", pa.string())])
NOON = datetime(2024, 3, 1, 12, tzinfo=UTC)


@dataclass(frozen=True)
class Place:
    """A place for the tables of a pipeline."""

    url: str
    names: tuple[str, ...] = (ROWS, METRICS, QUARANTINE)
    schema: pa.Schema = field(default=WRITTEN_BY)
    pipeline: str | None = "telemetry"
    """Name of the pipeline; None for tables of a version that did not record it."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """Values of further columns of the query, the same in every row."""
    change_feed: bool = False
    """Whether the pipeline turns on the change data feeds of the tables but the publications."""
    tables_type: Callable[[Table, Mapping[str, Table]], publish.Tables] = publish.Tables
    """What opens the tables."""

    @property
    def _more(self) -> pa.Table:
        return pa.table({name: [value] for name, value in self.more.items()})

    @property
    def _definition(self) -> str:
        columns = ", ".join(f"{name} {type(value).__name__}" for name, value in self.more.items())
        return f"digest of a query with {columns}" if columns else "query digest"

    @property
    def tables(self) -> publish.Tables:
        return self.tables_of(None)

    def tables_of(self, slice_hours: int | None) -> publish.Tables:
        """Return the tables of a pipeline with slices of this length."""
        schema, writer = pa.schema([*self.schema, *self._more.schema]), (self.pipeline, slice_hours)
        tables = {
            name: Table(self.table_url(name), schema, *writer, change_feed=self.change_feed) for name in self.names
        }
        return self.tables_type(Table(f"{self.url}/publications", SCHEMA, *writer), tables)

    def table_url(self, name: str) -> str:
        return f"{self.url}/{name.replace(' ', '_').strip('@')}"

    def container(self, name: str) -> Container:
        """Return the container of a table."""
        return open_container(self.table_url(name))

    def folder(self, name: str = ROWS) -> Path:
        """Return the folder of a table in a local folder."""
        return Path(self.table_url(name).removeprefix("file://"))

    def publication(
        self,
        run: str,
        start: str = NINE,
        quality: str = "passed",
        but: str | None = None,
        rows: Mapping[str, str] = MappingProxyType({}),
    ) -> Publication:
        """Stage a file in every table `but` one, in which the slice has no rows.

        `rows` has the run that a row names, by table, if that is another run.
        """
        files = {
            name: None if name == but else self._stage(name, run, start, rows.get(name, run)) for name in self.names
        }
        return Publication(run, quality, NOON, digest(run), "manifest digest", self._definition, 7, 2, files)

    def publish(
        self,
        run: str,
        *starts: str,
        quality: str = "passed",
        but: str | None = None,
        rows: Mapping[str, str] = MappingProxyType({}),
        slice_hours: int | None = None,
    ) -> Outcome:
        """Publish a run, of nine o'clock unless other slices are given."""
        slices = {start: self.publication(run, start, quality, but, rows) for start in starts or (NINE,)}
        return publish.publish(self.tables_of(slice_hours), slices)

    def rollback(self, *starts: str, run: str | None = None) -> Outcome:
        return publish.rollback(self.tables, starts or (NINE,), run)

    def shown(self, name: str) -> dict[str, str]:
        """Return what a reader of a table sees: the run that wrote each slice's row."""
        if self.version(name) is None:
            return {}
        url = self.table_url(name)
        opened = DeltaTable(delta_table_uri(url), storage_options=delta_storage_options(url))
        read = QueryBuilder().register("t", opened).execute("SELECT slice_start, run FROM t").read_all()
        rows = pa.table(read).to_pylist()
        runs = {f"{row['slice_start']:%Y-%m-%dT%H:%M:%SZ}": row["run"] for row in rows}
        assert len(runs) == len(rows), "a slice has the rows of one run"
        return dict(sorted(runs.items()))

    def held(self, start: str = NINE) -> dict[str, str | None]:
        """Return the run that a slice holds in each table and in the publications. Only the logs are read."""
        runs = {name: None if path is None else run_of(path) for name, path in self.paths(start).items()}
        return {"publications": self.entry(start).run, **runs}

    def paths(self, start: str = NINE) -> dict[str, str | None]:
        """Return the path of the file that a slice holds in each table but the publications."""
        tables = self.tables
        held = {name: tables.open(table).held([start]).get(start, ()) for name, table in tables.others.items()}
        assert all(len(files) <= 1 for files in held.values()), held
        return {name: files[0].path if files else None for name, files in held.items()}

    def entry(self, start: str = NINE) -> Entry:
        return self.tables.open_publications().entries([start])[start]

    def version(self, name: str) -> int | None:
        return self.tables.open(self.tables.others[name]).version

    def versions(self) -> dict[str, int | None]:
        names = {**self.tables.others, "publications": self.tables.publications}
        return {name: self.tables.open(table).version for name, table in names.items()}

    def _stage(self, name: str, run: str, start: str, row: str) -> File:
        instant = ticks.from_datetime(datetime.fromisoformat(start))
        rows = pa.table({"run": [row]} | {column: [value] for column, value in self.more.items()})
        return File(*write_slice_file(self.container(name), instant, digest(run), rows), 1)


def remove(url: str, path: str) -> None:
    """Delete a file of a table, which Recapture itself never does."""
    address = parse(url)
    if isinstance(address, Path):
        (address / path).unlink()
    else:
        connection = os.environ["AZURE_STORAGE_CONNECTION_STRING"]
        container = ContainerClient.from_connection_string(connection, address.container)
        container.delete_blob(f"{address.prefix}/{path}")


def digest(run: str) -> str:
    """Return the digest of a run's input; 16 characters that a path may hold."""
    return run.replace(" ", "-").rjust(16, "_")


def run_of(path: str) -> str:
    """Return the run that wrote a file."""
    return path.rsplit("/", 1)[1][:16].strip("_").replace("-", " ")


def everywhere(run: str | None) -> dict[str, str | None]:
    """Return what `Place.held` returns if all tables have the slice from one run."""
    return dict.fromkeys((ROWS, METRICS, QUARANTINE, "publications"), run)


def metadata_of(url: str, commits: int) -> list[dict[str, Any]]:
    """Return Recapture's entries in the metadata of a table's newest commits, newest first."""
    opened = DeltaTable(delta_table_uri(url), storage_options=delta_storage_options(url))
    return [json.loads(entry[METADATA]) for entry in opened.history(commits) if METADATA in entry]


def together(*calls: Callable[[], Any]) -> list[Any]:
    """Return what these calls return or raise when they begin at the same moment."""
    outcomes: list[Any] = [None] * len(calls)
    barrier = threading.Barrier(len(calls))

    def call(place: int) -> None:
        barrier.wait()
        try:
            outcomes[place] = calls[place]()
        except Exception as error:
            outcomes[place] = error

    threads = [threading.Thread(target=call, args=(place,)) for place in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


def on_azurite(azurite: Azurite) -> Place:
    """Return a place in a new container. The environment must have the emulator's connection string."""
    name = f"test-{uuid.uuid4().hex}"
    ContainerClient.from_connection_string(azurite.connection_string, name).create_container()
    return Place(f"{azurite.url}/{name}/curated")
