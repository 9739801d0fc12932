"""Show where a live job continues after what is published."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from recapture import printing
from recapture.commands.arguments import load_pipeline
from recapture.keep.handover import Handover, InputEnd, PartitionEnd, handover
from recapture.keep.job_start import start_text
from recapture.printable import one_line
from recapture.time_model import ticks


def run(stderr: Console, *, file: Path, json: bool) -> dict[str, Any]:
    """Return where the live job continues. The result is `ready` if every slice holds what the archive gives."""
    pipeline = load_pipeline(file, stderr)
    result = _summary(pipeline.name, handover(pipeline, datetime.now(UTC)))
    if not json:
        _print(printing.console(), result)
    return result


def _summary(name: str, end: Handover) -> dict[str, Any]:
    return {
        "pipeline": name,
        "ready": not end.problems,
        "from": ticks.to_text(end.since),
        "to": ticks.to_text(end.end),
        "start_time": start_text(end.start_time),
        "inputs": [_input(input_end) for input_end in end.inputs],
        "problems": [
            {"from": ticks.to_text(item.start), "to": ticks.to_text(item.end), "reasons": list(item.reasons)}
            for item in end.problems
        ],
        "not_guaranteed": list(end.not_guaranteed),
    }


def _input(end: InputEnd) -> dict[str, Any]:
    return {
        "alias": end.alias,
        "reads_from": ticks.to_text(end.first_read),
        "looked_at_from": None if end.looked_at_from is None else ticks.to_text(end.looked_at_from),
        "partitions": [_partition(partition) for partition in end.partitions],
        "problem": end.problem,
    }


def _partition(end: PartitionEnd) -> dict[str, Any]:
    position, event = end.position, end.event
    return {
        "partition": position.partition,
        "sequence_number": position.sequence_number,
        "offset": None if event is None else event.offset,
        "enqueued_time": None if event is None else ticks.to_text(event.enqueued),
        "slice_start": None if position.slice is None else ticks.to_text(position.slice.start),
        "blob": None if event is None else event.blob,
        "missing": [{"first": first, "last": last} for first, last in position.missing],
        "problem": end.problem,
    }


def _print(out: Console, result: dict[str, Any]) -> None:
    out.print(f"{result['pipeline']} is published up to {result['to']}, inclusive")
    out.print(f"custom start time of the live job: {result['start_time']}")
    for input_ in result["inputs"]:
        alias = escape(input_["alias"])
        out.print(
            f"input {alias}: the job reads what arrived from {input_['reads_from']} on: the hub must still hold it"
        )
        if input_["problem"] is not None:
            out.print(f"input {alias}: no positions: {escape(one_line(input_['problem']))}")
            continue
        title = f"{alias}: last events that arrived in the published slices"
        table = Table("partition", "sequence number", "offset", "enqueued", "missing numbers before it", title=title)
        for partition in input_["partitions"]:
            table.add_row(*map(escape, _cells(partition, input_["looked_at_from"])))
        out.print(table)
        for partition in input_["partitions"]:
            if partition["problem"] is not None:
                problem = one_line(f"partition {partition['partition']}: no offset: {partition['problem']}")
                out.print(f"[red]problem:[/] {escape(problem)}")
    for item in result["problems"]:
        line = one_line(f"{item['from']} to {item['to']}: {'; '.join(item['reasons'])}")
        out.print(f"[red]problem:[/] {escape(line)}")
    for reason in result["not_guaranteed"]:
        out.print(f"not guaranteed: {escape(one_line(reason))}")
    if result["ready"]:
        out.print(f"no problem was found in the slices from {result['from']} on")


def _cells(partition: dict[str, Any], looked_at_from: str) -> list[str]:
    name, number = partition["partition"], partition["sequence_number"]
    if number is None:
        return [name, f"no event since {looked_at_from}", "", "", ""]
    missing = [
        str(range_["first"]) if range_["first"] == range_["last"] else f"{range_['first']} to {range_['last']}"
        for range_ in partition["missing"]
    ]
    return [name, str(number), partition["offset"] or "", partition["enqueued_time"] or "", ", ".join(missing)]
