"""Make the archive with which Spark's executors run Recapture."""

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.filesize import decimal
from rich.markup import escape

from recapture import printing
from recapture.tools import bundle


def run(stderr: Console, *, out: Path, python: str, platform: str, json: bool) -> dict[str, Any]:
    """Write the bundle, and return what it is for and its size."""
    made = bundle.make(out, bundle.Target(python, bundle.Machine(platform)))
    if not json:
        compiled = "with compiled code" if made.is_compiled else "executors compile their code when they first use it"
        sizes = f"{decimal(made.size)}, {decimal(made.unpacked)} unpacked"
        printing.console().print(escape(f"{made.file}: {made.target}, {sizes}; {compiled}"))
    return {
        "file": str(made.file),
        "python": made.target.python,
        "platform": made.target.machine,
        "bytes": made.size,
        "unpacked_bytes": made.unpacked,
        "compiled": made.is_compiled,
    }
