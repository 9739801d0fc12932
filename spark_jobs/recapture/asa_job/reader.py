"""An ASA job from a path: a project's folder or file, or an ARM template."""

from pathlib import Path

from recapture.asa_job.documents import read_json
from recapture.asa_job.job import AsaJob
from recapture.asa_job.project import read_project
from recapture.asa_job.template import read_template
from recapture.errors import DefinitionError

PROJECT_FILE = "asaproj.json"


def read_job(path: Path, name: str | None = None) -> AsaJob:
    """Read the job at a path; `name` chooses one of several in a template.

    Raises DefinitionError with the file, the place in it and what to do.
    """
    if not path.exists():
        raise DefinitionError(f"{path}: there is no such file or folder")
    if path.is_dir():
        path = _project_file(path)
    if path.name.lower() == PROJECT_FILE or path.suffix.lower() == ".asaproj":
        return read_project(path)
    if path.suffix.lower() == ".bicep":
        raise DefinitionError(f"{path}: a Bicep file: make a template of it, az bicep build --file {path.name}")
    if path.suffix.lower() != ".json":
        raise DefinitionError(f"{path}: neither {PROJECT_FILE}, a project's folder nor an ARM template")
    return read_template(path, read_json(path, path.name), name)


def _project_file(folder: Path) -> Path:
    if (folder / PROJECT_FILE).is_file():
        return folder / PROJECT_FILE
    projects = sorted(folder.glob("*.asaproj"))
    if len(projects) == 1:
        return projects[0]
    if projects:
        listed = ", ".join(project.name for project in projects)
        raise DefinitionError(f"{folder}: holds several projects, {listed}: name one of these files")
    raise DefinitionError(
        f"{folder}: no ASA project: it holds neither {PROJECT_FILE} nor an .asaproj; an ARM template is named itself"
    )
