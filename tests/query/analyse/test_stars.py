"""What the * of a step stands for: the * of several sides, and that of a record."""

import pytest

from recapture.errors import DefinitionError
from recapture.formats.event_hubs import CaptureInput
from recapture.query.compile import compile_query

TABLES = "CREATE TABLE a (k bigint, x float, site.id bigint) CREATE TABLE b (k bigint, y float, site.name bigint) "
BOTH = "WITH s AS (SELECT a.*, b.* FROM a JOIN b ON a.k = b.k AND DATEDIFF(minute, a, b) BETWEEN 0 AND 5) "
RECORD = "WITH s AS (SELECT site.* FROM a) "


def published(text: str) -> list[str]:
    inputs = dict.fromkeys(["a", "b"] if "JOIN" in text else ["a"], CaptureInput.metadata)
    query = compile_query(text, inputs=inputs, output_aliases=["out"])
    return [column.name for column in query.outputs[0].columns]


def test_a_star_of_several_stars_has_each_name_once() -> None:
    added = ["EventProcessedUtcTime", "PartitionId", "EventEnqueuedUtcTime"]
    assert published(f"{TABLES}{BOTH}SELECT * INTO out FROM s") == ["k", "x", *added, "y"]


def test_of_several_stars_the_left_one_that_lists_a_column_has_it() -> None:
    assert published(f"{TABLES}{BOTH}SELECT x, y, k INTO out FROM s") == ["x", "y", "k"]
    with pytest.raises(DefinitionError, match="`x` may come from more than one \\* of the step"):
        published(f"{BOTH}SELECT x INTO out FROM s")


def test_the_record_of_one_of_several_stars_has_its_properties() -> None:
    only_left = TABLES.replace(", site.name bigint", "")
    assert published(f"{only_left}{BOTH}SELECT s.site.* INTO out FROM s") == ["id"]
    with pytest.raises(DefinitionError, match="the properties of a record are not known here"):
        published(f"{TABLES}{BOTH}SELECT s.nothing.* INTO out FROM s")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{BOTH}SELECT * INTO out FROM s", "\\* has no known columns here"),
        (f"{BOTH}SELECT LAST(*) OVER (LIMIT DURATION(hour, 1)) AS r INTO out FROM s", "a step with several \\*"),
        (f"{RECORD}SELECT * INTO out FROM s", "\\* has no known columns here"),
        (f"{RECORD}SELECT LAST(*) OVER (LIMIT DURATION(hour, 1)) AS r INTO out FROM s", "that site.\\* stands for"),
    ],
)
def test_columns_that_are_not_known_are_refused(text: str, message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        published(text)


def test_a_column_of_a_record_star_is_a_property() -> None:
    assert published(f"{RECORD}SELECT id, UPPER(name) AS name INTO out FROM s") == ["id", "name"]
