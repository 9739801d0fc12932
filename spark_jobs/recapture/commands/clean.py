"""Remove what nothing needs any more."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.filesize import decimal
from rich.markup import escape

from recapture import printing
from recapture.commands.arguments import load_pipeline
from recapture.printable import one_line
from recapture.process.wording import counted
from recapture.run.clean import clean


def run(stderr: Console, *, file: Path, dry_run: bool, json: bool) -> dict[str, Any]:
    """Return what was removed or, with `dry_run`, what would be."""
    pipeline = load_pipeline(file, stderr)
    removals = [asdict(removal) for removal in clean(pipeline, dry_run=dry_run)]
    result = {
        "pipeline": pipeline.name,
        "dry_run": dry_run,
        "removed": removals,
        "files": sum(removal["files"] for removal in removals),
        "bytes": sum(removal["bytes"] for removal in removals),
    }
    if not json:
        _print(printing.console(), result)
    return result


def _print(out: Console, result: dict[str, Any]) -> None:
    removed = "would be removed" if result["dry_run"] else "removed"
    for removal in result["removed"]:
        files = f"{counted(removal['files'], 'file')}, {decimal(removal['bytes'])}"
        out.print(escape(one_line(f"{removed}: {files} in {removal['where']}: {removal['what']}")))
    out.print(f"{result['pipeline']}: {counted(result['files'], 'file')}, {decimal(result['bytes'])} {removed}")
