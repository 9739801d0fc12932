"""What the commands print that help to write a pipeline file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from recapture.pages.page import duration
from recapture.printable import message, printable
from recapture.printing.consoles import shown
from recapture.process.wording import counted
from recapture.time_model import ticks

if TYPE_CHECKING:
    from recapture.tools.advise.advice import Advice
    from recapture.tools.advise.input_advice import InputAdvice
    from recapture.tools.advise.keys import Key
    from recapture.tools.advise.tolerances import Setting
    from recapture.tools.asa_job import Draft
    from recapture.tools.check_query import CheckedQuery

FINDINGS = {
    "missing": "to do before the pipeline gives the results of the job:",
    "different": "not quite as in the job:",
}
"""Titles of the findings about an imported job, by the field of `asa_job.Draft`."""

_SETTING = ("late", "out of order", "slice complete", "unchanged")


def print_import(out: Console, name: str, file: Path, draft: Draft) -> None:
    """Print the pipeline file of an imported job, and the findings about it."""
    out.print(f"{shown(file)}: the pipeline of the job {shown(name)}")
    for kind, title in FINDINGS.items():
        findings = getattr(draft, kind)
        if findings:
            out.print(f"[bold]{title}[/]")
        for finding in findings:
            out.print(f"  {escape(message(str(finding)))}")


def print_checked_query(out: Console, checked: CheckedQuery) -> None:
    """Print what runs of a query, and what does not."""
    for input_ in checked.inputs:
        kind = "reference data" if input_.is_reference else "events"
        fields = ", ".join(f"{name} {type_}" for name, type_ in input_.fields.items()) or "no fields"
        out.print(escape(message(f"input {input_.alias} ({kind}): {fields}")))
    for output in checked.outputs:
        columns = ", ".join(f"{name} {type_}" for name, type_ in output.columns.items())
        out.print(escape(message(f"output {output.alias} runs: {columns}")))
    for assumption in checked.assumed:
        out.print(escape(message(f"assumed: {assumption}")))
    for refusal in checked.refusals:
        outputs = f"output {', '.join(refusal.outputs)} does not run: " if refusal.outputs else ""
        place = "" if refusal.line is None else f"line {refusal.line}, column {refusal.column}: "
        first, *rest = refusal.what.split("\n")
        out.print(escape(message(f"{outputs}{place}{first}")))
        for line in rest:
            out.print(escape(line), highlight=False)
    if checked.runs:
        out.print("the whole query runs")


def print_proposal(stderr: Console, text: str, result: Mapping[str, Any]) -> None:
    """Print a proposed suite, or the file that holds it."""
    if result["written"] is None:
        print(printable(text), end="")
    expectations = counted(len(result["suite"]["expectations"]), "expectation")
    origin = f"from {counted(result['rows'], 'row')} of {counted(result['slices'], 'slice')} of {result['output']}"
    written = "proposed" if result["written"] is None else f"written to {result['written']}"
    left_out = f" ({counted(result['left_out'], 'slice')} left out: other columns)" if result["left_out"] else ""
    stderr.print(shown(f"{expectations} {written}, {origin}{left_out}: review every bound"))


def print_advice(out: Console, advice: Advice) -> None:
    """Print what became of the events of a range with other tolerances, and which settings suffice."""
    bounds = f"{ticks.text_of(advice.start)} to {ticks.text_of(advice.end)}"
    out.print(f"{advice.pipeline.name}: what arrived from {bounds}")
    for input_advice in advice.inputs:
        _print_input_advice(out, input_advice, advice.pipeline.job.policy == "Adjust")


def _print_input_advice(out: Console, advice: InputAdvice, adjust: bool) -> None:
    counts, own = advice.counts, advice.counts.keys.own
    events = counted(counts.events, "event")
    blobs = counted(counts.blobs, "blob")
    latest = duration(max(counts.largest_lateness, 0) / ticks.TICKS_PER_SECOND)
    out.print(f"input {shown(advice.alias)}: {events}, the latest {latest} late; read {blobs}")
    table = Table("OVER", "keep", *_SETTING, title="smallest settings that keep events unchanged")
    for key in counts.keys.all:
        for share, setting in advice.smallest(key).items():
            name = shown(f"{key} (query)" if key == own else str(key))
            cells = ["no setting does"] if setting is None else _setting_cells(advice, key, setting)
            table.add_row(name, "all" if share == 1 else f"{100 * share:g}%", *cells)
    out.print(table)
    how = "adjusted" if adjust else "dropped"
    settings = Table(*_SETTING, "on time", f"late, {how}", f"out of order, {how}", title=f"settings {own.clause}")
    for setting in advice.settings(own):
        verdicts = advice.outcome(own, setting)
        numbers = (verdicts["on_time"], verdicts[f"late_{how}"], verdicts[f"out_of_order_{how}"])
        style = "bold" if setting == advice.own else None
        settings.add_row(*_setting_cells(advice, own, setting), *(f"{number:,}" for number in numbers), style=style)
    out.print(settings)
    partitions = Table(
        *("partition", "events", "on time", f"late, {how}", f"out of order, {how}"),
        *("early", "no time", "malformed", "duplicates"),
        title="partitions with the job's setting",
    )
    for name, partition in counts.partitions.items():
        verdicts = advice.outcome(own, advice.own, name)
        columns = ("on_time", f"late_{how}", f"out_of_order_{how}")
        judged = (sum(verdicts.values()) + partition.duplicates, *(verdicts[verdict] for verdict in columns))
        others = (partition.by_key[own].early, verdicts["invalid_timestamp"], verdicts["malformed"])
        partitions.add_row(shown(name), *(f"{number:,}" for number in (*judged, *others, partition.duplicates)))
    out.print(partitions)


def _setting_cells(advice: InputAdvice, key: Key, setting: Setting) -> list[str]:
    from recapture.tools.advise.input_advice import percent

    late = "no limit" if setting.late is None else duration(setting.late)
    complete, share = advice.complete_text(setting.late), percent(advice.share(key, setting))
    return [late, duration(setting.out_of_order), complete, share]
