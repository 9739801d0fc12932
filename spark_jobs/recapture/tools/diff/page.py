"""The page of a difference, rendered from its document."""

from collections.abc import Mapping
from typing import Any

from recapture.pages.page import render
from recapture.process.wording import counted

GLOSSARY = ("slice", "run", "tolerance", "policy", "late", "out of order")
"""Terms that the page explains."""
MAX_SLICES = 100
"""Largest number of slices that are listed of an output: those in which the most rows differ."""


def page(document: Mapping[str, Any]) -> bytes:
    """Return the page of a difference as HTML in UTF-8."""
    return render(
        "recapture.tools.diff",
        "diff.html",
        diff=document,
        heading=heading(document),
        verdict=verdict(document),
        shown={output["alias"]: _shown(output) for output in document["outputs"]},
        counted=counted,
        glossary_terms=GLOSSARY,
    )


def heading(document: Mapping[str, Any]) -> str:
    """Return what published rows are compared with, such as "run 2026…" or "late tolerance 60 s"."""
    words = {
        "run": "run {}",
        "query": "the query in {}",
        "late_seconds": "a late tolerance of {} s",
        "out_of_order_seconds": "an out-of-order tolerance of {} s",
        "policy": "the policy {}",
    }
    named = [pattern.format(document["after"][name]) for name, pattern in words.items() if name in document["after"]]
    return ", ".join(named).replace("a late tolerance of -1 s", "no late limit")


def verdict(document: Mapping[str, Any]) -> str:
    """Return in one sentence whether anything differs."""
    slices = counted(document["slices"], "slice")
    if document["slices"] < document["of_slices"]:
        slices = f"a sample of {document['slices']:,} of {document['of_slices']:,} slices"
    left_out = {start for output in document["outputs"] for start in (*output["missing"], *output["unreadable"])}
    if left_out:
        slices = f"{document['slices'] - len(left_out):,} of {slices}; {len(left_out):,} could not be compared"
    if document["equal"]:
        return f"Nothing differs in {slices}."
    rows = {
        name: sum(output["rows"][name] for output in document["outputs"])
        for name in ("changed", "only_before", "only_after", "new")
    }
    counts = {"changed": rows["changed"], "new": rows["only_after"] + rows["new"], "gone": rows["only_before"]}
    kinds = [f"{count:,} {kind}" for kind, count in counts.items() if count]
    if not kinds:
        return f"No compared row differs in {slices}, but slices or columns do: see below."
    return f"Rows that differ, in {slices}: {', '.join(kinds)}."


def _shown(output: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the slices in which the most rows differ, in order of time."""
    by_size = sorted(output["by_slice"], key=lambda row: -(row["changed"] + row["only_before"] + row["only_after"]))
    return sorted(by_size[:MAX_SLICES], key=lambda row: row["slice_start"])
