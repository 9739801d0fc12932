"""The names of the blobs into which an IoT hub routes messages."""

import re
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recapture.errors import DefinitionError
from recapture.formats.iot_hub import DEFAULT_PATH, VOCABULARY, IotHubNames
from tests.draws import examples

NAMES = IotHubNames("contoso")
TEN = datetime(2026, 3, 1, 10, 5, tzinfo=UTC)
TIME = "{YYYY}{MM}{DD}{HH}{mm}"


@pytest.mark.parametrize(
    ("hub", "path", "name", "partition", "opened"),
    [
        ("chgpiothub", DEFAULT_PATH, "chgpiothub/00/2021/05/07/08/12.json", "0", datetime(2021, 5, 7, 8, 12)),
        ("laika-hub", DEFAULT_PATH, "laika-hub/00/2018/04/22/10/12", "0", datetime(2018, 4, 22, 10, 12)),
        ("ContosoTestHub", DEFAULT_PATH, "ContosoTestHub/0/2018/10/30/10/56", "0", datetime(2018, 10, 30, 10, 56)),
        ("hub", f"{DEFAULT_PATH}.avro", "hub/11/2021/05/07/08/12.avro", "11", datetime(2021, 5, 7, 8, 12)),
        (
            "hub",
            "{iothub}/{partition}_{YYYY}_{MM}_{DD}_{HH}_{mm}",
            "hub/03_2021_05_07_08_12",
            "3",
            datetime(2021, 5, 7, 8, 12),
        ),
        (
            "hub",
            f"iotdata/{DEFAULT_PATH}",
            "iotdata/hub/3/2026/04/28/10/30/6f1b.json",
            "3",
            datetime(2026, 4, 28, 10, 30),
        ),
    ],
)
def test_a_real_name_shows_its_partition_and_minute(
    hub: str, path: str, name: str, partition: str, opened: datetime
) -> None:
    """Partitions have a leading zero or none, and names have an extension or none."""
    assert IotHubNames(hub, path).parse(name) == (partition, opened.replace(tzinfo=UTC))


@pytest.mark.parametrize("suffix", ["", ".avro", ".JSON", "-1.avro", "_2", "/part", ".json.gz"])
def test_a_name_may_continue_after_the_format(suffix: str) -> None:
    assert NAMES.parse(f"contoso/7/2026/03/01/10/05{suffix}") == ("7", TEN)


@pytest.mark.parametrize(
    "name",
    [
        "contoso/7/2026/03/01/10/059",
        "contoso/7/2026/03/01/10/05a",
        "contoso/007/2026/03/01/10/05",
        "contoso/7/2026/03/01/10",
        "contoso/7/2026/02/30/10/05",
        "contoso2/7/2026/03/01/10/05",
        "Contoso/7/2026/03/01/10/05",
        "x/contoso/7/2026/03/01/10/05",
        "contoso/a/2026/03/01/10/05",
        "",
    ],
)
def test_any_other_name_is_not_one_of_the_hub_s(name: str) -> None:
    assert NAMES.parse(name) is None


@pytest.mark.parametrize("token", ["partition", "YYYY", "MM", "DD", "HH", "mm"])
def test_a_format_that_lacks_a_token_is_refused_with_the_token_s_name(token: str) -> None:
    with pytest.raises(
        DefinitionError, match=f"^{{{token}}} is missing: .* an IoT Hub name are {{iothub}}, {{partition}}, "
    ):
        IotHubNames("contoso", DEFAULT_PATH.replace(f"{{{token}}}", "x"))


@pytest.mark.parametrize("piece", ["{ss}", "{yyyy}", "{PartitionId}", "{", "}}"])
def test_an_unknown_token_or_a_stray_brace_is_refused(piece: str) -> None:
    with pytest.raises(DefinitionError, match=re.escape(VOCABULARY.shown)):
        IotHubNames("contoso", DEFAULT_PATH + piece)


@pytest.mark.parametrize(
    ("path", "instead"),
    [
        ("{iothub}{partition}/" + TIME, "contoso{partition}/" + TIME),
        ("{iothub}-{partition}/" + TIME, "contoso-{partition}/" + TIME),
        (TIME + "-{partition}/{iothub}{mm}", TIME + "-{partition}/contoso{mm}"),
    ],
)
def test_a_format_in_which_a_hub_s_name_runs_into_what_follows_is_refused(path: str, instead: str) -> None:
    with pytest.raises(DefinitionError, match=r"where {iothub} ends: .*, such as /, or replace it with contoso if "):
        IotHubNames("contoso", path)
    names = IotHubNames("contoso", instead)
    assert names.parse(names.name("3", TEN)) == ("3", TEN)


