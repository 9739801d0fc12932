"""Write a pipeline file for an ASA job."""

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from recapture import printing
from recapture.definition.pipeline import load
from recapture.errors import DefinitionError
from recapture.tools import asa_job

_OTHER_PLACE = "choose another file with --output"


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """Arguments of the command."""

    path: Path
    """An ASA project, or the file of an ARM template."""
    job: str | None
    """The job, if a template has several."""
    output: Path | None
    """The file to write; None for a file in this folder with the name of the job."""
    json: bool


def run(arguments: Arguments, stderr: Console) -> dict[str, Any]:
    """Write the pipeline file and its scripts, and return the findings, and whether the pipeline is ready to run."""
    job = asa_job.read_job(arguments.path, arguments.job)
    draft = asa_job.carry_over(job)
    file = arguments.output or Path(f"{draft.name}.yaml")
    texts = {file: asa_job.pipeline_text(draft, job.origin)}
    texts |= {file.parent / path: script for path, script in draft.scripts.items()}
    for path in texts:
        if os.path.lexists(path):
            raise DefinitionError(f"{path} already exists and is not overwritten: {_OTHER_PLACE}")
    for path, text in texts.items():
        _write_new(path, text, in_folder=path != file)
    if not draft.missing:
        try:
            load(file)
        except DefinitionError as error:
            draft.missing.append(asa_job.Finding(file.name, str(error)))
    if not arguments.json:
        printing.print_import(printing.console(), job.name, file, draft)
    scripts = [str(path) for path in texts if path != file]
    findings = {kind: [asdict(finding) for finding in getattr(draft, kind)] for kind in printing.FINDINGS}
    return {"job": job.name, "pipeline": str(file), "scripts": scripts, "ready": not draft.missing, **findings}


def _write_new(path: Path, text: str, *, in_folder: bool) -> None:
    """Write a new file, `in_folder` of its own. Raise DefinitionError if it cannot be written."""
    try:
        if in_folder:
            path.parent.mkdir(exist_ok=True)
        with path.open("x", encoding="utf-8") as out:
            out.write(text)
    except OSError as error:
        raise DefinitionError(f"{path} cannot be written ({error.strerror}): {_OTHER_PLACE}") from error
