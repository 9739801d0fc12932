"""What a bundle holds compiled, so that executors need not compile it: Python's bytecode, and Numba's machine code."""

import compileall
import os
import py_compile
import subprocess
import sys
import tempfile
from pathlib import Path

from recapture.errors import RunError
from recapture.tools.bundle.target import Machine

CPU = {Machine.X86_64: "x86-64-v2", Machine.AARCH64: "generic"}
"""The processor, in LLVM's terms, that compiled code needs. NumPy needs no less."""


def numba_environment(machine: Machine) -> dict[str, str]:
    """Return the variables with which Numba compiles for any processor of this kind, and finds what it compiled."""
    return {"NUMBA_CPU_NAME": CPU[machine], "NUMBA_CPU_FEATURES": ""}


def compile_packages(packages: Path, machine: Machine) -> None:
    """Compile packages for the Python and the kind of processor that run this.

    Numba keeps machine code next to the functions of Recapture. It finds it again as long as their files keep their
    sizes and times.
    """
    unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
    compileall.compile_dir(packages, quiet=2, workers=0, invalidation_mode=unchecked)
    variables = os.environ | {"PYTHONPATH": str(packages)} | numba_environment(machine)
    variables.pop("NUMBA_CACHE_DIR", None)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "recapture.tools.bundle.warm_up", folder]
        completed = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    if completed.returncode != 0:
        reason = (completed.stderr.strip().splitlines() or ["no output"])[-1]
        raise RunError(f"the functions of the bundle cannot be compiled: {reason}")
