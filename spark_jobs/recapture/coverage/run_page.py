"""What became of a run, as a page with its report: the tab of its DAG run."""

from urllib.parse import urlencode

from recapture.pages.page import render
from recapture.run.approval import APPROVED, approval_of
from recapture.run.files import RUN_ID, RunFiles
from recapture.time_model import ticks

_SENTENCES = {
    "passed": ("good", "The run passed its audit."),
    "passed with warnings": ("warning", "The run passed its audit with warnings."),
    "failed": ("bad", "The audit stopped the run: it published nothing."),
    APPROVED: ("warning", "The audit stopped the run, and a person approved it."),
    None: ("", "The run has not been audited yet."),
}


def run_page(files: RunFiles, pipeline: str, root: str) -> bytes:
    """Return the page of a run. `root` is the path under which the pages are served."""
    audited = files.read("audit.json") if files.exists("audit.json") else {}
    verdict = audited.get("verdict")
    approval = approval_of(files) if verdict == "failed" else None
    kind, sentence = _SENTENCES[APPROVED if approval else verdict]
    match = RUN_ID.fullmatch(files.id)
    assert match is not None
    start, end = (ticks.to_text(ticks.from_compact_text(text)) for text in match.groups())
    return render(
        "recapture.coverage",
        "run.html",
        pipeline=pipeline,
        run=files.id,
        start=start,
        end=end,
        kind=kind,
        sentence=sentence,
        reason=audited.get("reason"),
        audit_text=audited.get("text"),
        approval=None if approval is None else approval.to_dict(),
        has_report=files.exists("report.html"),
        files=f"{root}/{pipeline}/runs/{files.id}",
        calendar=f"{root}/{pipeline}/?{urlencode({'from': start, 'to': end})}#chosen",
    )
