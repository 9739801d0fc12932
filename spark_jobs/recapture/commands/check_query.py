"""Check a query without a pipeline."""

from pathlib import Path
from typing import Any

from rich.console import Console

from recapture import printing
from recapture.errors import DefinitionError
from recapture.process.regular_files import read_regular
from recapture.tools import check_query

_MAX_BYTES = 1 << 20
_PIPELINE = (".yaml", ".yml")


def run(stderr: Console, *, file: Path, json: bool) -> dict[str, Any]:
    """Return what runs of the query in a file, and what does not. The exit code is 1 if something does not."""
    if file.suffix.lower() in _PIPELINE:
        raise DefinitionError(f"{file}: a pipeline file: run recapture plan {file}, which also checks its query")
    try:
        content = read_regular(file, _MAX_BYTES + 1)
    except OSError as error:
        raise DefinitionError(f"{file}: cannot be read ({error.strerror})") from error
    if len(content) > _MAX_BYTES:
        raise DefinitionError(f"{file}: larger than 1 MiB: give a file that contains only the query")
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise DefinitionError(f"{file}: not UTF-8 text: save it as UTF-8") from error
    checked = check_query.check(text)
    if not json:
        printing.print_checked_query(printing.console(), checked)
    return {"file": str(file), **check_query.as_document(checked), "exit_code": 0 if checked.runs else 1}
