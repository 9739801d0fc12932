"""A process that draws pictures. While V8 loads or draws, no other Python thread of its process runs.

It saves up to 0.5 s of a run: so long, a worker waited for its first task.
"""

from collections.abc import Iterator, Mapping
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from recapture.execute.processes.workers import Workers, processes
from recapture.pages import picture

if TYPE_CHECKING:
    from markupsafe import Markup

_NAME = "the process that draws pictures"


@dataclass(frozen=True)
class Drawing:
    """A process that draws pictures. It starts when `load` or `svg` is first called."""

    _process: Workers

    def load(self) -> None:
        """Start to load V8, and return at once."""
        self._process.pool.submit(picture.load)

    def svg(self, specification: Mapping[str, Any], label: str) -> "Markup":
        """Return what `picture.svg` returns. Raise RunError if it cannot be drawn, or if the process has ended."""
        try:
            return self._process.pool.submit(picture.svg, specification, label).result()
        except BrokenProcessPool:
            raise self._process.broken("free some; then run the same command again") from None


@contextmanager
def drawing_process() -> Iterator[Drawing]:
    """Yield a process that draws pictures, and kill it in the end."""
    with processes(1, _NAME) as process:
        yield Drawing(process)
