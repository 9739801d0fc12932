"""The pipelines whose pages Airflow serves, and the credentials with which their storage is read.

Airflow stores the definition of a pipeline with its DAG, because the api-server has no DAG folder.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Annotated

from airflow.models.dag import DagModel, DagTag
from airflow.models.errors import ParseImportError
from airflow.models.serialized_dag import SerializedDagModel
from fastapi import Depends
from sqlalchemy import select
from sqlalchemy.orm import Session

from recapture.definition.packed import unpack
from recapture.errors import DefinitionError
from recapture.run.stages import Stage
from recapture.tools.coverage.ranges import shown_parameter
from recapture.tools.coverage.reading import CoverageReader
from recapture_airflow import storage_connection
from recapture_airflow.broken_pipeline import MARK
from recapture_airflow.dag_forms import DEFINITION

TAG = "recapture"
"""Tag of the DAGs of all pipelines."""
Environment = Annotated[Mapping[str, str], Depends(storage_connection.environment)]


@dataclass(frozen=True)
class StoredPipeline:
    """A pipeline as Airflow stores it."""

    hash: str
    """Digest of the DAG with the definition."""
    reader: CoverageReader
    pool: str
    """Pool in which runs by hand compute slices."""
    files: TemporaryDirectory[str]
    """Folder of the scripts and suites. It is removed with this object."""


_stored: dict[str, StoredPipeline] = {}
"""The pipelines that were read last, by name: their readers keep tables open."""
_reading = Lock()


def pipeline_of(session: Session, name: str) -> StoredPipeline:
    """Return a pipeline. Raise DefinitionError if Airflow stores none with this name."""
    stored = find_pipeline(session, name)
    if stored is None:
        raise DefinitionError(
            f"Airflow has loaded no pipeline named {shown_parameter(name)}: see the import errors of the DAGs"
        )
    return stored


def reader_of(session: Session, name: str) -> CoverageReader:
    """Return the reader of a pipeline. Raise DefinitionError if Airflow stores none with this name."""
    return pipeline_of(session, name).reader


def names(session: Session) -> list[str]:
    """Return the names of the pipelines, in order. The DAG that has the name of its pipeline stores it."""
    tagged = select(DagTag.dag_id).where(DagTag.name == TAG)
    dag_ids = session.scalars(select(DagModel.dag_id).where(DagModel.dag_id.in_(tagged), ~DagModel.is_stale))
    return [dag_id for dag_id in sorted(dag_ids) if find_pipeline(session, dag_id)]


def broken_pipelines(session: Session) -> list[str]:
    """Return the error of each pipeline file that could not be loaded, in the order of the files."""
    errors = session.scalars(select(ParseImportError.stacktrace).order_by(ParseImportError.filename))
    return [text.partition(MARK)[2].strip() for text in errors if text and MARK in text]


def find_pipeline(session: Session, name: str) -> StoredPipeline | None:
    """Return a pipeline, read again if its DAG has changed; None if Airflow stores none with this name."""
    model = SerializedDagModel
    newest = select(model.dag_hash).where(model.dag_id == name).order_by(model.created_at.desc()).limit(1)
    with _reading:
        hash, stored = session.scalar(newest), _stored.get(name)
        if hash is None:
            return None
        if stored is None or stored.hash != hash:
            dag = model.get_dag(name, session=session)
            if dag is None or DEFINITION not in dag.default_args:
                return None
            files = TemporaryDirectory(prefix="recapture-definition-")
            reader = CoverageReader(unpack(dag.default_args[DEFINITION], Path(files.name)))
            pool = dag.get_task(Stage.ORDER_AND_AGGREGATE).pool
            _stored[name] = stored = StoredPipeline(hash, reader, pool, files)
        return stored
