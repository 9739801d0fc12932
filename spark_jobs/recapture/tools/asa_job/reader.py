"""Read an ASA job from a path: a project, an ARM template, what Terraform shows, or a Fabric eventstream."""

import os
from pathlib import Path

from recapture.errors import DefinitionError
from recapture.tools.asa_job import query_text
from recapture.tools.asa_job.capture import Captures
from recapture.tools.asa_job.documents import parse_json
from recapture.tools.asa_job.eventstream import EVENTSTREAM_FILE, is_eventstream, read_eventstream
from recapture.tools.asa_job.folder import JobFolder, read_text
from recapture.tools.asa_job.job import AsaJob
from recapture.tools.asa_job.project import read_project
from recapture.tools.asa_job.template import read_template, read_template_captures
from recapture.tools.asa_job.terraform import ADVICE, is_terraform, read_terraform, read_terraform_captures

PROJECT_FILE = "asaproj.json"
MAX_PARTS = 60
"""Largest number of inputs, of outputs and of functions of a job."""
MAX_QUERY = 512 * 1024
"""Largest number of characters of a query."""


def read_job(path: Path, name: str | None = None) -> AsaJob:
    """Return the job at a path. `name` chooses one of several jobs in a template.

    Raise DefinitionError if there is no job that can be read, or if the job is too large.
    """
    try:
        job = _read(path, name)
    except RecursionError:
        raise DefinitionError(f"{path.name}: JSON is nested too deeply") from None
    check_size(job)
    return job


def check_size(job: AsaJob) -> None:
    """Raise DefinitionError if the job is too large."""
    for kind, parts in (
        ("inputs", job.inputs),
        ("outputs", job.outputs),
        ("functions", job.functions),
        ("outputs in its query", query_text.outputs(job.query)),
    ):
        if len(parts) > MAX_PARTS:
            raise DefinitionError(f"{job.origin}: the job has {len(parts):,} {kind}: at most {MAX_PARTS} are supported")
    if len(job.query) > MAX_QUERY:
        raise DefinitionError(
            f"{job.query_where}: the query has {len(job.query):,} characters: at most {MAX_QUERY:,} are supported"
        )


def read_captures(path: Path) -> Captures:
    """Return what an ARM template or Terraform's state says about Capture.

    Raise DefinitionError if it cannot be read or says nothing.
    """
    document = parse_json(read_text(path, path.name), path.name)
    terraform = is_terraform(document)
    captures = read_terraform_captures(document, path.name) if terraform else read_template_captures(path, document)
    if captures == Captures():
        raise DefinitionError(
            f"{path.name}: has no event hub whose Capture is on, and no dataset of Avro files: export the template of "
            "the namespace or of the data factory"
        )
    return captures


def _read(path: Path, name: str | None) -> AsaJob:
    if not os.path.exists(path):
        raise DefinitionError(f"{path}: there is no such file or folder")
    if path.is_dir():
        path = _project_file(path)
    if path.name.lower() == PROJECT_FILE or path.suffix.lower() == ".asaproj":
        return read_project(path)
    if path.suffix.lower() == ".bicep":
        raise DefinitionError(f"{path}: a Bicep file: build a template from it with az bicep build --file {path.name}")
    if path.suffix.lower() == ".tf":
        raise DefinitionError(f"{path}: a Terraform file: {ADVICE}")
    if path.suffix.lower() == ".asaql":
        raise DefinitionError(f"{path}: a query without its job: run recapture check-query, or name the job's folder")
    if path.suffix.lower() != ".json":
        raise DefinitionError(
            f"{path}: not an ASA job: name a project's folder or file, an ARM template, Terraform's state or an "
            "eventstream (.json)"
        )
    document = parse_json(read_text(path, path.name), path.name)
    if is_terraform(document):
        return read_terraform(path, name)
    if is_eventstream(document):
        return read_eventstream(path, document)
    return read_template(path, name)


def _project_file(folder: Path) -> Path:
    """Return the project file in a folder. Raise DefinitionError if there is none, or more than one .asaproj."""
    for name in (PROJECT_FILE, EVENTSTREAM_FILE):
        if JobFolder(folder).has(name):
            return folder / name
    projects = sorted(folder.glob("*.asaproj"))
    if len(projects) == 1:
        return projects[0]
    if projects:
        listed = ", ".join(project.name for project in projects)
        raise DefinitionError(f"{folder}: has several projects, {listed}: name one of these files")
    if any(folder.glob("*.tf")):
        raise DefinitionError(f"{folder}: a folder of Terraform files: {ADVICE}")
    raise DefinitionError(
        f"{folder}: not an ASA project: it has no {PROJECT_FILE} and no .asaproj; for an ARM template, name its file"
    )
