"""Run the command in a process of its own."""

import json
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

from benchmarks.world import START


def recapture(name: str, file: Path, begin: int, end: int, *more: str) -> dict[str, Any]:
    """Run a command of `recapture` for these hours of a world, and return what it prints as JSON."""
    bounds = [(START + timedelta(hours=hour)).isoformat() for hour in (begin, end)]
    arguments = ["-m", "recapture.cli", name, str(file), "--from", bounds[0], "--to", bounds[1], *more, "--json"]
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"recapture {name} failed: {done.stderr[-2000:]}")
    printed: dict[str, Any] = json.loads(done.stdout)
    return printed
