"""What the computation of a run staged: the rows of each slice, in a file."""

from dataclasses import dataclass

from recapture.run_files.json_file import JsonFile


@dataclass(frozen=True)
class StagedSlice:
    """The rows of one slice of one output, in a Parquet file that no commit names yet."""

    output: str
    """Alias of the output."""
    slice_start: str
    path: str
    """Path relative to the output's table."""
    size: int
    """Size of the file in bytes."""
    rows: int
    unanchored: int
    """Number of rows that are sessions cut by the rule for sparse streams."""


STAGED = JsonFile("staged.json", tuple[StagedSlice, ...])
