"""Great Expectations is loaded without the packages that few expectations use."""

import importlib
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from recapture.process.startup import hidden, loaded_on_use
from recapture.quality.loading import SLOW


def test_a_module_that_is_loaded_on_use_runs_when_an_attribute_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = tmp_path / "ran"
    (tmp_path / "slow_module.py").write_text(f"open({str(ran)!r}, 'w').close()\nanswer = 42\n")
    monkeypatch.syspath_prepend(tmp_path)
    finders = list(sys.meta_path)
    with loaded_on_use(["slow_module"]):
        module = importlib.import_module("slow_module")
    assert module.__file__ == str(tmp_path / "slow_module.py")
    assert not ran.exists()
    assert module.answer == 42
    assert ran.exists()
    assert sys.meta_path == finders
    del sys.modules["slow_module"]


def test_a_hidden_package_cannot_be_imported_in_this_thread_and_can_in_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "hidden_package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "part.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    with hidden(["hidden_package"]):
        with pytest.raises(ImportError, match="hidden_package is hidden"):
            importlib.import_module("hidden_package")
        with ThreadPoolExecutor(1) as other:
            other.submit(importlib.import_module, "hidden_package").result()
        with pytest.raises(ImportError, match=r"hidden_package\.part is hidden"):
            importlib.import_module("hidden_package.part")
    importlib.import_module("hidden_package.part")
    for name in ("hidden_package.part", "hidden_package"):
        del sys.modules[name]


@pytest.mark.parametrize("name", SLOW)
def test_the_slow_packages_are_loaded_with_great_expectations(name: str, great_expectations: None) -> None:
    assert name in sys.modules
