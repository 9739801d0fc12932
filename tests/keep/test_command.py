"""`recapture update`, as a person or cron runs it."""

import json
import os
from collections.abc import Callable, Iterator
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any

import pytest
import yaml

from recapture.archive.manifest import Manifest
from recapture.cli import main
from recapture.definition.pipeline import Pipeline, load
from recapture.errors import DefinitionError, RunError
from recapture.keep.due import DueRange
from recapture.run import plan
from recapture.run.approval import approval_of, approve
from recapture.run.publish import publish as publish_run
from recapture.run.status import status
from recapture.run_files.changes import read_changes
from recapture.run_files.computed import read_computed
from recapture.run_files.contents import AUDIT
from recapture.run_files.planned import load_run
from recapture.storage import open_container
from recapture.table import publish
from recapture.time_model import ticks
from tests.run.test_approval import APPROVAL
from tests.worlds import COUNTS, TELEMETRY, World, at, body, contents, not_warmer_than, published

ENQUEUED = TELEMETRY | {"arrival_time": "EventEnqueuedUtcTime", "search_hours": 6}
Update = Callable[..., dict[str, Any]]


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Three hours of blobs from ten on, with an event in each. The times in their names decide about arrival."""
    world = World(tmp_path)
    for hour in range(3):
        for number in range(12):
            put(world, 60 * hour + 5 * number)
    world.define(inputs=[ENQUEUED])
    return world


def put(world: World, minutes: float, written: float | None = None, temperature: float = 20.0) -> Path:
    """Write the blob of an interval that begins so many minutes after ten, when it ends or at `written`."""
    opened = at(minutes)
    number = round(minutes / 5)
    arrival = at(minutes + 5.1 if written is None else written)
    return world.put("0", arrival, [body("a", opened, temperature)], first=number, opened=opened)


def schedule(world: World, **keys: Any) -> None:
    """Write a schedule into the pipeline file."""
    sections = yaml.safe_load(world.file.read_text())
    world.file.write_text(json.dumps(sections | {"schedule": keys}))


@pytest.fixture
def update(world: World, capsys: pytest.CaptureFixture[str]) -> Update:
    """Run an update so many minutes after ten, and return what it prints as JSON, with its exit code."""

    def run(minutes: float, *options: str) -> dict[str, Any]:
        now = at(minutes).isoformat()
        code = main(["update", str(world.file), "--now", now, "--json", "--master", "local[1]", *options])
        output = capsys.readouterr()
        return json.loads(output.out) | {"code": code, "stderr": output.err}

    return run


def due(result: dict[str, Any]) -> dict[str, list[str]]:
    """Return the reasons of the slices that are due, by their hours."""
    return {slice_["slice_start"][11:16]: slice_["reasons"] for slice_ in result["due"]}


def test_the_first_update_computes_the_newest_complete_slice_and_the_next_ones_what_follows(
    world: World, update: Update
) -> None:
    first = update(135)
    assert due(first) == {"11:00": ["missing"]}
    assert (first["code"], len(first["runs"])) == (0, 1)
    again = update(135)
    assert (again["due"], again["runs"], again["code"]) == ([], [], 0)
    assert due(update(205)) == {"12:00": ["missing"]}


def test_a_slice_that_capture_has_not_written_waits(world: World, update: Update) -> None:
    schedule(world, since=at(0).isoformat())
    result = update(195, "--dry-run")
    assert due(result) == {"10:00": ["missing"], "11:00": ["missing"]}
    (waiting,) = result["waiting"]
    assert (waiting["from"][11:16], waiting["reasons"]) == ("12:00", ["missing"])
    assert waiting["waits_for"][0].startswith("partition 0: written up to ")


def test_a_slice_is_published_provisionally_and_revised_when_it_is_complete(
    world: World, update: Update, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.define(inputs=[ENQUEUED | {"empty_blobs": True}])
    later = [path for path in world.capture.rglob("*.avro") if path.stat().st_mtime > at(60).timestamp()]
    archive = {path: (path.read_bytes(), path.stat().st_mtime) for path in later}
    for path in later:
        path.unlink()
    schedule(world, since=at(0).isoformat(), provisional=True)
    plan_at(monkeypatch, 61)
    early = update(61)
    assert due(early) == {"10:00": ["missing: will be published provisionally"]}
    assert (early["code"], len(early["runs"])) == (0, 1)
    assert [slice_["state"] for slice_ in shown(world)] == ["published provisionally"]
    assert update(62)["due"] == []
    for path, (content, modified) in archive.items():
        path.write_bytes(content)
        os.utime(path, (modified, modified))
    plan_at(monkeypatch, 85)
    revised = update(85)
    assert due(revised)["10:00"][0] == "provisional: it was published before Capture had written everything"
    assert [slice_["state"] for slice_ in shown(world)] == ["published"]
    assert update(86)["due"] == []


def plan_at(monkeypatch: pytest.MonkeyPatch, minutes: float) -> None:
    """Let runs be planned so many minutes after ten."""

    class Then(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> "Then":
            return cls.fromtimestamp(at(minutes).timestamp(), tz)

    monkeypatch.setattr(plan, "datetime", Then)


def test_a_dry_run_writes_nothing(world: World, update: Update) -> None:
    before = contents(world.home)
    assert due(update(135, "--dry-run")) == {"11:00": ["missing"]}
    assert contents(world.home) == before


def test_a_late_blob_makes_a_slice_stale_and_due_when_it_was_quiet(world: World, update: Update) -> None:
    late = put(world, 80, 190)
    content = late.read_bytes()
    late.unlink()
    schedule(world, since=at(60).isoformat())
    assert due(update(135)) == {"11:00": ["missing"]}
    late.write_bytes(content)
    os.utime(late, (at(190).timestamp(),) * 2)
    waiting = update(205)
    assert due(waiting) == {"12:00": ["missing"]}
    assert waiting["waiting"][0]["reasons"] == ["stale: 1 blob added"]
    assert waiting["waiting"][0]["waits_for"] == ["2024-03-01T13:40:00Z, or later if a blob changes again"]
    assert [slice_["state"] for slice_ in shown(world)] == ["stale", "published"]
    assert due(update(221)) == {"11:00": ["stale: 1 blob added"]}
    assert "stale" not in {slice_["state"] for slice_ in shown(world)}


def shown(world: World) -> list[dict[str, Any]]:
    from recapture.definition.pipeline import load

    return list(status(load(world.file))["slices"])


def test_each_range_is_a_run_and_the_newest_is_first(world: World, update: Update) -> None:
    update(135)
    schedule(world, since=at(0).isoformat())
    result = update(205)
    assert due(result) == {"10:00": ["missing"], "12:00": ["missing"]}
    assert [run[:16] for run in result["runs"]] == ["20240301T120000Z", "20240301T100000Z"]
    assert len(shown(world)) == 3


def test_marked_slices_stay_as_they_are(world: World, update: Update) -> None:
    schedule(world, since=at(60).isoformat(), late_data="mark", quiet_minutes=0)
    update(135)
    put(world, 80, 140, temperature=30)
    result = update(150)
    assert result["due"] == []
    assert result["waiting"][0]["reasons"] == ["stale: 1 blob modified"]


def test_a_changed_query_is_named_and_kept_unless_the_pipeline_says_otherwise(world: World, update: Update) -> None:
    update(135)
    query = yaml.safe_load(world.file.read_text())["job"]["query"].replace("minute, 5", "minute, 10")
    world.define(inputs=[ENQUEUED], query=query)
    schedule(world)
    kept = update(136)
    assert kept["waiting"][0]["reasons"] == ["outdated: other query"]
    schedule(world, outdated="recompute")
    assert due(update(137)) == {"11:00": ["outdated: other query"]}
    assert update(138)["waiting"] == update(138)["due"] == []


def test_a_column_that_the_query_gains_is_added_by_an_update_and_another_type_is_refused(
    world: World, update: Update
) -> None:
    assert update(135)["code"] == 0
    gained = COUNTS.replace("COUNT(*) AS events", "COUNT(*) AS events, MAX(temperature) AS peak")
    world.define(inputs=[ENQUEUED], query=gained)
    schedule(world, outdated="recompute")
    recomputed = update(137)
    assert (due(recomputed), recomputed["code"]) == ({"11:00": ["outdated: other query"]}, 0)
    before = published(world.table)
    assert {row["peak"] for row in before} == {20.0}
    world.define(inputs=[ENQUEUED], query=gained.replace("COUNT(*) AS events", "AVG(temperature) AS events"))
    schedule(world, outdated="recompute")
    refused = update(139)
    assert (due(refused), refused["code"]) == ({"11:00": ["outdated: other query"]}, 2)
    assert "events is long in the table and double in the rows" in refused["failures"][0]
    assert published(world.table) == before


def test_a_run_that_its_audit_stops_fails_the_update_and_is_not_tried_again(world: World, update: Update) -> None:
    schedule(world, since=at(60).isoformat())
    update(135)
    put(world, 80).unlink()
    update(136)
    stopped = update(170)
    assert (due(stopped), stopped["code"]) == ({"11:00": ["stale: 1 blob deleted"]}, 1)
    assert "was stopped by its audit" in stopped["failures"][0]
    assert "was stopped by its audit" in stopped["stderr"]
    (mark,) = (world.table / "_recapture" / "blocked").iterdir()
    os.utime(mark, (mark.stat().st_mtime + 1,) * 2)  # of a later second than the publication
    again = update(171)
    assert (again["due"], again["code"]) == ([], 0)
    assert again["waiting"][0]["waits_for"][0].startswith("a person, because the audit stopped run ")
    put(world, 80)
    restored = update(210)
    assert (restored["waiting"], restored["code"]) == ([], 0)


def test_an_approved_run_is_published_if_its_audit_stops_it_with_the_same_result_and_not_staged(
    world: World, update: Update, capsys: pytest.CaptureFixture[str]
) -> None:
    world.write_suite(not_warmer_than(19))
    world.define(inputs=[ENQUEUED], quality="rooms.json")
    schedule(world, since=at(60).isoformat())
    assert update(135)["code"] == 1
    (mark,) = (world.table / "_recapture" / "blocked").iterdir()
    approve(load_run(load(world.file), mark.name), APPROVAL)
    options = [str(world.file), "--from", at(60).isoformat(), "--to", at(120).isoformat(), "--json"]
    assert main(["backfill", *options, "--stage"]) == 1
    capsys.readouterr()
    assert main(["backfill", *options]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["run"], result["quality"]["approval"]["by"]) == (mark.name, "Ada")
    assert [slice_["state"] for slice_ in shown(world)] == ["published after approval"]


def test_an_approved_run_of_a_provisional_slice_is_not_repeated_when_the_slice_is_complete(
    world: World, update: Update, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.write_suite(not_warmer_than(19))
    world.define(inputs=[ENQUEUED | {"empty_blobs": True}], quality="rooms.json")
    for path in world.capture.rglob("*.avro"):
        if path.stat().st_mtime > at(60.2).timestamp():
            path.unlink()
    schedule(world, since=at(0).isoformat(), until=at(60).isoformat(), provisional=True)
    plan_at(monkeypatch, 61)
    assert update(61)["code"] == 1
    (mark,) = (world.table / "_recapture" / "blocked").iterdir()
    run = load_run(load(world.file), mark.name)
    approve(run, APPROVAL)
    audited = run.files.read(AUDIT)
    publish_run(run, read_computed(run.files), audited, approval_of(run.files, audited))
    assert [slice_["state"] for slice_ in shown(world)] == ["published provisionally"]
    os.utime(mark, (mark.stat().st_mtime - 5,) * 2)
    plan_at(monkeypatch, 600)
    stopped = update(600)
    assert (list(due(stopped)), stopped["code"]) == (["10:00"], 1)
    assert run.id in stopped["failures"][0]
    assert approval_of(run.files, run.files.read(AUDIT)) is None, "the audit no longer warns of an incomplete slice"
    again = update(601)
    assert (again["due"], again["code"]) == ([], 0)
    assert again["waiting"][0]["waits_for"] == [f"a person, because the audit stopped run {run.id}"]


def test_a_publication_that_was_interrupted_is_finished(
    world: World, update: Update, monkeypatch: pytest.MonkeyPatch
) -> None:
    class KilledError(BaseException):
        pass

    def kill(*arguments: Any) -> Iterator[None]:
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(publish, "_bring_in_line", kill)
        with pytest.raises(KilledError):
            update(135)
    assert not shown(world)[0]["finished"]
    result = update(135)
    assert (result["unfinished"], result["due"], result["code"]) == (["2024-03-01T11:00:00Z"], [], 0)
    assert shown(world)[0]["finished"]


def test_what_is_due_is_printed_with_its_reasons(
    world: World, update: Update, capsys: pytest.CaptureFixture[str]
) -> None:
    schedule(world, since=at(-60).isoformat(), at_most_slices=1)
    assert main(["update", str(world.file), "--now", at(135).isoformat(), "--dry-run"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "due: 2024-03-01T11:00:00Z: missing",
        "left for the next update: 2024-03-01T09:00:00Z to 2024-03-01T11:00:00Z: missing",
        "telemetry at 2024-03-01T12:15:00Z, slices from 2024-03-01T09:00:00Z on: 1 slice due in 1 run",
    ]


def test_a_time_in_the_future_is_refused(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["update", str(world.file), "--now", "9998-03-01T11:00:00Z"]) == 2
    assert "--now lies in the future" in capsys.readouterr().err


def test_sizes_are_listed_only_for_a_budget_in_bytes(world: World, update: Update) -> None:
    schedule(world, since=datetime(2024, 2, 1).isoformat() + "Z", at_most_bytes=1, at_most_slices=5)
    result = update(135, "--dry-run")
    assert len(result["due"]) == 1
    assert result["due"][0]["bytes"] > 1


def test_a_stopped_backfill_of_an_earlier_hour_does_not_extend_the_table(world: World, update: Update) -> None:
    world.define(inputs=[ENQUEUED], quality=world.write_suite(not_warmer_than(30)))
    put(world, 20, temperature=40)
    update(135)
    hour = ["--from", at(0).isoformat(), "--to", at(60).isoformat()]
    assert main(["backfill", str(world.file), *hour, "--master", "local[1]"]) == 1
    later = update(205)
    assert (due(later), later["waiting"]) == ({"12:00": ["missing"]}, [])


def test_a_slice_that_could_not_be_compared_stays_unknown(
    world: World, update: Update, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Manifest, "reads", property(lambda manifest: [None] * len(manifest.slices)))
        update(135)
    for manifest in world.table.glob("_recapture/*/manifest.json"):
        manifest.unlink()
    for minutes in (136, 60 * 24, 60 * 48):
        assert update(minutes)["unknown"] == ["2024-03-01T11:00:00Z"]
        changes = read_changes(open_container(world.table.as_uri()))
        assert changes.unknown == ("2024-03-01T11:00:00Z",)
    main(["update", str(world.file), "--now", at(60 * 48).isoformat(), "--dry-run"])
    assert capsys.readouterr().out.rstrip().endswith(": nothing is due, 1 unknown")


def test_an_update_without_a_late_limit_says_that_it_compared_nothing(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.define(inputs=[ENQUEUED], eventsLateArrivalMaxDelayInSeconds=-1)
    assert main(["update", str(world.file), "--now", at(135).isoformat(), "--dry-run"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.endswith("; no slice was compared, because the job has no late limit")


@pytest.mark.parametrize(
    ("error", "code"), [(DefinitionError("a mistake"), 3), (KeyboardInterrupt(), 130), (RunError("a fault"), 3)]
)
def test_what_was_published_before_an_error_is_reported(
    world: World, update: Update, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int
) -> None:
    def compute(pipeline: Pipeline, range_: DueRange, *others: Any) -> dict[str, Any]:
        if range_.start < ticks.from_datetime(at(60)):
            raise error
        return {"run": "a run"}

    monkeypatch.setattr("recapture.commands.update._compute", compute)
    schedule(world, since=at(0).isoformat())
    with monkeypatch.context() as patch:
        patch.setattr("recapture.keep.due._ranges", lambda due, length: (DueRange((slice_,), length) for slice_ in due))
        result = update(135)
    assert (result["runs"], len(result["failures"]), result["code"]) == (["a run"], 1, code)
    retried = json.loads((world.table / "_recapture" / "work.json").read_text())["content"]["failures"]
    assert len(retried) == isinstance(error, RunError)


def test_a_request_is_computed_by_the_next_update_once(
    world: World, update: Update, capsys: pytest.CaptureFixture[str]
) -> None:
    update(135)
    hour = ["--from", at(60).isoformat(), "--to", at(120).isoformat()]
    assert main(["request", str(world.file), *hour, "--by", "ann", "--at", at(0).isoformat()]) == 0
    capsys.readouterr()
    requested = update(136)
    assert due(requested) == {"11:00": ["requested by ann"]}
    assert update(137)["due"] == []
    assert main(["requests", str(world.file), "--json"]) == 0
    (request,) = json.loads(capsys.readouterr().out)["requests"]
    assert (request["state"], request["published"]) == (
        "published",
        {"2024-03-01T11:00:00Z": requested["runs"][0]},
    )
    assert main(["requests", str(world.file)]) == 0
    assert ": 2024-03-01T11:00:00Z to 2024-03-01T12:00:00Z, by ann at " in capsys.readouterr().out


def test_a_check_finds_a_stopped_slice_whose_blobs_were_corrected(world: World, update: Update) -> None:
    world.define(inputs=[ENQUEUED], quality=world.write_suite(not_warmer_than(30)))
    put(world, 65, temperature=40)
    assert update(135)["code"] == 1
    record = world.table / "_recapture" / "changed.json"
    assert main(["check", str(world.file), "--from", at(60).isoformat(), "--to", at(120).isoformat()]) == 0
    assert json.loads(record.read_text())["content"]["released"] == {}
    put(world, 65, 130, temperature=20)
    assert main(["check", str(world.file), "--from", at(60).isoformat(), "--to", at(120).isoformat()]) == 0
    assert list(json.loads(record.read_text())["content"]["released"]) == ["2024-03-01T11:00:00Z"]
