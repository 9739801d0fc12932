"""Plan runs of another query or of other tolerances, whose rows and run files stay in a local folder."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from recapture.archive.definitions import ArrivalTime
from recapture.definition.pipeline import Pipeline
from recapture.definition.sections import Job
from recapture.errors import DefinitionError
from recapture.formats.reference_data import ReferenceInput
from recapture.formats.sections import AnyInput
from recapture.process.regular_files import read_regular
from recapture.run.plan import begin_run, pinned, require_runnable_scripts
from recapture.run_files.computed import Computed
from recapture.run_files.planned import PlannedRun
from recapture.table.snapshot import File
from recapture.time_model.slices import Slice
from recapture.tools.diff.document import Other, ranges_of
from recapture.tools.diff.files import StoredFile

MAX_QUERY_BYTES = 1 << 20


@dataclass(frozen=True)
class Tried:
    """What is tried instead of the settings in the pipeline file; None for what stays as it is."""

    query: Path | None = None
    """File with the query."""
    late_seconds: int | None = None
    out_of_order_seconds: int | None = None
    policy: str | None = None
    """Adjust or Drop."""
    arrival_time: ArrivalTime | None = None

    @property
    def settings(self) -> dict[str, Any]:
        """What differs, in JSON types; empty if nothing is tried."""
        values = {name: getattr(self, name) for name in ("late_seconds", "out_of_order_seconds", "policy")}
        values["query"] = None if self.query is None else str(self.query)
        return {name: value for name, value in values.items() if value is not None}


def tried_pipeline(pipeline: Pipeline, tried: Tried, folder: Path) -> Pipeline:
    """Return the pipeline with what is tried, and with tables in a folder.

    Raise DefinitionError if a setting is out of its range, or if the query cannot be read, does not compile, or calls a
    script that cannot run.
    """
    settings = tried.settings
    if tried.query is not None:
        settings["query"] = _query(tried.query)
    job = _job(pipeline.job, settings)
    outputs = tuple(
        output.model_copy(update={"table": (folder / str(number) / "table").as_uri()})
        for number, output in enumerate(pipeline.outputs)
    )
    inputs = tuple(_read_by(section, tried.arrival_time) for section in pipeline.all_inputs)
    changed = pipeline.with_sections(job=job, all_inputs=inputs, outputs=outputs)
    try:
        _ = changed.query
    except DefinitionError as error:
        raise DefinitionError(f"{tried.query}: {error}") from error
    require_runnable_scripts(changed)
    return changed


def try_slices(tried: Pipeline, slices: Sequence[Slice], compute: Callable[[PlannedRun], Computed]) -> Other:
    """Compute the rows of slices with a pipeline of `tried_pipeline`, and return where they are.

    Errors are those of planning and of computing a run.
    """
    tables = {output.alias: output.table for output in tried.outputs}
    files = {}
    for range_ in ranges_of(slices):
        run = begin_run(tried, pinned(tried, range_))
        for staged in compute(run).staged:
            stored = StoredFile(tables[staged.output], File(staged.path, staged.size, staged.rows))
            files[staged.output, staged.slice_start] = stored
    return Other(files, {output.alias: tried.compiled(output).group_columns for output in tried.outputs})


def _read_by(section: AnyInput, arrival_time: ArrivalTime | None) -> AnyInput:
    """Return an input with another arrival time; reference data stays as it is. Raise DefinitionError if it cannot."""
    if arrival_time is None or isinstance(section, ReferenceInput):
        return section
    changed = section.model_copy(update={"arrival_time": arrival_time})
    for key, reason in changed.conflicts():
        raise DefinitionError(f"input {section.alias}: {key}: {reason}")
    return changed


def _job(job: Job, settings: Mapping[str, Any]) -> Job:
    names = {name: field.alias or name for name, field in Job.model_fields.items()}
    try:
        return Job.model_validate(job.model_dump(by_alias=True) | {names[name]: settings[name] for name in settings})
    except ValidationError as error:
        reasons = (f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in error.errors())
        raise DefinitionError("; ".join(reasons)) from error


def _query(file: Path) -> str:
    try:
        content = read_regular(file, MAX_QUERY_BYTES + 1)
        query = content.decode("utf-8-sig")
    except OSError as error:
        raise DefinitionError(f"{file} cannot be read ({error.strerror}): give the file of a query") from error
    except UnicodeDecodeError as error:
        raise DefinitionError(f"{file} is not UTF-8 text: give the file of a query, saved as UTF-8") from error
    if len(content) > MAX_QUERY_BYTES:
        raise DefinitionError(f"{file} is larger than {MAX_QUERY_BYTES // 1024} KiB: give the file of a query")
    return query
