"""Read an ASA job as its own tools write it, and carry it over into a pipeline file."""

from recapture.tools.asa_job.carry_over import carry_over
from recapture.tools.asa_job.draft import Draft, Finding
from recapture.tools.asa_job.job import AsaJob
from recapture.tools.asa_job.pipeline_file import pipeline_text
from recapture.tools.asa_job.reader import read_captures, read_job

__all__ = ["AsaJob", "Draft", "Finding", "carry_over", "pipeline_text", "read_captures", "read_job"]
