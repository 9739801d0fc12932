"""A process of its own that draws pictures: while V8 loads and draws, no other thread of its process runs."""

from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from recapture.errors import RunError
from recapture.pages import picture
from recapture.run.workers import Workers, processes

if TYPE_CHECKING:
    from markupsafe import Markup


@dataclass(frozen=True)
class Drawing:
    """A process that draws pictures; it starts with `load`, or else with the first picture."""

    _process: Workers

    def load(self) -> None:
        """Begin to load what draws."""
        self._process.pool.submit(picture.load)

    def svg(self, specification: Mapping[str, Any], label: str) -> "Markup":
        """Do what `picture.svg` does. Raise RunError also if the process ended."""
        drawn: Future[Markup] = self._process.pool.submit(picture.svg, specification, label)
        try:
            return drawn.result()
        except BrokenProcessPool:
            raise RunError("the process that draws pictures ended suddenly: free some memory, and try again") from None


@contextmanager
def drawing() -> Iterator[Drawing]:
    """Yield a process that draws pictures, which is killed in the end."""
    with processes(1) as process:
        yield Drawing(process)
