"""Read an ASA job from a path: the folder or file of a project, an ARM template, or what Terraform shows."""

import os
from pathlib import Path

from recapture.errors import DefinitionError
from recapture.tools.asa_job import query_text
from recapture.tools.asa_job.documents import parse_json
from recapture.tools.asa_job.folder import JobFolder, read_text
from recapture.tools.asa_job.job import AsaJob
from recapture.tools.asa_job.project import read_project
from recapture.tools.asa_job.template import read_template
from recapture.tools.asa_job.terraform import ADVICE, is_terraform, read_terraform

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
    return job


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
    if path.suffix.lower() != ".json":
        raise DefinitionError(
            f"{path}: not an ASA job: name a project's folder or file, an ARM template or Terraform's state (.json)"
        )
    if is_terraform(parse_json(read_text(path, path.name), path.name)):
        return read_terraform(path, name)
    return read_template(path, name)


def _project_file(folder: Path) -> Path:
    """Return the project file in a folder. Raise DefinitionError if there is none, or more than one .asaproj."""
    if JobFolder(folder).has(PROJECT_FILE):
        return folder / PROJECT_FILE
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
