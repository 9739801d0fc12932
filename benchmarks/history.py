"""`python -m benchmarks.history`: what publishing, status and rollback of one hour cost after a long history.

The tables of a pipeline with one output are filled as hourly runs would have filled them: all slices are published, and
the log holds the commits of the last 30 days, after which Delta deletes them. Then they are copied to the storage
emulator, and one more hour is published, shown, published again and rolled back there. The first line is a warm-up.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from embedded.azurite import Azurite
from recapture.storage import in_parallel, open_container
from recapture.table import publish
from recapture.table.delta import OpenTable
from recapture.table.faults import faults_of
from tests.storage.fault_proxy import FaultProxy
from tests.table.publishing import Place, on_azurite

CALLS = ("publish", "status", "publish again", "rollback")
HOUR = timedelta(hours=1)
LOG_HOURS = 30 * 24
MONTH = 31 * 24
"""Slices per commit in the part of the history whose own commits Delta has deleted."""


def main(arguments: list[str] | None = None) -> None:
    """Print a line for each length of history."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.history", description=__doc__)
    parser.add_argument("hours", type=int, nargs="*", default=[10, 10, 100, 1000, 10_000])
    print(f"    slices  commits  largest KiB  {'  '.join(f'{name:14}' for name in CALLS)}")
    with tempfile.TemporaryDirectory() as folder:
        for number, hours in enumerate(parser.parse_args(arguments).hours):
            home = Path(folder, str(number))
            with Azurite(home.with_suffix(".log")) as azurite, FaultProxy(azurite) as proxy:
                costs = measure(home, hours, azurite, proxy)
            logs = sorted((home / "rows" / "_delta_log").glob("*.json"))
            largest = max(file.stat().st_size for file in home.glob("*/_delta_log/*.json"))
            shown = "  ".join(f"{cost.requests:4} in {cost.seconds:4.1f} s" for cost in costs)
            print(f"{hours:10,} {len(logs):8,} {largest / 1024:12,.0f}  {shown}", flush=True)


@dataclass(frozen=True)
class Cost:
    """Cost of one call."""

    requests: int
    seconds: float


def measure(home: Path, hours: int, azurite: Azurite, proxy: FaultProxy, held: int = 0) -> list[Cost]:
    """Write a history of this many hours to `home`; return the cost of each of CALLS for the hour after it.

    `held` is the number of hours whose history `home` already has.
    """
    fill(Place(home.as_uri()), hours, held)
    os.environ["AZURE_STORAGE_CONNECTION_STRING"] = azurite.connection_string
    place = on_azurite(azurite)
    folder, files = open_container(place.url), [path for path in home.rglob("*") if path.is_file()]
    in_parallel(lambda path: folder.write(path.relative_to(home).as_posix(), path.read_bytes()), files)
    os.environ["AZURE_STORAGE_CONNECTION_STRING"] = proxy.connection_string
    proxied = Place(place.url.replace(azurite.url, proxy.url))
    return [_cost(proxy, call) for call in _calls(proxied, _start(hours))]


def fill(place: Place, hours: int, held: int = 0) -> None:
    """Publish the hours from `held` to `hours`, the last one an hour ago, and date the log's files accordingly."""
    ages = {_start(number): (hours - number) * HOUR for number in range(held, hours)}
    early = max(hours - LOG_HOURS, held)
    months = [range(first, min(first + MONTH, early)) for first in range(held, early, MONTH)]
    for numbers in [*months, *(range(number, number + 1) for number in range(early, hours))]:
        starts = [_start(number) for number in numbers]
        staged = in_parallel(lambda start: place.publication(f"run {start}", start), starts)
        publish.publish(place.tables, dict(zip(starts, staged, strict=True)))
        then = (datetime.now(UTC) - ages[starts[-1]]).timestamp()
        for log in Path(place.url.removeprefix("file://")).glob("*/_delta_log"):
            for file in log.iterdir():
                if file.stat().st_mtime > time.time() - 3600:
                    os.utime(file, (then, then))


def _start(number: int) -> str:
    return (datetime(2025, 1, 1, tzinfo=UTC) + number * HOUR).isoformat().replace("+00:00", "Z")


def _calls(place: Place, start: str) -> Iterator[Callable[[], object]]:
    first, second = (place.publication(run, start) for run in ("first", "second"))
    yield lambda: publish.publish(place.tables, {start: first})
    yield lambda: _compare(place)
    yield lambda: publish.publish(place.tables, {start: second})
    yield lambda: publish.rollback(place.tables, [start])


def _compare(place: Place) -> None:
    """Compare every table with the publications, as `recapture status` does."""
    publications, *others = in_parallel(OpenTable, (place.tables.publications, *place.tables.others.values()))
    digests = {start: entry["digest"] for start, entry in publications.slices().items()}
    faults = [faults_of(publications, dict.fromkeys(digests)), *(faults_of(table, digests) for table in others)]
    assert not any(faults), faults


def _cost(proxy: FaultProxy, call: Callable[[], object]) -> Cost:
    proxy.clear()
    began = time.perf_counter()
    call()
    return Cost(len(proxy.requests), time.perf_counter() - began)


if __name__ == "__main__":
    main()
