"""`make backfill` and `make up`: run Azurite and Airflow on this machine with the sample world.

`make backfill` publishes six hours of it. With `make up`, the hours end now, and the schedule goes on.
"""

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
from rich.console import Console

from embedded.airflow import USER, Airflow
from embedded.arrivals import set_last_modified
from embedded.azurite import Azurite
from embedded.live import HOUR, LiveWorld, capturing
from embedded.process import CACHE, ROOT

if TYPE_CHECKING:
    from recapture.tools.sample import SampleBlob

PIPELINE = "telemetry"
DEFINITION = ROOT / "dags" / "pipelines" / f"{PIPELINE}.yaml"
CAPTURE, CURATED = "capture", "curated"
REPORT = CACHE / "report.html"
START = datetime(2026, 3, 1, 6, tzinfo=UTC)
HOURS = 6
FOLLOW_SECONDS = 5.0
"""Seconds between two looks at the states of the slices."""

console = Console(highlight=False, soft_wrap=True, width=max(100, shutil.get_terminal_size().columns))


@contextmanager
def sample_storage(blobs: Iterable["SampleBlob"] | None = None) -> Iterator[tuple[Azurite, dict[str, str]]]:
    """Yield a running Azurite with blobs whose arrivals lie in the past, and the pipeline's environment.

    Without `blobs`, it has those of the sample world of `make backfill`.
    """
    from azure.storage.blob import BlobServiceClient

    from recapture.storage import open_container
    from recapture.tools.sample import upload_world, world

    home = Path(tempfile.mkdtemp(prefix="recapture-"))
    workspace, log = home / "azurite", home / "azurite.log"
    try:
        with Azurite(log, workspace) as azurite:
            _environment(azurite)
            with BlobServiceClient.from_connection_string(azurite.connection_string) as client:
                for name in (CAPTURE, CURATED):
                    client.create_container(name)
            arrivals = upload_world(
                world(START, HOURS) if blobs is None else blobs, open_container(f"{azurite.url}/{CAPTURE}")
            )
        set_last_modified(workspace, {(CAPTURE, name): arrival for name, arrival in arrivals.items()})
        first, last = min(arrivals.values()), max(arrivals.values())
        console.print(f"{len(arrivals)} blobs, written from {first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M} UTC")
        with Azurite(log, workspace) as azurite:
            yield azurite, _environment(azurite)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _environment(azurite: Azurite) -> dict[str, str]:
    """Return the environment variables for the pipeline file and the credentials. Set them in this process as well."""
    env = {
        "AZURE_STORAGE_CONNECTION_STRING": azurite.connection_string,
        "RECAPTURE_CONTAINER": f"{azurite.url}/{CAPTURE}",
        "RECAPTURE_TABLE": f"{azurite.url}/{CURATED}/{PIPELINE}",
    }
    os.environ |= env
    return env


def backfill() -> None:
    """Run the DAG for the hours of the sample world, and print the published rows, the metrics and the audit."""
    start = time.monotonic()
    with sample_storage() as (_, env):
        console.print("starting Airflow")
        with Airflow(env, schedule=False) as airflow:
            console.print(f"Airflow is healthy after {time.monotonic() - start:.0f} s")
            airflow.unpause(PIPELINE)
            end = START + timedelta(hours=HOURS)
            run = airflow.trigger(PIPELINE, {"from": START.isoformat(), "to": end.isoformat()})
            airflow.wait(PIPELINE, run)
            report = airflow.result(PIPELINE, run, "report")
        _print_result(env["RECAPTURE_TABLE"], report | {"report": _saved_report(report["run"])})
    console.print(f"took {time.monotonic() - start:.0f} s")


def _saved_report(run: str) -> str:
    """Save the report of a run in the checkout, because its storage stops, and return the address of the file."""
    from recapture.definition.pipeline import load
    from recapture.run_files.planned import files_of

    files = files_of(load(DEFINITION), run)
    content = files.container.read_current(files.name("report.html"))
    assert content is not None, "the DAG run wrote it"
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    REPORT.write_bytes(content)
    return REPORT.as_uri()


