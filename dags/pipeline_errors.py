"""Defines no DAG: its import error in Airflow is the list of pipeline files that cannot be loaded, and why."""

from pathlib import Path

from spark_jobs.errors import DefinitionError
from spark_jobs.pipeline import load

errors: list[str] = []
files: dict[str, str] = {}
for file in sorted((Path(__file__).parent / "pipelines").glob("*.yaml")):
    try:
        name = load(file).name
    except DefinitionError as error:
        errors.append(str(error))
    else:
        if (first := files.setdefault(name, file.name)) != file.name:
            errors.append(f"{file.name}: the pipeline in {first} is named {name} too: rename one")
if errors:
    raise DefinitionError("\n".join(errors))
