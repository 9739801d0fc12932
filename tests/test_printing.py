"""The commands print what is said about a slice."""

import io

import pytest
from rich.console import Console

from recapture.printing import print_status


@pytest.mark.parametrize(
    ("differing", "state"),
    [
        ([], "outdated"),
        (["query", "policies"], "outdated; other query, policies"),
        (["unknown"], "outdated; definition not recorded"),
    ],
)
def test_status_says_what_of_its_definition_a_slice_does_not_share_with_the_pipeline(
    differing: list[str], state: str
) -> None:
    slice_ = {
        **dict.fromkeys(("late_share", "problem", "blocked_run", "staged_run", "error", "missing_events")),
        "missing_blobs": None,
        **{"slice_start": "T", "rows": 1, "state": "outdated", "published": "T", "run": "r", "checkable": True},
        "differing": differing,
    }
    written = io.StringIO()
    output = {"alias": "rows", "unpublished": [], "slices": [slice_]}
    result = {"outputs": [output], "problems": [], "states": {"outdated": 1}, "checked": {"at": None}}
    print_status(Console(file=written, width=200), result)
    assert f"│ {state} │" in written.getvalue().replace("  ", "")
