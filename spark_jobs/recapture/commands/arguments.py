"""What commands do with their arguments before anything else."""

from datetime import datetime
from pathlib import Path

from rich.console import Console

from recapture import printing
from recapture.definition.pipeline import Pipeline, load
from recapture.errors import DefinitionError
from recapture.execute.engine import cores_of


def load_pipeline(file: Path, stderr: Console) -> Pipeline:
    """Load a pipeline, and print its warnings."""
    pipeline = load(file)
    printing.print_warnings(stderr, pipeline.warnings)
    return pipeline


def require_useful(bundle: Path | None, master: str) -> None:
    """Raise DefinitionError if there is no such bundle, or no cluster that needs it."""
    if bundle is None:
        return
    if cores_of(master) is not None:
        raise DefinitionError(f"--bundle is for a cluster, and --master is {master}: leave out --bundle")
    if not bundle.is_file():
        raise DefinitionError(f"{bundle}: no such file: make it with recapture bundle --out {bundle}")


def require_whole_range(start: datetime | None, end: datetime | None, default: str) -> None:
    """Raise DefinitionError if only one bound is given. `default` is what the command takes without a range."""
    if (start is None) != (end is None):
        raise DefinitionError(f"give both --from and --to, or neither for {default}")
