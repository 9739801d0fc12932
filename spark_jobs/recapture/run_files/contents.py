"""What the stages after the computation leave: the audit, its approval and the outcome of the publication."""

import hashlib
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated

from pydantic import Field, PlainSerializer

from recapture.archive.holes import Hole
from recapture.quality.audit import Audit, Verdict
from recapture.run_files.json_file import JsonFile
from recapture.time_model.ticks import whole_seconds


@dataclass(frozen=True)
class Audited:
    """What the audit of a run said."""

    verdict: Verdict
    reason: str
    """Why the run was stopped; empty if it was not."""
    text: str
    """Checks that were made, each on a line of its own."""
    audit: Annotated[Audit, Field(alias="json")]
    holes: tuple[Hole, ...] = ()
    """What is missing from the archive, or may be."""
    digest: Annotated[str, Field(exclude=True)] = ""
    """Digest of the run file, by which an approval names the audit."""


@dataclass(frozen=True)
class Approved:
    """A person's decision to publish a run that its audit stopped."""

    by: str
    at: Annotated[datetime, PlainSerializer(whole_seconds)]
    reason: str
    audit: str


@dataclass(frozen=True)
class PublishedOutput:
    """An output of a published run; a version is None if its table does not exist."""

    alias: str
    table: str
    version: int | None
    changed: bool
    metrics_table: str
    metrics_version: int | None
    unchanged_slices: int = 0
    """Number of slices that the table held with the same rows already."""


@dataclass(frozen=True)
class QuarantineReason:
    """Number of quarantined rows with the same verdict and reason."""

    verdict: str
    reason: str
    rows: int


@dataclass(frozen=True)
class PublishedQuarantine:
    """The quarantine of a published run."""

    table: str
    version: int | None
    rows: int
    reasons: tuple[QuarantineReason, ...]
    """Most frequent reasons first."""


@dataclass(frozen=True)
class Outcome:
    """What was published of a run."""

    slices: tuple[str, ...]
    """Starts of the slices."""
    quality: str
    """Verdict of the audit, or "approved"."""
    outputs: tuple[PublishedOutput, ...]
    quarantine: PublishedQuarantine
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class PlannedBy:
    """DAG run that planned a run last."""

    dag_id: str
    run_id: str


class _AuditFile(JsonFile[Audited]):
    def stored(self, content: Audited, document: bytes) -> Audited:
        return replace(content, digest=hashlib.sha256(document).hexdigest())


AUDIT = _AuditFile("audit.json", Audited)
APPROVAL = JsonFile("approval.json", Approved)
OUTCOME = JsonFile("outcome.json", Outcome)
PLANNED_BY = JsonFile("dag_run.json", PlannedBy)
