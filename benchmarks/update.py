"""`python -m benchmarks.update`: what an update that finds nothing to do costs after a short and after a long history.

The tables of a pipeline hold all slices up to the last hour, most of them from a few large commits, the last 25 from
one commit each. The tables' logs are in the storage emulator, and the archive of the last 16 days is a local folder:
each of its listings counts as one request. The CPU seconds are the median of several runs of the whole command, each in
a process of its own. The histories take turns, so that both meet the same load of the machine.
"""

import argparse
import hashlib
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from embedded.azurite import Azurite
from recapture.definition.digest import run_definition
from recapture.definition.pipeline import Pipeline, load
from recapture.keep.archived import archived_slices
from recapture.keep.sources import Sources, sources_of
from recapture.run.tables import QUARANTINE, tables_of
from recapture.run_files.changes import Changes, change_record
from recapture.storage import in_parallel, open_container
from recapture.table.delta import OpenTable
from recapture.table.files import folder_of
from recapture.table.publications import ShownEntry
from recapture.table.snapshot import File
from recapture.time_model import ticks
from recapture.time_model.slices import Slice
from tests.storage.fault_proxy import FaultProxy
from tests.table.publishing import on_azurite
from tests.worlds import COUNTS, TELEMETRY

HOUR = timedelta(hours=1)
DAYS = 16
"""Days of the archive: a week that is compared, and a week before it in which late blobs may have their names."""
PARTITIONS = 2
SINGLE = 25
"""Number of commits of one slice each."""


