"""Which engine computes a query, and on how many cores."""

import os
from pathlib import Path

import pytest

from recapture.execute import engine
from recapture.execute.engine import Engine, cores_of, engine_of, unattended_engine


@pytest.mark.parametrize(
    ("named", "master", "expected"),
    [
        (None, "local[*]", Engine.PROCESSES),
        (None, "local[2,4]", Engine.PROCESSES),
        (None, "spark://host:7077", Engine.SPARK),
        ("spark", "local[*]", Engine.SPARK),
        ("processes", "local[*]", Engine.PROCESSES),
        ("processes", "yarn", Engine.SPARK),
    ],
)
def test_spark_computes_what_names_it_and_what_has_another_master(
    named: str | None, master: str, expected: Engine
) -> None:
    assert engine_of(named, master) is expected


@pytest.mark.parametrize(
    ("named", "expected"), [(None, Engine.SPARK), ("spark", Engine.SPARK), ("processes", Engine.PROCESSES)]
)
def test_a_scheduler_uses_spark_unless_the_pipeline_file_names_processes(named: str | None, expected: Engine) -> None:
    assert unattended_engine(named) is expected


@pytest.mark.parametrize(
    ("master", "cores"),
    [
        ("local", 1),
        ("local[3]", 3),
        ("local[2,4]", 2),
        ("local[0]", None),
        ("local-cluster[2,1,1024]", None),
        ("spark://host:7077", None),
        ("yarn", None),
    ],
)
def test_a_master_on_this_machine_has_cores(master: str, cores: int | None) -> None:
    assert cores_of(master) == cores


def test_the_limit_of_a_container_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = tmp_path / "cpu.max"
    monkeypatch.setattr(engine, "_QUOTA", limit)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: range(8), raising=False)
    for text, cores in {"150000 100000\n": 2, "20000 100000\n": 1, "max 100000\n": 8}.items():
        limit.write_text(text)
        assert cores_of("local[*]") == cores
