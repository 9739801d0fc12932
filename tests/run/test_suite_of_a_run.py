"""What an audit gives to the suite of an output: the values of its parameters, and the slices published before."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from recapture.commands.data_docs import write_data_docs
from recapture.definition.pipeline import Pipeline
from recapture.errors import AuditError, DefinitionError, RunError
from recapture.execute.processes.workers import Workers
from recapture.quality.audit import Audit
from recapture.run.plan import plan_run
from recapture.run.suites import load_suites, parse_parameters
from recapture.run_files.contents import AUDIT, Audited
from recapture.run_files.planned import files_of, load_run
from tests.commands import Command
from tests.stages import audit, publish
from tests.worlds import TEN, World, at, backfill, body, not_warmer_than, published, run_file, staged

DAYS = 2
WARMEST = not_warmer_than({"$PARAMETER": "warmest"})


def define(world: World, *expectations: dict[str, Any], **parameters: float | str) -> Pipeline:
    """Write the suite and the pipeline file, and load it."""
    return world.define(quality=world.write_suite(*expectations), parameters=parameters)


# Parameters


def test_a_run_takes_the_value_of_a_parameter_from_the_pipeline_file_or_gives_its_own(
    processes: Workers, world: World
) -> None:
    pipeline = define(world, WARMEST, warmest=19)
    run = staged(processes, pipeline, TEN, at(60))
    with pytest.raises(AuditError, match="no room is too warm"):
        audit(run)
    text = audit(run, parse_parameters(["warmest=21.5"])).text
    assert text.splitlines()[:2] == ["audit passed", "parameters of aggregates: warmest=21.5"]
    assert run_file(world.table, run.id, "audit.json")["json"]["parameters"] == {"aggregates": {"warmest": 21.5}}
    publish(run)
    assert len(published(world.table)) == 1


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("warmes=21", r"unknown parameter warmes; did you mean warmest\?"),
        ("warmest=hot", "the parameter warmest must be a number, as in .*; 'hot' was given"),
        ("warmest=nan", "the parameter warmest must be a number"),
        ("warmest=", "the parameter warmest must be a number"),
        ("warmest", "write NAME=VALUE"),
    ],
)
def test_a_mistake_in_a_given_parameter_is_refused_before_anything_is_read(
    world: World, argument: str, message: str
) -> None:
    pipeline = define(world, WARMEST, warmest=19)
    with pytest.raises(DefinitionError, match=message):
        plan_run(pipeline, TEN, at(60), parse_parameters([argument]))
    assert not world.table.exists()


def test_a_parameter_given_twice_is_refused() -> None:
    with pytest.raises(DefinitionError, match="--parameter warmest is given twice"):
        parse_parameters(["warmest=1", "warmest=2"])


def test_a_number_for_a_text_stays_a_text(world: World) -> None:
    kwargs = {"column": "deviceId", "regex": {"$PARAMETER": "device"}}
    pipeline = define(world, {"type": "expect_column_values_to_match_regex", "kwargs": kwargs}, device="a")
    assert load_suites(pipeline, {"device": "7"})["aggregates"].parameters == {"device": "7"}


@pytest.mark.parametrize(("value", "reason"), [(True, "should be a number or a string"), ([1], "should be a number")])
def test_a_parameter_is_a_number_or_a_text(world: World, value: Any, reason: str) -> None:
    with pytest.raises(DefinitionError, match=rf"quality\.parameters\.warmest.*{reason}"):
        define(world, WARMEST, warmest=value)


def test_an_audit_without_a_suite_has_no_data_docs(tmp_path: Path) -> None:
    pipeline = World(tmp_path).define()
    files_of(pipeline, "run-1").write(AUDIT, Audited("passed", "", "audit passed", Audit("passed", ())))
    with pytest.raises(RunError, match=r"no suite judged run-1, .*: the run's report has the built-in checks"):
        write_data_docs(pipeline, "run-1", tmp_path / "docs")
    assert not (tmp_path / "docs").exists()


# History

ROWS = {
    "type": "expect_table_row_count_to_be_near_earlier_days",
    "description": "as many rows as usual",
    "kwargs": {"min_days": DAYS - 1, "min_deviation": 1},
}
FALL = {"type": "expect_watermark_to_never_fall", "severity": "warning", "kwargs": {"days": DAYS}}


def test_a_run_is_compared_with_what_was_published_before_it_and_a_first_run_says_that_it_is_not(
    processes: Workers, tmp_path: Path, command: Command
) -> None:
    """From ten to eleven, six devices send on the first days, and one on the last."""
    world, hours = World(tmp_path), 24 * (DAYS - 1)
    for day in range(DAYS):
        noon = at(60 * 24 * day)
        devices = "abcdef" if day < DAYS - 1 else "a"
        bodies = [body(device, noon + timedelta(minutes=10)) for device in devices]
        world.put("0", noon + timedelta(minutes=12), bodies, 6 * day)
    for hour in range(hours + 2):
        world.put("0", at(60 * hour + 30))
    pipeline = define(world, ROWS, FALL)
    report = backfill(processes, pipeline, TEN, at(60 * hours))
    first = report["quality"]["text"]
    assert "as many rows as usual (not judged: fewer than 1 earlier day published)" in first
    assert "SKIPPED  rooms aggregates" in first
    run = staged(processes, pipeline, at(60 * hours), at(60 * (hours + 1)))
    with pytest.raises(
        AuditError, match=r"the number of rows differs from that of earlier days: 1 of 1 .* rows 1, median 6"
    ):
        audit(run)
    audited = run_file(world.table, run.id, "audit.json")["json"]
    assert audited["history"] == {
        "aggregates": ["2024-03-01T10:00:00+00:00"],
        "metrics": [start for start in sorted(set(audited["history"]["metrics"]))],
    }
    assert len(audited["history"]["metrics"]) == hours
    (fall,) = (result for result in audited["results"] if result["expectation"] == "expect_watermark_to_never_fall")
    assert (fall["success"], fall["proved"], fall["unexpected_count"]) == (True, True, 0)
    require_a_proposed_suite_to_pass(world, report["run"], command)
    require_data_docs(world, run.id, command)


def require_a_proposed_suite_to_pass(world: World, run: str, command: Command) -> None:
    """Propose a suite from what is published, and audit the run that published it with this suite."""
    out = world.home / "proposed.json"
    init = ("suite", "init", world.file)
    _, err = command.run(*init, "--out", out)
    assert f"written to {out}, from 6 rows of 24 slices of aggregates" in err.replace("\n", " ")
    assert "already exists and is not overwritten" in command.error(*init, "--out", out)
    error = command.error(*init, "--from", "2024-02-01T00Z", "--to", "2024-02-01T01Z", code=1)
    assert "nothing is published in this range" in error
    assert audit(load_run(world.define(quality="proposed.json"), run)).verdict == "passed"


def require_data_docs(world: World, run: str, command: Command) -> None:
    """Write the Data Docs of a run that its audit stopped."""
    folder, options = world.home / "docs", ("--out", world.home / "docs")
    printed = command.text("data-docs", world.file, run, *options)
    assert printed == f"{(folder / 'index.html').as_uri()}\n"
    assert (folder / "index.html").is_file()
    command.error("data-docs", world.file, run, *options)
    error = command.error("data-docs", world.file, "another", *options, code=1)
    assert "another is not a run with an audit" in error
