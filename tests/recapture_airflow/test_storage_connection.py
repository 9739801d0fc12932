"""The connection to the storage account: the Azure variables that it sets, and where its secrets never go."""

import asyncio
import json
import os
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from recapture.errors import DefinitionError
from tests.airflow_versions import needs_airflow
from tests.paths import ROOT
from tests.recapture_airflow.conftest import LoadPlugin

KEY = "c2VjcmV0LWtleQ=="
SIGNED = "sv=1&sig=c2VjcmV0"
STRING = "AZURE_STORAGE_CONNECTION_STRING"
NAMES = (STRING, "AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET")


@pytest.fixture(scope="module")
def plugin(load_plugin: LoadPlugin) -> ModuleType:
    return load_plugin("storage_connection")


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unset every variable, and restore all of them after the test."""
    for name in NAMES:
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)


def connect(monkeypatch: pytest.MonkeyPatch, connection: str, **fields: Any) -> None:
    monkeypatch.setenv(f"AIRFLOW_CONN_{connection.upper()}", json.dumps(fields))


URL = {"host": "https://account.blob.core.windows.net/", "login": "account"}
OF_KEY = f"BlobEndpoint={URL['host']};AccountName=account;AccountKey={KEY}"


@pytest.mark.parametrize(
    ("fields", "variables"),
    [
        ({"extra": {"connection_string": "AccountName=a;AccountKey=b"}}, {STRING: "AccountName=a;AccountKey=b"}),
        ({**URL, "password": KEY}, {STRING: OF_KEY}),
        ({"host": URL["host"], "password": KEY}, {STRING: OF_KEY}),
        ({**URL, "extra": {"shared_access_key": KEY}, "password": "other"}, {STRING: OF_KEY}),
        ({**URL, "extra": {"account_key": KEY}}, {STRING: OF_KEY}),
        (
            {"login": "account", "extra": {"extra__wasb__account_key": KEY}},
            {STRING: f"BlobEndpoint=https://account.blob.core.windows.net;AccountName=account;AccountKey={KEY}"},
        ),
        (
            {**URL, "extra": {"sas_token": f"?{SIGNED}"}, "password": KEY},
            {STRING: f"BlobEndpoint={URL['host']};SharedAccessSignature={SIGNED}"},
        ),
        (
            {"extra": {"sas_token": f"https://account.blob.core.windows.net/?{SIGNED}"}},
            {STRING: f"BlobEndpoint=https://account.blob.core.windows.net/;SharedAccessSignature={SIGNED}"},
        ),
        (
            {"login": "client", "password": "secret", "extra": {"tenant_id": "tenant"}},
            {STRING: None, "AZURE_TENANT_ID": "tenant", "AZURE_CLIENT_ID": "client", "AZURE_CLIENT_SECRET": "secret"},
        ),
        (URL, {STRING: None}),
        (
            {**URL, "extra": {"managed_identity_client_id": "mine", "workload_identity_tenant_id": "tenant"}},
            {STRING: None, "AZURE_CLIENT_ID": "mine", "AZURE_CLIENT_SECRET": None, "AZURE_TENANT_ID": "tenant"},
        ),
    ],
)
def test_a_connection_becomes_azure_variables(
    plugin: ModuleType, monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any], variables: dict[str, str | None]
) -> None:
    from airflow.sdk import BaseHook

    connect(monkeypatch, "recapture_storage", conn_type=plugin.TYPES[0], **fields)
    assert plugin.variables(BaseHook.get_connection("recapture_storage")) == variables
    for name in NAMES:
        monkeypatch.setenv(name, "from before")
    plugin.take_credentials({})
    taken = {name: os.environ.get(name) for name in NAMES}
    assert taken == dict.fromkeys(NAMES, "from before") | variables


@needs_airflow("3.2", "fields for the connection in Airflow's form")
def test_the_form_of_airflow_has_the_fields_of_the_connection_and_hides_its_secrets(plugin: ModuleType) -> None:
    from airflow.providers_manager import ProvidersManager

    manager, kind = ProvidersManager(), plugin.TYPES[0]
    shown = {
        field.field_name: field for name, field in manager.connection_form_widgets.items() if f"__{kind}__" in name
    }
    secret = {"connection_string": True, "sas_token": True}
    identities = ("tenant_id", "managed_identity_client_id", "workload_identity_tenant_id")
    assert {name: field.is_sensitive for name, field in shown.items()} == secret | dict.fromkeys(identities, False)
    assert manager.field_behaviours[kind]["relabeling"]["password"] == "Account key, or client secret"
    assert manager._import_hook(kind, manager.providers["recapture"]).hook_name == "Recapture storage"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"conn_type": "adls", "password": KEY}, "has the type adls: change it to recapture_storage"),
        ({"password": KEY}, "names no account"),
        ({"password": KEY, "extra": {"tenant_id": "tenant"}}, "add the client id as login and its secret as password"),
        (
            {
                "login": "c",
                "password": KEY,
                "extra": {"tenant_id": "t", "client_secret_auth_config": {"authority": "a"}},
            },
            "set AZURE_AUTHORITY_HOST",
        ),
    ],
)
def test_any_other_connection_is_refused_and_its_secret_is_not_repeated(
    plugin: ModuleType, monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any], reason: str
) -> None:
    connect(monkeypatch, "recapture_storage", **{"conn_type": "wasb", **fields})
    with pytest.raises(DefinitionError, match=reason) as error:
        plugin.take_credentials({})
    assert KEY not in str(error.value)


def test_a_connection_that_airflow_stored_as_generic_is_one_of_type_wasb(
    plugin: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.sdk import BaseHook

    connect(monkeypatch, "recapture_storage", conn_type="generic", extra={"connection_string": "AccountName=a"})
    assert plugin.variables(BaseHook.get_connection("recapture_storage")) == {STRING: "AccountName=a"}


def test_without_the_connection_the_environment_is_used(plugin: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STRING, "as it is")
    plugin.take_credentials({})
    assert os.environ[STRING] == "as it is"
    assert asyncio.run(plugin.environment()) is os.environ


@pytest.mark.parametrize("host", ["local[*]", "spark://spark:7077", "yarn"])
def test_spark_inherits_the_credentials_and_no_command_line_has_them(
    plugin: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, host: str
) -> None:
    """The command line is the one with which the DAG's operator calls spark-submit, for each kind of master."""
    program = tmp_path / "spark-submit"
    program.write_text(f'#!/bin/sh\necho "$0" "$@" > {tmp_path}/line\nenv > {tmp_path}/environment\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    connect(monkeypatch, "spark_default", conn_type="spark", host=host)
    connect(monkeypatch, "recapture_storage", conn_type="wasb", **URL, password=KEY)
    task = order_and_aggregate(monkeypatch)
    task.application_args = ["telemetry.yaml", "run"]
    task._pre_execute_hook({})
    task._get_hook().submit(task.application)
    line = (tmp_path / "line").read_text()
    assert f"--master {host} " in line
    assert "PYSPARK_PYTHON" in line + (tmp_path / "environment").read_text()
    assert KEY not in line
    assert f"{STRING}={OF_KEY}\n" in (tmp_path / "environment").read_text()
    assert KEY not in str([getattr(task, field) for field in task.template_fields])


def order_and_aggregate(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the task of this name from the DAG of the sample pipeline."""
    for name, folder in {"CONTAINER": "capture", "TABLE": "curated/telemetry"}.items():
        monkeypatch.setenv(f"RECAPTURE_{name}", f"https://account.blob.core.windows.net/{folder}")
    from recapture_airflow import RecaptureDags

    return RecaptureDags(ROOT / "dags" / "pipelines")["telemetry"].get_task("order_and_aggregate")


def test_the_pages_take_the_connection_without_a_trace_in_their_process(
    plugin: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The requests of a server share its process."""
    connect(monkeypatch, "recapture_storage", conn_type="wasb", **URL, password=KEY)
    assert asyncio.run(plugin.environment())[STRING] == OF_KEY
    assert STRING not in os.environ
