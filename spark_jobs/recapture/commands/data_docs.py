"""Write Great Expectations' Data Docs of the audit of a run."""

from pathlib import Path
from typing import Any

from rich.console import Console

from recapture.commands.arguments import load_pipeline
from recapture.definition.pipeline import Pipeline
from recapture.errors import DefinitionError, RunError
from recapture.quality.suites import require_installed
from recapture.run_files.contents import AUDIT
from recapture.run_files.planned import files_of


def run(stderr: Console, *, file: Path, run: str, out: Path, json: bool) -> dict[str, Any]:
    """Write the pages of a run's audit, and return the address of the first one."""
    page = write_data_docs(load_pipeline(file, stderr), run, out).absolute().as_uri()
    if not json:
        print(page)
    return {"run": run, "page": page}


def write_data_docs(pipeline: Pipeline, run: str, folder: Path) -> Path:
    """Write the Data Docs of a run's audit into a new or empty folder, and return the first page.

    Raise RunError if the run was not audited or no suite judged it, and DefinitionError if the folder cannot be written
    to.
    """
    require_installed()
    files = files_of(pipeline, run)
    written = next((blob for blob in files.container.list(files.name(AUDIT.name))), None)
    if written is None or "/" in run:
        raise RunError(f"{run} is not a run with an audit under {files.container.url}: recapture status names runs")
    audit = files.read(AUDIT).audit
    if not audit.validations:
        raise RunError(
            f"no suite judged {run}, and Data Docs show only suites: the run's report has the built-in checks"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise DefinitionError(f"{folder} is not empty: choose another folder with --out")
        from recapture.quality import data_docs

        return data_docs.write(audit, run, written.last_modified, folder)
    except OSError as error:
        raise DefinitionError(f"{folder} cannot be written to ({error.strerror}): choose another with --out") from error
