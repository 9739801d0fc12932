"""The pipelines whose pages Airflow serves, and the credentials with which their storage is read."""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated

from airflow.configuration import conf
from fastapi import Depends

import storage_connection
from pipeline_files import load_all
from recapture.errors import DefinitionError
from recapture.tools.coverage.ranges import shown_parameter
from recapture.tools.coverage.reading import CoverageReader

Environment = Annotated[Mapping[str, str], Depends(storage_connection.environment)]


def reader_of(name: str) -> CoverageReader:
    """Return the reader of a pipeline. Raise DefinitionError if there is none with this name."""
    known, _ = readers()
    if name not in known:
        raise DefinitionError(
            f"no pipeline file under {_folder()} is named {shown_parameter(name)}: see the import errors of the DAGs"
        )
    return known[name]


def readers() -> tuple[dict[str, CoverageReader], list[str]]:
    """Return the reader of each pipeline, by name, and the errors of the other files."""
    states = ((path, path.stat()) for path in sorted(_folder().rglob("*")) if path.is_file())
    return _readers_of(tuple((path, status.st_mtime_ns, status.st_size) for path, status in states))


@lru_cache(maxsize=1)
def _readers_of(files: tuple[tuple[Path, int, int], ...]) -> tuple[dict[str, CoverageReader], list[str]]:
    """Return the readers of these files with their times and sizes: they are read again when one changes."""
    pipelines, errors = load_all(_folder())
    return {pipeline.name: CoverageReader(pipeline) for pipeline in pipelines}, errors


def _folder() -> Path:
    return Path(conf.get("core", "dags_folder")) / "pipelines"
