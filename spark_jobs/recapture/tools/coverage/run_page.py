"""What became of a run, as a page with its report: the tab of its DAG run."""

from urllib.parse import urlencode

from recapture.errors import PermanentError
from recapture.run.approval import APPROVED, approval_of
from recapture.run_files.contents import AUDIT
from recapture.run_files.files import REPORT_PAGE, RunFiles, range_of_run
from recapture.time_model import ticks
from recapture.tools.coverage.framed import render_framed

_SENTENCES = {
    "passed": ("good", "The run passed its audit."),
    "passed with warnings": ("warning", "The run passed its audit with warnings."),
    "failed": ("bad", "The audit stopped the run: it published nothing."),
    APPROVED: ("warning", "The audit stopped the run, and a person approved it."),
    None: ("", "The run has not been audited yet."),
}
_UNREADABLE = ("bad", "It is not known what became of the run: a file of it is damaged.")


def run_page(files: RunFiles, pipeline: str, root: str, question: str | None = None) -> bytes:
    """Return the page of a run.

    `root` is the path under which the pages are served, `question` the address where Airflow asks a person whether to
    publish the run.
    """
    audited, approval, problem = None, None, None
    try:
        audited = files.find(AUDIT)
        approval = approval_of(files, audited) if audited else None
    except PermanentError as error:
        problem = str(error)
    verdict = audited.verdict if audited else None
    kind, sentence = _UNREADABLE if problem else _SENTENCES[APPROVED if approval else verdict]
    range_ = range_of_run(files.id)
    assert range_ is not None
    start, end = map(ticks.to_text, range_)
    return render_framed(
        "run.html",
        pipeline=pipeline,
        run=files.id,
        start=start,
        end=end,
        kind=kind,
        sentence=sentence,
        reason=audited and audited.reason,
        audit_text=audited and audited.text,
        problem=problem,
        approval=None if approval is None else approval.to_dict(),
        has_report=files.exists(REPORT_PAGE),
        question=question,
        files=f"{root}/{pipeline}/runs/{files.id}",
        calendar=f"{root}/{pipeline}/?{urlencode({'from': start, 'to': end})}#chosen",
    )
