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
"""Pipeline files take their places from the environment."""

Held = Mapping[str, Mapping[str, tuple[str, ...]]]
"""By table and slice, the paths of the files; they name the files' contents."""


@dataclass(frozen=True)
class Outcome:
    """What the command did."""

    code: int
    line: str
    """The last line that it printed as an error."""


@dataclass(frozen=True)
class Storage:
    """The sample's archive, and places for tables."""

    azurite: Azurite
    proxy: FaultProxy

    def new_table(self) -> str:
        """Make a container; return the path of a table in it."""
        name = f"curated-{uuid.uuid4().hex[:12]}"
        ContainerClient.from_connection_string(self.azurite.connection_string, name).create_container()
        return f"{name}/telemetry"

    def start(self, table: str, at: Azurite | FaultProxy | None = None) -> subprocess.Popen[str]:
        """Start the command in a session of its own; its storage is behind the proxy, or at another address."""
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
        """Run the command to its end."""
        running = self.start(table, at)
        try:
            _, said = running.communicate(timeout=SECONDS)
        finally:
            session.end(running.pid, patience=0)
        lines = [line for line in said.splitlines() if not line.startswith(("warning:", "Picked up"))]
        return Outcome(running.returncode, f"{len(lines)} lines, {lines[-1]}" if len(lines) > 1 else "".join(lines))

    def environment(self, table: str, at: Azurite | FaultProxy) -> dict[str, str]:
        return {
            "AZURE_STORAGE_CONNECTION_STRING": at.connection_string,
            "RECAPTURE_CONTAINER": f"{at.url}/{CAPTURE}",
            "RECAPTURE_TABLE": f"{at.url}/{table}",
        }

    def held(self, table: str) -> Held:
        """Return what the tables of the pipeline hold, but the times in the publications."""
        with _ENVIRONMENT:
            os.environ |= self.environment(table, self.azurite)
            tables = tables_of(load(DEFINITION))
        held: dict[str, dict[str, tuple[str, ...]]] = {}
        for name, each in tables.others.items():
            opened = OpenTable(each)
            held[name] = opened.paths(opened.slices())
        entries = OpenTable(tables.publications).slices()
        held["publications"] = {start: (str(entry["digest"]),) for start, entry in entries.items()}
        return held


@contextmanager
def storage() -> Iterator[Storage]:
    with sample_storage() as (azurite, _), FaultProxy(azurite) as proxy:
        yield Storage(azurite, proxy)


def shown(held: Held, whole: Held) -> str:
    """Say which tables hold what they are to hold."""
    names = [name for name in whole if whole[name] and held.get(name) == whole[name]]
    wanted = [name for name in whole if whole[name]]
    return "all" if names == wanted else ", ".join(names) or "nothing"
