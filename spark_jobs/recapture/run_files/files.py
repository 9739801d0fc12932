"""The run files: what one stage leaves for the next, under `_recapture/RUN/` in the first output's table."""

import io
import json
import re
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import TypeAdapter, ValidationError

from recapture.archive import manifest as manifests
from recapture.archive.manifest import Manifest
from recapture.errors import PermanentError
from recapture.process.versions import FORMAT, require_format
from recapture.quality.metrics import UNUSABLE
from recapture.storage import Container
from recapture.time_model import ticks
from recapture.time_model.slices import Slice

FOLDER = "_recapture"
RUN_ID = re.compile(r"(\d{8}T\d{6}Z)-(\d{8}T\d{6}Z)-[0-9a-f]{12}", re.ASCII)
"""Id of a run: start and end of its range, and the digest of what it reads and computes."""

Value = TypeVar("Value")


def range_of_run(run: str) -> tuple[int, int] | None:
    """Return the start and the end of a run's range, in ticks; None if this is not the id of a run."""
    match = RUN_ID.fullmatch(run)
    try:
        return match and (ticks.from_compact_text(match[1]), ticks.from_compact_text(match[2]))
    except ValueError:  # such as the 99th of a month
        return None


@dataclass(frozen=True)
class StagedSlice:
    """The rows of one slice of one output, in a Parquet file that no commit names yet."""

    output: str
    """Alias of the output."""
    slice_start: str
    path: str
    """Path relative to the output's table."""
    size: int
    """Size of the file in bytes."""
    rows: int
    unanchored: int
    """Number of rows that are sessions cut by the rule for sparse streams."""


class DamagedFileError(Exception):
    """A file that is not what Recapture wrote."""


def content_of(document: bytes, what: str) -> Any:
    """Return the content of a JSON file of Recapture; `what` names it.

    Raise FormatError if another version wrote it, and DamagedFileError if none did.
    """
    try:
        value = json.loads(document)
    except (ValueError, RecursionError):
        raise DamagedFileError from None
    require_format(value.get("format") if isinstance(value, dict) else None, FORMAT, what)
    if "content" not in value:
        raise DamagedFileError
    return value["content"]


@dataclass(frozen=True)
class RunFiles:
    """The files of one run. Reading one raises RunError if the stage that writes it has not run."""

    container: Container
    """Container of the run files: the first output's table."""
    id: str
    """Id of the run."""

    def name(self, file: str) -> str:
        """Return the blob name of a run file."""
        return f"{FOLDER}/{self.id}/{file}"

    def counters_file(self, alias: str, partition: str, slice_: Slice) -> str:
        """Return the name of the run file with the counters of a partition and slice."""
        return f"counters/{alias}/{ticks.to_compact_text(slice_.start)}/{partition}.json"

    def profile_name(self, alias: str, partition: str, first: Slice) -> str:
        """Return the name of the blob with the profiles of a task, whose first slice is `first`."""
        return self.name(f"profiles/{alias}/{ticks.to_compact_text(first.start)}/{partition}.parquet")

    def quarantine_name(self, alias: str, partition: str, slice_: Slice) -> str:
        """Return the name of the blob with the quarantine of a partition and slice."""
        return self.name(f"quarantine/{alias}/{ticks.to_compact_text(slice_.start)}/{partition}.parquet")

    @property
    def quarantine_url(self) -> str:
        """Address of the folder of what the run quarantined."""
        return f"{self.container.url}/{self.name('quarantine')}"

    def write(self, file: str, value: Any) -> None:
        """Write a value as a JSON run file."""
        document = {"format": FORMAT, "content": value}
        self.container.write(self.name(file), json.dumps(document, indent=1, allow_nan=False).encode())

    def read(self, file: str) -> Any:
        """Return what a stage wrote with `write`. Raise RunError also if it has another format."""
        return self._document(file, self._content(self.name(file)))

    def read_as(self, type_: type[Value], file: str) -> Value:
        """Return what a stage wrote with `write`, as a type. Raise PermanentError also if it has another form."""
        try:
            return TypeAdapter(type_).validate_python(self.read(file))
        except ValidationError:
            raise self._damaged(file) from None

    def find(self, file: str) -> Any:
        """Return what a stage wrote with `write`; None if there is no such file. Raise FormatError as `read` does."""
        content = self.container.read_current(self.name(file))
        return None if content is None else self._document(file, content)

    def exists(self, file: str) -> bool:
        """Return whether a run file exists."""
        name = self.name(file)
        return any(blob.name == name for blob in self.container.list(name))

    def manifest(self) -> Manifest:
        return manifests.from_json(self._content(self.name("manifest.json")))

    def write_manifest(self, manifest: Manifest) -> None:
        self.container.write(self.name("manifest.json"), manifest.to_json())

    def staged(self) -> list[StagedSlice]:
        """Return the files that the Spark job staged, of every output."""
        return [StagedSlice(**entry) for entry in self.read("staged.json")]

    def quarantined(self, alias: str, partition: str, slice_: Slice) -> pa.Table:
        """Return what the task of a partition quarantined in a slice."""
        return pq.read_table(io.BytesIO(self._content(self.quarantine_name(alias, partition, slice_))))

    def first_unusable(self, alias: str, partition: str, slice_: Slice) -> dict[str, Any] | None:
        """Return verdict, reason and body of the first event that a task quarantined in a slice."""
        content = self._content(self.quarantine_name(alias, partition, slice_))
        with pq.ParquetFile(io.BytesIO(content)) as file:
            for batch in file.iter_batches(100, columns=["verdict", "reason", "body"]):
                for row in batch.to_pylist():
                    if row["verdict"] in UNUSABLE:
                        return dict(row)
        return None

    def _document(self, file: str, content: bytes) -> Any:
        try:
            return content_of(content, f"{file} of run {self.id}")
        except DamagedFileError:
            raise self._damaged(file) from None

    def _damaged(self, file: str) -> PermanentError:
        return PermanentError(
            f"{file} of run {self.id} under {self.container.url} is damaged: restore it, or plan the range again"
        )

    def _content(self, name: str) -> bytes:
        content = self.container.read_current(name)
        if content is None:
            file = name.removeprefix(self.name(""))
            raise PermanentError(
                f"run {self.id} has no {file} under {self.container.url}: start the run again from its plan"
            )
        return content
