"""Implement the protocol of a container for a local folder.

A blob's name is the path of a file under the folder. Its LastModified is the modification time of the file.
"""

import itertools
import os
import stat
import tempfile
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from recapture.errors import RunError, SetupError
from recapture.process.regular_files import read_regular
from recapture.storage.container import Blob, changed, deleted, verified
from recapture.storage.locks import held, locked
from recapture.storage.use import count_list, count_read, count_write

_TEMPORARY = (".recapture-", ".tmp")
_NOT_A_FILE = (FileNotFoundError, NotADirectoryError, IsADirectoryError)


class FolderContainer:
    """`Container` on a local folder. Symbolic links are followed, but never in a circle."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def url(self) -> str:
        return self._folder.as_uri()

    def list(self, prefix: str = "") -> Iterator[Blob]:
        self._require()
        count_list()
        *above, base = itertools.accumulate(prefix.split("/")[:-1], lambda path, part: f"{path}{part}/", initial="")
        if base and not _is_name(base[:-1]):
            return
        with _failures_reported("list", self._folder):
            ancestors = tuple(_identities(self._folder / name for name in above))
            yield from _walk(str(self._folder / base), base, prefix, ancestors)

    def list_folders(self, prefix: str) -> Iterator[str]:
        self._require()
        count_list()
        base = prefix[: prefix.rfind("/") + 1]
        if base and not _is_name(base[:-1]):
            raise RunError(
                f"no name under {self._folder} can start with {base!r}: correct the start of the input's blob names"
            )
        folder = self._folder / base
        with _failures_reported("list", folder):
            try:
                with os.scandir(folder) as entries:
                    names = sorted(f"{base}{entry.name}/" for entry in entries if _is_folder(entry))
            except _NOT_A_FILE:
                return
            yield from (name for name in names if name.startswith(prefix))

    def read(self, blob: Blob) -> bytes:
        path = self._path(blob.name)
        with _failures_reported("read", path):
            try:
                with path.open("rb") as file:
                    _require_version(blob, file.fileno())
                    content = file.read()
                    _require_version(blob, file.fileno())
            except _NOT_A_FILE:
                raise deleted(blob) from None
        count_read(len(content))
        return verified(blob, content)

    def read_current(self, name: str) -> bytes | None:
        path = self._path(name)
        with _failures_reported("read", path):
            try:
                content = read_regular(path)
            except _NOT_A_FILE:
                return None
        count_read(len(content))
        return content

    def read_with_etag(self, name: str) -> tuple[bytes, str] | None:
        path = self._path(name)
        with _failures_reported("read", path):
            try:
                with path.open("rb") as file:
                    content, etag = file.read(), _etag(os.fstat(file.fileno()))
            except _NOT_A_FILE:
                return None
        count_read(len(content))
        return content, etag

    def write(self, name: str, content: bytes) -> Blob:
        path = self._path(name)
        with _failures_reported("write", path), _temporary_file(path, content) as temporary:
            blob = _blob(name, temporary.stat())
            os.replace(temporary, path)
        return blob

    def create(self, name: str, content: bytes) -> bool:
        path = self._path(name)
        with _failures_reported("write", path), _temporary_file(path, content) as temporary:
            try:
                os.link(temporary, path)
            except FileExistsError:
                return False
        return True

    def remove(self, blob: Blob) -> bool:
        path = self._path(blob.name)
        aside = path.with_name(uuid.uuid4().hex.join(_TEMPORARY))
        with _failures_reported("remove", path):
            try:
                if _etag(path.stat()) != blob.etag:
                    return False
                path.rename(aside)
            except _NOT_A_FILE:
                return False
            is_listed = _etag(aside.stat()) == blob.etag
            if not is_listed:  # it was replaced between the two lines
                with suppress(FileExistsError):
                    os.link(aside, path)
            aside.unlink()
        return is_listed

    def replace(self, name: str, content: bytes, etag: str) -> bool:
        path = self._path(name)
        with _failures_reported("write", path):
            try:
                with held(path.parent), _temporary_file(path, content) as temporary:
                    if _etag(path.stat()) != etag:
                        return False
                    os.replace(temporary, path)
            except _NOT_A_FILE:
                return False
        return True

    def clock(self) -> datetime:
        """Return the time that this machine's kernel gives a new file: a folder has no clock of its own."""
        with _failures_reported("write", Path(tempfile.gettempdir())), tempfile.TemporaryFile() as file:
            return datetime.fromtimestamp(int(os.fstat(file.fileno()).st_mtime), UTC)

    def remove_abandoned(self, prefix: str) -> tuple[str, ...]:
        head, _, tail = prefix.rpartition("/")
        base = self._folder / head
        temporary = f"{_TEMPORARY[0]}*{_TEMPORARY[1]}"
        removed = []
        with _failures_reported("list", base):
            folders = [folder for folder in base.glob(f"{tail}*") if folder.is_dir()] if tail else [base]
            for path in sorted(path for folder in folders for path in folder.rglob(temporary)):
                with locked(path) as is_abandoned:
                    if is_abandoned:
                        path.unlink(missing_ok=True)
                        removed.append(path.relative_to(self._folder).as_posix())
        return tuple(removed)

    def _require(self) -> None:
        """Raise SetupError if the folder does not exist, or is a file."""
        if self._folder.is_file():
            raise SetupError(f"{self._folder} is a file, not a folder: correct the url")
        if not self._folder.is_dir():
            raise SetupError(f"folder {self._folder} does not exist: create it, or correct the url")

    def _path(self, name: str) -> Path:
        """Return the path of a blob. Raise RunError if the name leads out of the folder."""
        if not _is_name(name):
            raise RunError(f"{name!r} is not the name of a file under {self._folder}")
        return self._folder.joinpath(*name.split("/"))


