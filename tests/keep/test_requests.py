"""`recapture request`, `requests` and `cancel`, without an update."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from recapture.cli import main
from recapture.definition.pipeline import load
from recapture.errors import DefinitionError, FormatError
from recapture.keep.claims import Known, Result, claim, record
from recapture.keep.due import DueRange, DueSlice
from recapture.keep.requests import REMEMBERED, NewRequest, cancelled, make_request, with_request
from recapture.process.versions import OUTPUT_FORMAT
from recapture.run_files.json_file import JsonFile
from recapture.run_files.work import WORK, Request, RequestState, Work
from recapture.storage import open_container
from recapture.time_model import ticks
from tests.worlds import HOUR, TEN, World

FROM, TO = TEN.isoformat(), (TEN + 2 * HOUR).isoformat()
START = ticks.from_datetime(TEN)
LENGTH = ticks.from_seconds(3600)


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.define()
    return world


class Shell:
    """Runs commands for the pipeline of a world."""

    def __init__(self, world: World, capsys: pytest.CaptureFixture[str]) -> None:
        self.file, self.capsys = str(world.file), capsys

    def json(self, command: str, *arguments: str) -> dict[str, Any]:
        assert main([command, self.file, *arguments, "--json"]) == 0
        result: dict[str, Any] = json.loads(self.capsys.readouterr().out)
        assert result.pop("format") == OUTPUT_FORMAT
        return result

    def lines(self, command: str, *arguments: str) -> list[str]:
        assert main([command, self.file, *arguments]) == 0
        return self.capsys.readouterr().out.splitlines()

    def error(self, command: str, *arguments: str) -> str:
        assert main([command, self.file, *arguments]) == 2
        return self.capsys.readouterr().err.strip()


@pytest.fixture
def shell(world: World, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(world, capsys)


def test_a_request_is_listed_with_its_state_and_who_made_it_and_why(shell: Shell) -> None:
    at = "2024-04-01T00:00:00Z"
    made = shell.json("request", "--from", FROM, "--to", TO, "--by", "ann", "--at", at, "--reason", "new ranges")
    (listed,) = shell.json("requests")["requests"]
    assert listed == made
    assert [made[key] for key in ("state", "by", "from", "to", "at", "reason", "slices", "cancelled_by")] == [
        *("waiting", "ann", "2024-03-01T10:00:00Z", "2024-03-01T12:00:00Z", at, "new ranges", 2, None)
    ]
    (line,) = shell.lines("requests")
    assert line == (
        f"{made['id']} waiting for the first update from {at} on: 2024-03-01T10:00:00Z to 2024-03-01T12:00:00Z, "
        f"by ann at {made['made']}: new ranges"
    )


def test_without_requests_the_list_says_so(shell: Shell) -> None:
    assert shell.lines("requests") == ["there are no requests"]


def test_a_request_that_has_not_started_can_be_cancelled_once(shell: Shell) -> None:
    id = shell.json("request", "--from", FROM, "--to", TO, "--by", "ann")["id"]
    cancelled = shell.json("cancel", id, "--by", "bob")
    assert (cancelled["state"], cancelled["cancelled_by"]) == ("cancelled", "bob")
    assert shell.error("cancel", id, "--by", "cy") == (
        f"recapture: request {id} is cancelled already, by bob at {cancelled['ended']}"
    )


def test_a_request_that_has_started_cannot_be_cancelled(world: World, shell: Shell) -> None:
    id = shell.json("request", "--from", FROM, "--to", TO)["id"]
    range_ = DueRange((DueSlice(START, (), None, requests=(id,)),), LENGTH)
    WORK.change(open_container(world.table.as_uri()), lambda work: claim(work, "an update", range_, START + LENGTH))
    assert shell.error("cancel", id) == (
        f"recapture: request {id} started at 2024-03-01T11:00:00Z: what it published can be rolled back"
    )


def test_a_request_may_name_some_slices_of_its_range(world: World, shell: Shell) -> None:
    pipeline, end = load(world.file), TEN + 3 * HOUR
    selected = [TEN, TEN + 2 * HOUR]
    made = make_request(pipeline, NewRequest(TEN, end, "ann", only=[*reversed(selected), TEN]))
    assert (made["slices"], made["only"]) == (2, ["2024-03-01T10:00:00Z", "2024-03-01T12:00:00Z"])
    (line,) = shell.lines("requests")
    assert ": 2 slices of 2024-03-01T10:00:00Z to 2024-03-01T13:00:00Z, by ann" in line
    (stored,) = WORK.read(open_container(world.table.as_uri())).requests
    is_requested = [stored.wants(START + n * LENGTH, START + (n + 1) * LENGTH) for n in range(3)]
    assert is_requested == [True, False, True]
    for outside in (end, TEN + HOUR / 2):
        with pytest.raises(DefinitionError, match="is not the start of a slice of the range"):
            make_request(pipeline, NewRequest(TEN, end, "ann", only=[outside]))


def test_a_request_of_some_slices_ends_with_the_last_of_them() -> None:
    asked = replace(request("1"), end=START + 3 * LENGTH, only=(START + 2 * LENGTH,))
    range_ = DueRange((DueSlice(START + 2 * LENGTH, (), None, requests=("1",)),), LENGTH)
    work = claim(with_request(Work(), asked), "an update", range_, START)
    (ended,) = record(work, Result(range_, START, "run"), Known({}, {}, {}), LENGTH).requests
    assert (ended.state, list(ended.published)) == (RequestState.PUBLISHED, ["2024-03-01T12:00:00Z"])


def test_an_older_version_refuses_the_record_while_a_request_names_some_slices(world: World) -> None:
    """A version that does not know `only` would compute the whole range. Afterwards it can read the record again."""
    container = open_container(world.table.as_uri())
    older = JsonFile(WORK.file.name, Work)

    def changed(work: Work) -> bytes:
        WORK.change(container, lambda _: work)
        return container.read_current(WORK.file.name) or b""

    assert older.decode(changed(Work(requests=(request("1"),))), "work.json").requests
    apart = Work(requests=(replace(request("1"), end=START + 3 * LENGTH, only=(START,)),))
    with pytest.raises(
        FormatError, match=r"work\.json has format 4, and this version of Recapture reads 3: use a newer"
    ):
        older.decode(changed(apart), "work.json")
    assert WORK.read(container) == apart
    assert older.decode(changed(cancelled(apart, "1", "ann", START)), "work.json").requests


def test_an_unknown_request_is_named(shell: Shell) -> None:
    assert shell.error("cancel", "abc") == "recapture: there is no request abc for telemetry: see recapture requests"


@pytest.mark.parametrize(
    ("end", "message"), [("2024-03-01T10:30:00Z", "not on a slice border"), ("9998-03-01T11:00:00Z", "in the future")]
)
def test_only_whole_slices_that_have_ended_can_be_requested(shell: Shell, end: str, message: str) -> None:
    assert message in shell.error("request", "--from", FROM, "--to", end)
    assert shell.json("requests")["requests"] == []


def request(id: str, **fields: Any) -> Request:
    return Request(id, "ann", START, START + LENGTH, START, START, **fields)


def test_the_same_request_is_made_once_although_the_answer_was_lost() -> None:
    work = with_request(Work(), request("1"))
    assert with_request(work, request("1")) == work


def test_the_oldest_ended_requests_are_forgotten_and_open_ones_never() -> None:
    work = with_request(Work(), request("open"))
    for number in range(REMEMBERED + 5):
        work = cancelled(with_request(work, request(str(number))), str(number), "bob", START)
    work = with_request(work, request("last"))
    assert [other.id for other in work.requests] == ["open", *map(str, range(5, REMEMBERED + 5)), "last"]


def test_a_request_that_was_cancelled_keeps_its_range_from_being_claimed() -> None:
    work = cancelled(with_request(Work(), request("1")), "1", "bob", START)
    range_ = DueRange((DueSlice(START, (), None, requests=("1",)),), LENGTH)
    assert claim(work, "an update", range_, START) == work


def test_a_request_of_which_another_update_published_a_slice_keeps_the_range_from_being_claimed() -> None:
    requested = replace(request("1"), end=START + 2 * LENGTH)
    published = replace(requested, published={ticks.to_text(START): "run"})
    range_ = DueRange(tuple(DueSlice(START + n * LENGTH, (), None, requests=("1",)) for n in range(2)), LENGTH)
    assert claim(with_request(Work(), published), "an update", range_, START).leases == ()
    assert claim(with_request(Work(), requested), "an update", range_, START).leases != ()
