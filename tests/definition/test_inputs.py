"""The input section of a pipeline file names its format, and accepts the keys of that format only."""

from pathlib import Path

import pytest

from recapture.archive.definitions import ArrivalTime
from recapture.definition.digest import run_definition
from recapture.definition.pipeline import Pipeline, load
from recapture.errors import DefinitionError
from recapture.formats.csv import CsvInput
from recapture.formats.event_hubs import CaptureInput, CaptureNames
from recapture.formats.inflate import Limits
from recapture.formats.iot_hub import IotHubInput, IotHubNames
from recapture.formats.json_lines import JsonInput
from recapture.formats.path_names import InputPath
from recapture.formats.service_bus import ServiceBusInput

PIPELINE = """\
name: formats
input:
  alias: telemetry
  container: archive
{keys}
job:
  eventsLateArrivalMaxDelayInSeconds: {late}
  query: |
    SELECT System.Timestamp() AS windowEnd, COUNT(*) AS events
    INTO aggregates
    FROM telemetry TIMESTAMP BY {time}
    GROUP BY TumblingWindow(minute, 5)
output:
  alias: aggregates
  table: curated/aggregates
"""
CAPTURE = "namespace: contoso, event_hub: telemetry"
IOT_HUB = "format: IotHub, iot_hub: contoso-hub"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "formats.yaml"


def written(file: Path, keys: str, time: str = "eventTime", late: int = 600) -> Path:
    """Write a pipeline file whose input has these keys, one per line from line 5 on; return it."""
    lines = "\n".join(f"  {key.strip()}" for key in keys.split(", "))
    file.write_text(PIPELINE.format(keys=lines, time=time, late=late))
    return file


def loaded(file: Path, keys: str, time: str = "eventTime", late: int = 600) -> Pipeline:
    return load(written(file, keys, time, late))


def complaint(file: Path, keys: str, time: str = "eventTime") -> tuple[int, str]:
    """Return the line and the message of the error."""
    with pytest.raises(DefinitionError) as caught:
        loaded(file, keys, time)
    _, line, message = str(caught.value).split(":", 2)
    return int(line), message.strip()


def test_without_a_format_the_blobs_are_those_of_event_hubs_capture(file: Path) -> None:
    for keys in (CAPTURE, f"format: EventHubsCapture, {CAPTURE}"):
        read = loaded(file, keys).inputs[0]
        assert isinstance(read, CaptureInput)
        assert read.names == CaptureNames("contoso", "telemetry")
        assert (read.interval_seconds, read.empty_blobs, read.source) == (300, True, "contoso/telemetry")
        assert read.tags == ("contoso", "telemetry")


def test_an_iot_hub_s_keys_are_read_and_have_defaults(file: Path) -> None:
    read = loaded(file, IOT_HUB).inputs[0]
    assert isinstance(read, IotHubInput)
    assert read.names == IotHubNames("contoso-hub")
    assert (read.interval_seconds, read.empty_blobs, read.source) == (300, False, "contoso-hub")
    path = "raw/{iothub}/{partition}/{YYYY}{MM}{DD}{HH}{mm}"
    read = loaded(file, f"{IOT_HUB}, batch_interval_seconds: 720, partitions: 4, path: '{path}'").inputs[0]
    assert read.interval_seconds == 720
    assert read.names.prefix == "raw/contoso-hub/"


@pytest.mark.parametrize(("name", "section"), [("Json", JsonInput), ("Csv", CsvInput), ("ServiceBus", ServiceBusInput)])
def test_a_path_of_folders_is_read_as_asa_reads_it(file: Path, name: str, section: type) -> None:
    read = loaded(
        file, f"format: {name}, path: 'logs/{{date}}/{{time}}', date_format: DD-MM-YYYY, time_format: HH-mm"
    ).inputs[0]
    assert isinstance(read, section)
    assert read.names == InputPath("logs/{date}/{time}", "DD-MM-YYYY", "HH-mm")
    assert (read.interval_seconds, read.empty_blobs, read.source) == (60, False, "logs/{date}/{time}")
    undated = loaded(file, f"format: {name}, path: raw").inputs[0]
    assert (undated.names.prefix, undated.interval_seconds) == ("raw/", 0)


