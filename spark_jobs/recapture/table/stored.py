"""Look whether the files of slices are in the storage, whole and safe from a vacuum.

A vacuum deletes every file that no version of the table names and that is older than the table's retention. So it can
delete a file between the moment it is staged and the commit that names it.
"""

import io
import itertools
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq

from recapture.errors import PermanentError
from recapture.storage import Blob, in_parallel, open_container
from recapture.table.delta import OpenTable
from recapture.table.files import read_slice_file, require_slice_file
from recapture.table.snapshot import File, HeldFile

MAX_LISTINGS = 4
"""Maximum number of listings that look for the files of one table, unless they span more than four years."""
MAX_READ_AT_ONCE = 16 << 20
"""Largest size of a file, in bytes, that is read at the same time as others."""
_FOLDER_LENGTHS = tuple(len(f"slice_start={text}") for text in ("20260301T100000Z", "20260301", "202603", "2026"))
"""Lengths of the prefixes of a folder that stand for a slice, a day, a month and a year."""


def fault_of(file: File | HeldFile, blob: Blob | None) -> str | None:
    """Return what is wrong with a slice's file of which the storage has this blob; None if nothing is."""
    if blob is None:
        return "has lost a file, perhaps to a vacuum"
    if blob.size != file.size:
        return "has a file of the wrong size" if blob.size else "has an empty file"
    return None


def find(url: str, files: Mapping[str, File | HeldFile]) -> dict[str, Blob | None]:
    """Return the blob that the storage has of each slice's file; `url` is the address of a table that exists.

    A few listings cover the files of a long range. Files of other programs may be in folders with other names.
    """
    container = open_container(url)
    prefixes = prefixes_of({file.path.rpartition("/")[0] for file in files.values()})
    listings = in_parallel(lambda prefix: list(container.list(prefix)), prefixes)
    blobs = {blob.name: blob for blob in itertools.chain.from_iterable(listings)}
    return {start: blobs.get(file.path) for start, file in files.items()}


def prefixes_of(folders: set[str]) -> list[str]:
    """Return prefixes that cover these folders: the folders, or else their days, their months or their years."""
    for length in _FOLDER_LENGTHS:
        prefixes = sorted({folder[:length] for folder in folders})
        if len(prefixes) <= MAX_LISTINGS:
            break
    return prefixes


class Look:
    """Look of a change at the files that it names: at every file once, before the first commit that names it."""

    def __init__(self, remedy: str) -> None:
        """Make a look that advises `remedy` if a file is gone or damaged."""
        self._remedy = remedy
        self._seen: set[tuple[str, str]] = set()
        """Addresses of tables, and paths of files in them."""
        self._renewed: dict[str, dict[str, File]] = {}
        """Files that were written again, by the address of their table and by slice_start."""
        self._intact: dict[tuple[str, str], bool] = {}
        """Whether a file that was read has the content that its name says."""

    def secure(self, table: OpenTable, files: Mapping[str, File]) -> None:
        """Look at the files of slices, and write those again that a vacuum may be about to delete.

        No version names these, and they are older than half of the table's retention. Raise RunError if any file is
        gone or damaged.
        """
        url, held = table.table.url, table.held(files)
        files = {start: file for start, file in files.items() if (url, file.path) not in self._seen}
        oldest, old = datetime.now(UTC) - table.retention / 2, {}
        for start, blob in self._stored(url, files).items():
            named = {file.path for file in held.get(start, ())}
            if blob is not None and blob.last_modified < oldest and files[start].path not in named:
                old[start] = files[start]
        in_parallel(lambda file: self._write_again(url, file), old.values())
        self._renewed.setdefault(url, {}).update(old)
        self._seen.update((url, file.path) for file in files.values())

    def columns(self, url: str, files: Mapping[str, File]) -> pa.Schema | None:
        """Return the columns of files, which may be those of several queries; `url` is the address of their table.

        None stands for the columns of `Table`. Raise RunError if a file is gone or damaged, or if a column has several
        types.
        """

        def read(slice_file: tuple[str, File]) -> pa.Schema:
            start, file = slice_file
            lost = f"slice {start} of {url} {fault_of(file, None)} ({file.path}), or it is damaged: {self._remedy}"
            content = require_slice_file(open_container(url), file.path, lost)
            return pq.read_schema(io.BytesIO(content)).remove_metadata()

        try:
            return pa.unify_schemas([pa.schema([]), *in_parallel(read, files.items())])
        except pa.ArrowTypeError as error:
            problem = f"a column of {url} has another type in another slice ({error})"
            raise PermanentError(f"{problem}: {self._remedy}") from error

    def intact(self, url: str, files: Mapping[str, File]) -> dict[str, File]:
        """Return the files of slices whose content in the storage is what their names say. Each is read once."""
        unread = [file for file in files.values() if (url, file.path) not in self._intact]
        small = [file for file in unread if file.size <= MAX_READ_AT_ONCE]
        read = dict(zip((file.path for file in small), in_parallel(partial(_is_intact, url), small), strict=True))
        read |= {file.path: _is_intact(url, file) for file in unread if file.size > MAX_READ_AT_ONCE}
        self._intact |= {(url, path): is_intact for path, is_intact in read.items()}
        return {start: file for start, file in files.items() if self._intact[url, file.path]}

    def again(self) -> None:
        """Look again at the files that were written again. Raise RunError if a vacuum deleted one all the same."""
        for url, files in self._renewed.items():
            self._stored(url, files)

    def _stored(self, url: str, files: Mapping[str, File]) -> dict[str, Blob | None]:
        """Return what the storage has of the files. Raise RunError if it has not all of them, or with other sizes."""
        blobs = find(url, files) if files else {}
        for start, blob in blobs.items():
            if fault := fault_of(files[start], blob):
                raise PermanentError(f"slice {start} of {url} {fault} ({files[start].path}): {self._remedy}")
        return blobs

    def _write_again(self, url: str, file: File) -> None:
        problem = f"{file.path} of {url} is gone, or does not match the digest in its name: {self._remedy}"
        open_container(url).write(file.path, require_slice_file(open_container(url), file.path, problem))


def _is_intact(url: str, file: File) -> bool:
    return read_slice_file(open_container(url), file.path) is not None
