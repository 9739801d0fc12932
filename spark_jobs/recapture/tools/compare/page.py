"""The page of a comparison with a live job, rendered from its document."""

from collections.abc import Mapping
from typing import Any

from recapture.pages.page import render, share
from recapture.process.wording import counted
from recapture.tools.compare.words import MEANINGS, UNEXPLAINED

MAX_SLICES = 100
"""Largest number of slices that are listed: those with the most differences."""


def page(document: Mapping[str, Any]) -> bytes:
    """Return the page of a comparison as HTML in UTF-8."""
    reasons = [reason["reason"] for reason in document["reasons"]]
    by_size = sorted(document["by_slice"], key=lambda row: -sum(row["reasons"].values()))[:MAX_SLICES]
    return render(
        "recapture.tools.compare",
        "compare.html",
        comparison=document,
        verdict=verdict(document),
        reasons=reasons,
        slices=sorted(by_size, key=lambda row: row["slice_start"]),
        unexplained=UNEXPLAINED,
        meanings=MEANINGS,
        counted=counted,
    )


def verdict(document: Mapping[str, Any]) -> str:
    """Return in one sentence whether the rows are equal, or explained."""
    rows = counted(document["rows"], "row")
    if not document["different"]:
        return f"All {rows} are equal."
    differing = f"{document['different']:,} of {rows} differ ({share(document['different'], document['rows'])})"
    if document["explained"]:
        return f"{differing}, and all differences are explained."
    (unexplained,) = (reason for reason in document["reasons"] if reason["reason"] == UNEXPLAINED)
    return f"{differing}; {unexplained['rows']:,} of the differences are unexplained."
