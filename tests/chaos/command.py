"""The command on a sample hour in the storage emulator, behind a proxy that can make each request fail."""

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from threading import Lock

from azure.storage.blob import ContainerClient

from embedded import session
from embedded.azurite import Azurite
from embedded.java import java_home
from embedded.main import CAPTURE, PIPELINE, START, sample_storage
from recapture.definition.pipeline import load
from recapture.run.tables import tables_of
from recapture.table.delta import OpenTable
from tests.paths import ROOT
from tests.storage.fault_proxy import FaultProxy

DEFINITION = ROOT / "dags" / "pipelines" / f"{PIPELINE}.yaml"
END = START + timedelta(hours=1)
SECONDS = 900

_ENVIRONMENT = Lock()
"""Lock of the environment, from which a pipeline file takes the urls of its storage."""

Held = Mapping[str, Mapping[str, tuple[str, ...]]]
"""Paths of the files, by table and slice; a path identifies the content of its file."""


@dataclass(frozen=True)
class Outcome:
    """Result of the command."""

    code: int
    line: str
    """Last line that it wrote to standard error."""


@dataclass(frozen=True)
class Storage:
    """The sample's archive, and containers for tables."""

    azurite: Azurite
    proxy: FaultProxy

    def new_table(self) -> str:
        """Make a container; return the path of a table in it."""
        name = f"curated-{uuid.uuid4().hex[:12]}"
        ContainerClient.from_connection_string(self.azurite.connection_string, name).create_container()
        return f"{name}/telemetry"

    def start(self, table: str, at: Azurite | FaultProxy | None = None) -> subprocess.Popen[str]:
        """Start the command in a session of its own, with its storage behind the proxy or at another address."""
        hour = ("--from", START.isoformat(), "--to", END.isoformat())
        return subprocess.Popen(
            [sys.executable, "-m", "recapture.cli", "backfill", str(DEFINITION), *hour, "--json"],
            env=os.environ
            | self.environment(table, at or self.proxy)
            | {"JAVA_HOME": str(java_home()), "PYTHONPATH": str(ROOT), "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, table: str, at: Azurite | FaultProxy | None = None) -> Outcome:
        """Run the command to its end; return its result."""
        running = self.start(table, at)
        try:
            _, errors = running.communicate(timeout=SECONDS)
        finally:
            session.end(running.pid, patience=0)
        lines = [line for line in errors.splitlines() if not line.startswith(("warning:", "Picked up"))]
        return Outcome(running.returncode, f"{len(lines)} lines, {lines[-1]}" if len(lines) > 1 else "".join(lines))

    def environment(self, table: str, at: Azurite | FaultProxy) -> dict[str, str]:
        return {
            "AZURE_STORAGE_CONNECTION_STRING": at.connection_string,
            "RECAPTURE_CONTAINER": f"{at.url}/{CAPTURE}",
            "RECAPTURE_TABLE": f"{at.url}/{table}",
        }

    def held(self, table: str) -> Held:
        """Return what the tables of the pipeline hold, except the times in the publications."""
        with _ENVIRONMENT:
            os.environ |= self.environment(table, self.azurite)
            tables = tables_of(load(DEFINITION))
        held: dict[str, dict[str, tuple[str, ...]]] = {}
        for name, delta_table in tables.others.items():
            files_of_slices = OpenTable(delta_table).held()
            held[name] = {start: tuple(file.path for file in files) for start, files in files_of_slices.items()}
        entries = OpenTable(tables.publications).slices()
        held["publications"] = {start: (str(entry["digest"]),) for start, entry in entries.items()}
        return held


@contextmanager
def storage() -> Iterator[Storage]:
    with sample_storage() as (azurite, _), FaultProxy(azurite) as proxy:
        yield Storage(azurite, proxy)


def shown(held: Held, expected: Held) -> str:
    """Return the names of the tables that hold what is expected, or "all" or "nothing"."""
    names = [name for name in expected if expected[name]]
    published = [name for name in names if held.get(name) == expected[name]]
    return "all" if published == names else ", ".join(published) or "nothing"
