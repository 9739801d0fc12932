"""A container of Azure Blob Storage, or of its emulator."""

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from azure.core import MatchConditions
from azure.core.exceptions import (
    AzureError,
    ClientAuthenticationError,
    HttpResponseError,
    ResourceExistsError,
    ResourceModifiedError,
    ResourceNotFoundError,
)
from azure.storage.blob import BlobPrefix, BlobProperties, ContainerClient, ContentSettings

from spark_jobs.errors import RecaptureError, RunError
from spark_jobs.storage.address import CONNECTION_STRING, AzureAddress, account_access
from spark_jobs.storage.container import Blob, changed, content_md5, deleted, verified

_RETRIES: dict[str, Any] = {
    "retry_total": 5,
    "retry_connect": 1,
    "initial_backoff": 1,
    "increment_base": 2,
    "random_jitter_range": 1,
}
"""Half a minute for a busy service; a few seconds for one that nobody answers for."""


class AzureContainer:
    """Blobs under a container's url. A `Container`; safe to use from several threads."""

    def __init__(self, address: AzureAddress) -> None:
        self._address = address
        self._base = f"{address.prefix}/" if address.prefix else ""
        self._client = ContainerClient(address.endpoint, address.container, credential=_credential(address), **_RETRIES)

    @property
    def url(self) -> str:
        return self._address.url

    def list(self, prefix: str = "") -> Iterator[Blob]:
        with self._told("list"):
            for found in self._client.list_blobs(name_starts_with=self._base + prefix, include=["metadata"]):
                if not _is_directory_marker(found):
                    yield self._blob(found)

    def list_folders(self, prefix: str) -> Iterator[str]:
        with self._told("list"):
            for found in self._client.walk_blobs(name_starts_with=self._base + prefix, delimiter="/"):
                if isinstance(found, BlobPrefix):
                    yield found.name.removeprefix(self._base)

    def read(self, blob: Blob) -> bytes:
        with self._told("read"):
            try:
                downloader = self._client.download_blob(
                    self._base + blob.name, etag=f'"{blob.etag}"', match_condition=MatchConditions.IfNotModified
                )
                content = downloader.readall()
            except ResourceModifiedError:
                raise self._changed(blob) from None
            except ResourceNotFoundError as error:
                if _is_container_missing(error):
                    raise
                raise deleted(blob) from None
        return verified(blob, content)

    def read_current(self, name: str) -> bytes | None:
        with self._told("read"):
            try:
                return self._client.download_blob(self._base + name).readall()
            except ResourceNotFoundError as error:
                if _is_container_missing(error):
                    raise
                return None

    def write(self, name: str, content: bytes) -> Blob:
        with self._told("write"):
            return self._upload(name, content, overwrite=True)

    def create(self, name: str, content: bytes) -> bool:
        with self._told("write"):
            try:
                self._upload(name, content, overwrite=False)
            except (ResourceExistsError, ResourceModifiedError) as error:
                if error.status_code == 412 or _code(error) == "BlobAlreadyExists":
                    return False
                raise
            return True

    def delete(self, name: str) -> None:
        with self._told("delete"):
            try:
                self._client.delete_blob(self._base + name, delete_snapshots="include")
            except ResourceNotFoundError as error:
                if _is_container_missing(error):
                    raise

    def _upload(self, name: str, content: bytes, *, overwrite: bool) -> Blob:
        md5 = content_md5(content)
        settings = ContentSettings(content_md5=bytearray(base64.b64decode(md5)))
        client = self._client.get_blob_client(self._base + name)
        told = client.upload_blob(content, overwrite=overwrite, content_settings=settings)
        return Blob(name, _unquoted(told["etag"]), len(content), _whole_seconds(told["last_modified"]), md5)

    def _changed(self, blob: Blob) -> RunError:
        try:
            now = self._client.get_blob_client(self._base + blob.name).get_blob_properties().etag
        except ResourceNotFoundError:
            return deleted(blob)
        return changed(blob, _unquoted(now))

    def _blob(self, found: BlobProperties) -> Blob:
        md5 = found.content_settings.content_md5
        return Blob(
            name=found.name.removeprefix(self._base),
            etag=_unquoted(found.etag),
            size=found.size,
            last_modified=_whole_seconds(found.last_modified),
            md5=base64.b64encode(md5).decode() if md5 else None,
        )

    @contextmanager
    def _told(self, action: str) -> Iterator[None]:
        """Tells a failure of the service in one line. Its own text is left out: it may hold a signature."""
        try:
            yield
        except AzureError as error:
            raise self._refusal(action, error) from None

    def _refusal(self, action: str, error: AzureError) -> RecaptureError:
        where = f"{self._address.endpoint}/{self._address.container}"
        status = error.status_code if isinstance(error, HttpResponseError) else None
        if _is_container_missing(error):
            return RunError(f"container {where} does not exist: create it, or correct the url")
        if isinstance(error, ClientAuthenticationError) or status in (401, 403):
            return RunError(
                f"not authorised to {action} {self.url}{_reason(error)}: check {CONNECTION_STRING}, "
                "or the role of the signed-in identity (Storage Blob Data Contributor)"
            )
        if status is not None:
            return RunError(f"cannot {action} {self.url}: the service answered {status}{_reason(error)}")
        return RunError(f"cannot {action} {self.url}: {self._address.endpoint} cannot be reached")


def _credential(address: AzureAddress) -> Any:
    access = account_access(address)
    if access is None:
        from azure.identity import DefaultAzureCredential

        return DefaultAzureCredential()
    if access.key:
        return {"account_name": address.account, "account_key": access.key}
    return access.sas


def _is_directory_marker(found: BlobProperties) -> bool:
    """Accounts with a hierarchical namespace list their directories as empty blobs."""
    metadata = {name.lower(): value for name, value in (found.metadata or {}).items()}
    return found.size == 0 and metadata.get("hdi_isfolder", "").lower() == "true"


def _is_container_missing(error: AzureError) -> bool:
    return isinstance(error, ResourceNotFoundError) and _code(error) in ("ContainerNotFound", "ContainerBeingDeleted")


def _code(error: AzureError) -> str:
    code = getattr(error, "error_code", None)
    return str(getattr(code, "value", code) or "")


def _reason(error: AzureError) -> str:
    return f" ({_code(error)})" if _code(error) else ""


def _unquoted(etag: str) -> str:
    return etag.strip('"')


def _whole_seconds(instant: datetime) -> datetime:
    return instant.replace(microsecond=0)
