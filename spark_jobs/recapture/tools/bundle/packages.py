"""The packages of a bundle: Recapture as it is installed here, and what it requires, in the versions installed here."""

import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import recapture
from recapture.errors import DefinitionError, RunError
from recapture.tools.bundle.target import Target

GLIBC = 28
"""Newest minor version of glibc 2 that a package of a bundle may need: that of Red Hat Enterprise Linux 8."""
_OLDEST_GLIBC = 5


def required() -> list[str]:
    """Return the requirements of Recapture without extras, except Spark, which every executor has.

    Raise DefinitionError if the package is not installed.
    """
    try:
        requirements = metadata.requires("recapture") or []
    except metadata.PackageNotFoundError:
        advice = "install it with pip, then make the bundle"
        raise DefinitionError(f"recapture is not installed as a package: {advice}") from None
    return [text for text in requirements if "extra ==" not in text and not text.startswith("pyspark")]


def install(target: Target, requirements: list[str], folder: Path, scratch: Path) -> None:
    """Install wheels for a target, and Recapture itself, in a folder.

    Raise DefinitionError if a package has no wheel for it, and RunError if pip fails for another reason.
    """
    versions: dict[str, str] = {}
    for distribution in metadata.distributions():
        versions.setdefault(distribution.name, distribution.version)
    if "pip" not in versions:
        raise DefinitionError("recapture bundle needs pip in the environment of recapture: run python -m ensurepip")
    constraints = scratch / "constraints.txt"
    constraints.write_text("".join(f"{name}=={version}\n" for name, version in sorted(versions.items())))
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    command += ["--target", str(folder), "--constraint", str(constraints), "--only-binary", ":all:"]
    command += ["--implementation", "cp", "--python-version", target.python]
    for tag in _platforms(target.machine):
        command += ["--platform", tag]
    completed = subprocess.run([*command, *requirements], capture_output=True, text=True, check=False)
    if completed.returncode != 0:
        raise _error(target, completed.stderr)
    shutil.rmtree(folder / "bin", ignore_errors=True)  # scripts for the Python of this command
    source = Path(recapture.__file__).parent
    shutil.copytree(source, folder / source.name, ignore=shutil.ignore_patterns("__pycache__"))


def _platforms(machine: str) -> list[str]:
    """Return the tags of the platforms whose wheels run there, the newest first."""
    numbered = [f"manylinux_2_{minor}_{machine}" for minor in range(GLIBC, _OLDEST_GLIBC - 1, -1)]
    return [*numbered, *(f"{name}_{machine}" for name in ("manylinux2014", "manylinux2010", "manylinux1"))]


def _error(target: Target, output: str) -> DefinitionError | RunError:
    """Return what pip's output says of a bundle."""
    if missing := re.search(r"(?:No matching distribution found for|Cannot install) ([\w.-]+)", output):
        return DefinitionError(
            f"{missing[1]} has no wheel for {target}: install a version here that has one, then make the bundle again"
        )
    errors = re.findall(r"^ERROR: (.*)$", output, re.MULTILINE)
    reason = errors[-1] if errors else (output.strip().splitlines() or ["no output"])[-1]
    advice = "correct the network or pip's configuration, then run the command again"
    return RunError(f"pip cannot install the packages of the bundle: {reason}; {advice}")
