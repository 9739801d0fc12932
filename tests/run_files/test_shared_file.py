"""A file that several processes change at the same time."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from recapture.errors import PermanentError, RunError
from recapture.run_files.json_file import JsonFile
from recapture.run_files.shared_file import SharedFile
from recapture.storage import Container, open_container


@dataclass(frozen=True)
class Names:
    """Names, each once."""

    names: tuple[str, ...] = ()

    def with_name(self, name: str) -> "Names":
        return replace(self, names=tuple(sorted({*self.names, name})))


FILE = SharedFile(JsonFile("_recapture/names.json", Names), Names(), "the list of names, is damaged: delete it")


class Interrupted:
    """A container that lets something happen just before a file is created or replaced, or loses the answer."""

    def __init__(self, container: Container, before: Callable[[], object], *, loses: bool = False) -> None:
        self._container, self._before, self._loses = container, before, loses
        self.url, self.read_with_etag = container.url, container.read_with_etag

    def create(self, name: str, content: bytes) -> bool:
        self._before()
        return self._container.create(name, content) and not self._loses

    def replace(self, name: str, content: bytes, etag: str) -> bool:
        self._before()
        return self._container.replace(name, content, etag) and not self._loses


@pytest.fixture
def container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Container:
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    return open_container(tmp_path.as_uri())


def once(call: Callable[[], object]) -> Callable[[], object]:
    """Return the function that makes the call only the first time."""
    calls = [call]
    return lambda: calls.pop()() if calls else None


@pytest.mark.parametrize("exists", [False, True])
def test_what_another_process_wrote_meanwhile_is_kept(container: Container, exists: bool) -> None:
    if exists:
        FILE.change(container, lambda names: names.with_name("first"))
    other = once(lambda: FILE.change(container, lambda names: names.with_name("theirs")))
    FILE.change(Interrupted(container, other), lambda names: names.with_name("ours"))  # type: ignore[arg-type]
    assert FILE.read(container).names == (("first",) if exists else ()) + ("ours", "theirs")


def test_a_change_whose_answer_was_lost_is_made_once(container: Container) -> None:
    losing = Interrupted(container, lambda: None, loses=True)
    after = FILE.change(losing, lambda names: names.with_name("ours"))  # type: ignore[arg-type]
    assert after == FILE.read(container) == Names(("ours",))


def test_nothing_is_written_if_nothing_changes(container: Container) -> None:
    FILE.change(container, lambda names: names)
    assert container.read_current(FILE.file.name) is None


def test_a_process_that_is_never_the_first_gives_up(container: Container) -> None:
    numbers = iter(range(1000))

    def other() -> None:
        FILE.change(container, lambda names: names.with_name(str(next(numbers))))

    with pytest.raises(RunError, match=r"^other processes kept writing file://.*/_recapture/names.json: run the same"):
        FILE.change(Interrupted(container, other), lambda names: names.with_name("ours"))  # type: ignore[arg-type]


def test_a_damaged_file_is_named_and_not_replaced(container: Container) -> None:
    container.write(FILE.file.name, b"{")
    for call in (FILE.read, lambda container: FILE.change(container, lambda names: names.with_name("ours"))):
        with pytest.raises(PermanentError, match=r"names.json, the list of names, is damaged: delete it$"):
            call(container)
    assert container.read_current(FILE.file.name) == b"{"