def _is_name(name: str) -> bool:
    """Return whether a text is the name of a file under the folder."""
    return "\0" not in name and not any(part in ("", ".", "..") for part in name.split("/"))


def _walk(folder: str, base: str, prefix: str, ancestors: tuple[tuple[int, int], ...]) -> Iterator[Blob]:
    """Yield the blobs in a folder whose names start with `prefix`; nothing if the folder is one of its ancestors."""
    try:
        status = os.stat(folder)
        identity = (status.st_dev, status.st_ino)
        if identity in ancestors:
            return
        with os.scandir(folder) as entries:
            by_name = {base + entry.name + "/" * _is_folder(entry): entry for entry in entries}
    except (FileNotFoundError, NotADirectoryError):
        return
    for name in sorted(by_name):
        entry = by_name[name]
        if name.endswith("/"):
            if name.startswith(prefix) or prefix.startswith(name):
                yield from _walk(entry.path, name, prefix, (*ancestors, identity))
        elif name.startswith(prefix) and not _is_temporary(entry.name):
            _require_usable(entry)
            try:
                status = os.stat(entry)
            except FileNotFoundError:
                continue
            if stat.S_ISREG(status.st_mode):
                yield _blob(name, status)


def _identities(folders: Iterable[Path]) -> Iterator[tuple[int, int]]:
    """Yield the device and inode number of the folders that exist."""
    for folder in folders:
        with suppress(FileNotFoundError, NotADirectoryError):
            status = folder.stat()
            yield status.st_dev, status.st_ino


def _require_usable(entry: os.DirEntry[str]) -> None:
    """Raise RunError for a broken link, and for a name that is not UTF-8."""
    if entry.is_symlink() and not os.path.exists(entry):
        raise RunError(f"{entry.path} is a broken link: restore its target, or remove the link")
    try:
        entry.path.encode()
    except UnicodeEncodeError:
        raise RunError(
            f"{entry.path!a} has a name that is not UTF-8: rename it, or move it out of the folder"
        ) from None


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


def _require_version(blob: Blob, descriptor: int) -> None:
    """Raise RunError if the open file is not the listed version."""
    etag = _etag(os.fstat(descriptor))
    if etag != blob.etag:
        raise changed(blob, etag)


@contextmanager
def _temporary_file(path: Path, content: bytes) -> Iterator[Path]:
    """Yield a complete temporary file next to `path`, to be moved or linked into place; then sync the folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        temporary = path.with_name(uuid.uuid4().hex.join(_TEMPORARY))
        with temporary.open("xb") as file, locked(temporary) as is_locked:
            if not is_locked:
                continue
            try:
                file.write(content)
                count_write(len(content))
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
def _failures_reported(action: str, path: Path) -> Iterator[None]:
    """Raise RunError, in one line, if the file system refuses."""
    try:
        yield
    except (FileExistsError, NotADirectoryError) as error:
        raise RunError(f"cannot {action} {path}: a part of this path is a file, not a folder") from error
    except OSError as error:
        refused = error.filename or path
        raise RunError(f"cannot {action} {refused}: {error.strerror or type(error).__name__}") from error
