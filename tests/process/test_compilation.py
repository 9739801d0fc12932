"""Functions that Numba compiles: its cache on disk may be damaged or unusable."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from numba.core import config

from recapture.process.caches import is_private
from recapture.process.numba_functions import is_trusted

MODULE = """
from recapture.process.compilation import compiled

@compiled
def double(number):
    return 2 * number
"""


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Any]:
    """Return what defines `double` as a new process would, with its cache in the folder `cache`."""
    file = tmp_path / "module_of_double.py"
    file.write_text(MODULE)
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "cache"))

    def double() -> Any:
        module: dict[str, Any] = {"__name__": file.stem}
        is_trusted.cache_clear()
        exec(compile(MODULE, file, "exec"), module)
        return module["double"]

    return double


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
@pytest.mark.parametrize("damage", [lambda content: b"", lambda content: content[:-9], lambda content: b"\0" + content])
def test_a_damaged_file_of_the_cache_is_made_anew(
    load: Callable[[], Any], tmp_path: Path, ending: str, damage: Callable[[bytes], bytes]
) -> None:
    assert load()(21) == 42
    (file,) = (tmp_path / "cache").rglob(f"*.{ending}")
    file.write_bytes(damage(file.read_bytes()))
    again = load()
    assert again(21) == 42
    assert sum(again.dispatcher.stats.cache_misses.values()) == 1
    third = load()
    assert third(21) == 42
    assert sum(third.dispatcher.stats.cache_hits.values()) == 1


def test_a_function_is_compiled_if_its_cache_cannot_be_written(load: Callable[[], Any], tmp_path: Path) -> None:
    double = load()
    assert double.dispatcher, "its folder in the cache exists now"
    for folder in (tmp_path / "cache").iterdir():
        folder.rmdir()
        folder.write_text("in the way")
    assert double(21) == 42


def test_code_is_not_run_from_a_folder_that_others_can_write_to(
    load: Callable[[], Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert load()(21) == 42
    (folder,) = (tmp_path / "cache").iterdir()
    folder.chmod(0o777)
    again = load()
    assert again(21) == 42
    assert sum(again.dispatcher.stats.cache_hits.values()) == 0
    assert caplog.messages == [
        f"compiled code is neither read from {folder} nor kept there, because other users can write to it: set "
        "NUMBA_CACHE_DIR to a folder of this user"
    ]


def test_a_folder_is_private_if_only_its_user_and_root_can_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for mode, private in ((0o700, True), (0o755, True), (0o775, True), (0o757, False)):
        tmp_path.chmod(mode)
        assert is_private(tmp_path) is private
    tmp_path.chmod(0o775)
    group = os.getegid()
    monkeypatch.setattr(os, "getegid", lambda: group + 1)
    assert not is_private(tmp_path)
    tmp_path.chmod(0o755)
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    assert is_private(tmp_path) is (user == 0)
