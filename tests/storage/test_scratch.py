"""The folder for temporary files."""

import tempfile

import pytest

from recapture.errors import SetupError
from recapture.storage.scratch import scratch_folder


def test_without_a_folder_for_temporary_files_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: ["/absent"])
    with (
        pytest.raises(SetupError, match=r"^no folder for temporary files is writable: set TMPDIR to a writable one$"),
        scratch_folder("name"),
    ):
        pass
