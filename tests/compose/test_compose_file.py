"""docker/compose.yaml: secrets, start conditions and health checks, and what it shares with other files."""

import json
import os
import re
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

from composed import make_secrets
from tests.compose.project import COMPLETED, HEALTHY, STARTED, Service, services
from tests.paths import ROOT

DOCKER = ROOT / "docker"
SERVICES = {service.name: service for service in services(DOCKER / "compose.yaml", {})}
DOCUMENT: dict[str, Any] = yaml.safe_load((DOCKER / "compose.yaml").read_text("utf-8"))
OF_AIRFLOW = ("api-server", "scheduler", "dag-processor", "triggerer")


def test_there_is_a_service_for_each_part() -> None:
    assert {*OF_AIRFLOW, "postgres", "azurite", "spark-master", "spark-worker-1", "spark-worker-2"} < {*SERVICES}


@pytest.mark.parametrize("service", SERVICES.values(), ids=lambda service: service.name)
def test_a_service_has_a_health_check_or_is_waited_for(service: Service) -> None:
    awaited = {other.conditions.get(service.name) for other in SERVICES.values()}
    assert (COMPLETED in awaited) != bool(service.health), "one of both"
    assert not awaited & ({HEALTHY} if not service.health else {COMPLETED})


def test_a_service_waits_for_the_health_of_others_and_never_for_itself() -> None:
    started: set[str] = set()
    while ready := [s.name for s in SERVICES.values() if s.name not in started and {*s.conditions} <= started]:
        started |= {*ready}
    assert started == {*SERVICES}, "no service waits in a circle"
    for service in SERVICES.values():
        weak = [other for other, condition in service.conditions.items() if condition == STARTED]
        assert weak in ([], ["azurite"]), "only the network of the emulator may be used before it is healthy"
    assert {*SERVICES["scheduler"].conditions} >= {"migrate", "api-server", "capture", "spark-worker-1"}


def test_an_image_of_others_is_pinned_and_of_the_version_that_the_tests_use() -> None:
    for service in SERVICES.values():
        if not service.image.startswith("recapture:"):
            assert re.fullmatch(r"[\w./-]+:[\w.-]+@sha256:[0-9a-f]{64}", service.image)
    installed = json.loads((DOCKER / "azurite" / "package.json").read_text("utf-8"))["dependencies"]["azurite"]
    assert f"azurite:{installed}@" in SERVICES["azurite"].image


def test_the_version_of_the_image_is_that_of_the_next_release() -> None:
    [version] = re.findall(r'^fallback_version = "(.*)"$', (ROOT / "pyproject.toml").read_text("utf-8"), re.MULTILINE)
    assert {s.image for s in SERVICES.values() if s.image.startswith("recapture")} == {f"recapture:{version}"}
    assert f"ARG RECAPTURE_VERSION={version}\n" in (DOCKER / "Dockerfile").read_text("utf-8")


def test_no_secret_is_in_the_file() -> None:
    named = {
        (name, str(value))
        for service in SERVICES.values()
        for name, value in service.environment.items()
        if re.search("KEY|SECRET|PASSWORD|SQL_ALCHEMY_CONN|CONNECTION_STRING", name)
    }
    assert ("AZURE_STORAGE_CONNECTION_STRING", "UseDevelopmentStorage=true") in named, "the emulator's key is public"
    for name, value in named - {("AZURE_STORAGE_CONNECTION_STRING", "UseDevelopmentStorage=true")}:
        assert re.fullmatch(r"(cat )?/opt/secrets/\w+(\.json)?", value), name


def test_the_secrets_that_services_read_are_made_once_for_their_users_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(make_secrets, "OWNER", os.getuid())
    monkeypatch.setattr(make_secrets, "GROUP", os.getgid())
    make_secrets.make_secrets(tmp_path)
    made = {file.name: file.read_text() for file in tmp_path.iterdir()}
    text = (DOCKER / "compose.yaml").read_text("utf-8")
    assert {*re.findall(r"/opt/secrets/([\w.]+)", text)} == {*made}
    assert {stat.S_IMODE(file.stat().st_mode) & 0o137 for file in tmp_path.iterdir()} == {0}
    assert made["database_password"] in made["database_url_asyncpg"]
    make_secrets.make_secrets(tmp_path)
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == made


def test_ports_are_open_on_this_machine_only() -> None:
    ports = [port for service in DOCUMENT["services"].values() for port in service.get("ports", ())]
    assert ports == ["127.0.0.1:8080:8080", "127.0.0.1:10000:10000"]


def test_a_service_that_runs_code_of_this_project_has_no_rights_of_root() -> None:
    for name, values in DOCUMENT["services"].items():
        assert values["security_opt"] == ["no-new-privileges:true"], name
        if values["image"].startswith("recapture"):
            assert values["cap_drop"] == ["ALL"], name
            assert ("user" in values) == (name == "secrets"), "it gives the files to the user of the others"


def test_what_a_service_mounts_exists() -> None:
    for service in SERVICES.values():
        for mount in service.mounts:
            assert mount.source in DOCUMENT["volumes"] if mount.is_volume else (DOCKER / mount.source).exists()


def test_executors_do_not_look_for_files_of_the_other_worker_on_their_own_disk() -> None:
    settings = dict(
        re.findall(r"^(spark\S+)\s+(\S+)$", (DOCKER / "composed" / "spark-defaults.conf").read_text(), re.M)
    )
    assert settings == {"spark.shuffle.readHostLocalDisk": "false"}, "the workers share an address"
    assert {SERVICES[name].environment["SPARK_CONF_DIR"] for name in OF_AIRFLOW} == {"/opt/docker/composed"}


def test_the_pipeline_is_the_sample_with_another_arrival_time() -> None:
    sample, composed = (
        yaml.safe_load((ROOT / folder / "pipelines" / "telemetry.yaml").read_text("utf-8"))
        for folder in ("dags", "docker")
    )
    assert sample["input"].pop("arrival_time") == "BlobLastModified"
    assert composed["input"].pop("arrival_time") == "EventEnqueuedUtcTime"
    assert composed == sample


def test_the_pools_of_the_dags_are_created() -> None:
    named = re.findall(r'"(\w+)": "\w+"', (ROOT / "dags" / "recapture_dags.py").read_text("utf-8"))
    assert {*json.loads((DOCKER / "composed" / "pools.json").read_text("utf-8"))} == {*named} != set()
