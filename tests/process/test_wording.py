"""Messages have the number of their nouns and verbs."""

import pytest

from recapture.process.wording import counted, did_you_mean, named_slices


@pytest.mark.parametrize(
    ("count", "expected"), [(0, "0 slices"), (1, "1 slice"), (2, "2 slices"), (2400, "2,400 slices")]
)
def test_a_noun_follows_its_count(count: int, expected: str) -> None:
    assert counted(count, "slice") == expected


def test_a_verb_follows_its_count_too() -> None:
    assert [counted(count, "blob was", "blobs were") for count in (1, 2)] == ["1 blob was", "2 blobs were"]


def test_one_slice_is_named_and_of_several_the_first() -> None:
    assert named_slices(["T1"]) == "slice T1"
    assert named_slices(["T1", "T2"]) == "2 slices, the first T1"


def test_the_most_similar_known_name_is_proposed_in_its_own_spelling() -> None:
    assert did_you_mean("eventhub", ["namespace", "event_hub"]) == "did you mean event_hub?"
    assert did_you_mean("CONTAINER", ["alias", "Container"]) == "did you mean Container?"
    assert did_you_mean("owner", ["alias", "container"]) is None
    assert did_you_mean("owner", []) is None
