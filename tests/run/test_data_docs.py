"""Which audits have Data Docs."""

from pathlib import Path

import pytest

from recapture.commands.data_docs import write_data_docs
from recapture.errors import RunError
from recapture.quality.audit import Audit
from recapture.run_files.contents import AUDIT, Audited
from recapture.run_files.planned import files_of
from tests.worlds import World


def test_an_audit_without_a_suite_has_no_data_docs(tmp_path: Path) -> None:
    pipeline = World(tmp_path).define()
    files_of(pipeline, "run-1").write(AUDIT, Audited("passed", "", "audit passed", Audit("passed", ())))
    with pytest.raises(RunError, match=r"no suite judged run-1, .*: the run's report has the built-in checks"):
        write_data_docs(pipeline, "run-1", tmp_path / "docs")
    assert not (tmp_path / "docs").exists()
