"""The page of a run: its report, or what the other run files say until there is one."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from recapture.quality.audit import Audit, Verdict
from recapture.run_files.contents import APPROVAL, AUDIT, Approved, Audited
from recapture.run_files.files import REPORT_PAGE, RunFiles
from recapture.storage import open_container
from recapture.tools.coverage.run_page import run_page

RUN = "20260301T060000Z-20260301T080000Z-0123456789ab"


@pytest.fixture
def files(tmp_path: Path) -> RunFiles:
    return RunFiles(open_container(tmp_path.as_uri()), RUN)


def text(files: RunFiles, question: str | None = None) -> str:
    return run_page(files, "telemetry", "/recapture", question).decode()


def audited(files: RunFiles, verdict: Verdict) -> Audited:
    """Write an audit, and return it."""
    return files.write(AUDIT, Audited(verdict, "too <b>warm</b>", "FAILED", Audit(verdict, ())))


def approve(files: RunFiles, audit: str) -> None:
    """Write the approval of the audit with this digest."""
    files.write(APPROVAL, Approved("Ada", datetime(2026, 3, 2, 8, tzinfo=UTC), "known", audit))


def test_a_run_that_was_not_audited_leads_to_its_slices_and_its_manifest(files: RunFiles) -> None:
    page = text(files)
    assert "The run has not been audited yet." in page
    assert "/recapture/telemetry/?from=2026-03-01T06%3A00%3A00Z&amp;to=2026-03-01T08%3A00%3A00Z#chosen" in page
    assert f"/recapture/telemetry/runs/{RUN}/manifest.json" in page


def test_without_a_report_the_verdict_and_its_reason_are_shown_as_text(files: RunFiles) -> None:
    written = audited(files, "failed")
    page = text(files)
    assert "The audit stopped the run: it published nothing." in page
    assert "too &lt;b&gt;warm&lt;/b&gt;" in page
    approve(files, written.digest)
    assert "Ada approved the run at 2026-03-02T08:00:00Z: known" in text(files)


def test_an_approval_of_an_earlier_audit_is_not_shown(files: RunFiles) -> None:
    audited(files, "failed")
    approve(files, "digest of an earlier audit")
    assert "approved" not in text(files)


def test_the_page_leads_to_the_question_whether_to_publish_the_run(files: RunFiles) -> None:
    question = "/dags/telemetry/runs/1/tasks/approval/required_actions"
    assert f'href="{question}" target="_top"' in text(files, question)
    assert "A person is asked" not in text(files)


def test_a_report_is_framed_so_that_it_can_run_no_script(files: RunFiles) -> None:
    audited(files, "passed")
    files.container.write(files.name(REPORT_PAGE), b"<h1>report</h1>")
    page = text(files)
    assert f'src="/recapture/telemetry/runs/{RUN}/report.html" sandbox="allow-downloads"' in page
    assert "The run passed its audit." not in page, "the report says it"
