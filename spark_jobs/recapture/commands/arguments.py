"""Arguments that commands have in common."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from rich.console import Console

from recapture import printing
from recapture.definition.pipeline import Pipeline, load
from recapture.errors import DefinitionError


@dataclass(frozen=True, kw_only=True)
class PipelineArguments:
    """Arguments of every command on a pipeline."""

    pipeline: Path
    """The pipeline file."""
    json: bool
    verbose: bool

    def load_pipeline(self, stderr: Console) -> Pipeline:
        """Load the pipeline, and print its warnings."""
        pipeline = load(self.pipeline)
        printing.print_warnings(stderr, pipeline.warnings)
        return pipeline


@dataclass(frozen=True, kw_only=True)
class RangeArguments(PipelineArguments):
    """Arguments of a command on a range."""

    start: datetime
    """Start of the range, exclusive."""
    end: datetime
    """End of the range, inclusive."""


@dataclass(frozen=True, kw_only=True)
class OptionalRangeArguments(PipelineArguments):
    """Arguments of a command that also works without a range."""

    start: datetime | None
    end: datetime | None

    def require_whole_range(self, default: str) -> None:
        """Raise DefinitionError if only one bound is given. `default` is what the command takes without a range."""
        if (self.start is None) != (self.end is None):
            raise DefinitionError(f"give both --from and --to, or neither for {default}")
