"""Great Expectations is loaded without the packages that few expectations use."""

import importlib
import sys
from pathlib import Path

import pytest

from recapture.quality.loading import SLOW, loaded_on_use


def test_a_module_that_is_loaded_on_use_runs_when_an_attribute_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = tmp_path / "ran"
    (tmp_path / "slow_module.py").write_text(f"open({str(ran)!r}, 'w').close()\nanswer = 42\n")
    monkeypatch.syspath_prepend(tmp_path)
    finders = list(sys.meta_path)
    with loaded_on_use(["slow_module"]):
        module = importlib.import_module("slow_module")
    assert not ran.exists()
    assert module.answer == 42
    assert ran.exists()
    assert sys.meta_path == finders
    del sys.modules["slow_module"]


@pytest.mark.parametrize("name", SLOW)
def test_the_slow_packages_are_loaded_with_great_expectations(name: str, great_expectations: None) -> None:
    assert name in sys.modules
