"""A Capture blob's name gives its partition and the start of its interval."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recapture.errors import DefinitionError
from recapture.formats.event_hubs import VOCABULARY, CaptureNames
from tests.draws import examples

NAMES = CaptureNames("contoso", "telemetry")
TEN = datetime(2026, 3, 1, 10, tzinfo=UTC)
HOUR = timedelta(hours=1)
CUSTOM = "Prod_{EventHub}/{Namespace}\\{PartitionId}_{Year}_{Month}/{Day}/{Hour}/{Minute}/{Second}"
TIME = "{Year}{Month}{Day}{Hour}{Minute}{Second}"


@pytest.mark.parametrize("partition", ["0", "31", "1023"])
@pytest.mark.parametrize("extension", [".avro", ""])
def test_a_name_in_the_default_format_shows_its_partition_and_time(partition: str, extension: str) -> None:
    """Blobs of 2016 have no extension."""
    name = f"contoso/telemetry/{partition}/2016/11/16/16/42/05{extension}"
    assert NAMES.parse(name) == (partition, datetime(2016, 11, 16, 16, 42, 5, tzinfo=UTC))


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
        "contoso/telemetry/07/2026/03/01/10/05/00.avro",
        "contoso/telemetry/a/2026/03/01/10/05/00.avro",
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
    assert NAMES.parse(name) is None


def test_special_characters_of_a_pattern_stand_for_themselves() -> None:
    assert CaptureNames("con.oso", "t+").parse("contoso/tt/0/2026/03/01/10/05/00.avro") is None
    assert CaptureNames("con.oso", "t+").parse("con.oso/t+/0/2026/03/01/10/05/00.avro") is not None


@pytest.mark.parametrize(
    ("path", "name", "expected"),
    [
        (CUSTOM, "Prod_telemetry/contoso\\7_2026_03/01/10/00/00.avro", ("7", TEN)),
        (CUSTOM, "Prod_telemetry/contoso/7_2026_03/01/10/00/00.avro", ("7", TEN)),
        (
            "contoso/telemetry/p{PartitionId}--{Year}-{Month}-{Day}--{Hour}-{Minute}-{Second}",
            "contoso/telemetry/p9--2022-12-09--16-50-12.avro",
            ("9", datetime(2022, 12, 9, 16, 50, 12, tzinfo=UTC)),
        ),
        ("{Namespace}/{EventHub}/{PartitionId}_" + TIME, "contoso/telemetry/11_20260301100000", ("11", TEN)),
        (
            "{Namespace}/{EventHub}/" + TIME + "{PartitionId}.avro",
            "contoso/telemetry/2026030110000012.avro",
            ("12", TEN),
        ),
        ("{Year}/" + TIME + "/{PartitionId}", "2026/20260301100000/3", ("3", TEN)),
        ("{Year}/" + TIME + "/{PartitionId}", "2025/20260301100000/3", None),
    ],
)
def test_a_custom_name_is_read_by_its_format(path: str, name: str, expected: tuple[str, datetime] | None) -> None:
    """A backslash in the format may have become a slash; a token that appears twice has the same value both times."""
    assert CaptureNames("contoso", "telemetry", path).parse(name) == expected


# Incomplete and ambiguous formats


@pytest.mark.parametrize("token", list(VOCABULARY.tokens)[2:])
def test_a_format_that_lacks_a_token_is_refused_with_the_token_s_name(token: str) -> None:
    path = NAMES.format.replace(f"{{{token}}}", "x")
    with pytest.raises(DefinitionError, match=f"^{{{token}}} is missing"):
        CaptureNames("contoso", "telemetry", path)


@pytest.mark.parametrize("piece", ["{partitionId}", "{Date}", "{}", "{", "}}"])
def test_an_unknown_token_or_a_stray_brace_is_refused(piece: str) -> None:
    with pytest.raises(DefinitionError, match="PartitionId"):
        CaptureNames("contoso", "telemetry", NAMES.format + piece)


@pytest.mark.parametrize(
    ("path", "token", "instead"),
    [
        ("{Namespace}/{EventHub}{PartitionId}/" + TIME, "EventHub", "contoso/telemetry{PartitionId}/" + TIME),
        ("{Namespace}/{EventHub}-{PartitionId}/" + TIME, "EventHub", "{Namespace}/telemetry-{PartitionId}/" + TIME),
        (
            "{Namespace}/{EventHub}" + TIME + "/{PartitionId}",
            "EventHub",
            "{Namespace}/telemetry" + TIME + "/{PartitionId}",
        ),
        (TIME + "/{PartitionId}/{Namespace}/{EventHub}", "EventHub", TIME + "/{PartitionId}/{Namespace}/telemetry"),
        ("{Namespace}{EventHub}/{PartitionId}/" + TIME, "Namespace", "contoso{EventHub}/{PartitionId}/" + TIME),
        ("{Namespace}-{EventHub}/{PartitionId}/" + TIME, "Namespace", "contoso-{EventHub}/{PartitionId}/" + TIME),
        ("{Namespace}1/{EventHub}/{PartitionId}/" + TIME, "Namespace", "contoso1/{EventHub}/{PartitionId}/" + TIME),
    ],
)
def test_a_format_in_which_a_name_runs_into_what_follows_is_refused(path: str, token: str, instead: str) -> None:
    """The message names the token and the hub's own name, which may replace the token."""
    known = {"Namespace": "contoso", "EventHub": "telemetry"}
    with pytest.raises(DefinitionError) as caught:
        CaptureNames("contoso", "telemetry", path)
    assert str(caught.value) == (
        f"a name does not show where {{{token}}} ends: write a delimiter after it that it cannot contain, such as /, "
        f"or replace it with {known[token]} if the container has no other"
    )
    names = CaptureNames("contoso", "telemetry", instead)
    assert names.parse(names.name("7", TEN)) == ("7", TEN)


