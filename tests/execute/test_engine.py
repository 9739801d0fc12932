"""Which engine computes a query, and on how many cores."""

import os
import re
from pathlib import Path

import pytest

from recapture.errors import DefinitionError
from recapture.evaluate import check
from recapture.execute import engine
from recapture.execute.engine import Engine, chosen_engine, cores_of, engine_of, unattended_engine
from tests.worlds import World


@pytest.mark.parametrize(
    ("named", "needs_spark", "master", "expected"),
    [
        (None, False, "local[*]", Engine.PROCESSES),
        (None, False, "local[2,4]", Engine.PROCESSES),
        (None, False, "spark://host:7077", Engine.SPARK),
        (None, True, "local[*]", Engine.SPARK),
        (None, True, "yarn", Engine.SPARK),
        ("spark", False, "local[*]", Engine.SPARK),
        ("processes", False, "local[*]", Engine.PROCESSES),
        ("processes", False, "yarn", Engine.SPARK),
    ],
)
def test_spark_computes_what_needs_it_and_what_has_another_master(
    named: str | None, needs_spark: bool, master: str, expected: Engine
) -> None:
    assert engine_of(named, needs_spark, master) is expected


def test_a_query_that_needs_spark_refuses_processes_and_says_what_needs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "not_evaluated_because", lambda query: "output aggregates: JOIN")
    pipeline = World(tmp_path).define()
    assert chosen_engine(pipeline, "local[*]") is Engine.SPARK
    assert chosen_engine(pipeline.model_copy(update={"engine": "spark"}), "local[*]") is Engine.SPARK
    reason = "engine: the query needs Spark (output aggregates: JOIN): remove the key, or change the query"
    with pytest.raises(DefinitionError, match=re.escape(reason)):
        chosen_engine(pipeline.model_copy(update={"engine": "processes"}), "local[*]")


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