def test_a_delimiter_is_the_character_itself(file: Path) -> None:
    for character in (",", ";", r"\t", "|", " "):
        read = loaded(file, f'format: Csv, path: raw, delimiter: "{character}"').inputs[0]
        assert isinstance(read, CsvInput)
        assert read.delimiter == character.replace(r"\t", "\t")
    assert complaint(file, 'format: Csv, delimiter: ":"')[1].startswith("input.delimiter: should be ','")


def test_the_fields_of_a_service_bus_message_may_be_named(file: Path) -> None:
    read = loaded(file, "format: ServiceBus, path: raw").inputs[0]
    assert isinstance(read, ServiceBusInput)
    fields = read.fields
    assert (fields.sequence_number, fields.enqueued_time, fields.body) == ("SequenceNumber", "EnqueuedTimeUtc", "Body")
    read = loaded(file, "format: ServiceBus, path: raw, fields: {sequence_number: meta.seq}").inputs[0]
    assert isinstance(read, ServiceBusInput)
    assert (read.fields.sequence_number, read.fields.body) == ("meta.seq", "Body")
    line, message = complaint(file, "format: ServiceBus, path: raw, fields: {sequence: seq}")
    assert (line, message) == (7, "input.fields.sequence: unknown key: did you mean sequence_number?")
    assert complaint(file, "format: ServiceBus, path: raw, fields: {body: a..b}")[1].startswith("input.fields.body: ")


@pytest.mark.parametrize(
    ("keys", "line", "message"),
    [
        (
            "format: Avro",
            5,
            "input.format: should be 'EventHubsCapture', 'IotHub', 'ServiceBus', 'Json', 'Csv' ('Avro' given)",
        ),
        ("format: [Json]", 5, "input.format: should be 'EventHubsCapture', 'IotHub', 'ServiceBus', 'Json', 'Csv'"),
        ("format: IotHub", 2, "input.iot_hub is missing: add it"),
        ("iot_hub: hub", 2, "input.namespace is missing: add it"),
        (
            f"{IOT_HUB}, event_hub: x",
            7,
            "input.event_hub: a key of EventHubsCapture, and this input's format is IotHub: remove it, or correct "
            "input.format",
        ),
        (
            f"{CAPTURE}, date_format: YYYY/MM/DD",
            7,
            "input.date_format: a key of ServiceBus and Json and Csv, and this input's format is EventHubsCapture: ",
        ),
        ("format: Json, delimiter: ','", 6, "input.delimiter: a key of Csv, and this input's format is Json: "),
        ("format: Json, empty_blobs: false", 6, "input.empty_blobs: a key of EventHubsCapture, "),
        ("format: Json, pathPattern: x", 6, "input.pathPattern: unknown key: remove it or correct its name"),
        ("format: IotHub, iot_hub: a.azure-devices.net", 6, "input.iot_hub: write the hub's own name: 3 to 50 letters"),
        (f"{IOT_HUB}, batch_interval_seconds: 59", 7, "input.batch_interval_seconds: should be greater than or equal"),
        (f"{IOT_HUB}, batch_interval_seconds: 721", 7, "input.batch_interval_seconds: should be less than or equal"),
        (f"{IOT_HUB}, path: '{{iothub}}/{{partition}}'", 7, "input.path: {YYYY}, {MM}, {DD}, {HH}, {mm} is missing: "),
        ("format: Json, path: 'x/{time}'", 6, "input.path: {time} without {date} does not give the day: "),
        ("format: Json, path: 'x/{Date}'", 6, "input.path: {Date} is not a token of an input's path: "),
        ("format: Json, date_format: YYYY", 6, "input.date_format: the date format 'YYYY' should have YYYY, MM and DD"),
        ("format: Json, time_format: HHmm", 6, "input.time_format: should be 'HH', 'HH/mm' or 'HH-mm' ('HHmm' given)"),
        ("format: Csv, path: x, partitions: 4", 7, "input.partitions: the path has no {partition}, so there is only"),
        (
            "format: Csv, path: 'x/{date}', arrival_time: EventEnqueuedUtcTime",
            7,
            "input.arrival_time: Csv: blobs of this format do not contain the time when an event was enqueued: ",
        ),
        (
            "format: Json, path: 'x/{date}', arrival_time: EventEnqueuedUtcTime",
            7,
            "input.arrival_time: Json: blobs of this format do not contain the time when an event was enqueued: ",
        ),
        (
            "format: ServiceBus, path: x, arrival_time: EventEnqueuedUtcTime",
            7,
            "input.arrival_time: without {date} in the path no name tells which blobs hold what was enqueued in an "
            "hour: write {date}, or take BlobLastModified",
        ),
    ],
)
def test_a_mistake_is_reported_with_its_key_and_line(file: Path, keys: str, line: int, message: str) -> None:
    error_line, error = complaint(file, keys)
    assert error_line == line
    assert error.startswith(message)


