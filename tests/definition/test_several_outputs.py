"""A pipeline file may have several outputs, each with its table and its suite."""

from pathlib import Path

import pytest

from recapture.definition.digest import run_definition
from recapture.definition.pipeline import load
from recapture.run.tables import tables_of
from tests.definition.pipeline_files import change, complaint, suite_path

TWO = """\
name: two
input:
  alias: telemetry
  container: capture
  namespace: contoso
  event_hub: telemetry
job:
  query: |
    SELECT System.Timestamp() AS windowEnd, COUNT(*) AS events INTO counts
    FROM telemetry TIMESTAMP BY eventTime GROUP BY TumblingWindow(minute, 5)

    SELECT System.Timestamp() AS windowEnd, MAX(heat) AS hottest INTO peaks
    FROM telemetry TIMESTAMP BY eventTime GROUP BY TumblingWindow(hour, 1)
output:
  - alias: peaks
    table: curated/peaks
  - alias: counts
    table: curated/counts
    quality:
      suite: counts.json
"""


@pytest.fixture
def two(tmp_path: Path) -> Path:
    path = tmp_path / "two.yaml"
    path.write_text(TWO)
    return path


def test_an_output_turns_on_the_change_feed_of_its_own_table_and_changes_no_digest(two: Path) -> None:
    before = run_definition(load(two))
    two.write_text(TWO.replace("alias: counts", "alias: counts\n    change_feed: true"))
    pipeline = load(two)
    assert {name for name, table in tables_of(pipeline).others.items() if table.change_feed} == {"counts"}
    assert run_definition(pipeline) == before


def test_each_select_into_has_its_table_and_its_suite(two: Path, tmp_path: Path) -> None:
    pipeline = load(two)
    peaks, counts = pipeline.outputs
    assert (peaks.alias, peaks.table) == ("peaks", f"{tmp_path.as_uri()}/curated/peaks")
    assert counts.metrics_table == f"{tmp_path.as_uri()}/curated/counts_metrics"
    assert [column.name for column in pipeline.compiled(peaks).columns] == ["windowEnd", "hottest"]
    assert [column.name for column in pipeline.compiled(counts).columns] == ["windowEnd", "events"]
    assert pipeline.suite_path(peaks) is None
    assert pipeline.suite_path(counts) == tmp_path / "counts.json"


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("curated/counts\n", "curated/peaks\n", 18, "output.1.table: it shares a folder with the table of peaks"),
        ("curated/counts\n", "curated/../curated/peaks/\n", 18, "output.1.table: it shares a folder with"),
        ("curated/counts\n", "file://{here}/curated/../curated/peaks\n", 18, "output.1.table: it shares a folder with"),
        ("curated/counts\n", "file://localhost{here}/curated/peaks\n", 18, "output.1.table: it shares a folder with"),
        ("curated/counts\n", "file://{here}/curated//%70eaks\n", 18, "output.1.table: it shares a folder with"),
        ("curated/counts\n", "linked/peaks\n", 18, "output.1.table: it shares a folder with"),
        ("curated/counts\n", "curated/peaks/counts\n", 18, "output.1.table: it shares a folder with"),
        ("curated/counts\n", "curated\n", 18, "output.1.table: it shares a folder with"),
        ("curated/counts\n", "curated/peaks_metrics\n", 18, "output.1.table: it shares a folder with"),
        ("curated/peaks\n", "curated/counts_metrics\n", 18, "output.1.table: it shares a folder with"),
        ("alias: counts", "alias: peaks", 17, "output.1.alias: another output is named peaks too: rename one"),
        ("alias: counts", "alias: Peaks", 17, "output.1.alias: another output is named peaks too: rename one"),
        ("    table: curated/counts\n", "", 17, "output.1.table is missing: add it"),
        ("    quality:", "    quelity:", 19, "output.1.quelity: unknown key: did you mean quality?"),
        ("suite: counts.json", "suite: counts.json\n      sweet: a", 21, "output.1.quality.sweet: unknown key"),
        ("alias: counts", "alias: counts\n    change_feed: 1", 18, "output.1.change_feed: should be a valid boolean"),
        ("suite: counts.json", "expect_rows: 0", 20, "output.1.quality.expect_rows: should be a valid boolean"),
        (
            "suite: counts.json",
            "parameters: {most: 1}",
            20,
            "output.1.quality.parameters: no suite uses them: add suite",
        ),
        (
            "suite: counts.json",
            "suite: counts.json\n      parameter: {}",
            21,
            "output.1.quality.parameter: unknown key: did you mean parameters?",
        ),
        (
            "event_hub: telemetry\n",
            "event_hub: telemetry\nquality:\n  suite: counts.json\n",
            7,
            "quality: there are several outputs: write quality under each output that has a suite",
        ),
        (
            "    table: curated/counts\n",
            "    table: https://account.blob.core.windows.net/counts\n",
            18,
            "output.1.table: a table needs a name in its container",
        ),
        (
            "  - alias: counts",
            "  - alias: idle\n    table: curated/idle\n  - alias: counts",
            8,
            "job.query: query, line 1, column 1: no SELECT writes INTO idle",
        ),
    ],
)
def test_conflicting_outputs_are_reported_with_their_line(
    two: Path, old: str, new: str, line: int, message: str
) -> None:
    (two.parent / "linked").symlink_to("curated")
    change(two, old, new.replace("{here}", str(two.parent)))
    assert complaint(two)[0] == line
    assert complaint(two)[1].startswith(message)


def test_a_select_into_an_undefined_output_is_refused(two: Path) -> None:
    two.write_text(TWO[: TWO.index("  - alias: counts")])
    line, message = complaint(two)
    assert line == TWO.splitlines().index("  query: |") + 1
    assert message.startswith("job.query: query, line 1, ")
    assert "counts" in message


def test_an_empty_list_of_outputs_is_refused(two: Path) -> None:
    two.write_text(TWO[: TWO.index("  - alias: peaks")].replace("output:", "output: []"))
    assert complaint(two) == (14, "output: name at least one output, with its alias and its table")


def test_a_suite_is_written_at_the_output_or_at_the_top_but_not_both(file: Path) -> None:
    change(file, "output:\n", "output:\n  quality: {suite: own.json}\n")
    assert complaint(file)[1] == "quality: the output has its own suite: remove one of the two quality keys"
    file.write_text(file.read_text()[: file.read_text().index("quality:\n  suite")])
    assert suite_path(file) == file.parent / "own.json"
