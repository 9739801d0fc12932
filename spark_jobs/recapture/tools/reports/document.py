"""The document of a report: everything that its page shows, in JSON types."""

from collections import Counter
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from recapture import __version__
from recapture.definition.digest import run_definition
from recapture.run.approval import APPROVED
from recapture.run.cost import cost_of
from recapture.run.outdated import in_words
from recapture.run.slice_state import State
from recapture.storage import addresses
from recapture.time_model import ticks
from recapture.time_model.slices import Slice
from recapture.tools.reports.capture import capture
from recapture.tools.reports.changes import changes
from recapture.tools.reports.definitions import earlier_definitions
from recapture.tools.reports.failures import failures
from recapture.tools.reports.keys import keys
from recapture.tools.reports.ledger import ledger, slice_qualities
from recapture.tools.reports.quarantined import quarantined
from recapture.tools.reports.sources import Source
from recapture.tools.reports.standing import SHOWN_INSTEAD, holes, standing, states
from recapture.tools.reports.timing import timing
from recapture.tools.reports.verdict import verdict

DOCUMENT_FORMAT = 3
MAX_SLICES = 100
"""Largest number of ranges of slices, of approvals and of runs that are listed."""


def document(source: Source) -> dict[str, Any]:
    """Return the document of a report. Raise RunError if a file of it cannot be read."""
    pipeline, run_of = source.pipeline, source.run_of_slice
    approvals = Counter(source.approvals().values())
    content: dict[str, Any] = {
        "format": DOCUMENT_FORMAT,
        "kind": "range" if source.single is None else "run",
        "pipeline": pipeline.name,
        "from": ticks.to_text(source.start),
        "to": ticks.to_text(source.end),
        "slice_hours": pipeline.slice_hours,
        "written": ticks.whole_seconds(datetime.now(UTC)),
        "version": __version__,
        "quality": source.single and source.single.audited and source.single.audited.verdict,
        "published": all(start in run_of and source.entries[start].run == run_of[start] for start in source.starts),
        "staged": source.is_staged,
        "approvals": [approval.to_dict() | {"slices": count} for approval, count in approvals.items()][:MAX_SLICES],
        "slices": _slices(source),
        "standing": standing(source),
        "earlier_definitions": earlier_definitions(source),
        "failures": failures(source),
        "ledger": ledger(source),
        "timing": timing(source),
        "quarantine": quarantined(source),
        "capture": capture(source),
        "holes": holes(source),
        "keys": keys(source),
        "changes": changes(source),
        "runs": _runs(source),
        "cost": source.single and cost_of(source.single.files, pipeline.prices),
        "warnings": list(source.warnings),
        "definition": _definition(source),
    }
    return content | {"verdict": verdict(content)}


def _slices(source: Source) -> dict[str, Any]:
    """Return the number of slices by their quality, and the ranges of slices that need attention."""
    qualities = slice_qualities(source)
    qualities |= {start: state for start, state in states(source).items() if state in SHOWN_INSTEAD}
    counts = Counter(quality or "unpublished" for quality in qualities.values())
    differing = {} if source.standing is None else source.standing.outdated

    def kind(slice_: Slice) -> tuple[str | None, str]:
        start = ticks.to_text(slice_.start)
        is_outdated = qualities[start] == State.OUTDATED
        return qualities[start], in_words([differing[start]]) if is_outdated else ""

    attention = []
    for (quality, differs), group in groupby(source.slices, key=kind):
        slices = list(group)
        start, end = ticks.to_text(slices[0].start), ticks.to_text(slices[-1].end)
        runs = {source.run_of_slice.get(ticks.to_text(slice_.start)) for slice_ in slices}
        about = {"slices": len(slices), "quality": quality, "differing": differs, "runs": len(runs)}
        if quality != "passed":
            attention.append({"from": start, "to": end, **about, "run": runs.pop() if len(runs) == 1 else None})
    names = ("passed", "passed with warnings", APPROVED, "failed", *SHOWN_INSTEAD, "unpublished")
    unpublished = [start for start, quality in qualities.items() if quality is None]
    return {
        "total": len(qualities),
        **{name: counts[name] for name in names},
        "first_unpublished": unpublished[0] if unpublished else None,
        "attention": attention[:MAX_SLICES],
    }


def _runs(source: Source) -> list[dict[str, Any]]:
    """Return the runs of a report with what was published of them, the newest slices first."""
    slices = Counter(source.run_of_slice.values())
    published = {entry.run: entry.current for entry in source.entries.values() if entry.current is not None}
    rows = []
    for run in reversed(list(source.runs)):
        current, files, manifest = published.get(run), source.runs[run].files, source.runs[run].manifest
        digest, definition = None, None
        if current is not None:
            digest, definition = current.manifest, current.definition
        elif manifest is not None:
            digest, definition = manifest.digest, manifest.definition_digest
        rows.append(
            {
                "run": run,
                "slices": slices[run],
                "published": None if current is None else current.published.isoformat(timespec="seconds"),
                "manifest": digest,
                "definition": definition,
                "engine": None if manifest is None else manifest.engine,
                "has_files": source.runs[run].audited is not None,
                "files": f"{files.container.url}/{files.name('')}",
            }
        )
    return rows[:MAX_SLICES]


def _definition(source: Source) -> dict[str, Any]:
    pipeline = source.pipeline
    job = pipeline.job
    return {
        "file": str(pipeline.file),
        "digest": run_definition(pipeline).digest,
        "query": job.query,
        "settings": {
            "eventsOutOfOrderPolicy": job.policy,
            "eventsOutOfOrderMaxDelayInSeconds": job.out_of_order_seconds,
            "eventsLateArrivalMaxDelayInSeconds": job.late_seconds,
            "early_arrival_seconds": job.early_arrival_seconds,
            "early_policy": job.early_policy,
            "outputErrorPolicy": job.output_error_policy,
            "slice_hours": pipeline.slice_hours,
        },
        "inputs": [
            {
                "alias": section.alias,
                "format": section.format,
                "container": " and ".join(addresses(section.container)),
                "source": section.source,
                "arrival_time": str(section.arrival_time.value),
            }
            for section in pipeline.inputs
        ],
        "references": [
            {"alias": section.alias, "container": " and ".join(addresses(section.container))}
            for section in pipeline.references
        ],
        "outputs": [
            {
                "alias": output.alias,
                "table": output.table,
                "suite": None if (path := pipeline.suite_path(output)) is None else str(path.name),
            }
            for output in pipeline.outputs
        ],
    }