def test_events_may_arrive_by_enqueued_time_if_the_names_have_a_time(file: Path) -> None:
    for keys in (IOT_HUB, "format: ServiceBus, path: 'x/{date}'"):
        pipeline = loaded(file, f"{keys}, arrival_time: EventEnqueuedUtcTime")
        assert pipeline.inputs[0].arrival_time is ArrivalTime.EVENT_ENQUEUED


@pytest.mark.parametrize("key", ["partitions", "search_hours", "capture_interval_seconds"])
def test_a_boolean_is_not_a_number(file: Path, key: str) -> None:
    _, message = complaint(file, f"{CAPTURE}, {key}: true")
    assert message.startswith(f"input.{key}: write a number")


def test_an_unknown_token_of_a_path_is_named_first(file: Path) -> None:
    assert "{Date}" in complaint(file, "format: Json, path: '{Date}/{time}'")[1]


@pytest.mark.parametrize("container", ["container: archive", "container: [elsewhere, archive]"])
def test_an_input_does_not_read_its_own_output(file: Path, container: str) -> None:
    """Names of Capture's blobs and names in folders by date cannot be those of a table's files."""
    text = written(file, "format: Json").read_text().replace("table: curated", "table: archive/curated")
    (file.parent / "linked").symlink_to("archive")
    for table in ("archive/curated", f"file://localhost{file.parent}/archive/curated", "linked/%63urated", "linked/a"):
        file.write_text(text.replace("table: archive/curated", f"table: {table}"))
        file.write_text(file.read_text().replace("container: archive", container))
        with pytest.raises(DefinitionError, match=r":15: output.table: input telemetry would read this table"):
            load(file)
    for keys in (CAPTURE, "format: Json, path: raw", "format: Json, path: '{date}'"):
        written(file, keys)
        file.write_text(file.read_text().replace("table: curated", "table: archive/curated"))
        load(file)


@pytest.mark.parametrize(
    ("container", "table"),
    [
        ("archive", "archive"),
        ("curated/archive", "curated"),
        ("[elsewhere, archive/a]", "archive"),
        ("archive", "archive/contoso"),
        ("curated_metrics/a", "curated"),
    ],
)
def test_a_table_whose_folder_holds_an_archive_is_refused(file: Path, container: str, table: str) -> None:
    """A full vacuum deletes all old files in the folder that no version of the table names."""
    text = written(file, CAPTURE).read_text().replace("curated/aggregates", table)
    file.write_text(text.replace("container: archive", f"container: {container}"))
    with pytest.raises(
        DefinitionError, match=r":16: output.table: a vacuum of this table, or of one next to it, could delete"
    ):
        load(file)


