"""Airflow in a process of its own: the dags folder as the DAG processor reads it."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.paths import ROOT

Parse = Callable[[Path], dict[str, Any]]

PARSE = """
import json, os, sys
from pathlib import Path
import structlog
from airflow.dag_processing.processor import DagFileParseRequest, _parse_file

answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

def answer(folder):
    os.environ["AIRFLOW__CORE__DAGS_FOLDER"] = str(folder)
    dags, errors = [], {}
    for file in sorted(folder.glob("*.py")):
        parsed = _parse_file(
            DagFileParseRequest(file=str(file), bundle_path=folder, bundle_name="dags-folder"), structlog.get_logger()
        )
        dags += [dag.data["dag"] for dag in parsed.serialized_dags]
        errors |= parsed.import_errors
    heavy = sorted({name.split(".")[0] for name in sys.modules} & {"pyspark", "great_expectations"})
    print(json.dumps({"dags": dags, "errors": errors, "heavy": heavy}), file=answers, flush=True)

for line in sys.stdin:
    child = os.fork()
    if not child:
        answer(Path(line.strip()))
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        sys.exit("a folder was not parsed")
"""
"""Loads Airflow once, and forks a process for each folder, as the DAG processor forks one for each file."""


@pytest.fixture(scope="session")
def parse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parse]:
    home = tmp_path_factory.mktemp("airflow")
    env = os.environ | {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "PYTHONPATH": str(ROOT),
        "RECAPTURE_CONTAINER": "https://account.blob.core.windows.net/capture",
        "RECAPTURE_TABLE": "https://account.blob.core.windows.net/curated/telemetry",
    }
    log = home / "log"
    with (
        log.open("wb") as standard_error,
        subprocess.Popen(
            [sys.executable, "-c", PARSE],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=standard_error,
            text=True,
        ) as parser,
    ):
        assert parser.stdin is not None
        assert parser.stdout is not None
        folders, answers = parser.stdin, parser.stdout

        def run(folder: Path) -> dict[str, Any]:
            folders.write(f"{folder}\n")
            folders.flush()
            answer = answers.readline()
            assert answer, log.read_text()
            parsed: dict[str, Any] = json.loads(answer)
            return parsed

        yield run
        folders.close()
