"""The version of Airflow that a test needs. `docs/airflow.md` says what older versions lack."""

from importlib import metadata

import pytest
from packaging.version import Version


def needs_airflow(version: str, feature: str) -> pytest.MarkDecorator:
    """Skip a test if the installed version of Airflow is older, and so lacks the feature."""
    installed = [Version(airflow.version) for airflow in metadata.distributions(name="apache-airflow")]
    return pytest.mark.skipif(
        any(airflow < Version(version) for airflow in installed),
        reason=f"{feature}: needs Airflow {version}",
    )
