"""Airflow in a process of its own: the dags folder as the DAG processor reads it."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.paths import ROOT

Parse = Callable[[Path], dict[str, Any]]

PARSE = """
import json, sys
from pathlib import Path
import airflow
import structlog
from airflow.dag_processing.processor import DagFileParseRequest, _parse_file
folder = Path(sys.argv[1])
dags, errors = [], {}
for file in sorted(folder.glob("*.py")):
    parsed = _parse_file(
        DagFileParseRequest(file=str(file), bundle_path=folder, bundle_name="dags-folder"), structlog.get_logger()
    )
    dags += [dag.data["dag"] for dag in parsed.serialized_dags]
    errors |= parsed.import_errors
heavy = sorted({name.split(".")[0] for name in sys.modules} & {"pyspark", "great_expectations"})
print("\\n" + json.dumps({"dags": dags, "errors": errors, "heavy": heavy}))
"""


@pytest.fixture(scope="session")
def parse(tmp_path_factory: pytest.TempPathFactory) -> Parse:
    home = tmp_path_factory.mktemp("airflow")

    def run(folder: Path) -> dict[str, Any]:
        env = os.environ | {
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__CORE__DAGS_FOLDER": str(folder),
            "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "PYTHONPATH": str(ROOT),
            "RECAPTURE_CONTAINER": "https://account.blob.core.windows.net/capture",
            "RECAPTURE_TABLE": "https://account.blob.core.windows.net/curated/telemetry",
        }
        completed = subprocess.run(
            [sys.executable, "-c", PARSE, str(folder)],
            env=env,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert completed.returncode == 0, completed.stderr
        parsed: dict[str, Any] = json.loads(completed.stdout.splitlines()[-1])
        return parsed

    return run