def test_a_format_in_which_a_partition_runs_into_what_follows_is_refused() -> None:
    with pytest.raises(DefinitionError, match=r"where {partition} ends: write a delimiter .*, such as /$"):
        IotHubNames("contoso", "{iothub}/{partition}" + TIME)


def test_a_hub_s_name_at_the_end_does_not_continue_with_a_hyphen() -> None:
    names = IotHubNames("contoso", TIME + "/{partition}/{iothub}")
    assert names.parse("202603011005/3/contoso.avro") == ("3", TEN)
    assert names.parse("202603011005/3/contoso-2.avro") is None


# Names to parts and back

moments = st.datetimes(datetime(2016, 1, 1), datetime(2099, 1, 1), timezones=st.just(UTC)).map(
    lambda instant: instant.replace(second=0, microsecond=0)
)
partitions = st.integers(0, 127).map(str)
texts = st.sampled_from(["", "", "/", "_", "-", "--", "p", "=", "v1/", "a.b", "0", ".json"])
suffix = st.sampled_from(["", ".avro", "-1", "/x.json"])


@st.composite
def formats(draw: st.DrawFn) -> str:
    tokens = draw(st.permutations(list(VOCABULARY.tokens)))
    return "".join(draw(texts) + f"{{{token}}}" for token in tokens) + draw(texts)


def compiled(path: str) -> IotHubNames:
    try:
        return IotHubNames("contoso", path)
    except DefinitionError:
        written = path.replace("{iothub}", "contoso").replace("{partition}", "{partition}_")
        return IotHubNames("contoso", written)


@settings(max_examples=examples(50))
@given(formats(), partitions, st.booleans(), moments, suffix)
def test_a_name_of_any_format_is_parsed_into_its_parts(
    path: str, partition: str, padded: bool, opened: datetime, suffix: str
) -> None:
    names = compiled(path)
    if path.endswith("{iothub}") and "{iothub}" in names.format:
        suffix = suffix.replace("-", "_")
    name = names.name(partition.zfill(2) if padded else partition, opened, suffix)
    assert names.parse(name) == (partition, opened)
    assert name.startswith(names.prefix)


@st.composite
def delimited(draw: st.DrawFn) -> str:
    """Draw the tokens in any order, most of them with a delimiter after them."""
    signs = st.sampled_from(["/", "_", "-", "1", ""])
    return "".join(f"{token}{draw(signs)}" for token in draw(st.permutations(["{iothub}", "{partition}", TIME])))


hubs = st.sampled_from(["contoso", "contoso1", "contoso-1", "contoso11", "contos"])


@settings(max_examples=examples(300))
@given(delimited(), st.lists(hubs, min_size=2, max_size=2, unique=True), partitions, moments, suffix)
def test_no_two_hubs_give_a_blob_the_same_name(
    path: str, two: list[str], partition: str, opened: datetime, suffix: str
) -> None:
    try:
        first, second = (IotHubNames(hub, path) for hub in two)
    except DefinitionError:
        return
    if path.endswith("{iothub}"):
        suffix = suffix.replace("-", "_")
    assert first.parse(second.name(partition, opened, suffix)) is None


@settings(max_examples=examples(50))
@given(formats(), st.lists(partitions, min_size=1, max_size=3, unique=True), moments, st.integers(0, 500), st.data())
def test_each_name_of_a_range_has_one_of_its_prefixes(
    path: str, known: list[str], first: datetime, hours: int, data: st.DataObject
) -> None:
    names = compiled(path)
    prefixes = names.prefixes(first, first + timedelta(hours=hours), known)
    partition = data.draw(st.sampled_from(known))
    opened = first + timedelta(minutes=data.draw(st.integers(0, hours * 60)))
    for written in {partition, partition.zfill(2)}:
        assert Counter(map(names.name(written, opened, ".json").startswith, prefixes))[True] == 1


def test_an_hour_is_listed_under_both_spellings_of_a_partition() -> None:
    assert NAMES.prefixes(TEN, TEN, ["3", "12"]) == [
        "contoso/03/2026/03/01/10/",
        "contoso/12/2026/03/01/10/",
        "contoso/3/2026/03/01/10/",
    ]
    assert NAMES.folder_of_partitions() == "contoso/"
    assert [NAMES.partition_of_folder(f"contoso/{folder}/") for folder in ("03", "3", "12", "x")] == [
        "3",
        "3",
        "12",
        None,
    ]
