"""The reports of real runs: published, published again with other rows, and blocked; and of a range of slices."""

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

from recapture.definition.pipeline import Pipeline, load
from recapture.errors import AuditError, DefinitionError, RunError
from recapture.execute.processes.workers import Workers
from recapture.run.approval import approve
from recapture.run_files.planned import PlannedRun, load_run
from recapture.table.publications import Approval
from recapture.time_model.metrics import VERDICTS
from recapture.tools.reports.ledger import PARTS
from recapture.tools.reports.page import page as report_page
from recapture.tools.reports.write import write_range_report
from tests.browser import Axe
from tests.commands import FIRST_HOUR, Command
from tests.stages import audit, publish, with_report, write_run_report
from tests.worlds import TEN, World, at, body, not_warmer_than, run_file, staged, version

HOSTILE = "<img src=x onerror=alert(1)></td></script><script>alert(2)</script>"


@dataclass(frozen=True)
class Reports:
    """Runs of one hour, of which one was blocked at first, and the documents and pages of their reports."""

    world: World
    runs: Mapping[str, PlannedRun]
    documents: Mapping[str, dict[str, Any]]
    pages: Mapping[str, str]
    errors: Mapping[str, AuditError]


@pytest.fixture(scope="module")
def reports(processes: Workers, tmp_path_factory: pytest.TempPathFactory) -> Reports:
    """An hour with many verdicts; then a blob that arrives later, and a suite that is too strict for it at first."""
    world = World(tmp_path_factory.mktemp("reports"))
    events = [
        body(HOSTILE, at(9)),
        body("b", at(2)),
        body("b", at(8), 30),
        body("b", at(3)),
        body("clock", at(30)),
        HOSTILE.encode(),
        body("b", None),
    ]
    world.put("0", at(12), [*events, body("old", at(1))])
    world.put("0", at(13), [body("b", at(3.5), 99)], 20)
    world.put("0", at(90), [], 21)
    world.put("1", at(90))
    documents, pages, errors = {}, {}, {}

    def judge(name: str, run: PlannedRun) -> PlannedRun:
        try:
            audit(run)
            publish(run)
            write_run_report(run)
        except AuditError as error:
            errors[name] = with_report(error, run)
        return read(name, run)

    def read(name: str, run: PlannedRun) -> PlannedRun:
        folder = world.table / "_recapture" / run.id
        documents[name] = json.loads((folder / "report.json").read_text("utf-8"))
        pages[name] = (folder / "report.html").read_text("utf-8")
        return run

    def define(suite: str | None = None) -> Pipeline:
        return world.define(eventsOutOfOrderMaxDelayInSeconds=60, quality=suite)

    first = judge("first", staged(processes, define(), TEN, at(60)))
    world.write_suite(not_warmer_than(25, description=f"no room is too warm {HOSTILE}"), name="strict")
    world.put("1", at(14), [body("b", at(8), 50)], 1)
    blocked = judge("blocked", staged(processes, define("strict.json"), TEN, at(60)))
    approve(blocked, Approval("Ada", at(600), HOSTILE))
    publish(blocked)
    write_run_report(blocked)
    read("approved", blocked)
    range_page = world.home / "range.html"
    write_range_report(define("strict.json"), None, None, range_page)
    documents["approved range"] = json.loads(range_page.with_suffix(".json").read_text("utf-8"))
    pages["approved range"] = range_page.read_text("utf-8")
    second = judge("second", load_run(define(), blocked.id))
    return Reports(world, {"first": first, "blocked": blocked, "second": second}, documents, pages, errors)