# Warnings, digests and limits


def test_a_late_tolerance_below_the_batch_interval_gives_a_warning(file: Path) -> None:
    (warning,) = loaded(file, IOT_HUB, late=299).warnings
    assert "is 299, less than the batch interval of 300: with the blob's LastModified as arrival time" in warning
    assert loaded(file, IOT_HUB, late=300).warnings == []
    assert loaded(file, f"{IOT_HUB}, arrival_time: EventEnqueuedUtcTime", late=5).warnings == []


def test_a_user_s_own_writer_has_no_known_interval_and_gives_no_warning(file: Path) -> None:
    assert loaded(file, "format: Json, path: 'logs/{date}'", late=5).warnings == []


def test_the_definition_s_digest_changes_with_the_names_except_for_capture(file: Path) -> None:
    def digest(keys: str) -> str:
        return run_definition(loaded(file, keys)).digest

    assert digest(CAPTURE) == digest("namespace: fabrikam, event_hub: other")
    paths = ["path: a", "path: 'a/{partition}'", "path: 'a/{date}'", "path: 'a/{date}', date_format: DD/MM/YYYY"]
    assert len({digest(CAPTURE), digest(IOT_HUB), *(digest(f"format: Json, {path}") for path in paths)}) == 6


def test_the_definition_s_digest_changes_with_the_limits_of_inflation(file: Path) -> None:
    limits = [loaded(file, f"{CAPTURE}{keys}").inputs[0].limits for keys in ("", ", max_block_mib: 1, max_blob_mib: 3")]
    assert limits == [Limits(256, 2048), Limits(1, 3)]
    settings = ["", ", max_block_mib: 1", ", max_blob_mib: 1"]
    assert len({run_definition(loaded(file, f"{IOT_HUB}{setting}")).digest for setting in settings}) == 3
    assert loaded(file, "format: Json, path: a, max_blob_mib: 5").inputs[0].limits.blob == 5
    assert "max_block_mib" in complaint(file, "format: Json, path: a, max_block_mib: 5")[1]
    assert "max_blob_mib" in complaint(file, f"{CAPTURE}, max_blob_mib: 0")[1]


def test_the_body_format_is_a_key_of_inputs_that_hold_bodies_as_they_were_sent(file: Path) -> None:
    for keys in (CAPTURE, IOT_HUB):
        usual, named = loaded(file, keys), loaded(file, f"{keys}, body_format: Json")
        assert run_definition(usual).digest == run_definition(named).digest
        assert "body_format" not in usual.inputs[0].reading, "the runs of earlier versions go on"
        assert complaint(file, f"{keys}, body_format: Xml")[1].startswith("input.body_format: should be 'Json', 'Csv'")
        digests = {
            run_definition(loaded(file, f"{keys}{more}")).digest
            for more in (
                "",
                ", body_format: Csv",
                ", body_format: Csv, body_delimiter: ';'",
                ", body_format: Avro",
                ", body_compression: GZip",
                ", body_compression: Deflate",
            )
        }
        assert len(digests) == 6
        assert usual.inputs[0].read_as is None
        compressed = loaded(file, f"{keys}, body_format: Csv, body_compression: GZip").inputs[0]
        assert compressed.read_as == "body_format Csv and body_compression GZip"
        assert run_definition(loaded(file, f"{keys}, body_compression: None")).digest == run_definition(usual).digest
        assert complaint(file, f"{keys}, body_delimiter: ';'")[1].startswith("input.body_delimiter: only CSV has")
        assert complaint(file, f"{keys}, body_format: Avro, body_compression: GZip")[1].startswith(
            "input.body_compression: an Avro body says itself how it is compressed"
        )
    assert complaint(file, "format: Json, path: a, body_format: Json")[1].startswith(
        "input.body_format: a key of EventHubsCapture and IotHub, and this input's format is Json: "
    )


