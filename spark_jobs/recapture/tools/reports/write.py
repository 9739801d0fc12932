"""Write reports: that of a run next to its run files, that of a range to a file."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from recapture.definition.pipeline import Pipeline
from recapture.errors import AuditError, DefinitionError, RunError
from recapture.run.plan import require_packages
from recapture.run.summary import warnings_of
from recapture.run_files.computed import Computed
from recapture.run_files.contents import Audited
from recapture.run_files.files import REPORT_DOCUMENT, REPORT_PAGE
from recapture.run_files.planned import PlannedRun
from recapture.time_model import ticks
from recapture.tools.reports import sources
from recapture.tools.reports.document import document
from recapture.tools.reports.page import page
from recapture.tools.reports.trend import trend_document
from recapture.tools.reports.trend_page import trend_page
from recapture.tools.reports.trend_source import read_trend


def write_run_report(run: PlannedRun, computed: Computed, audited: Audited, warnings: Sequence[str]) -> str:
    """Write the report of an audited run, with these warnings, to its run files, and return the address of the page."""
    content = document(sources.of_run(run, computed, audited, warnings))
    run.files.container.write(run.files.name(REPORT_DOCUMENT), as_json(content))
    run.files.container.write(run.files.name(REPORT_PAGE), page(content))
    return f"{run.files.container.url}/{run.files.name(REPORT_PAGE)}"


def with_report(
    error: AuditError, run: PlannedRun, computed: Computed, audited: Audited, warnings: Sequence[str] = ()
) -> AuditError:
    """Write the report of a run that its audit stopped, with more `warnings`; return the error with its address."""
    try:
        warnings = [*warnings_of(run, computed, None), *warnings]
        return AuditError(f"{error}; report: {write_run_report(run, computed, audited, warnings)}")
    except RunError as failure:
        return AuditError(f"{error}; its report could not be written: {failure}")


def write_range_report(
    pipeline: Pipeline, start: datetime | None, end: datetime | None, file: Path | None
) -> dict[str, Any]:
    """Write the report of a range of published slices to a file, and its document next to it.

    Return both files, the range and the verdict. Raise DefinitionError if the files cannot be written, or if a package
    is not installed; other errors are those of `sources.of_range`.
    """
    require_packages()
    content = document(sources.of_range(pipeline, start, end))
    return _write(content, page(content), file, "")


def write_trend(pipeline: Pipeline, start: datetime | None, end: datetime | None, file: Path | None) -> dict[str, Any]:
    """Write the trend of published slices to a file, and its document next to it, as `write_range_report` does.

    Other errors are those of `trend_source.read_trend`.
    """
    require_packages()
    content = trend_document(read_trend(pipeline, start, end))
    return _write(content, trend_page(content), file, "-trend")


def _write(content: Mapping[str, Any], html: bytes, file: Path | None, suffix: str) -> dict[str, Any]:
    """Write a page and its document, and return their names, the range and the verdict."""
    name = f"{content['pipeline']}-{_compact(content['from'])}-{_compact(content['to'])}{suffix}.html"
    target = file or Path(name)
    beside = target.with_suffix(".json")
    if beside == target:
        raise DefinitionError(
            f"{target} is the name of the document next to the page: give --out a name such as report.html"
        )
    for path, written in ((target, html), (beside, as_json(content))):
        try:
            path.write_bytes(written)
        except OSError as error:
            raise DefinitionError(
                f"{path} cannot be written ({error.strerror}): choose another file with --out"
            ) from error
    return {
        "pipeline": content["pipeline"],
        "page": str(target),
        "document": str(beside),
        **{name: content[name] for name in ("from", "to", "verdict")},
    }


def as_json(content: Mapping[str, Any]) -> bytes:
    """Return the document of a report as JSON in UTF-8."""
    return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _compact(text: str) -> str:
    return ticks.to_compact_text(ticks.from_datetime(datetime.fromisoformat(text)))