class Elements(HTMLParser):
    """The elements of a page as a browser sees them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_ledger_adds_up_and_has_every_partition(reports: Reports) -> None:
    for document in reports.documents.values():
        totals = document["ledger"]["totals"]
        assert totals["InputEvents"] == sum(totals[part] for part in PARTS) > 0
        assert [row["partition"] for row in document["ledger"]["partitions"]] == ["0", "1"]
        assert [row["rows"] for row in document["ledger"]["groups"]] == [totals["rows"]]
    first = reports.documents["first"]["ledger"]["totals"]
    assert {name: first[name] for name in VERDICTS if first[name]} == {
        "on_time": 3,
        "early_dropped": 1,
        "late_adjusted": 1,
        "out_of_order_adjusted": 2,
        "invalid_timestamp": 1,
        "malformed": 1,
    }


def test_a_published_run_says_that_it_is_published_and_how_many_events_kept_their_time(reports: Reports) -> None:
    verdict = reports.documents["first"]["verdict"]
    assert verdict["level"] == "warning"
    assert "published" in verdict["sentence"]
    assert verdict["events"].startswith("9 events arrived: 33.3 % on time, 3 adjusted (33.3 %), 1 dropped")
    assert any("correct the clocks of the devices, such as clock" in advice for advice in verdict["advice"])


def test_a_blocked_run_has_a_report_with_the_reason_and_the_rows(reports: Reports) -> None:
    document = reports.documents["blocked"]
    assert document["verdict"]["level"] == "bad"
    assert "nothing was published" in document["verdict"]["sentence"]
    [failure] = [failure for failure in document["failures"]["failed"] if failure["suite"] == "strict"]
    assert (failure["severity"], failure["expected"]) == ("critical", "avgTemperature: at most 25")
    assert failure["columns"] == ["windowEnd", "deviceId", "events", "avgTemperature"]
    warm = [row for row in failure["rows"] if row[1] == "b"]
    assert warm
    assert all(float(row[3]) > 25 for row in failure["rows"])
    assert str(reports.errors["blocked"]).endswith(f"_recapture/{reports.runs['blocked'].id}/report.html")


def test_a_report_shows_which_rows_a_run_changed(reports: Reports) -> None:
    assert reports.documents["first"]["changes"]["outputs"][0]["slices"]["new"] == 1
    changes = reports.documents["second"]["changes"]
    assert [run["run"] for run in changes["previous"]] == [reports.runs["first"].id]
    [output] = changes["outputs"]
    rows = output["rows"]
    assert (output["slices"]["different"], rows["changed"], rows["only_before"], rows["only_after"]) == (1, 1, 0, 0)
    [row] = output["examples"]
    changed = {
        name: (before, after)
        for name, before, after in zip(output["example_columns"], row["before"], row["after"], strict=True)
        if before != after
    }
    assert changed.keys() == {"events", "avgTemperature"}


def test_a_blocked_run_is_compared_with_what_is_published(reports: Reports) -> None:
    document = reports.documents["blocked"]
    assert [run["run"] for run in document["changes"]["previous"]] == [reports.runs["first"].id]
    assert document["changes"]["outputs"][0]["slices"]["different"] == 1
    assert document["published"] is False


def test_the_quarantine_has_its_reasons_with_examples(reports: Reports) -> None:
    quarantine = reports.documents["first"]["quarantine"]
    assert quarantine["rows"] == 2
    assert {reason["verdict"]: reason["rows"] for reason in quarantine["reasons"]} == {
        "malformed": 1,
        "invalid_timestamp": 1,
    }
    bodies = [example["body"] for reason in quarantine["reasons"] for example in reason["examples"]]
    assert HOSTILE in bodies


def test_the_picture_has_every_event_of_a_small_partition(reports: Reports) -> None:
    pictures = reports.documents["first"]["timing"][0]["pictures"]
    whole = next(picture for picture in pictures if picture["key"] is None)
    assert (whole["partition"], len(whole["points"])) == ("0", 9)
    key_picture = next(picture for picture in pictures if picture["key"] is not None)
    assert key_picture["key"] == "b"
    assert key_picture["one_watermark"]


def test_who_pushed_the_watermark_is_named(reports: Reports) -> None:
    pushers = reports.documents["first"]["timing"][0]["pushers"]
    assert pushers[0]["key"] == HOSTILE
    assert pushers[0]["seconds"] == -180


def test_a_partition_that_is_silent_or_has_a_gap_is_shown(reports: Reports) -> None:
    capture = reports.documents["first"]["capture"]
    partitions = [(of["partition"], of["blobs"], of["silent"]) for of in capture["inputs"][0]["partitions"]]
    assert partitions == [("0", 2, False), ("1", 0, True)]
    assert (capture["gap_count"], capture["missing"]) == (1, 12)
    assert (capture["gaps"][0]["first"], capture["gaps"][0]["last"]) == (8, 19)


def test_an_approved_run_names_the_person_and_the_reason(reports: Reports) -> None:
    document = reports.documents["approved"]
    assert document["published"]
    assert document["approvals"] == [{"by": "Ada", "at": "2024-03-01T20:00:00Z", "reason": HOSTILE, "slices": 1}]
    assert document["verdict"]["level"] == "warning"
    assert "Ada approved 1 slice on 2024-03-01T20:00:00Z" in document["verdict"]["sentence"]
    covered = reports.documents["approved range"]
    assert covered["approvals"] == document["approvals"]
    assert covered["ledger"]["groups"][0]["quality"] == "approved"
    assert [(of["slices"], of["quality"]) for of in covered["slices"]["attention"]] == [(1, "approved")]


@pytest.mark.parametrize("name", ["first", "second", "blocked", "approved", "approved range"])
def test_markup_in_names_bodies_and_descriptions_does_nothing(reports: Reports, name: str) -> None:
    elements = Elements(reports.pages[name])
    assert not {"script", "img", "iframe", "object", "link", "base", "form"} & set(elements.tags)
    assert [key for key, _ in elements.attributes if key.startswith("on")] == []
    assert [
        value for key, value in elements.attributes if key in ("src", "href") and not str(value).startswith("#")
    ] == []
    assert HOSTILE in elements.text


def test_a_browser_runs_nothing_and_asks_nobody(reports: Reports, page: Page) -> None:
    dialogs: list[str] = []
    requests: list[str] = []
    page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    page.on("request", lambda request: requests.append(request.url))
    for run in reports.runs.values():
        file = reports.world.table / "_recapture" / run.id / "report.html"
        page.goto(file.as_uri())
        assert page.locator("script, img, iframe, [onerror]").count() == 0
        assert page.get_by_text(HOSTILE).count() > 0
        assert page.locator("svg[role=img]").count() >= 3
    assert dialogs == []
    assert all(url.endswith("/report.html") for url in requests)


def test_the_report_of_a_run_fits_a_phone_and_everybody_can_use_it(reports: Reports, page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto((reports.world.table / "_recapture" / reports.runs["second"].id / "report.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert Axe(page).serious_findings() == []


def test_a_page_begins_with_a_sentence_three_figures_and_what_became_of_the_events(reports: Reports) -> None:
    document, elements = reports.documents["second"], Elements(reports.pages["second"])
    totals = document["ledger"]["totals"]
    labels = [str(value) for key, value in elements.attributes if key == "aria-label"]
    (bar,) = [label for label in labels if label.startswith("What became of the events that arrived")]
    counted = {name: int(count.replace(",", "")) for count, name in re.findall(r"([\d,]+) ([a-z() ]+)", bar)}
    assert sum(counted.values()) == totals["InputEvents"]
    assert counted["on time"] == totals["on_time"]
    assert counted["malformed"] == totals["malformed"]
    assert elements.text.index(document["verdict"]["sentence"]) < elements.text.index("lost: dropped or quarantined")


def test_there_is_a_space_between_the_sentences_about_a_picture(reports: Reports) -> None:
    document = deepcopy(reports.documents["second"])
    document["timing"][0]["pictures"][0] |= {"one_watermark": False, "late_bound": -(10**9), "outside": 1}
    text = Elements(report_page(document).decode()).text
    assert re.search(r"which are not drawn\.\s+The late bound is outside the picture, .+ arrival\.\s+1 event at", text)


def test_a_term_leads_to_its_meaning(reports: Reports, page: Page) -> None:
    page.goto((reports.world.table / "_recapture" / reports.runs["second"].id / "report.html").as_uri())
    meaning = page.locator("#term-duplicate + dd")
    assert not meaning.is_visible()
    page.locator("figcaption .term", has_text="duplicate").first.click()
    assert meaning.is_visible()


def test_no_picture_is_taller_than_twice_its_width_and_a_browser_shows_every_text_inside(
    reports: Reports, page: Page
) -> None:
    page.goto((reports.world.table / "_recapture" / reports.runs["first"].id / "report.html").as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(details => { details.open = true })")
    measured = page.evaluate(
        """[...document.querySelectorAll("svg")].map(svg => {
            const box = svg.getBoundingClientRect();
            const outside = [...svg.querySelectorAll("text")].filter(text => {
                const {left, right, top, bottom} = text.getBoundingClientRect();
                return left < box.left || right > box.right || top < box.top || bottom > box.bottom;
            });
            return [box.height / box.width, outside.map(text => text.textContent)];
        })"""
    )
    assert len(measured) >= 3
    assert all(ratio <= 2 for ratio, _ in measured)
    assert [texts for _, texts in measured if texts] == []


def test_a_page_has_landmarks_headers_and_texts_for_its_pictures(reports: Reports) -> None:
    elements = Elements(reports.pages["blocked"])
    assert {"main", "nav", "header", "footer", "h1", "th", "caption"} <= set(elements.tags)
    attributes = elements.attributes
    pictures = [value for key, value in attributes if key == "role" and value == "img"]
    labels = [value for key, value in attributes if key == "aria-label"]
    assert len(pictures) >= 3
    assert len(labels) >= len(pictures)
    identifiers = [value for key, value in attributes if key == "id"]
    assert len(identifiers) == len(set(identifiers))
    targets = {
        str(value)[1:] for key, value in attributes if key in ("href", "aria-labelledby") and str(value)[:1] == "#"
    }
    assert targets <= set(identifiers)


def test_the_report_of_a_range_covers_what_is_published(reports: Reports, tmp_path: Path, command: Command) -> None:
    page = tmp_path / "report.html"
    printed = command.json("report", reports.world.file, *FIRST_HOUR, "--out", page)
    assert (printed["page"], printed["document"]) == (str(page), str(tmp_path / "report.json"))
    document = json.loads((tmp_path / "report.json").read_text("utf-8"))
    second = reports.documents["second"]
    assert document["kind"] == "range"
    assert document["ledger"]["totals"] == second["ledger"]["totals"]
    assert document["timing"] == second["timing"]
    assert document["quarantine"]["reasons"] == second["quarantine"]["reasons"]
    assert [run["run"] for run in document["runs"]] == [reports.runs["second"].id]
    assert "range" in page.read_text("utf-8")


@pytest.fixture
def without_run_files(reports: Reports) -> Iterator[None]:
    folder = reports.world.table / "_recapture"
    away = shutil.move(folder, reports.world.home / "away")
    yield
    shutil.move(away, folder)


@pytest.mark.usefixtures("without_run_files")
def test_a_range_whose_run_files_are_gone_is_reported_from_the_tables(reports: Reports, tmp_path: Path) -> None:
    write_range_report(load(reports.world.file), None, None, tmp_path / "report.html")
    document = json.loads((tmp_path / "report.json").read_text("utf-8"))
    second = reports.documents["second"]
    assert document["ledger"] == second["ledger"]
    assert document["quarantine"]["rows"] == second["quarantine"]["rows"]
    assert document["timing"][0]["profiled"] == 0
    assert document["timing"][0]["pictures"] == []
    assert "no longer exist" in (tmp_path / "report.html").read_text("utf-8")


def test_an_unpublished_slice_in_a_range_is_named(reports: Reports, tmp_path: Path) -> None:
    result = write_range_report(load(reports.world.file), TEN, at(120), tmp_path / "report.html")
    assert result["verdict"]["level"] == "bad"
    assert "1 slice is not published" in result["verdict"]["sentence"]
    assert any("2024-03-01T11:00:00Z" in advice for advice in result["verdict"]["advice"])
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "computed from them." in page
    assert "none is published" not in page, "the other slice is"


def test_a_report_leads_to_the_checks_in_each_state_and_says_what_each_stage_took(reports: Reports) -> None:
    page, passed = reports.pages["blocked"], reports.documents["blocked"]["failures"]["passed_checks"]
    assert f'<a href="#passed">{len(passed)} passed</a>' in page
    assert re.findall(r'<a href="#(failed|warned|notes|unjudged|passed)">', page)[0] == "failed"
    assert "and none is published" in page
    stages = re.findall(r'<tr><th scope="row">([a-z ]+)</th><td class="number">[\d.]+ m?s</td>', page)
    assert {"order and aggregate", "audit"} <= set(stages)


def test_the_number_of_checks_includes_those_that_are_not_listed(reports: Reports) -> None:
    document = reports.documents["blocked"]
    critical = [failure for failure in document["failures"]["failed"] if failure["severity"] == "critical"]
    listed = {"counts": {"critical": 43, "warning": 2, "info": 0, "unjudged": 0}, "failed": critical, "more": 44}
    content = report_page(document | {"failures": document["failures"] | listed}).decode()
    chips = re.findall(r'<li class="mark \w+">(.*)</li>', content.partition('<ul class="chips"')[2])
    assert chips[:2] == ['<a href="#failed">43 failed</a>', "2 warned"]


def test_a_range_without_publications_is_refused(reports: Reports, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="nothing is published from 2024-03-01T12:00:00Z"):
        write_range_report(load(reports.world.file), at(120), at(180), tmp_path / "report.html")


@pytest.mark.parametrize(("file", "message"), [("no/folder.html", "cannot be written"), ("r.json", "next to the page")])
def test_a_file_that_cannot_be_written_is_named(reports: Reports, tmp_path: Path, file: str, message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        write_range_report(load(reports.world.file), None, None, tmp_path / file)


def test_half_a_range_is_a_usage_error(reports: Reports, command: Command) -> None:
    assert "give both --from and --to" in command.error("report", reports.world.file, *FIRST_HOUR[:2])


def test_writing_a_report_changes_no_table_and_no_other_run_file(reports: Reports) -> None:
    before = version(reports.world.table), run_file(reports.world.table, reports.runs["second"].id, "metrics.json")
    write_run_report(reports.runs["second"])
    after = version(reports.world.table), run_file(reports.world.table, reports.runs["second"].id, "metrics.json")
    assert before == after
