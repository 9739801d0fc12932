"""`make backfill` and `make up`: run Azurite and Airflow on this machine with six hours of the sample world."""

import argparse
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from rich.console import Console

from embedded.airflow import USER, Airflow
from embedded.arrivals import set_last_modified
from embedded.azurite import Azurite

PIPELINE = "telemetry"
CAPTURE, CURATED = "capture", "curated"
START = datetime(2026, 3, 1, 6, tzinfo=UTC)
HOURS = 6

console = Console(highlight=False, soft_wrap=True, width=max(100, shutil.get_terminal_size().columns))


@contextmanager
def sample_storage() -> Iterator[tuple[Azurite, dict[str, str]]]:
    """Yield a running Azurite with the sample world and its arrivals in the past, and the pipeline's environment."""
    from recapture.sample import upload_world, world
    from recapture.storage import open_container

    home = Path(tempfile.mkdtemp(prefix="recapture-"))
    workspace, log = home / "azurite", home / "azurite.log"
    try:
        with Azurite(log, workspace) as azurite:
            _environment(azurite)
            _create_containers(azurite)
            arrivals = upload_world(world(START, HOURS), open_container(f"{azurite.url}/{CAPTURE}"))
        set_last_modified(workspace, {(CAPTURE, name): arrival for name, arrival in arrivals.items()})
        console.print(f"{len(arrivals)} blobs of {HOURS} hours from {START:%Y-%m-%d %H:%M} UTC")
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


def _create_containers(azurite: Azurite) -> None:
    from azure.storage.blob import BlobServiceClient

    with BlobServiceClient.from_connection_string(azurite.connection_string) as client:
        for name in (CAPTURE, CURATED):
            client.create_container(name)


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
        _print_result(env["RECAPTURE_TABLE"], report)
    console.print(f"took {time.monotonic() - start:.0f} s")


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
    """Run Airflow and Azurite until Ctrl-C."""
    with sample_storage() as (azurite, env), Airflow(env, schedule=True) as airflow:
        console.print(f"Airflow  {airflow.url}  user {USER}  password {airflow.password}")
        console.print(f"Azurite  {azurite.url}")
        console.print(f"the DAG {PIPELINE} is paused; Ctrl-C stops everything")
        threading.Event().wait()


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
