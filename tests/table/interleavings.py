"""Every interleaving of several publishers and rollbacks: each runs up to its next commit, then another may go on.

A state is explored once, so every reachable state and every step between two of them is visited once.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar

from greenlet import getcurrent, greenlet

from recapture.table.delta import File, HeldFile, OpenTable, Table

Commit = Callable[..., bool]
Actors = Mapping[str, Callable[[], Any]]
"""What several processes do at the same time, by name."""


class _Actor(greenlet):
    """Something that stops before each of its commits."""

    def __init__(self, call: Callable[[], Any]) -> None:
        super().__init__(self._run)
        self._call = call
        self.at: object = "start"
        """Where it stopped: all that its next steps depend on."""
        self.outcome: Any = None

    def step(self) -> None:
        """Let it go on to its next commit, or to its end."""
        self.parent = getcurrent()
        self.switch()

    def stop(self, at: object) -> None:
        """Stop here until the next step."""
        self.at = at
        assert self.parent is not None
        self.parent.switch()

    def _run(self) -> None:
        try:
            self.outcome = self._call()
        except Exception as error:
            self.outcome = error
        self.at = "done"


class Schedule:
    """Run actors step by step; `commit` replaces OpenTable.commit."""

    def __init__(self, commit: Commit) -> None:
        self._commit = commit
        self._actors: dict[str, _Actor] = {}
        self._tables: dict[str, tuple[int, object]] = {}
        """Number of commits before the last one, and the last commit, by the url of the table."""
        self.states = 0
        """Number of states that `interleavings` has visited."""

    def commit(self, table: OpenTable, files: Mapping[str, File | None], metadata: Mapping[str, Any]) -> bool:
        paths = tuple((start, file and file.path) for start, file in sorted(files.items()))
        actor = getcurrent()
        if not isinstance(actor, _Actor):
            return self._commit(table, files, metadata)
        actor.stop((table.table.url, table.version, paths))
        committed = self._commit(table, files, metadata)
        if committed:
            number, _ = self._tables.get(table.table.url, (-1, ()))
            self._tables[table.table.url] = (number + 1, paths)
        return committed

    def interleavings(
        self, world: Callable[[], tuple[Actors, Callable[[], None]]]
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield each end that is reached: the names of the actors in the order of their steps, and their outcomes.

        `world` restores everything to before the first step, and returns the actors and a call that tidies up.
        """
        visited: set[object] = set()
        todo: list[tuple[str, ...]] = [()]
        while todo:
            steps = todo.pop()
            actors, tidy = world()
            self._tables = {}
            self._actors = {name: _Actor(call) for name, call in actors.items()}
            for name in steps:
                self._actors[name].step()
            while (state := self._state()) not in visited:
                visited.add(state)
                waiting = [name for name, actor in self._actors.items() if not actor.dead]
                if not waiting:
                    yield "".join(steps), {name: actor.outcome for name, actor in self._actors.items()}
                    break
                first, *remaining = waiting
                todo += [(*steps, name) for name in remaining]
                self._actors[first].step()
                steps = (*steps, first)
            for actor in self._actors.values():
                actor.throw()
            tidy()
            self.states = len(visited)

    def _state(self) -> object:
        return tuple(sorted(self._tables.items())), tuple(actor.at for actor in self._actors.values())


class InMemory:
    """Replace OpenTable, by the same rules, where thousands of worlds are needed (see test_delta.py)."""

    LOGS: ClassVar[dict[str, list[dict[str, File]]]] = {}
    """What the slices hold in each version, by url; version 0 holds nothing."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.version: int | None = None
        self.refresh()

    def refresh(self) -> None:
        log = self.LOGS.get(self.table.url)
        self.version = None if log is None else len(log) - 1

    def create(self) -> None:
        self.LOGS.setdefault(self.table.url, [{}])
        self.refresh()

    def claim(self, take_over: bool) -> None:
        self.create()

    def require_writable(self, take_over: bool = False) -> None:
        pass

    def held(self, slice_starts: Iterable[str]) -> dict[str, tuple[HeldFile, ...]]:
        files = {} if self.version is None else self.LOGS[self.table.url][self.version]
        held = {start: files[start] for start in slice_starts if start in files}
        return {start: (HeldFile(file.path, file.size, file.rows),) for start, file in held.items()}

    def replaceable(self, files: Mapping[str, File | None]) -> Mapping[str, File | None]:
        return files

    def commit(self, files: Mapping[str, File | None], metadata: Mapping[str, Any]) -> bool:
        log = self.LOGS[self.table.url]
        assert self.version is not None, "the table must exist"
        if self.version != len(log) - 1:
            return False
        log.append({start: file for start, file in log[-1].items() if start not in files})
        log[-1].update({start: file for start, file in files.items() if file is not None})
        return True
