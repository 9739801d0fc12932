"""Identities, from their sign-in to a blob and a commit: the emulator with TLS and tokens, and a sign-in service."""

import base64
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

import pyarrow as pa
import pytest
from azure.storage.blob import BlobServiceClient
from deltalake import DeltaTable, write_deltalake

from embedded.azurite import KEY, Azurite
from recapture.errors import RunError
from recapture.storage import credentials, delta_storage_options, delta_table_uri, open_container
from tests.certificates import use_tls, write_certificate

ACCOUNT = "curating"
"""The account of this emulator; the one that takes no tokens has another."""
TENANT = "adfs"
"""A tenant for which only the authority itself is asked."""
SECRET = "the-client-secret"
ASSERTION = "the-federated-token"
SERVICE_PRINCIPAL = {"AZURE_TENANT_ID": TENANT, "AZURE_CLIENT_ID": "principal", "AZURE_CLIENT_SECRET": SECRET}


class TokenAzurite(Azurite):
    """An emulator that speaks TLS and takes tokens."""

    def __init__(self, certificate: Path, log: Path) -> None:
        super().__init__(log)
        self._certificate = certificate

    def __enter__(self) -> Self:
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("AZURITE_ACCOUNTS", f"{ACCOUNT}:{KEY}")
            return super().__enter__()

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}/{ACCOUNT}"

    def _options(self) -> list[str]:
        pair = ["--cert", str(self._certificate), "--key", str(self._certificate)]
        return [*super()._options(), *pair, "--oauth", "basic"]


class SignIn(ThreadingHTTPServer):
    """The token endpoints of a tenant and of a machine's managed identity."""

    lifetime = 3600

    def __init__(self, certificate: Path) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.url = use_tls(self, certificate)
        self.asked: list[dict[str, Any]] = []

    def token(self) -> dict[str, Any]:
        now = int(time.time())
        claims = {"aud": "https://storage.azure.com", "iss": "https://sts.windows.net/contoso/", "iat": now, "nbf": now}
        claims |= {"exp": now + self.lifetime, "jti": str(len(self.asked))}
        parts = [json.dumps(part).encode() for part in ({"alg": "HS256", "typ": "JWT"}, claims)]
        text = ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in [*parts, b"unchecked"])
        return {
            "access_token": text,
            "token_type": "Bearer",
            "expires_in": self.lifetime,
            "expires_on": str(claims["exp"]),
        }


class Answer(BaseHTTPRequestHandler):
    server: SignIn

    def do_GET(self) -> None:
        path = urlsplit(self.path)
        if path.path.endswith("openid-configuration"):
            endpoint = f"{self.server.url}/{TENANT}/oauth2"
            self._say({"issuer": endpoint, "authorization_endpoint": endpoint, "token_endpoint": f"{endpoint}/token"})
        else:
            self.server.asked.append(parse_qs(path.query) | {"header": self.headers["X-IDENTITY-HEADER"]})
            self._say(self.server.token())

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.server.asked.append(form)
        refused = form.get("client_secret", [SECRET]) != [SECRET]
        wrong = {"error": "invalid_client", "error_description": "AADSTS7000215: Invalid client secret provided."}
        self._say(wrong if refused else self.server.token(), 401 if refused else 200)

    def _say(self, answer: dict[str, Any], status: int = 200) -> None:
        content = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing on standard error."""


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and a self-signed certificate of 127.0.0.1, in one file."""
    return write_certificate(tmp_path_factory.mktemp("tls") / "127.0.0.1.pem")


@pytest.fixture(scope="module")
def container(certificate: Path) -> Iterator[str]:
    """The url of a container in an emulator that takes tokens."""
    with TokenAzurite(certificate, certificate.with_name("azurite.log")) as azurite:
        owner = {"account_name": ACCOUNT, "account_key": KEY}
        with BlobServiceClient(azurite.url, owner, connection_verify=str(certificate)) as client:
            client.create_container("curated")
        yield f"{azurite.url}/curated"


