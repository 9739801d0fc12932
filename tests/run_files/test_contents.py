"""The JSON run files: what is written is read again, also by another version, or refused with what to do."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from recapture.archive.holes import Hole, Kind
from recapture.errors import PermanentError
from recapture.process.versions import FORMAT
from recapture.quality.audit import Audit, Result, Validation
from recapture.run_files.changes import Changes, change_record, read_changes
from recapture.run_files.computed import METRICS, STAGED, StagedSlice
from recapture.run_files.contents import (
    APPROVAL,
    AUDIT,
    OUTCOME,
    PLANNED_BY,
    Approved,
    Audited,
    Outcome,
    PlannedBy,
    PublishedOutput,
    PublishedQuarantine,
    QuarantineReason,
)
from recapture.run_files.files import RunFiles
from recapture.run_files.json_file import JsonFile
from recapture.storage import open_container
from recapture.time_model.metrics import COMBINED
from recapture.time_model.partition_metrics import (
    ArrivedNumbers,
    EventAhead,
    KeyEvents,
    KeyMetrics,
    NumberGaps,
    PartitionMetrics,
)

TEN = "2024-03-01T10:00:00Z"
RESULT = Result("rooms", "rows", "expect_it", "critical", False, [1.5, "x"], 2, "it is not so", "it is so")
OF_KEY = KeyEvents("a", {"events": 3, "late": 2})
CONTENTS: dict[JsonFile[Any], Any] = {
    STAGED: (StagedSlice("rows", TEN, "slice_start=…/a.parquet", 10, 2, 1),),
    METRICS: (
        PartitionMetrics(
            TEN,
            "telemetry",
            "0",
            {**dict.fromkeys(COMBINED), "InputEvents": 3},
            whole=True,
            complete=False,
            furthest_ahead=EventAhead(1.5, "0.avro", place=3),
            gaps=NumberGaps(2, ((4, 5),)),
            numbers=(ArrivedNumbers(((1, 3, -1, -1),), 7),),
            keys=KeyMetrics(("deviceId",), 2, {"late": (OF_KEY,)}, (OF_KEY, KeyEvents(None, {"events": 1})), 2),
            without_block=("1.avro",),
        ),
    ),
    AUDIT: Audited(
        "failed",
        "rooms: it is not so",
        "audit failed",
        Audit(
            "failed",
            (RESULT,),
            {"rows": {"warmest": 21.5}},
            {"rows": [TEN]},
            (Validation("rooms", "rows", [{"a": 1}]),),
        ),
        (Hole(Kind.LOST, "telemetry", "0", 5, events=3),),
    ),
    APPROVAL: Approved("Ada", datetime(2024, 3, 2, 8, tzinfo=UTC), "the heating was on", "0123"),
    OUTCOME: Outcome(
        (TEN,),
        "passed",
        (PublishedOutput("rows", "file:///rows", 3, True, "file:///rows_metrics", None),),
        PublishedQuarantine("file:///rows_quarantine", None, 1, (QuarantineReason("malformed", "no JSON", 1),)),
        ("a warning",),
    ),
    PLANNED_BY: PlannedBy("telemetry", "scheduled__1"),
}
FILES = pytest.mark.parametrize("file", CONTENTS, ids=lambda file: file.name)


@pytest.fixture
def files(tmp_path: Path) -> RunFiles:
    return RunFiles(open_container(tmp_path.as_uri()), "run")


def change(files: RunFiles, file: JsonFile[Any], content: Any) -> None:
    """Write another content to a file, in JSON types."""
    files.container.write(files.name(file.name), json.dumps({"format": FORMAT, "content": content}).encode())


@FILES
def test_a_run_file_is_read_as_it_was_written(files: RunFiles, file: JsonFile[Any]) -> None:
    assert files.find(file) is None
    written = files.write(file, CONTENTS[file])
    assert files.read(file) == files.find(file) == written
    assert written == (replace(CONTENTS[file], digest=written.digest) if file is AUDIT else CONTENTS[file])


@FILES
def test_fields_of_a_later_version_are_left_out(files: RunFiles, file: JsonFile[Any]) -> None:
    content = file.json_types(CONTENTS[file])
    for fields in content if isinstance(content, list) else [content]:
        fields["later"] = {"of": ["another", "version"]}
    change(files, file, content)
    read = files.read(file)
    assert file.encode(read) == file.encode(CONTENTS[file])


@FILES
@pytest.mark.parametrize("content", [7, "text", {"later": 1}, [{}], [{"keys": {"most": 7}}], None])
def test_a_file_of_another_form_is_damaged(files: RunFiles, file: JsonFile[Any], content: object) -> None:
    change(files, file, content)
    with pytest.raises(PermanentError, match=f"^{file.name} of run run under .* is damaged: restore it, or plan the"):
        files.read(file)


@FILES
def test_a_file_that_no_stage_has_written_is_named(files: RunFiles, file: JsonFile[Any]) -> None:
    with pytest.raises(PermanentError, match=f"run run has no {file.name} under .*: start the run again from its plan"):
        files.read(file)


def test_an_audit_of_an_earlier_version_lacks_titles_and_holes(files: RunFiles) -> None:
    content = AUDIT.json_types(CONTENTS[AUDIT])
    del content["holes"], content["json"]["history"]
    for result in content["json"]["results"]:
        del result["title"], result["proved"]
    change(files, AUDIT, content)
    audited = files.read(AUDIT)
    assert (audited.holes, audited.audit.history) == ((), {})
    assert audited.audit.results == (replace(RESULT, title="", proved=True),)


def test_the_digest_of_an_audit_is_that_of_its_file(files: RunFiles) -> None:
    written = files.write(AUDIT, CONTENTS[AUDIT])
    assert files.read(AUDIT).digest == written.digest
    other = files.write(AUDIT, replace(CONTENTS[AUDIT], reason="another"))
    assert other.digest != written.digest


def test_the_record_of_the_checks_says_nothing_of_a_problem(files: RunFiles) -> None:
    changes = Changes({TEN: "run"}, TEN, TEN, TEN, unknown=(TEN,))
    change_record(files.container, lambda _: replace(changes, problem="it cannot be read"))
    assert read_changes(files.container) == changes
