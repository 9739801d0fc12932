"""Which partition a blob holds is told by its name alone (capture format, the name)."""

from datetime import UTC, datetime

import pytest

from spark_jobs.capture.names import CaptureNames, opened

NAMES = CaptureNames("contoso", "telemetry")


@pytest.mark.parametrize("partition", ["0", "31", "1023"])
@pytest.mark.parametrize("extension", [".avro", ""])
def test_a_name_in_the_default_format_tells_its_partition(partition: str, extension: str) -> None:
    """Blobs of 2016 have no extension."""
    assert NAMES.partition(f"contoso/telemetry/{partition}/2026/03/01/10/05/00{extension}") == partition


def test_every_name_begins_with_the_prefix() -> None:
    assert NAMES.prefix == "contoso/telemetry/"


@pytest.mark.parametrize(
    "name",
    [
        "contoso/telemetry2/0/2026/03/01/10/05/00.avro",
        "contoso/tele/0/2026/03/01/10/05/00.avro",
        "contoso2/telemetry/0/2026/03/01/10/05/00.avro",
        "Contoso/telemetry/0/2026/03/01/10/05/00.avro",
        "x/contoso/telemetry/0/2026/03/01/10/05/00.avro",
        "0/2026/03/01/10/05/00.avro",
        "contoso/telemetry/2026/03/01/10/05/00.avro",
        "contoso/telemetry/0/1/2026/03/01/10/05/00.avro",
        "contoso/telemetry//2026/03/01/10/05/00.avro",
        "contoso/telemetry/0/2026/3/1/10/5/0.avro",
        "contoso/telemetry/0/2026/03/01/10/05.avro",
        "contoso/telemetry/0/2026/03/01/10/05/00.json",
        "contoso/telemetry/0/2026/03/01/10/05/00.avro.bak",
        "contoso/telemetry/0/2026/03/01/10/05/00.avro\n",
        "contoso/telemetry/0/2026/03/01/10/05/00xavro",
        "contoso/telemetry/0/2026/02/30/10/05/00.avro",
        "contoso/telemetry/0/2026/03/01/24/05/00.avro",
        "contoso/telemetry/0/\u0662026/03/01/10/05/00.avro",
        "contoso/telemetry/0/2026/03/01/10/05/00/",
        "contoso/telemetry/",
        "",
    ],
)
def test_any_other_name_is_not_one_that_capture_gives(name: str) -> None:
    assert NAMES.partition(name) is None


def test_signs_that_mean_something_in_a_pattern_mean_themselves() -> None:
    assert CaptureNames("con.oso", "t+").partition("contoso/tt/0/2026/03/01/10/05/00.avro") is None
    assert CaptureNames("con.oso", "t+").partition("con.oso/t+/0/2026/03/01/10/05/00.avro") == "0"


@pytest.mark.parametrize("extension", ["", ".avro"])
def test_the_time_in_a_name_is_when_its_window_began(extension: str) -> None:
    name = f"contoso/telemetry/0/2016/11/16/16/42/05{extension}"
    assert opened(name) == datetime(2016, 11, 16, 16, 42, 5, tzinfo=UTC)


def test_a_name_without_a_time_began_at_none() -> None:
    with pytest.raises(ValueError, match="0/7 is not the name of a Capture blob"):
        opened("0/7")