@pytest.fixture
def sign_in(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SignIn]:
    """A sign-in service that is trusted, an environment without any identity, and no token from before."""
    for name in ("STORAGE_CONNECTION_STRING", "CLIENT_ID", "TENANT_ID", "CLIENT_SECRET", "FEDERATED_TOKEN_FILE"):
        monkeypatch.delenv(f"AZURE_{name}", raising=False)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with SignIn(certificate) as service:
        monkeypatch.setenv("AZURE_AUTHORITY_HOST", service.url)
        threading.Thread(target=service.serve_forever, args=(0.05,), daemon=True).start()
        credentials._identity.cache_clear()
        yield service
        credentials._identity.cache_clear()
        service.shutdown()


def signed_in_as(kind: str, service: SignIn, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Set the variables of an identity of that kind, and return what the service will be asked for."""
    federated = folder / "federated-token"
    federated.write_text(ASSERTION)
    managed = {"IDENTITY_ENDPOINT": f"{service.url}/msi/token", "IDENTITY_HEADER": "machine"}
    kinds: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
        "service principal": (SERVICE_PRINCIPAL, {"client_id": ["principal"], "client_secret": [SECRET]}),
        "workload identity": (
            {"AZURE_TENANT_ID": TENANT, "AZURE_CLIENT_ID": "pod", "AZURE_FEDERATED_TOKEN_FILE": str(federated)},
            {"client_id": ["pod"], "client_assertion": [ASSERTION]},
        ),
        "managed identity": (managed, {"header": "machine", "resource": ["https://storage.azure.com"]}),
        "managed identity of a user": (managed | {"AZURE_CLIENT_ID": "mine"}, {"client_id": ["mine"]}),
    }
    variables, asked = kinds[kind]
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return asked


@pytest.mark.parametrize(
    "kind", ["service principal", "workload identity", "managed identity", "managed identity of a user"]
)
def test_an_identity_of_the_environment_opens_blobs_and_tables_with_one_token(
    kind: str, container: str, sign_in: SignIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = signed_in_as(kind, sign_in, tmp_path, monkeypatch)
    table = f"{container}/{kind.replace(' ', '-')}"
    written = open_container(table).write("a", b"1")
    assert open_container(table).read(written) == b"1"
    write_deltalake(delta_table_uri(table), pa.table({"n": [1]}), storage_options=delta_storage_options(table))
    assert DeltaTable(delta_table_uri(table), storage_options=delta_storage_options(table)).version() == 0
    (request,) = sign_in.asked
    assert request == request | asked


@pytest.mark.parametrize("kind", ["service principal", "managed identity"])
def test_a_token_that_runs_out_is_renewed_for_the_next_commit(
    kind: str, container: str, sign_in: SignIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    signed_in_as(kind, sign_in, tmp_path, monkeypatch)
    sign_in.lifetime = 299
    first, second = (delta_storage_options(container)["azure_storage_token"] for _ in range(2))
    assert first != second
    sign_in.lifetime = 3600
    third, fourth = (delta_storage_options(container)["azure_storage_token"] for _ in range(2))
    assert third == fourth


def test_the_archive_may_be_opened_by_a_connection_string_and_the_table_by_an_identity(
    sign_in: SignIn, azure: Any, container: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    signed_in_as("managed identity", sign_in, tmp_path, monkeypatch)
    read = open_container(azure.url).write("a", b"1")
    assert open_container(f"{container}/copied").create("a", open_container(azure.url).read(read))
    assert "azure_storage_account_key" in delta_storage_options(azure.url)
    assert "azure_storage_token" in delta_storage_options(container)
    assert len(sign_in.asked) == 1


def test_a_service_principal_that_is_given_needs_nothing_of_the_process(container: str, sign_in: SignIn) -> None:
    opened = open_container(f"{container}/given", SERVICE_PRINCIPAL)
    assert opened.create("a", b"1")
    (asked,) = sign_in.asked
    assert asked["client_id"] == ["principal"]


def test_a_wrong_secret_is_reported_in_one_line(
    container: str, sign_in: SignIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    signed_in_as("service principal", sign_in, tmp_path, monkeypatch)
    monkeypatch.setenv("AZURE_CLIENT_SECRET", "not-the-secret")
    for attempt in (lambda: list(open_container(container).list()), lambda: delta_storage_options(container)):
        with pytest.raises(RunError, match=r"no identity could sign in: .*AADSTS7000215: Invalid client s") as raised:
            attempt()
        assert "\n" not in str(raised.value)
        assert "not-the-secret" not in str(raised.value)
    assert capfd.readouterr().err == ""
