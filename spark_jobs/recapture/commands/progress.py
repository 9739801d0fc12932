"""The progress bar of a run on standard error."""

from contextlib import ExitStack
from typing import Self

from rich.console import Console
from rich.progress import Progress


class ProgressBar:
    """Bar that shows a stage and how much of it is done; invisible if standard error is not a terminal."""

    def __init__(self, stderr: Console, *, hidden: bool) -> None:
        self.is_visible = stderr.is_terminal and not hidden
        self._bar = Progress(console=stderr, transient=True, disable=not self.is_visible)
        self._step = self._bar.add_task("", total=None)
        self._shown = ExitStack()

    def __enter__(self) -> Self:
        self._shown.enter_context(self._bar)
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()

    def remove(self) -> None:
        """Remove the bar, if it is shown."""
        self._shown.close()

    def begin(self, stage: str) -> None:
        """Show the name of a stage."""
        self._bar.update(self._step, description=stage)

    def update(self, done: int, total: int) -> None:
        """Show how much of the stage is done."""
        self._bar.update(self._step, total=total, completed=done)
