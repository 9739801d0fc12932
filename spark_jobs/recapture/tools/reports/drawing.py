"""A process that draws pictures. While V8 loads or draws, no other Python thread of its process runs.

It saves up to 0.5 s of a run: so long, a worker waited for its first task.
"""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager
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

    def svg(self, specification: Mapping[str, Any], label: str) -> "_Drawn":
        """Return what becomes the picture that `picture.svg` returns. Raise RunError if the process has ended."""
        with self._ended():
            return _Drawn(self._process.pool.submit(picture.svg, specification, label), self._ended)

    @contextmanager
    def _ended(self) -> Iterator[None]:
        """Say in one line that the process has ended."""
        try:
            yield
        except BrokenProcessPool:
            raise self._process.broken("free some; then run the same command again") from None


@dataclass(frozen=True)
class _Drawn:
    """A picture that is drawn while the page is made."""

    _future: "Future[Markup]"
    _ended: Callable[[], AbstractContextManager[None]]

    def __html__(self) -> str:
        """Return the picture. Raise RunError if it cannot be drawn, or if the process has ended."""
        with self._ended():
            return self._future.result()


@contextmanager
def drawing_process() -> Iterator[Drawing]:
    """Yield a process that draws pictures, and kill it in the end."""
    with processes(1, _NAME) as process:
        yield Drawing(process)
