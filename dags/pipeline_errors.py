"""Defines no DAG: its import error in Airflow is the list of pipeline files that cannot be loaded, and why."""

from pathlib import Path

from pipeline_files import load_all
from recapture.errors import DefinitionError

_, errors = load_all(Path(__file__).parent / "pipelines")
if errors:
    raise DefinitionError("\n".join(errors))