@pytest.mark.parametrize(
    "path",
    [
        "{Namespace}/{EventHub}/{PartitionId}" + TIME,
        "{Namespace}/{EventHub}/{PartitionId}0/" + TIME,
        "{Namespace}/{PartitionId}{EventHub}/" + TIME,
    ],
)
def test_a_format_in_which_a_partition_runs_into_what_follows_is_refused(path: str) -> None:
    with pytest.raises(DefinitionError, match=r"where {PartitionId} ends: write a delimiter .*, such as /$"):
        CaptureNames("contoso", "telemetry", path)


@pytest.mark.parametrize(
    "path",
    [
        "{Namespace}_{EventHub}/{PartitionId}/" + TIME,
        "{Namespace}/{EventHub}/p{PartitionId}--" + TIME,
        "{EventHub}/" + TIME + "_{PartitionId}/{Namespace}",
        "{EventHub}\\{Namespace}/" + TIME + "{PartitionId}.avro",
    ],
)
def test_a_delimiter_is_whatever_the_token_cannot_contain(path: str) -> None:
    names = CaptureNames("contoso", "telemetry", path)
    assert names.parse(names.name("7", TEN)) == ("7", TEN)


# Names to parts and back

moments = st.datetimes(datetime(2014, 1, 1), datetime(2099, 1, 1), timezones=st.just(UTC)).map(
    lambda instant: instant.replace(microsecond=0)
)
partitions = st.integers(0, 2047).map(str)
texts = st.sampled_from(["", "", "/", "_", "-", "--", "p", "=", "\\", "v1/", "a.b", "0", ".avro"])


@st.composite
def formats(draw: st.DrawFn) -> str:
    """Draw the nine tokens in any order, with or without delimiters."""
    tokens = draw(st.permutations(list(VOCABULARY.tokens)))
    parts = [draw(texts) + f"{{{token}}}" for token in tokens]
    return "".join(parts) + draw(texts)


def compiled(path: str) -> CaptureNames:
    """Return the names of a format; if it is refused, fill in the hub's names and add a delimiter first."""
    try:
        return CaptureNames("contoso", "telemetry", path)
    except DefinitionError:
        written = path.replace("{Namespace}", "contoso").replace("{EventHub}", "telemetry")
        return CaptureNames("contoso", "telemetry", written.replace("{PartitionId}", "{PartitionId}_"))


@given(formats(), partitions, moments, st.sampled_from([".avro", ""]))
def test_a_name_of_any_format_is_parsed_into_its_parts(
    path: str, partition: str, opened: datetime, extension: str
) -> None:
    names = compiled(path)
    name = names.name(partition, opened, extension)
    assert names.parse(name) == (partition, opened)
    assert name.startswith(names.prefix)


@given(formats(), st.lists(st.tuples(partitions, moments), min_size=2, max_size=2, unique=True))
def test_no_two_windows_have_the_same_name(path: str, windows: list[tuple[str, datetime]]) -> None:
    names = compiled(path)
    assert len({names.name(*window, extension) for window in windows for extension in ("", ".avro")}) == 4


@st.composite
def delimited(draw: st.DrawFn) -> str:
    """Draw the tokens in any order, most of them with a delimiter after them."""
    signs = st.sampled_from(["/", "_", "-", "1", ""])
    tokens = draw(st.permutations(["{Namespace}", "{EventHub}", "{PartitionId}", TIME]))
    return "".join(f"{token}{draw(signs)}" for token in tokens)


ALIKE = [
    (("contoso", "telemetry"), ("contoso", "telemetry1")),
    (("contoso", "telemetry"), ("contos", "otelemetry")),
    (("contoso", "telemetry"), ("contoso1", "telemetry")),
    (("contoso", "telemetry"), ("contoso", "1telemetry")),
    (("contoso", "eu-telemetry"), ("contoso-eu", "telemetry")),
    (("telemetry", "contoso"), ("telemetry", "contoso.avro")),
    (("contoso", "telemetry"), ("fabrikam", "telemetry")),
]
"""Pairs of hubs whose names are easily confused."""


@settings(max_examples=examples(300))
@given(delimited(), st.sampled_from(ALIKE), st.booleans(), partitions, moments, st.sampled_from(["", ".avro"]))
def test_no_two_hubs_give_a_blob_the_same_name(
    path: str, hubs: tuple[tuple[str, str], ...], swapped: bool, partition: str, opened: datetime, extension: str
) -> None:
    try:
        first, second = (CaptureNames(*hub, path) for hub in (reversed(hubs) if swapped else hubs))
    except DefinitionError:
        return
    assert first.parse(second.name(partition, opened, extension)) is None


