"""What a task hands over to the cluster that computes its run, and what the cluster says if it cannot."""

from dataclasses import dataclass
from typing import Any

from recapture.run_files.json_file import JsonFile


@dataclass(frozen=True)
class HandedOver:
    """A run that a cluster computes, which cannot read the pipeline file."""

    attempt: str
    """Id of this attempt to compute the run."""
    definition: dict[str, Any]
    """The pipeline; see `definition.packed`."""
    connection: str
    """Name of the connection to the cluster."""
    job: str | None = None
    """Id that the cluster gave to the job; None as long as it is not known."""


@dataclass(frozen=True)
class Failure:
    """Why a cluster could not compute a run."""

    attempt: str
    message: str
    is_final: bool
    """Whether a retry would fail in the same way."""


HANDED_OVER = JsonFile("handed_over.json", HandedOver)
FAILURE = JsonFile("failure.json", Failure)
