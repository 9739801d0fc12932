"""What the commands print that look after published slices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from recapture.printing.consoles import print_warnings, shown
from recapture.process.wording import counted, named_slices


def print_status(out: Console, result: dict[str, Any]) -> None:
    """Print the slices of each output with their states, and the unpublished ranges between them."""
    for output in result["outputs"]:
        title = f"{output['alias']}: slices"
        table = Table("slice", "rows", "state", "late", "published", "run", title=title)
        for slice_ in output["slices"]:
            late = "" if slice_["late_share"] is None else f"{slice_['late_share']:.1%}"
            rows = "problem" if slice_["problem"] else "" if slice_["rows"] is None else f"{slice_['rows']:,}"
            state = escape("; ".join([slice_["state"], *_notes(slice_)]))
            table.add_row(slice_["slice_start"], rows, state, late, slice_["published"], slice_["run"])
        out.print(table)
        for range_ in output["unpublished"]:
            out.print(f"nothing of {output['alias']} is published from {range_['from']} to {range_['to']}")
    for problem in result["problems"]:
        out.print(f"[red]problem:[/] {shown(_problem(problem))}")
    counts = ", ".join(f"{count:,} {state}" for state, count in result["states"].items())
    out.print(f"{counted(sum(result['states'].values()), 'slice')}{f': {counts}' if counts else ''}")
    starts = [slice_["slice_start"] for output in result["outputs"] for slice_ in output["slices"]]
    out.print(_checked(result["checked"], starts))


def _notes(slice_: Mapping[str, Any]) -> Iterator[str]:
    """Yield what else is to be said about a slice."""
    yield from differing(slice_)
    if not slice_["checkable"]:
        yield "the manifest of its run cannot be read"
    if slice_["staged_run"]:
        yield f"run {slice_['staged_run']} was staged later, and waits for a person"
    elif slice_["blocked_run"]:
        yield f"the audit stopped run {slice_['blocked_run']}"
    if slice_["error"]:
        yield f"the last update failed: {shown(slice_['error'])}"
    missing = [
        counted(slice_[name], word)
        for name, word in (("missing_events", "event"), ("missing_blobs", "blob"))
        if slice_[name]
    ]
    if missing:
        yield f"the archive lacks {' and '.join(missing)}"


def differing(slice_: Mapping[str, Any]) -> Iterator[str]:
    """Yield which parts of the definition a slice does not share with the pipeline."""
    from recapture.run.outdated import in_words

    if slice_["differing"]:
        yield in_words([slice_["differing"]])


def _checked(checked: Mapping[str, Any], starts: Sequence[str]) -> str:
    """Return the line that says when the archive was last compared, and if that concerned none of the shown slices."""
    if checked["at"] is None:
        return "the archive has not been compared with what the published slices read: run recapture check"
    compared = (
        f"what the slices from {checked['from']} to {checked['to']} read was last compared with the archive at "
        f"{checked['at']}"
    )
    if not starts or any(checked["from"] <= start < checked["to"] for start in starts):
        return compared
    return f"{compared}; no slice shown here is among them: run recapture check for these"


def print_check(out: Console, result: Mapping[str, Any]) -> None:
    """Print which published slices are stale."""
    for start in result["changed"]:
        out.print(f"stale: {start}: blobs were added, modified or deleted since they were read")
    for start in result["unknown"]:
        out.print(f"unknown: {start}: the manifest of its run cannot be read")
    slices = counted(result["checked"], "published slice")
    stale = f"{len(result['changed']):,} stale" if result["changed"] else "none is stale"
    unknown = f", {len(result['unknown']):,} unknown" if result["unknown"] else ""
    out.print(f"{slices} from {result['from']} to {result['to']} checked: {stale}{unknown}")


def print_update(out: Console, result: Mapping[str, Any]) -> None:
    """Print what an update computes and why, what it leaves, and what waits for what."""
    for slice_ in result["due"]:
        out.print(f"due: {slice_['slice_start']}: {shown('; '.join(slice_['reasons']))}")
    for start in result["unfinished"]:
        out.print(f"unfinished: {start}: a table does not hold what is published; the update restores it")
    for start in result["unknown"]:
        out.print(f"unknown: {start}: the manifest of its run cannot be read, so its blobs were not compared")
    for range_ in result["left"]:
        out.print(f"left for the next update: {_reasons(range_)}")
    for range_ in result["waiting"]:
        out.print(f"waiting: {_reasons(range_)}, waits for {shown('; '.join(range_['waits_for']))}")
    runs = f" in {counted(len(result['ranges']), 'run')}" if result["ranges"] else ""
    due = f"{counted(len(result['due']), 'slice')} due{runs}" if result["due"] else "nothing is due"
    others = "".join(f", {len(result[key]):,} {key}" for key in ("unfinished", "unknown") if result[key])
    others += "" if result["compared"] else "; no slice was compared, because the job has no late limit"
    kept = f"from {result['since']} on" if result["until"] is None else f"from {result['since']} to {result['until']}"
    out.print(f"{result['pipeline']} at {result['now']}, slices {kept}: {due}{others}")


def print_requests(out: Console, requests: Sequence[Mapping[str, Any]]) -> None:
    """Print requests, a line each, and which of their slices failed and why."""
    for request in requests:
        because = "" if request["reason"] is None else f": {shown(request['reason'])}"
        made = f"by {shown(request['by'])} at {request['made']}"
        selected = f"{counted(request['slices'], 'slice')} of " if request["only"] else ""
        out.print(
            f"{request['id']} {_progress(request)}: {selected}{request['from']} to {request['to']}, {made}{because}"
        )
        for start, error in request["failed"].items():
            out.print(f"  failed: {start}: {shown(error)}")
    if not requests:
        out.print("there are no requests")


def _progress(request: Mapping[str, Any]) -> str:
    """Return the state of a request, with what it waits for or how far it got."""
    state, slices = request["state"], counted(request["slices"], "slice")
    if state == "waiting":
        return f"{state} for the first update from {request['at']} on"
    if state == "cancelled":
        return f"{state} by {shown(request['cancelled_by'])} at {request['ended']}"
    return f"{state}, {len(request['published']):,} of {slices} published"


def _reasons(range_: Mapping[str, Any]) -> str:
    return f"{range_['from']} to {range_['to']}: {shown('; '.join(range_['reasons']))}"


def _problem(problem: Mapping[str, Any]) -> str:
    """Return a line about a problem of a table, with what to do."""
    if not problem["slices"]:
        return str(problem["problem"])
    return f"{problem['table']} {problem['problem']}: {named_slices(problem['slices'])}; {problem['remedy']}"


def print_rollback(out: Console, result: dict[str, Any]) -> None:
    """Print what a rollback restored."""
    has_changed = any(slice_["changed"] for slice_ in result["rolled_back"])
    for output in result["outputs"]:
        if output["slices"]:
            slices = ", ".join(output["slices"])
            out.print(f"{output['alias']}: rolled back in version {output['version']}: {slices}")
        elif has_changed:
            out.print(f"{output['alias']}: rolled back, rows unchanged in version {output['version']}")
        else:
            out.print(f"{output['alias']}: nothing to do, version {output['version']} was rolled back already")
    for slice_ in result["rolled_back"]:
        out.print(f"{slice_['slice_start']}: run {slice_['taken_back']} taken back, holds {slice_['run'] or 'nothing'}")
    print_warnings(out, result["warnings"])
    if not has_changed and not any(output["slices"] for output in result["outputs"]):
        out.print("to go back further, name the run that the slices hold now with --run")
