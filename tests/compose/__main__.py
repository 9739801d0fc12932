"""`python -m tests.compose FOLDER`: build the image into FOLDER, start the services of compose.yaml, and backfill.

This needs Linux, root and debootstrap, but not Docker. What FOLDER has from an earlier call is not built again.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

from tests.compose import scenario, stand_ins
from tests.compose.image import build
from tests.paths import ROOT

ISOLATED = ("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
"""Command with namespaces of its own: no service is reached from outside, and all end with it."""


def main() -> int:
    """Build what is missing, and run the scenario in namespaces of its own; return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.compose", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    folder: Path = chosen.folder.resolve()
    if chosen.inside:
        return scenario.run(folder)
    if sys.platform != "linux" or os.geteuid() != 0:
        parser.error("this needs Linux and root: it gives each service a root folder of its own")
    folder.mkdir(parents=True, exist_ok=True)
    base = folder / "base"
    if not base.exists():
        stand_ins.base(base)
    build(ROOT / "docker" / "Dockerfile", base, folder / "stages")
    command = [*ISOLATED, sys.executable, "-m", "tests.compose", str(folder), "--inside"]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