# Where to look


def test_a_range_is_listed_by_hours_then_days_tens_of_days_and_whole_months_and_years() -> None:
    def listed(first: datetime, last: datetime) -> list[str]:
        return [prefix.removeprefix("contoso/telemetry/3/") for prefix in NAMES.prefixes(first, last, ["3"])]

    assert listed(TEN, TEN) == ["2026/03/01/10/"]
    assert listed(TEN, TEN + HOUR) == ["2026/03/01/10/", "2026/03/01/11/"]
    assert listed(TEN - 10 * HOUR, TEN + 13 * HOUR) == ["2026/03/01/"]
    assert listed(TEN - 24 * HOUR, TEN + HOUR) == ["2026/02/28/", "2026/03/01/"]
    assert listed(datetime(2026, 1, 30, 5, tzinfo=UTC), TEN) == [
        "2026/01/30/",
        "2026/01/31/",
        "2026/02/",
        "2026/03/01/",
    ]
    assert listed(datetime(2023, 12, 31, tzinfo=UTC), datetime(2025, 1, 1, tzinfo=UTC)) == [
        "2023/12/31/", "2024/", "2025/01/01/",
    ]  # fmt: skip
    assert listed(datetime(2026, 11, 9, tzinfo=UTC), datetime(2026, 11, 25, tzinfo=UTC)) == [
        "2026/11/09/", "2026/11/1", "2026/11/2",
    ]  # fmt: skip
    assert listed(datetime(2026, 11, 26, tzinfo=UTC), datetime(2026, 12, 5, 23, tzinfo=UTC)) == [
        "2026/11/26/", "2026/11/27/", "2026/11/28/", "2026/11/29/", "2026/11/30/", "2026/12/0",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "known", "expected"),
    [
        (NAMES.format, [], ["contoso/telemetry/"]),
        (NAMES.format, ["0", "11"], ["contoso/telemetry/0/2026/03/01/10/", "contoso/telemetry/11/2026/03/01/10/"]),
        ("{Namespace}/{EventHub}/" + TIME + "_{PartitionId}", ["0", "1"], ["contoso/telemetry/2026030110"]),
        ("{Day}.{Month}.{Year}/{EventHub}/{Namespace}/{PartitionId}/{Second}/{Hour}{Minute}", ["4"],
         ["01.03.2026/telemetry/contoso/4/"]),
        ("{Minute}/{Namespace}/{EventHub}/{PartitionId}/{Year}{Month}{Day}{Hour}{Second}", ["4"], [""]),
        (CUSTOM, ["4"], ["Prod_telemetry/contoso"]),
        ("{Namespace}/{EventHub}/{PartitionId}-{Second}/{Year}{Month}{Day}{Hour}{Minute}", ["1", "12", "2"],
         ["contoso/telemetry/1-", "contoso/telemetry/12-", "contoso/telemetry/2-"]),
    ],
)  # fmt: skip
def test_a_prefix_is_as_long_as_the_format_allows(path: str, known: list[str], expected: list[str]) -> None:
    assert CaptureNames("contoso", "telemetry", path).prefixes(TEN, TEN, known) == expected


@given(formats(), st.lists(partitions, min_size=1, max_size=3, unique=True), moments, st.integers(0, 2000), st.data())
def test_each_name_of_a_range_has_one_of_its_prefixes(
    path: str, known: list[str], first: datetime, hours: int, data: st.DataObject
) -> None:
    """It has only one of them, so nothing is listed twice."""
    names = compiled(path)
    last = first + hours * HOUR
    prefixes = names.prefixes(first, last, known)
    opened = first + timedelta(seconds=data.draw(st.integers(0, hours * 3600)))
    name = names.name(data.draw(st.sampled_from(known)), opened)
    assert Counter(map(name.startswith, prefixes))[True] == 1
    assert len(prefixes) <= len(known) * (61 + 23)


@pytest.mark.parametrize(
    ("path", "base", "folder"),
    [
        (NAMES.format, "contoso/telemetry/", "contoso/telemetry/12/"),
        ("{EventHub}/{Namespace}/p{PartitionId}-{Year}/" + TIME, "telemetry/contoso/p", "telemetry/contoso/p12-2026/"),
        ("{Namespace}/{EventHub}/{PartitionId}_{Hour}/" + TIME, None, ""),
        ("{Namespace}/{EventHub}/{Year}/{PartitionId}/" + TIME, None, ""),
        ("{Namespace}/{EventHub}/{PartitionId}_" + TIME, None, ""),
    ],
)
def test_folders_show_the_partitions_if_the_partition_comes_first(path: str, base: str | None, folder: str) -> None:
    names = CaptureNames("contoso", "telemetry", path)
    assert names.folder_of_partitions() == base
    assert names.partition_of_folder(folder) == (None if base is None else "12")
    assert names.partition_of_folder("contoso/telemetry/notes/") is None
