"""The modules of recapture_airflow, loaded as Airflow does."""

import importlib
from collections.abc import Callable
from types import ModuleType

import pytest

LoadPlugin = Callable[[str], ModuleType]


@pytest.fixture(scope="session")
def load_plugin(tmp_path_factory: pytest.TempPathFactory) -> LoadPlugin:
    """Import a module of recapture_airflow; Airflow has an empty home."""

    def load(name: str) -> ModuleType:
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("AIRFLOW_HOME", str(tmp_path_factory.mktemp("airflow")))
            return importlib.import_module(f"recapture_airflow.{name}")

    return load
