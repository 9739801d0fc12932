"""Airflow in a process of its own: the dags folder as the DAG processor reads it."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.dialogue import dialogue
from tests.paths import ROOT

Parse = Callable[[Path], dict[str, Any]]

REPOSITORY = {
    "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
    "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "spark_jobs")]),
    "RECAPTURE_CONTAINER": "https://account.blob.core.windows.net/capture",
    "RECAPTURE_TABLE": "https://account.blob.core.windows.net/curated/telemetry",
}
"""Environment of an Airflow that loads the plugins and the DAGs of the repository."""

PARSE = """
import json, os, sys
from pathlib import Path

answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

import structlog
from airflow.dag_processing.processor import DagFileParseRequest, _parse_file

def answer(folder):
    os.environ["AIRFLOW__CORE__DAGS_FOLDER"] = str(folder)
    dags, errors = [], {}
    for file in sorted(folder.glob("*.py")):
        parsed = _parse_file(
            DagFileParseRequest(file=str(file), bundle_path=folder, bundle_name="dags-folder"), structlog.get_logger()
        )
        dags += [dag.data["dag"] for dag in parsed.serialized_dags]
        for path, error in parsed.import_errors.items():  # before Airflow 3.3, the path is absolute
            errors[str((folder / path).relative_to(folder))] = error
    heavy = sorted({name.split(".")[0] for name in sys.modules} & {"pyspark", "great_expectations"})
    return {"dags": dags, "errors": errors, "heavy": heavy}

answer(Path(sys.argv[1]))  # loads what all folders need
for line in sys.stdin:
    child = os.fork()
    if not child:
        print(json.dumps(answer(Path(json.loads(line)))), file=answers, flush=True)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        sys.exit("a folder was not parsed")
"""
"""Loads Airflow and what the repository's DAGs import once, and forks a process for each folder.

The DAG processor forks one for each file.
"""


@pytest.fixture(scope="session")
def parse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parse]:
    with dialogue(PARSE, tmp_path_factory.mktemp("airflow"), str(ROOT / "dags"), **REPOSITORY) as ask:
        yield lambda folder: dict(ask(str(folder)))
