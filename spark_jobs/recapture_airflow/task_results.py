"""What the tasks of a DAG run give to later ones. Airflow stores it as JSON; each value has one writer and one reader.

After an upgrade, the tasks of a DAG run that is under way read what the version before wrote.
"""

from datetime import datetime
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from recapture.errors import PermanentError
from recapture.run.stages import Stage
from recapture_airflow.run_range import DUE


class _TaskResult(BaseModel):
    model_config = ConfigDict(frozen=True, populate_by_name=True)
    task: ClassVar[str]
    """Task that gives the value."""

    @classmethod
    def read(cls, value: object) -> Self:
        """Return the value that `to_json` wrote. Raise PermanentError if this version does not understand it."""
        try:
            return cls.model_validate(value)
        except ValidationError as error:
            [details, *_] = error.errors(include_url=False)
            where = ".".join(map(str, details["loc"]))
            raise PermanentError(
                f"this version of Recapture cannot read what the task {cls.task} of this DAG run gave: "
                f"{where and f'{where}: '}{details['msg']}; clear the task {cls.task}, so that it runs again"
            ) from None

    def to_json(self) -> dict[str, Any]:
        """Return the value in JSON types, without what was not set."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)


class Due(_TaskResult):
    """The range that an update takes."""

    task = DUE
    start: datetime = Field(validation_alias="from", serialization_alias="from")
    end: datetime = Field(validation_alias="to", serialization_alias="to")
    next: datetime | None
    """Start of the newest slice that the next update may compute at once; None if there is none."""
    job: dict[str, Any]
    """What `keep.job.from_json` reads."""


class AuditResult(_TaskResult):
    """The result of the audit of a run, and after it of the approval."""

    task = Stage.AUDIT
    verdict: str
    """Verdict of the audit, or `approved`."""
    staged: bool = False
    """Whether a person is asked before the run is published, although it passed."""
    text: str = ""
    """Result of every expectation, for people."""
    reason: str = ""
    """Why the audit stopped the run, for people."""


class Stopped(_TaskResult):
    """What the audit says of a run that it stopped, and whose slices other runs may compute."""

    KEY: ClassVar[str] = "stopped"
    """Key of the value, next to the result of the task."""
    task = Stage.AUDIT
    asks: bool
    """Whether a person is to be asked about the run."""

    @classmethod
    def pull(cls, ti: Any) -> Self | None:
        """Return the value in the DAG run of a task instance; None if the audit gave none."""
        value = ti.xcom_pull(task_ids=cls.task, key=cls.KEY)
        return None if value is None else cls.read(value)
