"""A folder as a container: a file's name under it is the blob's name, its modification time is LastModified."""

import itertools
import os
import stat
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from recapture.errors import RunError, SetupError
from recapture.storage.container import Blob, changed, deleted, verified
from recapture.storage.locks import locked

_TEMPORARY = (".recapture-", ".tmp")
_NOT_A_FILE = (FileNotFoundError, NotADirectoryError, IsADirectoryError)


class FolderContainer:
    """Files under a folder. A `Container`; links are followed, but never in a circle."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def url(self) -> str:
        return self._folder.as_uri()

    def list(self, prefix: str = "") -> Iterator[Blob]:
        self._require()
        *above, base = itertools.accumulate(prefix.split("/")[:-1], lambda path, part: f"{path}{part}/", initial="")
        if base and not _is_name(base[:-1]):
            return
        with _told("list", self._folder):
            passed = tuple(_identities(self._folder / each for each in above))
            yield from _walk(self._folder / base, base, prefix, passed)

    def list_folders(self, prefix: str) -> Iterator[str]:
        self._require()
        base = prefix[: prefix.rfind("/") + 1]
        if base and not _is_name(base[:-1]):
            raise RunError(
                f"no name under {self._folder} begins with {base!r}: correct what the input's names begin with"
            )
        folder = self._folder / base
        with _told("list", folder):
            try:
                with os.scandir(folder) as entries:
                    names = sorted(f"{base}{entry.name}/" for entry in entries if _is_folder(entry))
            except _NOT_A_FILE:
                return
            yield from (name for name in names if name.startswith(prefix))

    def read(self, blob: Blob) -> bytes:
        path = self._path(blob.name)
        with _told("read", path):
            try:
                with path.open("rb") as file:
                    _same_version(blob, file.fileno())
                    content = file.read()
                    _same_version(blob, file.fileno())
            except _NOT_A_FILE:
                raise deleted(blob) from None
        return verified(blob, content)

    def read_current(self, name: str) -> bytes | None:
        path = self._path(name)
        with _told("read", path):
            try:
                return path.read_bytes()
            except _NOT_A_FILE:
                return None

    def write(self, name: str, content: bytes) -> Blob:
        path = self._path(name)
        with _told("write", path), _written_beside(path, content) as temporary:
            blob = _blob(name, temporary.stat())
            os.replace(temporary, path)
        return blob

    def create(self, name: str, content: bytes) -> bool:
        path = self._path(name)
        with _told("write", path), _written_beside(path, content) as temporary:
            try:
                os.link(temporary, path)
            except FileExistsError:
                return False
        return True

    def delete(self, name: str) -> None:
        path = self._path(name)
        with _told("delete", path):
            try:
                path.unlink()
            except _NOT_A_FILE:
                return

    def remove_abandoned(self, prefix: str) -> tuple[str, ...]:
        head, _, tail = prefix.rpartition("/")
        base = self._folder / head
        temporary = f"{_TEMPORARY[0]}*{_TEMPORARY[1]}"
        removed = []
        with _told("list", base):
            folders = [folder for folder in base.glob(f"{tail}*") if folder.is_dir()] if tail else [base]
            for path in sorted(path for folder in folders for path in folder.rglob(temporary)):
                with locked(path) as abandoned:
                    if abandoned:
                        path.unlink(missing_ok=True)
                        removed.append(path.relative_to(self._folder).as_posix())
        return tuple(removed)

    def _require(self) -> None:
        if self._folder.is_file():
            raise SetupError(f"{self._folder} is a file, and a folder is needed: correct the url")
        if not self._folder.is_dir():
            raise SetupError(f"folder {self._folder} does not exist: create it, or correct the url")

    def _path(self, name: str) -> Path:
        if not _is_name(name):
            raise RunError(f"{name!r} is not the name of a file under {self._folder}")
        return self._folder.joinpath(*name.split("/"))


def _is_name(name: str) -> bool:
    return "\0" not in name and not any(part in ("", ".", "..") for part in name.split("/"))


def _walk(folder: Path, base: str, prefix: str, above: tuple[tuple[int, int], ...]) -> Iterator[Blob]:
    try:
        status = folder.stat()
        here = (status.st_dev, status.st_ino)
        if here in above:
            return
        with os.scandir(folder) as entries:
            names = sorted(base + entry.name + "/" * _is_folder(entry) for entry in entries)
    except (FileNotFoundError, NotADirectoryError):
        return
    for name in names:
        path = folder / name[len(base) :]
        if name.endswith("/"):
            if name.startswith(prefix) or prefix.startswith(name):
                yield from _walk(path, name, prefix, (*above, here))
        elif name.startswith(prefix) and not _is_temporary(path.name):
            _require_usable(path)
            try:
                status = path.stat()
            except FileNotFoundError:
                continue
            if stat.S_ISREG(status.st_mode):
                yield _blob(name, status)


def _identities(folders: Iterable[Path]) -> Iterator[tuple[int, int]]:
    """What tells the folders that are there from others."""
    for folder in folders:
        with suppress(FileNotFoundError, NotADirectoryError):
            status = folder.stat()
            yield status.st_dev, status.st_ino


def _require_usable(path: Path) -> None:
    if path.is_symlink() and not path.exists():
        raise RunError(f"{path} is a link to nothing: restore what it was to, or remove it")
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise RunError(f"{str(path)!a} has a name that is not UTF-8: rename it, or move it out") from None


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _is_temporary(name: str) -> bool:
    start, end = _TEMPORARY
    return name.startswith(start) and name.endswith(end)


def _blob(name: str, status: os.stat_result) -> Blob:
    modified = datetime.fromtimestamp(status.st_mtime_ns // 1_000_000_000, UTC)
    return Blob(name, _etag(status), status.st_size, modified)


def _etag(status: os.stat_result) -> str:
    return f"{status.st_mtime_ns:x}-{status.st_size:x}-{status.st_ino:x}"


def _same_version(blob: Blob, descriptor: int) -> None:
    now = _etag(os.fstat(descriptor))
    if now != blob.etag:
        raise changed(blob, now)


@contextmanager
def _written_beside(path: Path, content: bytes) -> Iterator[Path]:
    """A finished file in the same folder, to be moved or linked into place; the folder is safe on disk afterwards."""
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        temporary = path.with_name(uuid.uuid4().hex.join(_TEMPORARY))
        with temporary.open("xb") as file, locked(temporary) as ours:
            if not ours:
                continue
            try:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
                yield temporary
            finally:
                temporary.unlink(missing_ok=True)
            break
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _told(action: str, path: Path) -> Iterator[None]:
    try:
        yield
    except (FileExistsError, NotADirectoryError) as error:
        raise RunError(f"cannot {action} {path}: a folder is needed where there is a file") from error
    except OSError as error:
        place = error.filename or path
        raise RunError(f"cannot {action} {place}: {error.strerror or type(error).__name__}") from error
