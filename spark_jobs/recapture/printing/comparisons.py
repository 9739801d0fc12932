"""What the commands print that write a page: reports and comparisons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

from recapture.pages.page import number
from recapture.printing.consoles import shown
from recapture.process.wording import named_slices
from recapture.tools.compare.page import verdict as comparison_verdict
from recapture.tools.diff.page import verdict


def print_report(out: Console, result: Mapping[str, Any]) -> None:
    """Print the verdict of a report of published slices, and where it is."""
    verdict = result["verdict"]
    for line in (verdict["sentence"], verdict["events"], *verdict["reasons"], *verdict["advice"]):
        out.print(shown(line))
    out.print(f"report: {shown(result['page'])}, its data: {shown(result['document'])}")


def print_trend(out: Console, result: Mapping[str, Any]) -> None:
    """Print the verdict of a trend of published slices, and where it is."""
    out.print(shown(result["verdict"]["sentence"]))
    out.print(f"trend: {shown(result['page'])}, its data: {shown(result['document'])}")


def print_difference(out: Console, result: Mapping[str, Any]) -> None:
    """Print what differs between what is published and other rows: counts, columns, and the first rows."""
    out.print(f"{shown(result['pipeline'])}, {result['from']} to {result['to']}: {shown(verdict(result))}")
    for output in result["outputs"]:
        slices = ", ".join(f"{count:,} {state}" for state, count in output["slices"].items() if count)
        out.print(f"{shown(output['alias'])}: slices: {slices}")
        for column in output["types"]:
            out.print(f"  column {shown(column['name'])}: {column['before'] or 'none'} => {column['after'] or 'none'}")
        changed = [column for column in output["columns"] if column["changed"]]
        if changed:
            names = ("changed", "largest_difference", "mean_difference", "sum_before", "sum_after")
            table = Table("column", *(name.replace("_", " ") for name in names))
            for column in changed:
                table.add_row(shown(column["name"]), *(number(column[name]) for name in names))
            out.print(table)
        if output["examples"]:
            table = Table("row", *map(shown, output["example_columns"]))
            for row in output["examples"]:
                for side, mark in (("before", "-"), ("after", "+")):
                    if row[side] is not None:
                        table.add_row(mark, *map(shown, row[side]))
            out.print(table)


def print_comparison(out: Console, result: Mapping[str, Any]) -> None:
    """Print why a live job's output differs from what is published: the reasons, and examples."""
    out.print(f"{shown(result['output'])}, {result['from']} to {result['to']}: {shown(comparison_verdict(result))}")
    if result["missing_columns"]:
        out.print(
            f"not compared, because the live job's output lacks them: {shown(', '.join(result['missing_columns']))}"
        )
    if result["unpublished"]:
        out.print(f"not published: {named_slices(result['unpublished'])}")
    for silence in result["silences"]:
        out.print(f"the live job wrote no row after {silence['after']} and before {silence['before']}")
    if result["reasons"]:
        table = Table("reason", "rows", "share", "other values", "only live", "only published")
        for reason in result["reasons"]:
            counts = (f"{reason[name]:,}" for name in ("changed", "only_live", "only_ours"))
            portion = f"{reason['share']:.1%}"
            table.add_row(shown(reason["reason"]), f"{reason['rows']:,}", portion, *counts)
        out.print(table)
        table = Table("reason", "side", *map(shown, result["example_columns"]))
        for row in result["examples"]:
            table.add_row(shown(row["reason"]), row["side"], *map(shown, row["values"]))
        out.print(table)
        for row in result["examples"]:
            if row["events"]:
                out.print(f"events of the row {shown(', '.join(row['values']))}:")
                for event in row["events"]:
                    out.print(f"  {shown(event)}")
