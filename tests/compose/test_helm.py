"""docker/helm: the image and the values for Airflow's chart name the version of Airflow that the tests run."""

import re
from typing import Any

import yaml

from tests.compose.context import steps
from tests.paths import ROOT

VALUES: dict[str, Any] = yaml.safe_load((ROOT / "docker" / "helm" / "values.yaml").read_text("utf-8"))
DOCKERFILE = (ROOT / "docker" / "helm" / "Dockerfile").read_text("utf-8")
PAGE = (ROOT / "docs" / "kubernetes.md").read_text("utf-8")


def test_all_name_the_same_versions() -> None:
    [airflow] = re.findall(r"^apache-airflow==(\S+)", (ROOT / "requirements.lock").read_text("utf-8"), re.MULTILINE)
    assert VALUES["airflowVersion"] == airflow
    arguments = dict(step.arguments.split("=", 1) for step in steps(DOCKERFILE) if step.instruction == "ARG")
    assert arguments["AIRFLOW_VERSION"] == airflow
    assert arguments["AIRFLOW_IMAGE"].startswith(f"apache/airflow:{airflow}-")
    assert f"AIRFLOW_IMAGE={arguments['AIRFLOW_IMAGE']} --build-arg AIRFLOW_VERSION={airflow}" in PAGE
    [fallback] = re.findall(r'^fallback_version = "(.*)"$', (ROOT / "pyproject.toml").read_text("utf-8"), re.MULTILINE)
    assert VALUES["images"]["airflow"]["tag"] == fallback


def test_the_page_creates_each_secret_that_the_values_name_and_explains_each_value() -> None:
    text = (ROOT / "docker" / "helm" / "values.yaml").read_text("utf-8")
    named = re.findall(r"(?:[Ss]ecretName|credentialsSecret): (\S+)", text)
    assert sorted(named) == sorted(re.findall(r"^kubectl create secret generic (\S+)", PAGE, re.MULTILINE))
    explained = " ".join(re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE))
    assert [key for key in VALUES if key not in ("workers", "dags") and f"`{key}" not in explained] == []


def test_no_value_is_a_secret_or_a_known_password() -> None:
    assert VALUES["createUserJob"] == {"enabled": False}
    assert VALUES["postgresql"] == {"enabled": False}
    assert not {"fernetKey", "apiSecretKey", "jwtSecret"} & {*VALUES}
