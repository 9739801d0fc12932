"""A pipeline file is checked when it is loaded: every mistake is reported in one line, with the file and the line."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from recapture.archive.definitions import ArrivalTime
from recapture.definition.digest import run_definition
from recapture.definition.pipeline import Pipeline, load
from recapture.formats.event_hubs import CaptureInput
from recapture.time_model.policies import EARLY_SECONDS, Policies
from recapture.time_model.ticks import from_seconds
from tests.definition.pipeline_files import EXAMPLE, change, complaint, line_of


def policies_of(pipeline: Pipeline) -> Policies | None:
    [compiled] = pipeline.query.inputs
    return pipeline.policies(compiled)


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


def test_a_query_is_compiled_again_only_for_sections_that_concern_it(file: Path) -> None:
    pipeline = load(file)
    drops = pipeline.with_sections(job=pipeline.job.model_copy(update={"policy": "Drop"}))
    assert drops.query is pipeline.query
    renamed = tuple(output.model_copy(update={"alias": output.alias.upper()}) for output in pipeline.outputs)
    aliases = [output.alias for output in pipeline.with_sections(outputs=renamed).query.outputs]
    assert aliases == [output.alias.upper() for output in pipeline.query.outputs]


@pytest.mark.parametrize("query", ['""', "SELECT", '"SELECT * FROM telemetry; DROP TABLE x"', "7", ""])
def test_a_value_that_is_not_a_query_is_refused(file: Path, query: str) -> None:
    file.write_text(re.sub(r"  query: \|\n(?:    .*\n)+", f"  query: {query}\n", EXAMPLE))
    line, message = complaint(file)
    assert line == line_of("query: |")
    assert message.startswith("job.query: ")


def test_a_dollar_sign_in_the_query_is_left_alone(file: Path) -> None:
    change(file, "OVER deviceId", "OVER deviceId WHERE deviceId <> '${HOME_OF_NOTHING}'")
    assert "${HOME_OF_NOTHING}" in load(file).job.query
