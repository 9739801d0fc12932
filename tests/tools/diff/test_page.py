"""The sentence over a difference says how much of the range was compared."""

from recapture.tools.diff.page import verdict


def test_slices_that_could_not_be_compared_do_not_count_as_compared() -> None:
    output = {
        "rows": {"changed": 3, "only_before": 0, "only_after": 1, "new": 0},
        "missing": [],
        "unreadable": ["2024-03-01T10:00:00Z"],
    }
    document = {"slices": 5, "of_slices": 5, "equal": False, "outputs": [output]}
    assert verdict(document) == "Rows that differ, in 4 of 5 slices; 1 could not be compared: 3 changed, 1 new."
    output["unreadable"] = []
    assert verdict(document) == "Rows that differ, in 5 slices: 3 changed, 1 new."
