"""The figures of a pipeline: what is published, and nothing for what is not known."""

import re
from pathlib import Path

import pytest
import yaml

from recapture.execute.processes.workers import Workers
from recapture.run.rollback import rollback
from recapture.run.status import status
from recapture.table.delta import OpenTable
from recapture.tools.monitoring.exposition import Sample
from recapture.tools.monitoring.figures import ARCHIVE_CHECKED, GAUGES, figures
from tests.stages import audit, publish
from tests.worlds import World, at, body, staged

DOCS = Path(__file__).parents[3] / "docs" / "monitoring.md"


@pytest.fixture(scope="module")
def world(processes: Workers, tmp_path_factory: pytest.TempPathFactory) -> World:
    """Three hours: the first has three events, of which one is late; the second is not published."""
    world = World(tmp_path_factory.mktemp("figures"))
    world.put("0", at(12), [body("a", at(10)), body("a", at(11)), body("old", at(-60))])
    world.put("0", at(72), [body("a", at(70))], 3)
    world.put("0", at(132), [body("a", at(130)), body("b", at(131))], 4)
    world.put("0", at(300), [], 6)
    for start in (0, 120):
        run = staged(processes, world.define(), at(start), at(start + 60))
        audit(run)
        publish(run)
    return world


def values(samples: list[Sample], name: str) -> dict[tuple[str, ...], float]:
    """Return the samples of a gauge, by the values of their labels but for the pipeline."""
    chosen = [sample for sample in samples if sample.gauge.name == name]
    assert all(sample.labels["pipeline"] == "telemetry" for sample in chosen)
    return {
        tuple(value for key, value in sample.labels.items() if key != "pipeline"): sample.value for sample in chosen
    }


def test_the_figures_are_those_of_status_and_of_the_newest_slice(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = world.define()
    opened, open_table = list[str](), OpenTable._open

    def opening(table: OpenTable) -> None:
        opened.append(table.table.url)
        open_table(table)

    with monkeypatch.context() as watched:
        watched.setattr(OpenTable, "_open", opening)
        samples = figures(pipeline)
    assert len(opened) == len(set(opened)) == 4, "each table is read once"
    states = values(samples, "recapture_slices")
    assert {state: count for (state,), count in states.items() if count} == status(pipeline)["states"]
    assert states["blocked",] == 0, "a state without slices is 0, so that an alert sees it end"
    assert ("awaiting a decision",) not in states, "status cannot see that a run waits: no sample, instead of always 0"
    assert values(samples, "recapture_newest_slice_end_timestamp_seconds") == {(): at(180).timestamp()}
    assert values(samples, "recapture_unpublished_ranges") == {(): 1}
    assert values(samples, "recapture_problems") == {(): 0}
    assert values(samples, "recapture_missing_events") == {(): 0}
    metrics = values(samples, "recapture_newest_slice_metric")
    assert metrics[("telemetry", "InputEvents")] == 2
    assert metrics[("telemetry", "late_adjusted")] == 0
    assert values(samples, "recapture_newest_slice_rows") == {("aggregates",): 2}


def test_nothing_published_has_no_newest_slice_and_no_count_of_what_is_missing(world: World, tmp_path: Path) -> None:
    samples = figures(world.define(table="empty"))
    assert {sample.gauge.name for sample in samples} == {
        "recapture_slices",
        "recapture_unpublished_ranges",
        "recapture_problems",
    }


def test_a_newest_slice_that_was_rolled_back_is_not_the_newest(world: World) -> None:
    pipeline = world.define()
    rollback(pipeline, at(120), at(180))
    assert values(figures(pipeline), "recapture_newest_slice_end_timestamp_seconds") == {(): at(60).timestamp()}


def test_the_page_names_every_metric() -> None:
    page = DOCS.read_text()
    assert [gauge.name for gauge in GAUGES if f"`{gauge.name}`" not in page] == []


def rules() -> dict[str, str]:
    """Return the expression of each alert on the page."""
    [block] = re.findall(r"```yaml\n(.*?)```", DOCS.read_text(), re.DOTALL)
    (group,) = yaml.safe_load(block)["groups"]
    return {rule["alert"]: rule["expr"] for rule in group["rules"]}


def test_the_page_says_for_each_alert_what_to_do_and_how_to_see_that_it_is_over() -> None:
    sections = dict(re.findall(r"^### (Recapture\w+)\n(.*?)(?=^##)", DOCS.read_text(), re.DOTALL | re.MULTILINE))
    assert [*sections] == [*rules()]
    assert [alert for alert, text in sections.items() if "\n1. " not in text or "**Over:** " not in text] == []


def test_a_rule_compares_samples_that_exist(world: World) -> None:
    samples = figures(world.define())
    names = {sample.gauge.name for sample in samples} | {ARCHIVE_CHECKED.name, "node_textfile_mtime_seconds"}
    values = {value for sample in samples for value in sample.labels.values()}
    for alert, expression in rules().items():
        assert {*re.findall(r"(\w+)\{", expression)} <= names, alert
        for value in re.findall(r'(?:pipeline|state|metric)=~?"([^"]*)"', expression):
            assert {*value.split("|")} <= values, alert
