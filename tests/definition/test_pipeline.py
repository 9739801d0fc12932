"""A pipeline file is checked when it is loaded: every mistake is reported in one line, with the file and the line."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from recapture.archive.definitions import ArrivalTime
from recapture.definition.digest import run_definition
from recapture.definition.pipeline import Pipeline, load
from recapture.errors import DefinitionError
from recapture.formats.event_hubs import CaptureInput
from recapture.run.tables import tables_of
from recapture.time_model.policies import EARLY_SECONDS, Policies
from recapture.time_model.ticks import from_seconds

EXAMPLE = """\
name: telemetry                         # [a-z][a-z0-9_]*; names the DAG, the suite, the table
input:
  alias: telemetry                      # the name after FROM
  container: https://ACCOUNT.blob.core.windows.net/capture      # or file:///absolute/folder
  path: "{Namespace}/{EventHub}/{PartitionId}/{Year}/{Month}/{Day}/{Hour}/{Minute}/{Second}"
  namespace: contoso
  event_hub: telemetry
  capture_interval_seconds: 300
  arrival_time: BlobLastModified        # or EventEnqueuedUtcTime
job:                                    # names and meaning as in ASA's own job definition
  eventsOutOfOrderPolicy: Adjust
  eventsOutOfOrderMaxDelayInSeconds: 0
  eventsLateArrivalMaxDelayInSeconds: 600
  outputErrorPolicy: Drop
  query: |
    SELECT System.Timestamp() AS windowEnd, deviceId, COUNT(*) AS events, AVG(temperature) AS avgTemperature
    INTO aggregates
    FROM telemetry TIMESTAMP BY eventTime OVER deviceId
    GROUP BY deviceId, TumblingWindow(minute, 5)
output:
  alias: aggregates                     # the name after INTO
  table: https://ACCOUNT.blob.core.windows.net/curated/telemetry # or file:///absolute/folder; a Delta table
quality:
  suite: telemetry                      # expectations/telemetry.json, or a path beside this file