def _print_result(url: str, report: dict[str, Any]) -> None:
    """Print the first published rows, and the summary of the run."""
    import pyarrow as pa
    from deltalake import DeltaTable, QueryBuilder

    from recapture import printing
    from recapture.storage import delta_storage_options, delta_table_uri

    table = DeltaTable(delta_table_uri(url), storage_options=delta_storage_options(url))
    query = QueryBuilder().register("published", table)
    count = query.execute("SELECT COUNT(*) AS n FROM published").read_all()["n"][0].as_py()
    first = query.execute(f"SELECT * FROM published ORDER BY 1, 2 LIMIT {printing.SHOWN_ROWS}").read_all()
    printing.print_rows(console, "published", pa.table(first), count)
    printing.print_run(console, report)


def up() -> None:
    """Run Airflow and Azurite until Ctrl-C, with a world that ends now and goes on. Print the states of slices."""
    from recapture.storage import open_container

    world = LiveWorld(datetime.now(UTC))
    with (
        sample_storage(world.written()) as (azurite, env),
        capturing(world.following(), open_container(f"{azurite.url}/{CAPTURE}")),
    ):
        console.print("starting Airflow")
        with Airflow(env, schedule=True) as airflow:
            console.print(f"Azurite  {azurite.url}")
            console.print(f"Airflow  {airflow.url}  user {USER}  password {airflow.password}")
            console.print(f"Look first at the coverage calendar: {airflow.url}/plugin/recapture/recapture/{PIPELINE}/")
            airflow.unpause(PIPELINE)
            bounds = world.start.isoformat(), (world.start + HOUR).isoformat()
            run = airflow.trigger(PIPELINE, dict(zip(("from", "to"), bounds, strict=True)))
            console.print(
                "Airflow backfills the first hour. Then updates compute the others that have ended, in about five "
                "minutes. The audit stops one of them; the calendar says why, and leads to the question whether to "
                "publish it. The newest one waits for Capture, because events may be an hour late. Then there is one "
                "more slice every hour. Ctrl-C stops everything."
            )
            airflow.wait(PIPELINE, run)
            airflow.unpause(f"{PIPELINE}.update")
            _follow(airflow)


def _follow(airflow: Airflow) -> None:
    """Print the state of each slice when it changes, for ever."""
    from recapture.definition.pipeline import load
    from recapture.errors import RecaptureError
    from recapture.run.slice_state import State
    from recapture.time_model import ticks
    from recapture.tools.coverage.activity import Activity
    from recapture.tools.coverage.reading import CoverageReader

    reader, updated = CoverageReader(load(DEFINITION)), Activity(is_updated=True)
    states: dict[int, State] = {}
    while True:
        try:
            slices = reader.read(datetime.now(UTC), activity=updated).slices
        except (RecaptureError, httpx.HTTPError) as error:
            console.print(str(error), markup=False)
            slices = ()
        for slice_ in slices:
            if slice_.state is not states.get(slice_.start):
                hours = f"{ticks.to_datetime(slice_.start):%H:%M} to {ticks.to_datetime(slice_.end):%H:%M} UTC"
                console.print(f"  {hours}  {slice_.state}")
            states[slice_.start] = slice_.state
        airflow.keep_running()
        time.sleep(FOLLOW_SECONDS)


def main() -> int:
    """Run the command and return its exit code. The servers are stopped in every case."""
    parser = argparse.ArgumentParser(prog="embedded", description=__doc__)
    parser.add_argument("command", choices=("backfill", "up"))
    arguments = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        {"backfill": backfill, "up": up}[arguments.command]()
    except KeyboardInterrupt:
        console.print("stopped")
        return 0 if arguments.command == "up" else 130
    except RuntimeError as error:
        console.print(str(error), markup=False)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
