"""What dataclasses compile is kept for the next command, and no command needs it."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from recapture.process import dataclass_code
from recapture.process.dataclass_code import kept_code


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the kept code, which does not exist yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "recapture" / "dataclasses"


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The sources that are compiled in a test."""
    sources: list[str] = []

    def compile_and_note(source: str, *arguments: Any, **options: Any) -> Any:
        sources.append(source)
        return compile(source, *arguments, **options)

    monkeypatch.setattr(dataclass_code, "compile", compile_and_note, raising=False)
    return sources


def define(field: str = "number") -> None:
    """Define a dataclass with one field as a new process would, and use its methods."""
    with kept_code():
        defined: Any = dataclasses.make_dataclass("Defined", [(field, int)], frozen=True)
    assert defined(1) == defined(1) != defined(2)
    assert len({defined(1), defined(1)}) == 1
    assert repr(defined(1)) == f"Defined({field}=1)"
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(defined(1), field, 2)


def test_what_a_dataclass_compiles_is_kept_for_the_next_command(folder: Path, compiled: list[str]) -> None:
    define("number")
    assert compiled
    define("other")
    compiled.clear()
    define("other")
    define("number")
    assert compiled == []


@pytest.mark.parametrize("damage", [lambda content: b"", lambda content: content[:-9], lambda content: b"\0" + content])
def test_a_damaged_file_is_made_anew(folder: Path, compiled: list[str], damage: Callable[[bytes], bytes]) -> None:
    define()
    (file,) = folder.iterdir()
    content = file.read_bytes()
    file.write_bytes(damage(content))
    compiled.clear()
    define()
    assert compiled
    assert file.read_bytes() == content


def test_a_dataclass_needs_no_folder_for_its_code(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "recapture").touch()
    define()


def test_code_is_neither_read_from_a_folder_of_others_nor_kept_there(folder: Path, compiled: list[str]) -> None:
    define()
    (file,) = folder.iterdir()
    content = file.read_bytes()
    folder.chmod(0o777)
    define("other")
    assert file.read_bytes() == content


def test_the_file_starts_anew_once_most_of_it_must_be_of_earlier_versions(
    folder: Path, compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    define("number")
    monkeypatch.setattr(dataclass_code, "_MOST", 5)
    define("other")
    compiled.clear()
    define("other")
    assert compiled == []
    define("number")
    assert compiled


def test_dataclasses_are_compiled_as_usual_after_an_import_that_failed(folder: Path) -> None:
    with pytest.raises(ImportError), kept_code():
        raise ImportError
    assert "exec" not in vars(dataclasses)
    assert not list(folder.iterdir())