"""


@pytest.fixture(autouse=True)
def _without_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AZURE_STORAGE_CONNECTION_STRING", raising=False)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "pipelines" / "telemetry.yaml"
    path.parent.mkdir()
    path.write_text(EXAMPLE)
    return path


def policies_of(pipeline: Pipeline) -> Policies | None:
    [compiled] = pipeline.query.inputs
    return pipeline.policies(compiled)


def change(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


def complaint(file: Path) -> tuple[int | None, str]:
    """Return the line and the message of the only error, without the file that it starts with."""
    with pytest.raises(DefinitionError) as caught:
        load(file)
    message, *shown = str(caught.value).split("\n")
    if shown:
        assert ": job.query: query, line " in message, "only a query is shown, with a caret under the mistake"
        assert [line.strip() for line in shown[1:]] == ["^"]
    match = re.fullmatch(rf"{re.escape(str(file))}(?::(\d+))?: (.+)", message)
    assert match, message
    return (int(match[1]) if match[1] else None), match[2]


def test_the_example_loads(file: Path) -> None:
    pipeline = load(file)
    assert pipeline.name == "telemetry"
    assert pipeline.inputs[0].container == "https://ACCOUNT.blob.core.windows.net/capture"
    (output,) = pipeline.outputs
    assert output.table == "https://ACCOUNT.blob.core.windows.net/curated/telemetry"
    assert output.metrics_table == "https://ACCOUNT.blob.core.windows.net/curated/telemetry_metrics"
    assert pipeline.inputs[0].names.prefix == "contoso/telemetry/"
    assert pipeline.slice_hours == 1
    assert pipeline.file == file
    names = [column.name for column in pipeline.compiled(output).columns]
    assert names == ["windowEnd", "deviceId", "events", "avgTemperature"]
    assert policies_of(pipeline) == Policies(0, from_seconds(600), from_seconds(EARLY_SECONDS), adjust=True)
    assert pipeline.warnings == []


def test_a_setting_that_is_left_out_has_asa_s_default(file: Path) -> None:
    settings = [
        line for line in EXAMPLE.splitlines() if re.match(r"  (events|outputError|path|capture_int|arrival)", line)
    ]
    for line in settings:
        change(file, line + "\n", "")
    pipeline = load(file)
    assert len(settings) == 7
    assert policies_of(pipeline) == Policies(0, from_seconds(5), from_seconds(300), adjust=True)
    assert isinstance(pipeline.inputs[0], CaptureInput)
    assert pipeline.inputs[0].capture_interval_seconds == 300
    assert pipeline.job.output_error_policy == "Drop"


def test_drop_and_the_largest_tolerances_are_accepted(file: Path) -> None:
    change(file, "Policy: Adjust", "Policy: Drop")
    change(file, "OrderMaxDelayInSeconds: 0", "OrderMaxDelayInSeconds: 599")
    change(file, "ArrivalMaxDelayInSeconds: 600", "ArrivalMaxDelayInSeconds: 1814399")
    assert policies_of(load(file)) == Policies(
        from_seconds(599), from_seconds(1_814_399), from_seconds(300), adjust=False
    )


def test_a_late_tolerance_of_minus_one_means_no_limit(file: Path) -> None:
    change(file, "ArrivalMaxDelayInSeconds: 600", "ArrivalMaxDelayInSeconds: -1")
    pipeline = load(file)
    policies = policies_of(pipeline)
    assert policies is not None
    assert policies.late_tolerance is None
    (warning,) = pipeline.warnings
    assert "every later arrival counts" in warning


def test_without_timestamp_by_no_policy_applies(file: Path) -> None:
    change(file, " TIMESTAMP BY eventTime OVER deviceId", "")
    change(file, "ArrivalMaxDelayInSeconds: 600", "ArrivalMaxDelayInSeconds: 5")
    pipeline = load(file)
    assert policies_of(pipeline) is None
    assert pipeline.warnings == []


@pytest.mark.parametrize(("late", "warned"), [(0, True), (299, True), (300, False), (301, False)])
def test_a_late_tolerance_below_the_capture_interval_gives_a_warning(file: Path, late: int, warned: bool) -> None:
    change(file, "ArrivalMaxDelayInSeconds: 600", f"ArrivalMaxDelayInSeconds: {late}")
    warnings = load(file).warnings
    assert len(warnings) == warned
    for warning in warnings:
        assert str(late) in warning
        assert "set it to at least 300" in warning
        assert "\n" not in warning


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("{Namespace}/{EventHub}/{PartitionId}/{Year}/{Month}/{Day}/{Hour}/{Minute}", "{Second} is missing: "),
        (
            "{Namespace}/{EventHub}/{Partition}/{Year}/{Month}/{Day}/{Hour}/{Minute}/{Second}",
            "{Partition} is not a token",
        ),
        ("{Namespace}/{EventHub}{PartitionId}/{Year}{Month}{Day}{Hour}{Minute}{Second}", "where {EventHub} ends"),
    ],
)
def test_an_incomplete_or_ambiguous_name_format_is_refused_at_its_line(file: Path, path: str, reason: str) -> None:
    text = file.read_text()
    file.write_text(re.sub(r'path: ".*"', f'path: "{path}"', text))
    line, message = complaint(file)
    assert line == line_of("path: ")
    assert message.startswith("input.path: ")
    assert reason in message


def test_by_enqueued_time_the_capture_interval_makes_nothing_late(file: Path) -> None:
    change(file, "ArrivalMaxDelayInSeconds: 600", "ArrivalMaxDelayInSeconds: 5")
    change(file, "arrival_time: BlobLastModified", "arrival_time: EventEnqueuedUtcTime")
    pipeline = load(file)
    assert pipeline.inputs[0].arrival_time is ArrivalTime.EVENT_ENQUEUED
    assert pipeline.warnings == []


def set_early(file: Path, lines: str) -> Pipeline:
    change(file, "  outputErrorPolicy", f"{lines}\n  outputErrorPolicy")
    return load(file)


def test_asa_s_early_window_gives_no_warning(file: Path) -> None:
    pipeline = set_early(file, "  early_arrival_seconds: 300\n  early_policy: Drop")
    assert pipeline.warnings == []
    assert policies_of(pipeline) == Policies(0, from_seconds(600), from_seconds(300), adjust=True)


@pytest.mark.parametrize(
    ("lines", "policies", "warning"),
    [
        (
            "  early_arrival_seconds: 0",
            {"early_window": 0},
            "early_arrival_seconds is 0, but 300 in ASA: runs do not repeat what the live job did",
        ),
        (
            "  early_arrival_seconds: 86400",
            {"early_window": from_seconds(86_400)},
            "early_arrival_seconds is 86400, but 300 in ASA: runs do not repeat what the live job did",
        ),
        (
            "  early_arrival_seconds: null",
            {"early_window": None},
            "the early window is off: runs do not repeat what the live job did; a slice gets the same rows every "
            "time, but not the rows that one long run would give; set early_arrival_seconds to 300",
        ),
        (
            "  early_policy: Adjust",
            {"adjust_early": True},
            "early_policy is Adjust, but ASA drops early events: runs do not repeat what the live job did",
        ),
    ],
)
def test_an_early_window_other_than_asa_s_gives_a_warning(
    file: Path, lines: str, policies: dict[str, Any], warning: str
) -> None:
    pipeline = set_early(file, lines)
    assert policies_of(pipeline) == replace(Policies(0, from_seconds(600), from_seconds(300), adjust=True), **policies)
    assert pipeline.warnings == [f"{file}: {warning}"]


def test_without_timestamp_by_the_early_window_does_not_matter(file: Path) -> None:
    change(file, " TIMESTAMP BY eventTime OVER deviceId", "")
    assert set_early(file, "  early_arrival_seconds: null").warnings == []


@pytest.mark.parametrize(
    ("line", "where"),
    [
        ("early_arrival_seconds: -1", "job.early_arrival_seconds"),
        ("early_arrival_seconds: 1814400", "job.early_arrival_seconds"),
        ("early_arrival_seconds: off", "job.early_arrival_seconds"),
        ("early_policy: Keep", "job.early_policy"),
        ("early_policy: null", "job.early_policy"),
    ],
)
def test_an_impossible_early_window_is_named(file: Path, line: str, where: str) -> None:
    change(file, "  outputErrorPolicy", f"  {line}\n  outputErrorPolicy")
    assert complaint(file)[1].startswith(f"{where}: ")


def line_of(text: str) -> int:
    return next(n for n, line in enumerate(EXAMPLE.splitlines(), 1) if text in line)


@pytest.mark.parametrize(
    ("key", "where"),
    [
        ("name:", "name"),
        ("  alias: telemetry", "input.alias"),
        ("  container:", "input.container"),
        ("  namespace:", "input.namespace"),
        ("  event_hub:", "input.event_hub"),
        ("  alias: aggregates", "output.alias"),
        ("  table:", "output.table"),
    ],
)
def test_a_missing_key_is_named_with_the_line_of_its_section(file: Path, key: str, where: str) -> None:
    remaining = [line for line in EXAMPLE.splitlines() if not line.startswith(key)]
    file.write_text("\n".join(remaining))
    section = where.split(".")[0]
    lines = [n for n, line in enumerate(remaining, 1) if line.startswith(f"{section}:")]
    assert complaint(file) == (lines[0] if lines else 1, f"{where} is missing: add it")


@pytest.mark.parametrize("section", ["input", "job", "output"])
def test_a_missing_section_is_named(file: Path, section: str) -> None:
    file.write_text(re.sub(rf"(?m)^{section}:.*\n(?:  .*\n)+", "", EXAMPLE))
    assert complaint(file) == (1, f"{section} is missing: add it")


UNLIKE_ANY = "remove it or correct its name"


@pytest.mark.parametrize(
    ("after", "added", "where", "advice"),
    [
        ("event_hub: telemetry\n", "  partition: 4\n", "input.partition", "did you mean partitions?"),
        (
            "outputErrorPolicy: Drop\n",
            "  eventsoutoforderpolicy: Drop\n",
            "job.eventsoutoforderpolicy",
            "did you mean eventsOutOfOrderPolicy?",
        ),
        ("outputErrorPolicy: Drop\n", "  early_policies: Drop\n", "job.early_policies", "did you mean early_policy?"),
        ("outputErrorPolicy: Drop\n", "  lateArrival: 4\n", "job.lateArrival", UNLIKE_ANY),
        ("outputErrorPolicy: Drop\n", "  late_seconds: 4\n", "job.late_seconds", UNLIKE_ANY),
        ("aggregates                     # the name after INTO\n", "  mode: append\n", "output.mode", UNLIKE_ANY),
        ("beside this file\n", "slice_hour: 2\n", "slice_hour", "did you mean slice_hours?"),
        ("beside this file\n", "outputs: x\n", "outputs", "did you mean output?"),
        ("beside this file\n", "owner: me\n", "owner", UNLIKE_ANY),
        ("beside this file\n", "definition: x\n", "definition", "did you mean functions?"),
        ("beside this file\n", "file: x\n", "file", UNLIKE_ANY),
    ],
)
def test_an_unknown_key_is_named_and_corrected_if_it_is_like_a_known_one(
    file: Path, after: str, added: str, where: str, advice: str
) -> None:
    change(file, after, after + added)
    line = file.read_text().splitlines().index(added.rstrip()) + 1
    assert complaint(file) == (line, f"{where}: unknown key: {advice}")


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("name: telemetry ", "name: Telemetry ", "name"),
        ("name: telemetry ", "name: 7 ", "name"),
        ("name: telemetry ", "name: 2026-03-01 ", "name"),
        ("alias: telemetry ", "alias: tele metry ", "input.alias"),
        ("namespace: contoso", 'namespace: ""', "input.namespace"),
        ("namespace: contoso", "namespace: [a]", "input.namespace"),
        ("seconds: 300", "seconds: 59", "input.capture_interval_seconds"),
        ("seconds: 300", "seconds: 901", "input.capture_interval_seconds"),
        ("seconds: 300", "seconds: often", "input.capture_interval_seconds"),
        ("seconds: 300", "seconds: 300.5", "input.capture_interval_seconds"),
        ("seconds: 300", "seconds: .inf", "input.capture_interval_seconds"),
        ("seconds: 300", "seconds:", "input.capture_interval_seconds"),
        ("arrival_time: BlobLastModified", "arrival_time: Never", "input.arrival_time"),
        ("capture_interval_seconds: 300", "search_hours: -1", "input.search_hours"),
        ("capture_interval_seconds: 300", "partitions: 0", "input.partitions"),
        ("capture_interval_seconds: 300", "empty_blobs: some", "input.empty_blobs"),
        ("Policy: Adjust", "Policy: adjust", "job.eventsOutOfOrderPolicy"),
        ("DelayInSeconds: 0", "DelayInSeconds: 600", "job.eventsOutOfOrderMaxDelayInSeconds"),
        ("DelayInSeconds: 0", "DelayInSeconds: -1", "job.eventsOutOfOrderMaxDelayInSeconds"),
        ("DelayInSeconds: 600", "DelayInSeconds: -2", "job.eventsLateArrivalMaxDelayInSeconds"),
        ("DelayInSeconds: 600", "DelayInSeconds: 1814400", "job.eventsLateArrivalMaxDelayInSeconds"),
        ("ErrorPolicy: Drop", "ErrorPolicy: Retry", "job.outputErrorPolicy"),
    ],
)
def test_an_impossible_value_is_named_and_shown(file: Path, old: str, new: str, where: str) -> None:
    change(file, old, new)
    line, message = complaint(file)
    assert line == line_of(old)
    assert message.startswith(f"{where}: ")
    assert "Value error" not in message
    if "[" not in new:
        assert message.endswith(" given)")


@pytest.mark.parametrize("engine", ["processes", "spark"])
def test_the_engine_changes_no_digest(file: Path, engine: str) -> None:
    before = run_definition(load(file))
    file.write_text(f"engine: {engine}\n{EXAMPLE}")
    pipeline = load(file)
    assert pipeline.engine == engine
    assert run_definition(pipeline) == before


@pytest.mark.parametrize("hours", ["0", "5", "48", "1.5", "day"])
def test_a_slice_is_hours_that_divide_a_day(file: Path, hours: str) -> None:
    file.write_text(f"slice_hours: {hours}\n{EXAMPLE}")
    assert complaint(file)[0] == 1
    file.write_text(f"slice_hours: 6\n{EXAMPLE}")
    assert load(file).slice_hours == 6


@pytest.mark.parametrize(
    ("section", "value", "where"),
    [
        *(("quality", value, "quality") for value in ("5", "[a]", "text")),
        *((section, value, section) for section in ("input", "output") for value in ("5", "text")),
        *((section, "[a]", f"{section}.0") for section in ("input", "output")),
    ],
)
def test_a_section_that_is_not_a_mapping_is_refused(file: Path, section: str, value: str, where: str) -> None:
    file.write_text(re.sub(rf"(?m)^{section}:.*\n(?:  .*\n)+", f"{section}: {value}\n", EXAMPLE))
    assert complaint(file)[1].startswith(f"{where}: should be a mapping")


def test_several_mistakes_are_reported_together(file: Path) -> None:
    change(file, "seconds: 300", "seconds: 1")
    change(file, "Policy: Adjust", "Policy: Keep")
    message = complaint(file)[1]
    assert f"; {file}:{line_of('Policy: Adjust')}: job.eventsOutOfOrderPolicy: " in message


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("name: [", 1),
        ("name: a\n  b: c\n", 2),
        ("name: a\nname: b\n", 2),
        ("input:\n  alias: a\n  alias: a\n", 3),
        ("name: a\ninput: {a: *b}\n", 2),
        ("name: a\n---\nname: b\n", 2),
        ("name: !!python/object:os.system x\n", 1),
        ("name: a\nx: !!int seven\n", 2),
        ("name: a\nx: 2026-13-01\n", 2),
        ("name: a\n1: b\n", 2),
        ("name: a\n[a]: b\n", 2),
        ("name: a\nx: \0\n", 2),
        ("", 1),
        ("# nothing\n", 1),
        ("- name\n", 1),
        ("name", 1),
    ],
)
def test_a_file_that_is_not_a_pipeline_file_is_reported_with_its_line(file: Path, content: str, line: int) -> None:
    file.write_text(content)
    assert complaint(file)[0] == line


LAUGHS = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))
CHAIN = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 5000))


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        ("[" * 5000, 1, "the file is nested deeper than 50 levels: flatten it"),
        ("a: &a [*a]\n", 1, "the file is nested deeper than 50 levels: flatten it"),
        ("a: " + "[" * 60 + "]" * 60, 1, "the file is nested deeper than 50 levels: flatten it"),
        (CHAIN, 50, "the file is nested deeper than 50 levels: flatten it"),
        (LAUGHS, 5, "aliases stand for more than 10,000 values: use fewer"),
        ("a: b\n" * 60_000, None, "the pipeline file is larger than 256 KiB: shorten it"),
    ],
)
def test_a_small_file_cannot_expand_without_limit(file: Path, content: str, line: int | None, reason: str) -> None:
    file.write_text(content)
    assert complaint(file) == (line, reason)


def test_a_yaml_alias_stands_for_the_value_of_its_anchor(file: Path) -> None:
    change(file, "output:\n  alias: aggregates", "output:\n  alias: &name aggregates")
    before = load(file).outputs
    change(file, "alias: &name aggregates", "alias: aggregates")
    assert load(file).outputs == before


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
def test_a_file_that_is_not_utf_8_is_refused(file: Path, encoding: str) -> None:
    file.write_bytes(f"name: café\n{EXAMPLE}".encode(encoding))
    assert complaint(file) == (None, "the pipeline file is not UTF-8 text")


def test_a_byte_order_mark_and_windows_line_ends_are_accepted(file: Path) -> None:
    file.write_bytes(b"\xef\xbb\xbf" + EXAMPLE.replace("\n", "\r\n").encode())
    assert load(file).name == "telemetry"


def test_a_file_that_does_not_exist_is_reported(tmp_path: Path) -> None:
    assert complaint(tmp_path / "none.yaml") == (None, "the pipeline file cannot be read (No such file or directory)")
    assert complaint(tmp_path) == (None, "the pipeline file cannot be read (Is a directory)")


# The query


def test_a_query_that_does_not_compile_is_reported_with_its_own_line_and_column(file: Path) -> None:
    change(file, "    INTO aggregates", "    INTO elsewhere")
    line, message = complaint(file)
    assert line == line_of("query: |")
    assert message.startswith("job.query: query, line 2, column 6: ")


@pytest.mark.parametrize("query", ['""', "SELECT", '"SELECT * FROM telemetry; DROP TABLE x"', "7", ""])
def test_a_value_that_is_not_a_query_is_refused(file: Path, query: str) -> None:
    file.write_text(re.sub(r"  query: \|\n(?:    .*\n)+", f"  query: {query}\n", EXAMPLE))
    line, message = complaint(file)
    assert line == line_of("query: |")
    assert message.startswith("job.query: ")


def test_a_dollar_sign_in_the_query_is_left_alone(file: Path) -> None:
    change(file, "OVER deviceId", "OVER deviceId WHERE deviceId <> '${HOME_OF_NOTHING}'")
    assert "${HOME_OF_NOTHING}" in load(file).job.query


# Several outputs

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


# The environment


def test_a_name_in_braces_is_an_environment_variable(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECAPTURE_TEST_ACCOUNT", "lake")
    monkeypatch.setenv("RECAPTURE_TEST_INTERVAL", "600")
    change(file, "ACCOUNT.blob", "${RECAPTURE_TEST_ACCOUNT}.blob")
    change(file, "seconds: 300", "seconds: ${RECAPTURE_TEST_INTERVAL}")
    pipeline = load(file)
    assert pipeline.inputs[0].container == "https://lake.blob.core.windows.net/capture"
    assert isinstance(pipeline.inputs[0], CaptureInput)
    assert pipeline.inputs[0].capture_interval_seconds == 600


def test_a_variable_that_is_not_set_is_named(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RECAPTURE_TEST_ACCOUNT", raising=False)
    change(file, "namespace: contoso", "namespace: a-${RECAPTURE_TEST_ACCOUNT}")
    assert complaint(file) == (
        line_of("namespace: contoso"),
        "input.namespace: the environment variable RECAPTURE_TEST_ACCOUNT is not set: set it",
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("name: telemetry", "name: ${RECAPTURE_TEST_SECRET}"),
        ("seconds: 300", "seconds: ${RECAPTURE_TEST_SECRET}"),
        ("Policy: Adjust", "Policy: ${RECAPTURE_TEST_SECRET}"),
        ("{Namespace}/{EventHub}", "${RECAPTURE_TEST_SECRET}{"),
        ("windows.net/capture", "windows.net/capture?sig=${RECAPTURE_TEST_SECRET}"),
        ("https://ACCOUNT", "https://me:${RECAPTURE_TEST_SECRET}@ACCOUNT"),
        ("https://ACCOUNT", "ftp://${RECAPTURE_TEST_SECRET}"),
        ("windows.net/capture", "windows.net/${RECAPTURE_TEST_SECRET}"),
    ],
)
def test_the_value_of_a_variable_is_never_in_a_message(
    file: Path, old: str, new: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECAPTURE_TEST_SECRET", "HUNTER2+/x==")
    change(file, old, new)
    line, message = complaint(file)
    assert line == line_of(old)
    assert "HUNTER2" not in message.upper()


# Urls and folders


@pytest.mark.parametrize(
    "url",
    [
        "https://ACCOUNT.blob.core.windows.net",
        "https:/ACCOUNT.blob.core.windows.net/capture",
        "http://ACCOUNT.blob.core.windows.net/capture",
        "https://ACCOUNT.blob.core.windows.net/UPPER",
        "s3://bucket/capture",
        "file://capture",
    ],
)
@pytest.mark.parametrize(("place", "old"), [("input.container", "capture "), ("output.table", "curated/telemetry ")])
def test_an_invalid_url_is_reported(file: Path, url: str, place: str, old: str) -> None:
    change(file, f"https://ACCOUNT.blob.core.windows.net/{old}", f"{url} ")
    line, message = complaint(file)
    assert line == line_of(f"windows.net/{old}")
    assert message.startswith(f"{place}: ")


CONTAINER = "  container: https://ACCOUNT.blob.core.windows.net/capture"


def test_an_archive_may_be_in_several_containers(file: Path, tmp_path: Path) -> None:
    change(file, CONTAINER, "  container: [https://OLD.blob.core.windows.net/capture, ../moved]  #")
    container = load(file).inputs[0].container
    assert container == ("https://OLD.blob.core.windows.net/capture", f"{tmp_path.as_uri()}/moved")
    change(file, ", ../moved]", "]")
    assert load(file).inputs[0].container == "https://OLD.blob.core.windows.net/capture", "as without a list"


@pytest.mark.parametrize(
    ("container", "message"),
    [
        ("[]", "input.container: write an address, or a list of addresses"),
        ("5", "input.container: write an address, or a list of addresses (5 given)"),
        ("[../a, 5]", "input.container: write an address in each line of the list"),
        ("[../a, s3://bucket]", "input.container: s3://bucket: not a container url"),
        ("[../a, ../a/]", "input.container: two of these addresses overlap: remove one"),
        (
            "[https://acc.blob.core.windows.net/capture, abfss://capture@acc.dfs.core.windows.net/raw]",
            "input.container: two of these addresses overlap: remove one",
        ),
    ],
)
def test_a_list_of_containers_has_addresses_that_do_not_overlap(file: Path, container: str, message: str) -> None:
    change(file, CONTAINER, f"  container: {container}  #")
    assert complaint(file)[1].startswith(message)


def test_relative_folders_are_relative_to_the_file_from_wherever_it_is_loaded(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(file, "https://ACCOUNT.blob.core.windows.net/capture", "../the capture")
    change(file, "https://ACCOUNT.blob.core.windows.net/curated/telemetry", "table")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for folder, given in (
        (elsewhere, file),
        (elsewhere, Path("../pipelines/telemetry.yaml")),
        (file.parent, Path("telemetry.yaml")),
    ):
        monkeypatch.chdir(folder)
        pipeline = load(given)
        assert pipeline.inputs[0].container == f"{tmp_path.as_uri()}/the%20capture"
        assert pipeline.outputs[0].table == f"{tmp_path.as_uri()}/pipelines/table"
        assert pipeline.file.is_absolute()


def test_a_suite_is_in_an_expectations_folder_above_the_file_or_next_to_it(file: Path, tmp_path: Path) -> None:
    assert suite_path(file) == file.parent / "expectations" / "telemetry.json"
    (tmp_path / "expectations").mkdir()
    assert suite_path(file) == tmp_path / "expectations" / "telemetry.json"
    change(file, "suite: telemetry", "suite: own/suite.json")
    assert suite_path(file) == file.parent / "own" / "suite.json"


def test_a_pipeline_may_have_no_suite(file: Path) -> None:
    file.write_text(EXAMPLE[: EXAMPLE.index("quality:")])
    assert suite_path(file) is None


def suite_path(file: Path) -> Path | None:
    pipeline = load(file)
    return pipeline.suite_path(pipeline.outputs[0])


def test_the_name_of_the_folder_does_not_matter(tmp_path: Path) -> None:
    strange = tmp_path / "a b:c" / "é.yml"
    strange.parent.mkdir()
    strange.write_text(EXAMPLE)
    assert load(strange).name == "telemetry"


def test_a_pipeline_asks_nobody_and_tells_nobody_unless_it_says_so(file: Path) -> None:
    assert (load(file).approval, load(file).notifications) == (None, ())


def test_approval_waits_a_day_unless_the_file_says_otherwise(file: Path) -> None:
    for written, hours in (("approval: {}", 24), ("approval: {wait_hours: 3}", 3)):
        file.write_text(f"{EXAMPLE}\n{written}\n")
        approval = load(file).approval
        assert approval is not None
        assert approval.wait_hours == hours


@pytest.mark.parametrize("written", ["2026-03-01T06:00:00Z", "'2026-03-01T07:00:00+01:00'", "2026-03-01T06:00Z"])
@pytest.mark.parametrize("bound", ["since", "until"])
def test_a_schedule_may_begin_and_end_at_any_slice_border(file: Path, written: str, bound: str) -> None:
    file.write_text(f"{EXAMPLE}\nschedule: {{{bound}: {written}}}\n")
    schedule = load(file).schedule
    assert schedule is not None
    assert getattr(schedule, bound) == datetime(2026, 3, 1, 6, tzinfo=UTC)


def test_the_arguments_of_a_notifier_take_variables_and_keep_templates(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHANNEL", "#hub")
    arguments = "arguments: {channel: '${CHANNEL}', text: '{{ recapture.message }}'}"
    file.write_text(f"{EXAMPLE}\nnotifications:\n  - notifier: a.b.C\n    {arguments}\n    events: [blocked]\n")
    (notification,) = load(file).notifications
    assert notification.arguments == {"channel": "#hub", "text": "{{ recapture.message }}"}
    assert notification.events == ("blocked",)


@pytest.mark.parametrize(
    ("written", "where"),
    [
        ("approval:", "approval"),
        ("approval: {wait_hours: 0}", "approval.wait_hours"),
        ("approval: {wait_hours: true}", "approval.wait_hours"),
        ("schedule:", "schedule"),
        ("schedule: {end: 2026-03-01T06:00:00Z}", "schedule.end"),
        ("schedule: {until: 2026-03-01T06:30:00Z}", "schedule.until"),
        ("schedule: {since: 2026-03-01T06:00:00Z, until: 2026-03-01T06:00:00Z}", "schedule.until"),
        ("schedule: {since: 2026-03-01T06:30:00Z}", "schedule.since"),
        ("schedule: {at_most_slices: 0}", "schedule.at_most_slices"),
        ("schedule: {at_most_bytes: true}", "schedule.at_most_bytes"),
        ("schedule: {quiet_minutes: -1}", "schedule.quiet_minutes"),
        ("schedule: {late_data: drop}", "schedule.late_data"),
        ("schedule: {outdated: yes}", "schedule.outdated"),
        ("schedule: {since: yesterday}", "schedule.since"),
        ("schedule: {since: 2026-03-01T06:00:00}", "schedule.since"),
        ("schedule: {every_minutes: 7}", "schedule.every_minutes"),
        ("notifications: [{notifier: Slack}]", "notifications.0.notifier"),
        ("notifications: [{notifier: a.B, events: [published]}]", "notifications.0.events.0"),
        ("notifications: [{notifier: a.B, text: x}]", "notifications.0.text"),
    ],
)
def test_a_mistake_in_approval_schedule_or_notifications_is_named_with_its_line(
    file: Path, written: str, where: str
) -> None:
    file.write_text(f"{EXAMPLE}\n{written}\n")
    line, message = complaint(file)
    assert line == file.read_text().splitlines().index(written) + 1
    assert message.startswith(where)


def test_approval_schedule_and_notifications_do_not_change_what_a_run_computes(file: Path) -> None:
    before = run_definition(load(file)).digest
    file.write_text(
        f"{EXAMPLE}\napproval: {{}}\nnotifications: [{{notifier: a.B}}]\nschedule: {{since: 2026-03-01T06:00:00Z}}\n"
    )
    assert run_definition(load(file)).digest == before
