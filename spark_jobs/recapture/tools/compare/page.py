"""The page of a comparison with a live job, rendered from its document."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from recapture.pages.page import render, share
from recapture.process.wording import counted
from recapture.tools.compare.words import BY_TIME, MEANINGS, UNEXPLAINED

GLOSSARY = ("live job", "slice", "late", "out of order", "tolerance", "duplicate", "hole", "window")
"""Terms that the page explains."""
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
        tone=_tone(document),
        reasons=reasons,
        slices=sorted(by_size, key=lambda row: row["slice_start"]),
        examples=_by_difference(document),
        unexplained=UNEXPLAINED,
        meaning=meaning,
        counted=counted,
        glossary_terms=GLOSSARY,
    )


def verdict(document: Mapping[str, Any]) -> str:
    """Return in one sentence whether the rows are equal, or explained."""
    if not document["live_rows"]:
        return "The live job's output has no row in this range: nothing was compared."
    rows = counted(document["rows"], "row")
    missing = document["missing_columns"]
    if missing and document["key"] == document["example_columns"]:
        return f"Only the keys of {rows} were compared: the live job's output lacks {', '.join(missing)}."
    uncompared = f"; {', '.join(missing)} {'was' if len(missing) == 1 else 'were'} not compared" if missing else ""
    if not document["different"]:
        return f"All {rows} are equal{uncompared}."
    differing = f"{document['different']:,} of {rows} differ ({share(document['different'], document['rows'])})"
    if not document["explained"]:
        (unexplained,) = (reason for reason in document["reasons"] if reason["reason"] == UNEXPLAINED)
        number = unexplained["rows"]
        are = "is" if number == 1 else "are"
        return f"{differing}; {number:,} of the differences {are} unexplained{uncompared}."
    by_time = _by_time(document)
    unconfirmed = f"; {by_time:,} by times alone, which nothing confirms" if by_time else ""
    return f"{differing}, and all differences have a reason{unconfirmed}{uncompared}."


def meaning(causes: Sequence[str]) -> str:
    """Return what a reason with these causes means; causes that follow from times alone are not confirmed."""
    if len(causes) == 1 or set(BY_TIME).intersection(causes):
        return " ".join(MEANINGS.get(cause, f"With {cause}, the rows equal the live ones.") for cause in causes)
    return f"Computed with all of these together, the rows equal the live ones: {', '.join(causes)}."


def _by_difference(document: Mapping[str, Any]) -> list[list[Mapping[str, Any]]]:
    """Return the rows of the examples; those of one difference, which have the same key, are together."""
    size = len(document["key"])
    rows = groupby(document["examples"], lambda row: (row["reason"], row["slice_start"], row["values"][:size]))
    return [list(group) for _, group in rows]


def _by_time(document: Mapping[str, Any]) -> int:
    """Return how many differences have a reason that follows from times alone."""
    return sum(reason["rows"] for reason in document["reasons"] if set(BY_TIME).intersection(reason["causes"]))


def _tone(document: Mapping[str, Any]) -> str:
    if not document["explained"]:
        return "bad"
    return "warning" if _by_time(document) else "good"
