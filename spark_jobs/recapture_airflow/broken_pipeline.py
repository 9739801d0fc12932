"""How Airflow lists a pipeline file that cannot be loaded among its import errors."""

from collections.abc import Iterable
from pathlib import Path

from airflow.exceptions import SerializationError
from airflow.sdk import DAG


class PipelineFileError(SerializationError):
    """A pipeline file cannot be loaded. The message is that of the DefinitionError."""


MARK = f"{__name__}.{PipelineFileError.__name__}: "
"""What precedes the message in the text of an import error."""


class BrokenPipeline(DAG):
    """A stand-in for the DAGs of a pipeline file that cannot be loaded. Airflow never stores it.

    Airflow stores DAGs after it has loaded all of a DAG file. Then this one raises the error, and Airflow lists it
    under the file that the DAG names: the pipeline file. If the DAG file raised the error instead, or were named,
    Airflow would run none of its DAGs.
    """

    def __init__(self, number: int, file: Path, dag_file: Path, message: str) -> None:
        # Airflow requires a path in the bundle, and the pipeline file may be elsewhere.
        self._file = file if file.is_relative_to(dag_file.parent) else dag_file.with_name(file.name)
        self._message = message
        super().__init__(f"broken_pipeline_{number}", schedule=None)

    def get_serialized_fields(self) -> Iterable[str]:
        """Raise PipelineFileError. Airflow calls this to store the DAG."""
        raise PipelineFileError(self._message)

    @property
    def fileloc(self) -> str:
        """Path of the pipeline file."""
        return str(self._file)

    @fileloc.setter
    def fileloc(self, value: str | None) -> None:
        """Keep the pipeline file. Airflow sets the DAG file."""
