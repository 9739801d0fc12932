"""Functions that Numba compiles: its cache on disk may be damaged or unusable."""

import os
import shutil
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from numba.core import config

from recapture.process import caches
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


def test_a_function_that_another_process_compiles_is_loaded_when_it_is_ready(
    load: Callable[[], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert load()(21) == 42
    (index,), compiled = (tmp_path / "cache").rglob("*.nbi"), tmp_path / "compiled"
    shutil.copytree(index.parent, compiled)
    for file in index.parent.glob("*.nb?"):
        file.unlink()
    other_process = caches.lock(index.parent, f"{index.stem}.lock")
    assert other_process is not None
    waits = threading.Event()

    def sleep(seconds: float) -> None:
        waits.set()
        time.sleep(seconds)

    monkeypatch.setattr(caches, "time", SimpleNamespace(monotonic=time.monotonic, sleep=sleep))
    double = load()
    thread = threading.Thread(target=double, args=(21,))
    thread.start()
    assert waits.wait(60)
    shutil.copytree(compiled, index.parent, dirs_exist_ok=True)
    other_process.release()
    thread.join()
    assert sum(double.dispatcher.stats.cache_hits.values()) == 1
    assert double(2.5) == 5, "the lock was released, and another overload takes it"
    assert not list((tmp_path / "cache").rglob("*.lock"))


def test_a_function_is_compiled_if_another_process_holds_its_lock_for_long(
    load: Callable[[], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    double = load()
    base = double.dispatcher._cache._impl.filename_base
    (folder,) = (tmp_path / "cache").iterdir()
    stopped_process = caches.lock(folder, f"{base}.lock")
    assert stopped_process is not None
    monkeypatch.setattr(caches, "LONGEST_WAIT", 0)
    assert double(21) == 42
    stopped_process.release()


def test_threads_that_call_a_new_function_at_once_all_get_its_value(load: Callable[[], Any], tmp_path: Path) -> None:
    for _ in range(10):
        double, together = load(), threading.Barrier(4)

        def call(function: Any, barrier: threading.Barrier) -> int:
            barrier.wait()
            return int(function(21))

        with ThreadPoolExecutor(4) as threads:
            calls = [threads.submit(call, double, together) for _ in range(4)]
        assert [done.result() for done in calls] == [42] * 4
        shutil.rmtree(tmp_path / "cache")


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


def test_a_function_is_compiled_again_when_the_module_of_one_that_it_calls_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "cache"))
    called, calling = tmp_path / "called_module.py", tmp_path / "calling_module.py"
    calling.write_text(MODULE.replace("2 * number", "times(number)"))

    def load(factor: int) -> Any:
        called.write_text(MODULE.replace("double", "times").replace("2 * number", f"{factor} * number"))
        is_trusted.cache_clear()
        module: dict[str, Any] = {"__name__": called.stem}
        exec(compile(called.read_text(), called, "exec"), module)
        module["__name__"] = calling.stem
        exec(compile(calling.read_text(), calling, "exec"), module)
        return module["double"]

    assert load(2)(21) == 42
    assert load(-11)(2) == -22
    again = load(-11)
    assert again(2) == -22
    assert sum(again.dispatcher.stats.cache_hits.values()) == 0
