"""Which blobs match a path pattern, and what it shows of them, as in ASA's own blob input."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recapture.errors import DefinitionError
from recapture.formats.path_names import TIME_FORMATS, InputPath

DAY = datetime(2024, 3, 1, tzinfo=UTC)
TEN = DAY + timedelta(hours=10)


@pytest.mark.parametrize(
    ("path", "name", "expected"),
    [
        (InputPath("cluster1/logs/{date}/{time}/{partition}"), "cluster1/logs/2024/03/01/10/3/a.json", ("3", TEN)),
        (InputPath("cluster1/logs/{date}/{time}/{partition}"), "cluster1/logs/2024/03/01/10/03.csv.gz", ("3", TEN)),
        (InputPath("cluster1/logs/{date}"), "cluster1/logs/2024/03/01/a/b/c.json", ("0", DAY)),
        (InputPath("/cluster1/logs/{date}/"), "cluster1/logs/2024/03/01/a.json", ("0", DAY)),
        (InputPath("archive/{date}"), "archive/2024/03/01.jsonl", ("0", DAY)),
        (InputPath("archive/{date}"), "archive/2024/03/01", ("0", DAY)),
        (InputPath("archive/{date}"), "archive/2024/03/011.jsonl", None),
        (InputPath("archive/{date}"), "archive/2024/03/01x", None),
        (InputPath("archive/{date}"), "archive/2024/02/30/a.json", None),
        (InputPath("archive"), "archive/a.json", ("0", None)),
        (InputPath("archive"), "archive/2024/03/01/a.json", ("0", None)),
        (InputPath("archive"), "archive.json", None),
        (InputPath("archive"), "archive2/a.json", None),
        (InputPath("archive"), "archive/", None),
        (InputPath("p/{partition}"), "p/7.json", ("7", None)),
        (InputPath("p/{partition}"), "p/a.json", None),
        (InputPath(), "a.json", ("0", None)),
        (InputPath(), "any/folder/a.json", ("0", None)),
        (InputPath("{date}", "MM/DD/YYYY"), "03/01/2024/a", ("0", DAY)),
        (InputPath("{date}", "DD-MM-YYYY"), "01-03-2024/a", ("0", DAY)),
        (InputPath("{date}", "YYYYMMDD"), "20240301/a", ("0", DAY)),
        (InputPath("{date}/{time}", time_format="HH/mm"), "2024/03/01/10/05/a", ("0", TEN + timedelta(minutes=5))),
        (InputPath("{time}-{date}", time_format="HH-mm"), "10-00-2024/03/01.csv", ("0", TEN)),
        (InputPath("{date}/x/{date}/{time}"), "2024/03/01/x/2024/03/01/10/a", ("0", TEN)),
        (InputPath("{date}/x/{date}/{time}"), "2024/03/02/x/2024/03/01/10/a", None),
    ],
)
def test_a_blob_belongs_to_a_path_if_its_name_continues_after_it(
    path: InputPath, name: str, expected: tuple[str, datetime | None] | None
) -> None:
    assert path.parse(name) == expected


@pytest.mark.parametrize(
    ("path", "period"),
    [
        (InputPath("archive"), 0),
        (InputPath("{date}"), 86_400),
        (InputPath("{date}/{time}"), 3600),
        (InputPath("{date}/{time}", time_format="HH-mm"), 60),
    ],
)
def test_the_time_in_a_name_is_the_start_of_a_period(path: InputPath, period: int) -> None:
    assert path.period_seconds == period


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("logs/{time}",), "{time} without {date} does not give the day"),
        (("logs/{datetime:yyyy}",), "{datetime:yyyy} is not a token of an input's path: they are {date}, {time}"),
        (("logs/{Date}",), "{Date} is not a token"),
        (("logs/*/a",), "no \\*"),
        (("logs/{date",), "no brace"),
        (("{date}", "YYYY/MM"), "date format 'YYYY/MM' should have YYYY, MM and DD once each"),
        (("{date}", "YYYY/MM/DD/DD"), "once each"),
        (("{date}", "yyyy/MM/dd"), "such as YYYY/MM/DD"),
        (("{date}", "YYYY1MM1DD"), "with signs between"),
        (("{date}/{time}", "YYYY/MM/DD", "HH:mm"), "time format 'HH:mm' is not one of HH, HH/mm, HH-mm"),
    ],
)
def test_an_invalid_path_or_format_is_refused_with_a_reason(arguments: tuple[str, ...], reason: str) -> None:
    with pytest.raises(DefinitionError, match=reason):
        InputPath(*arguments)


# Where to look


@pytest.mark.parametrize(
    ("path", "hours", "expected"),
    [
        (InputPath("archive"), 5, ["archive/"]),
        (InputPath(), 5, [""]),
        (InputPath("logs/{date}"), 5, ["logs/2024/03/01"]),
        (InputPath("logs/{date}/{time}"), 1, ["logs/2024/03/01/10", "logs/2024/03/01/11"]),
        (InputPath("{date}", "DD-MM-YYYY"), 40, ["01-03-2024", "02-03-2024", "03-03-2024"]),
        (InputPath("{date}/{partition}", "MM/DD/YYYY"), 5, ["03/01/2024/03", "03/01/2024/11", "03/01/2024/3"]),
        (InputPath("{partition}/{date}"), 5, ["03/2024/03/01", "11/2024/03/01", "3/2024/03/01"]),
    ],
)
def test_only_the_days_and_hours_of_a_range_are_listed(path: InputPath, hours: int, expected: list[str]) -> None:
    assert path.prefixes(TEN, TEN + timedelta(hours=hours), ["3", "11"]) == expected


def test_if_the_year_comes_last_days_are_listed_one_by_one_up_to_a_year() -> None:
    path = InputPath("{date}", "DD/MM/YYYY")
    assert len(path.prefixes(DAY, DAY + timedelta(days=91), [])) == 92
    assert path.prefixes(DAY, DAY + timedelta(days=4000), []) == [""]


def test_folders_show_the_partitions_only_if_nothing_but_a_slash_can_follow_them() -> None:
    assert InputPath("logs/{partition}/{date}").folder_of_partitions() == "logs/"
    assert InputPath("logs/{partition}/{date}").partition_of_folder("logs/03/") == "3"
    for path in (InputPath("logs/{partition}"), InputPath("{date}/{partition}"), InputPath("logs"), InputPath()):
        assert path.folder_of_partitions() is None
        assert path.partition_of_folder("logs/3/") is None


# Names to parts and back

moments = st.datetimes(datetime(2014, 1, 1), datetime(2099, 1, 1), timezones=st.just(UTC))
partitions = st.integers(0, 255).map(str)
texts = st.sampled_from(["logs", "cluster1", "a.b", "v-1", "0"])
date_formats = st.permutations(["YYYY", "MM", "DD"]).flatmap(
    lambda parts: st.sampled_from(["/", "-", "", "_", "."]).map(lambda sign: sign.join(parts))
)


@st.composite
def paths(draw: st.DrawFn) -> InputPath:
    """Draw a path of folders with the tokens in any order, each with or without text next to it."""
    tokens = draw(st.permutations(["{date}", "{time}", "{partition}"]))
    used = [token for token in tokens if draw(st.booleans())]
    if "{date}" not in used:
        used = [token for token in used if token != "{time}"]
    folders = [
        folder
        for token in used
        for folder in [draw(st.sampled_from(["", "p=", "x"])) + token, draw(texts)][: draw(st.integers(1, 2))]
    ]
    return InputPath(
        "/".join([*draw(st.lists(texts, max_size=2)), *folders]),
        draw(date_formats),
        draw(st.sampled_from(TIME_FORMATS)),
    )


def opened_at(path: InputPath, instant: datetime) -> datetime | None:
    if not path.period_seconds:
        return None
    since = (instant - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=path.period_seconds)
    return datetime(1970, 1, 1, tzinfo=UTC) + since * timedelta(seconds=path.period_seconds)


@given(paths(), partitions, st.booleans(), moments, st.sampled_from(["/a.json", "/b/c.csv.gz"]))
def test_a_name_under_any_path_is_parsed_into_its_parts(
    path: InputPath, partition: str, padded: bool, instant: datetime, suffix: str
) -> None:
    name = path.name(partition.zfill(2) if padded else partition, instant, suffix).lstrip("/")
    assert path.parse(name) == (partition if path.partitioned else "0", opened_at(path, instant))
    assert name.startswith(path.prefix)


@given(paths(), st.lists(partitions, min_size=1, max_size=3, unique=True), moments, st.integers(0, 2000), st.data())
def test_each_name_of_a_range_has_one_of_its_prefixes(
    path: InputPath, known: list[str], first: datetime, hours: int, data: st.DataObject
) -> None:
    prefixes = path.prefixes(first, first + timedelta(hours=hours), known)
    instant = first + timedelta(seconds=data.draw(st.integers(0, hours * 3600)))
    partition = data.draw(st.sampled_from(known))
    for written in {partition, partition.zfill(2)}:
        name = path.name(written, instant, "/a.json").lstrip("/")
        assert Counter(map(name.startswith, prefixes))[True] == 1


@given(date_formats, st.sampled_from(["{date}/{partition}", "logs/{date}", "{partition}/{date}"]), moments)
def test_no_other_day_is_listed(date_format: str, pattern: str, instant: datetime) -> None:
    path = InputPath(pattern, date_format)
    (prefix,) = path.prefixes(instant, instant, ["12"])
    for days in (-1, 1, 31, 365):
        assert not path.name("12", instant + timedelta(days=days)).startswith(prefix)
