"""The trend of published slices: values by slice, day and hour, and what each check said over time."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from recapture.definition.pipeline import load
from recapture.errors import AuditError, RunError
from recapture.execute.processes.workers import Workers
from recapture.quality.audit import Result
from recapture.time_model.metrics import COUNTS, WATERMARK_DELAY
from recapture.tools.reports.trend import MOST_SLICES, trend_document
from recapture.tools.reports.trend_page import trend_page
from recapture.tools.reports.trend_source import Trend, TrendSlice, read_trend
from tests.commands import FIRST_HOUR, Command
from tests.stages import audit, publish
from tests.worlds import TEN, World, at, body, not_warmer_than, one_event, staged

HOSTILE = "<img src=x onerror=alert(1)></script><script>alert(2)</script>"
ROOMS = f"no room is too warm {HOSTILE}"
ELEVEN, TWELVE, ONE, TWO = (f"2024-03-01T{hour}:00:00Z" for hour in (11, 12, 13, 14))


@dataclass(frozen=True)
class Judged:
    """A world of four hours: one passed, one warned, one was stopped, and one has no run; and its trend."""

    world: World
    page: Path
    document: Mapping[str, Any]


@pytest.fixture(scope="module")
def judged(processes: Workers, tmp_path_factory: pytest.TempPathFactory) -> Judged:
    world = World(tmp_path_factory.mktemp("trend"))
    world.put("0", at(12), [body("a", at(10)), body("a", at(11)), body("old", at(-60))])
    world.put("0", at(72), [body("a", at(70), 30)], 3)
    world.put("0", at(132), [body("a", at(130), 99)], 4)
    world.put("0", at(300), [], 5)
    for hour, severity in enumerate(("warning", "warning", "critical")):
        world.write_suite(not_warmer_than(25, description=ROOMS, severity=severity))
        run = staged(processes, world.define(quality="rooms.json"), at(60 * hour), at(60 * hour + 60))
        try:
            audit(run)
            publish(run)
        except AuditError:
            assert hour == 2
    page = world.home / "trend.html"
    page.write_bytes(trend_page(trend_document(read_trend(load(world.file), TEN, at(240)))))
    return Judged(world, page, trend_document(read_trend(load(world.file), TEN, at(240))))


def values(groups: Sequence[Mapping[str, Any]], name: str) -> list[Any]:
    return [group[name] for group in groups]


def test_each_slice_has_its_metrics_and_rows_and_none_if_nothing_is_published(judged: Judged) -> None:
    periods = judged.document["periods"]
    assert values(periods, "events") == [3, 1, None, None]
    assert values(periods, "late") == [pytest.approx(1 / 3), 0, None, None]
    assert values(periods, "lost") == [0, 0, None, None]
    assert periods[0]["delay"] == 60.0
    assert all(value > 0 for value in values(periods, "rows")[:2])
    assert values(periods, "failed") == [0, 1, 1, None]


def test_a_check_is_shown_over_time_and_a_blocked_slice_shows_the_run_that_was_stopped(judged: Judged) -> None:
    (rooms,) = (check for check in judged.document["checks"] if check["title"] == ROOMS)
    assert rooms["levels"] == ["good", "warning", "bad", None]
    assert rooms["counts"] == {"bad": 1, "warning": 1, "good": 1}
    assert rooms["last_failed"] == TWELVE
    assert judged.document["checks"][0] == rooms, "the worst check is first"
    assert judged.document["verdict"] == {
        "level": "bad",
        "sentence": f"In the newest slice, {TWELVE}, 1 check failed. 1 check failed or warned before.",
    }


@pytest.mark.parametrize(
    ("run", "results", "level", "ending"),
    [
        ("b", (True,), "good", " None failed or warned before."),
        (None, (True,), "warning", " But 1 slice of the range is not published."),
        ("b", None, "warning", " But 1 audit cannot be read."),
        ("a", (False,), "warning", " But its checks had nothing to judge."),
    ],
)
def test_a_trend_is_only_good_if_all_was_looked_at(
    judged: Judged, run: str | None, results: tuple[bool, ...] | None, level: str, ending: str
) -> None:
    passed = next(
        result
        for audited in read_trend(load(judged.world.file), TEN, at(60)).audits.values()
        for result in audited or ()
        if result.success and result.proved
    )
    slices = [TrendSlice(ELEVEN, "a", "a", None, 1), TrendSlice(TWELVE, run, run, None, 1)]
    known = {"a": (passed,), "b": None if results is None else (passed,)}
    if results == (False,):
        known["a"] = (replace(passed, proved=False),)
    audits = {slice_.judged_run: known[slice_.judged_run] for slice_ in slices if slice_.judged_run is not None}
    verdict = trend_document(Trend(load(judged.world.file), slices, audits))["verdict"]
    assert (verdict["level"], verdict["sentence"].endswith(ending)) == (level, True)


def test_without_a_range_it_ends_with_the_newest_slice_that_is_published_or_blocked(judged: Judged) -> None:
    document = trend_document(read_trend(load(judged.world.file), None, None))
    assert (document["from"], document["to"]) == ("2024-03-01T10:00:00Z", ONE)
    assert (document["slices"], document["published"]) == (3, 2)


def test_a_range_without_publications_is_refused(judged: Judged, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="nothing is published in this range"):
        read_trend(load(judged.world.file), at(180), at(240))
    with pytest.raises(RunError, match="nothing is published"):
        read_trend(one_event(tmp_path).define(), None, None)


def test_the_command_writes_the_page_and_its_document(judged: Judged, command: Command, tmp_path: Path) -> None:
    result = command.json("report", judged.world.file, "--trend", "--out", tmp_path / "page.html")
    assert result["verdict"]["level"] == "bad"
    document = json.loads(Path(result["document"]).read_text("utf-8"))
    assert (document["unit"], document["slices"]) == ("slice", 3)
    assert "1 check failed" in command.text("report", judged.world.file, "--trend", "--out", tmp_path / "page.html")
    assert "give both --from and --to" in command.error("report", judged.world.file, "--trend", *FIRST_HOUR[:2])


def test_markup_in_the_title_of_a_check_does_nothing(judged: Judged) -> None:
    text = judged.page.read_text("utf-8")
    assert ROOMS.replace("<", "&lt;").replace(">", "&gt;") in text
    assert "<script" not in text
    assert "<img" not in text


def test_the_calendar_is_linked_only_from_airflow(judged: Judged) -> None:
    assert b">Calendar</a>" not in judged.page.read_bytes()
    assert b'<a href="../telemetry/">Calendar</a>' in trend_page(judged.document, "../telemetry/")


def made(world: World, slices: Sequence[TrendSlice], audits: Mapping[str, Sequence[Result] | None]) -> dict[str, Any]:
    return trend_document(Trend(world.define(), slices, audits))


def counted(**known: int) -> dict[str, Any]:
    return dict.fromkeys(COUNTS, 0) | {WATERMARK_DELAY: 1.0} | known


def result(title: str, success: bool, severity: Any = "critical", proved: bool = True) -> Result:
    return Result("suite", "metrics", title, severity, success, None, None, title, title, proved)


def test_many_slices_are_shown_by_day_with_the_shares_of_their_sums(tmp_path: Path) -> None:
    """A day with 2 of 2 events late, and 0 of 198, has 1 % of late events, not 50 %."""
    starts = [f"2024-03-{1 + hour // 24:02}T{hour % 24:02}:00:00Z" for hour in range(MOST_SLICES + 24)]
    events = {starts[3]: counted(InputEvents=2, LateInputEvents=2), starts[4]: counted(InputEvents=198)}
    slices = [TrendSlice(start, "run", "run", events.get(start, counted()), 2) for start in starts]
    document = made(World(tmp_path), slices, {"run": [result("check", True)]})
    assert document["unit"] == "day"
    assert values(document["periods"], "name") == [f"2024-03-{day:02}" for day in (1, 2, 3, 4)]
    assert values(document["periods"], "late") == [0.01, None, None, None]
    assert values(document["periods"], "rows") == [48] * 4
    assert values(document["hours"], "name") == [f"{hour:02}" for hour in range(24)]
    assert values(document["hours"], "late")[2:6] == [None, 1, 0, None]
    assert values(document["periods"], "events") == [200, 0, 0, 0]
    assert values(document["hours"], "events")[2:6] == [0, 0.5, 49.5, 0], "the mean of the hour's four slices"


def test_a_day_shows_the_worst_that_a_check_said_in_any_of_its_runs(tmp_path: Path) -> None:
    starts = [f"2024-03-{1 + hour // 24:02}T{hour % 24:02}:00:00Z" for hour in range(MOST_SLICES + 1)]
    runs = ["a" if number < 20 else "b" if number < 50 else "gone" for number in range(len(starts))]
    slices = [TrendSlice(start, run, run, None, None) for start, run in zip(starts, runs, strict=True)]
    audits = {
        "a": [result("x", True), result("y", False, "info"), result("z", True, proved=False)],
        "b": [result("x", False), result("y", False, "warning"), result("z", True)],
        "gone": None,
    }
    document = made(World(tmp_path), slices, audits)
    levels = {check["title"]: check["levels"] for check in document["checks"]}
    assert levels == {
        "x": ["bad", "bad", "bad", None],
        "y": ["warning", "warning", "warning", None],
        "z": ["good", "good", "good", None],
    }
    assert values(document["periods"], "failed") == [2, 2, 2, None]
    assert document["unknown_audits"] == 1
    assert values(document["periods"], "events") == [None] * 4, "what is lost is not 0"
