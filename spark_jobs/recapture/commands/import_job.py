"""Write a pipeline file for an ASA job."""

import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from recapture import printing
from recapture.definition.pipeline import load
from recapture.errors import DefinitionError, RunError
from recapture.tools import asa_job

_OTHER_PLACE = "choose another file with --output"


def run(
    stderr: Console,
    *,
    path: Path | None,
    subscription: str | None,
    group: str | None,
    job: str | None,
    capture: Path | None,
    output: Path | None,
    json: bool,
) -> dict[str, Any]:
    """Write the pipeline file and its scripts, and return the findings, and whether the pipeline is ready to run.

    The job is at a path, where `job` chooses one of several, or in Azure. `capture` is a file with the settings of
    Capture. Without `output`, the file is in this folder, with the job's name.
    """
    read = _job(path, subscription, group, job)
    if capture is not None:
        read = replace(read, captures=read.captures + asa_job.read_captures(capture))
    draft = asa_job.carry_over(read)
    file = output or Path(f"{draft.name}.yaml")
    texts = {file: asa_job.pipeline_text(draft, read.origin)}
    texts |= {file.parent / script_path: script for script_path, script in draft.scripts.items()}
    for target in texts:
        if os.path.lexists(target):
            raise DefinitionError(f"{target} already exists and is not overwritten: {_OTHER_PLACE}")
    for target, text in texts.items():
        try:
            if target != file:
                target.parent.mkdir(exist_ok=True)
            with target.open("x", encoding="utf-8") as out:
                out.write(text)
        except OSError as error:
            raise DefinitionError(f"{target} cannot be written ({error.strerror}): {_OTHER_PLACE}") from error
    if not draft.missing:
        try:
            load(file)
        except DefinitionError as error:
            draft.missing.append(asa_job.Finding(file.name, str(error)))
    if not json:
        printing.print_import(printing.console(), read.name, file, draft)
    scripts = [str(target) for target in texts if target != file]
    findings = {kind: [asdict(finding) for finding in getattr(draft, kind)] for kind in printing.FINDINGS}
    return {"job": read.name, "pipeline": str(file), "scripts": scripts, "ready": not draft.missing, **findings}


def _job(path: Path | None, subscription: str | None, group: str | None, job: str | None) -> asa_job.AsaJob:
    """Return the job at a path or in Azure. Raise DefinitionError unless exactly one place is named."""
    if path is not None and subscription is None and group is None:
        return asa_job.read_job(path, job)
    if path is None and subscription is not None and group is not None and job is not None:
        from recapture.tools.asa_job.azure import read_azure_job  # it loads the clients of Azure

        try:
            return read_azure_job(subscription, group, job)
        except RunError as error:
            raise DefinitionError(str(error)) from error  # its exit code says that nothing is written
    raise DefinitionError(
        "name the job: PATH, or --subscription ID --resource-group NAME --job NAME for a job in Azure"
    )