def main(arguments: list[str] | None = None) -> None:
    """Print a line for each length of history."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.update", description=__doc__)
    parser.add_argument("slices", type=int, nargs="*", default=[100, 10_000])
    parser.add_argument("--runs", type=int, default=5, help="runs of each history (default: %(default)s)")
    parsed = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as services:
        worlds = {}
        for number, slices in enumerate(parsed.slices):
            home = Path(folder, str(number))
            home.mkdir()
            azurite = services.enter_context(Azurite(home.with_suffix(".log")))
            worlds[slices] = prepare(home, slices, azurite, services.enter_context(FaultProxy(azurite)))
            worlds[slices].update()  # the first time compiles and caches
        seconds: dict[int, list[float]] = {slices: [] for slices in worlds}
        for _ in range(parsed.runs):
            for slices, world in worlds.items():
                seconds[slices].append(world.update())
        print("   slices  requests to tables  listings of the archive  CPU seconds")
        for slices, world in worlds.items():
            requests, listings = len(world.proxy.requests), _listings(world.pipeline)
            print(f"{slices:9,} {requests:19} {listings:24} {statistics.median(seconds[slices]):12.2f}")


@dataclass(frozen=True)
class World:
    """A pipeline whose tables are up to date."""

    pipeline: Pipeline
    proxy: FaultProxy
    """Proxy of the tables' storage, which knows the requests of the last update."""
    environment: Mapping[str, str] = field(repr=False)

    def update(self) -> float:
        """Run the command, and return its CPU seconds. Its bytecode is cached, as that of an installed package is."""
        self.proxy.clear()
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-m", "recapture.cli", "update", str(self.pipeline.file), "--json"]
        done = subprocess.run(command, env=self.environment, capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        result = json.loads(done.stdout)
        assert not result["due"], result
        return sum(getattr(after, name) - getattr(before, name) for name in ("ru_utime", "ru_stime"))


def prepare(home: Path, slices: int, azurite: Azurite, proxy: FaultProxy) -> World:
    """Return a world whose tables hold this many slices."""
    end = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    _write_archive(home / "capture", end)
    local = _define(home, (home / "tables").as_uri())
    fill(local, slices, end)
    os.environ["AZURE_STORAGE_CONNECTION_STRING"] = azurite.connection_string
    place = on_azurite(azurite)
    _copy_logs(home / "tables", place.url)
    now = ticks.whole_seconds(datetime.now(UTC))
    change_record(open_container(f"{place.url}/aggregates"), lambda _: Changes(checked=now, updated=now))
    pipeline = _define(home, place.url.replace(azurite.url, proxy.url))
    environment = os.environ | {"AZURE_STORAGE_CONNECTION_STRING": proxy.connection_string}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return World(pipeline, proxy, environment)


def fill(pipeline: Pipeline, slices: int, end: datetime) -> None:
    """Make the tables of a pipeline hold this many slices up to `end`, without any file of theirs."""
    tables, sources = tables_of(pipeline), sources_of(pipeline)
    starts = [ticks.from_datetime(end - (slices - number) * HOUR) for number in range(slices)]
    slices_listed = (Slice(start, start + sources.length) for start in starts)
    archived = archived_slices(sources.definition, sources.containers, slices_listed, datetime.now(UTC))
    read = {archived_slice.slice.start: archived_slice.read for archived_slice in archived}
    entries = {ticks.to_text(start): _entry(sources, start, read[start]) for start in starts}
    texts = list(entries)
    many = [texts[first : first + 1000] for first in range(0, len(texts) - SINGLE, 1000)]
    many[-1] = [text for text in many[-1] if text not in texts[-SINGLE:]]
    for name, table in [("", tables.publications), *tables.others.items()]:
        opened = OpenTable(table)
        opened.create()
        for batch in () if name == QUARANTINE else [*many, *([text] for text in texts[-SINGLE:])]:
            files: dict[str, File | None] = {
                text: _file(text, entries[text], of_publications=not name) for text in batch
            }
            assert opened.commit(files, {"slices": batch})
            opened.refresh()


def _entry(sources: Sources, start: int, read: str) -> ShownEntry:
    """Return what is shown of a slice; `read` is the digest of what it read."""
    published = ticks.to_text(start + 2 * sources.length)
    digest = hashlib.sha256(str(start).encode()).hexdigest()
    run = f"{ticks.to_compact_text(start)}-{ticks.to_compact_text(start + sources.length)}-{digest[:12]}"
    parts, empty = json.dumps(sources.parts), json.dumps([QUARANTINE])
    return ShownEntry(run, "passed", published, 1000, 3, digest, None, parts, 0, 0, read, empty)


def _file(text: str, entry: ShownEntry, *, of_publications: bool) -> File:
    start = ticks.from_datetime(datetime.fromisoformat(text))
    path = f"{folder_of(start)}{str(entry.digest)[:16]}-{0:016x}.parquet"
    return File(path, 5000, 1, entry._asdict() if of_publications else {})


def _write_archive(folder: Path, end: datetime) -> None:
    for number in range(DAYS * 24 * 12):
        opened = end - timedelta(minutes=5 * (number + 1))
        for partition in range(PARTITIONS):
            path = folder / f"contoso/telemetry/{partition}/{opened:%Y/%m/%d/%H/%M/%S}.avro"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"a blob")
            written = (opened + timedelta(minutes=5, seconds=3)).timestamp()
            os.utime(path, (written, written))


def _define(home: Path, tables: str) -> Pipeline:
    file = home / "telemetry.yaml"
    sections = {
        "name": "telemetry",
        "input": TELEMETRY,
        "job": {"query": COUNTS, "eventsLateArrivalMaxDelayInSeconds": 600},
        "output": {"alias": "aggregates", "table": f"{tables}/aggregates"},
    }
    file.write_text(json.dumps(sections))
    return load(file)


def _copy_logs(home: Path, url: str) -> None:
    folder = open_container(url)
    files = [path for path in home.rglob("*") if path.is_file()]
    in_parallel(lambda path: folder.write(path.relative_to(home).as_posix(), path.read_bytes()), files)


def _listings(pipeline: Pipeline) -> int:
    """Return the number of prefixes that an update lists in the archive, with the folders of the partitions."""
    (definition,) = run_definition(pipeline).inputs
    now = datetime.now(UTC)
    reach = timedelta(microseconds=definition.longest_write_delay / ticks.TICKS_PER_MICROSECOND)
    first = now - 2 * reach - 2 * HOUR
    return 1 + len(definition.names.prefixes(first, now + HOUR, map(str, range(PARTITIONS))))


if __name__ == "__main__":
    main()