def test_readers_have_the_limits_of_the_pipeline_file(file: Path) -> None:
    for keys in (CAPTURE, IOT_HUB, *(f"format: {name}, path: a" for name in ("ServiceBus", "Json", "Csv"))):
        pipeline = loaded(file, f"{keys}, max_blob_mib: 7")
        assert pipeline.reader(pipeline.query.inputs[0]).limits.blob == 7, keys


# Metadata


@pytest.mark.parametrize(
    ("keys", "known"),
    [
        (CAPTURE, "EventEnqueuedUtcTime EventProcessedUtcTime BlobLastModifiedUtcTime"),
        (IOT_HUB, "EventEnqueuedUtcTime EventProcessedUtcTime BlobLastModifiedUtcTime"),
        ("format: ServiceBus, path: a", "EventEnqueuedUtcTime EventProcessedUtcTime BlobLastModifiedUtcTime"),
        ("format: Json, path: a", "EventProcessedUtcTime BlobLastModifiedUtcTime"),
        ("format: Csv, path: a", "EventProcessedUtcTime BlobLastModifiedUtcTime"),
    ],
)
def test_a_query_reads_the_metadata_that_its_blobs_have(file: Path, keys: str, known: str) -> None:
    for name in ("EventEnqueuedUtcTime", "EventProcessedUtcTime", "BlobLastModifiedUtcTime"):
        if name in known.split():
            loaded(file, keys, time=name)
        else:
            line, message = complaint(file, keys, time=name)
            assert line == file.read_text().splitlines().index("  query: |") + 1
            assert message.startswith(f"job.query: query, line 3, column 29: {name} is not metadata of ")


def refused(file: Path, keys: str, column: str) -> str | None:
    written(file, keys)
    file.write_text(file.read_text().replace("COUNT(*) AS events", f"COUNT({column}) AS events"))
    try:
        load(file)
    except DefinitionError as error:
        return str(error)
    return None


@pytest.mark.parametrize(
    ("column", "formats"),
    [
        ("PartitionId", "EventHubsCapture IotHub ServiceBus Json"),
        ("BlobName", "EventHubsCapture IotHub ServiceBus Json"),
        ("GetMetadataPropertyValue(telemetry, '[EventHub].[SequenceNumber]')", "EventHubsCapture ServiceBus"),
        ("GetMetadataPropertyValue(telemetry, '[EventHub].[Offset]')", "EventHubsCapture"),
        ("GetMetadataPropertyValue(telemetry, '[EventHub].[PartitionKey]')", "EventHubsCapture"),
        ("GetMetadataPropertyValue(telemetry, '[User].[site]')", "EventHubsCapture IotHub"),
        ("EventEnqueuedUtcTime", "EventHubsCapture IotHub ServiceBus"),
    ],
)
def test_metadata_that_the_blobs_lack_is_refused_with_a_list_of_what_they_have(
    file: Path, column: str, formats: str
) -> None:
    inputs = {
        "EventHubsCapture": CAPTURE,
        "IotHub": IOT_HUB,
        "ServiceBus": "format: ServiceBus, path: a",
        "Json": "format: Json, path: a",
    }
    for name, keys in inputs.items():
        message = refused(file, keys, column)
        assert (message is None) == (name in formats.split()), (name, message)
        if message is not None:
            assert (
                f"is not metadata of {name} blobs: they have PartitionId, EventProcessedUtcTime, BlobName, " in message
            )


def test_a_body_field_with_the_name_of_metadata_is_read_if_it_is_declared(file: Path) -> None:
    written(file, "format: Json, path: a", time="EventEnqueuedUtcTime")
    declared = "CREATE TABLE telemetry (EventEnqueuedUtcTime datetime);\n    SELECT System"
    file.write_text(file.read_text().replace("SELECT System", declared))
    load(file)
