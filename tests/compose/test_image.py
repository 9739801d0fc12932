"""docker/Dockerfile: what Docker sends to the build, who runs, and what the entry point starts."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.compose.context import is_sent, steps
from tests.paths import ROOT

DOCKERFILE = (ROOT / "docker" / "Dockerfile").read_text("utf-8")
IGNORED = (ROOT / ".dockerignore").read_text("utf-8")


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        ("setup.cfg", True),
        ("spark_jobs/recapture/cli.py", True),
        ("docker/entrypoint", True),
        ("docker/azurite/node_modules/azurite/package.json", False),
        ("spark_jobs/recapture/__pycache__/cli.cpython-311.pyc", False),
        ("spark_jobs/recapture/_version.py", False),
        ("spark_jobs/recapture.egg-info/PKG-INFO", False),
        (".venv/bin/python", False),
        (".git/HEAD", False),
        ("tests/conftest.py", False),
    ],
)
def test_docker_sends_what_the_image_needs_and_nothing_else(path: str, sent: bool) -> None:
    assert is_sent(path, IGNORED) == sent


def test_a_pattern_without_slashes_matches_only_at_the_top_and_the_last_match_decides() -> None:
    assert not is_sent("dist/wheel.whl", "dist")
    assert is_sent("a/dist/wheel.whl", "dist")
    assert is_sent("a/keep/b", "a\n!a/keep")
    assert not is_sent("a/keep/b", "!a/keep\na")
    assert not is_sent("a/b/c.log", "**/*.log")
    assert is_sent("a/b/c.logs", "**/*.log")


def test_what_the_image_copies_exists_and_is_sent() -> None:
    copied = [step for step in steps(DOCKERFILE) if step.instruction == "COPY" and not _from_a_stage(step.options)]
    sources = [source for step in copied for source in step.arguments.split()[:-1]]
    assert {"requirements.lock", "spark_jobs", "docker/entrypoint"} <= {*sources}
    for source in sources:
        assert (ROOT / source).exists(), source
        assert is_sent(source, IGNORED), source


def _from_a_stage(options: tuple[str, ...]) -> bool:
    return any(option.startswith("--from=") for option in options)


def test_the_image_is_built_on_one_pinned_image_and_does_not_run_as_root() -> None:
    origins = [step.arguments for step in steps(DOCKERFILE) if step.instruction == "FROM"]
    stages = {origin.split(" AS ")[1] for origin in origins if " AS " in origin}
    outside = [origin.split()[0] for origin in origins if origin.split()[0] not in stages]
    assert len(outside) == 1
    assert re.fullmatch(r"python:3\.11\.\d+-slim-bookworm@sha256:[0-9a-f]{64}", outside[0])
    users = [step.arguments for step in steps(DOCKERFILE) if step.instruction == "USER"]
    assert users == ["50000"], "the user of Airflow's chart"


@pytest.mark.parametrize(
    ("arguments", "started"),
    [
        (["scheduler"], "airflow scheduler"),
        (["airflow", "db", "migrate"], "airflow db migrate"),
        (["bash", "-c", "exec airflow api-server"], "airflow api-server"),
        (["bash", "-c", "echo $NUMBA_CPU_FEATURES $NUMBA_CPU_NAME"], "x86-64-v2|generic"),
        ([], "airflow"),
    ],
    ids=" ".join,
)
def test_the_entry_point_starts_commands_of_airflow_and_programs(
    arguments: list[str], started: str, tmp_path: Path
) -> None:
    program = tmp_path / "airflow"
    program.write_text('#!/bin/sh\necho airflow "$@"\n')
    program.chmod(0o755)
    env = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    command = [str(ROOT / "docker" / "entrypoint"), *arguments]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert re.fullmatch(started, done.stdout.strip())
