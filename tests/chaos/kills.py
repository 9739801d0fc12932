"""The command, killed at each stage."""

import os
import signal
from collections.abc import Iterator

from embedded import session
from tests.chaos.command import SECONDS, Held, Storage, shown
from tests.storage.fault_proxy import Answer, Exchange

COMMIT = r"telemetry{}/_delta_log/0{{19}}1\.json$"
MOMENTS = {
    "before it lists the archive": ("list", "^capture", False),
    "before it writes the manifest": ("write", "/manifest.json$", False),
    "after it wrote the manifest": ("write", "/manifest.json$", True),
    "before a task reads its first blob": ("read", r"^capture/.*\.avro$", False),
    "after the first counters": ("write", "/counters/", True),
    "after the first staged file": ("write", r"telemetry/slice_start=.*\.parquet$", True),
    "before staged.json": ("write", "/staged.json$", False),
    "after metrics.json": ("write", "/metrics.json$", True),
    "after audit.json": ("write", "/audit.json$", True),
    "after the first file of the metrics table": ("write", r"telemetry_metrics/slice_start=", True),
    "after the publications were created": ("write", r"publications/_delta_log/0{20}\.json$", True),
    "before the commit to the publications": ("write", COMMIT.format("_publications"), False),
    "after the commit to the publications": ("write", COMMIT.format("_publications"), True),
    "before the commit to the rows": ("write", COMMIT.format(""), False),
    "after the commit to the rows": ("write", COMMIT.format(""), True),
    "before the commit to the metrics": ("write", COMMIT.format("_metrics"), False),
    "after the commit to the metrics": ("write", COMMIT.format("_metrics"), True),
    "after outcome.json": ("write", "/outcome.json$", True),
}


def table(storage: Storage, expected: Held) -> Iterator[str]:
    """Yield a row for each moment."""
    yield "| killed | published then | rerun | its message |"
    yield "|---|---|---|---|"
    for moment, (operation, path, after) in MOMENTS.items():
        target = storage.new_table()
        running = storage.start(target)

        def kill(exchange: Exchange, pid: int = running.pid, after: bool = after) -> Answer | None:
            if after:
                exchange.forward()
            os.killpg(pid, signal.SIGKILL)
            return None

        storage.proxy.inject(kill, operation, path)
        try:
            running.communicate(timeout=SECONDS)
        finally:
            session.end(running.pid, patience=0)
        storage.proxy.clear()
        then = shown(storage.held(target), expected)
        assert running.returncode == -signal.SIGKILL, f"{moment}: ended with {running.returncode}"
        again = storage.run(target)
        equal = "equal" if storage.held(target) == expected else "DIFFERENT"
        yield f"| {moment} | {then} | {again.code}, {equal} | {again.line} |"
