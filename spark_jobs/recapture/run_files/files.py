"""The run files: what one stage leaves for the next, under `_recapture/RUN/` in the first output's table."""

import io
import re
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from recapture.archive import manifest as manifests
from recapture.archive.manifest import Manifest
from recapture.errors import PermanentError, RunError
from recapture.quality.metrics import UNUSABLE
from recapture.run_files.json_file import Content, DamagedFileError, JsonFile
from recapture.run_files.metric_row import MetricRow
from recapture.storage import Container, in_parallel
from recapture.table.files import read_parquet
from recapture.time_model import ticks
from recapture.time_model.partition_metrics import PartitionMetrics
from recapture.time_model.slices import Slice

FOLDER = "_recapture"
RUN_ID = re.compile(r"(\d{8}T\d{6}Z)-(\d{8}T\d{6}Z)-[0-9a-f]{12}", re.ASCII)
"""Id of a run: start and end of its range, and the digest of what it reads and computes."""

MANIFEST = "manifest.json"
PROFILE = "profile.parquet"
REPORT_PAGE = "report.html"
REPORT_DOCUMENT = "report.json"


def range_of_run(run: str) -> tuple[int, int] | None:
    """Return the start and the end of a run's range, in ticks; None if this is not the id of a run."""
    match = RUN_ID.fullmatch(run)
    try:
        return match and (ticks.from_compact_text(match[1]), ticks.from_compact_text(match[2]))
    except ValueError:  # such as the 99th of a month
        return None


@dataclass(frozen=True)
class RunFiles:
    """The files of one run. Reading one raises RunError if the stage that writes it has not run."""

    container: Container
    """Container of the run files: the first output's table."""
    id: str

    def name(self, file: str) -> str:
        """Return the blob name of a run file."""
        return f"{FOLDER}/{self.id}/{file}"

    def counters_file(self, alias: str, partition: str, first: Slice) -> JsonFile[tuple[PartitionMetrics, ...]]:
        """Return the run file with the counters of a task, a row for each slice; its first slice is `first`."""
        name = f"counters/{alias}/{ticks.to_compact_text(first.start)}/{partition}.json"
        return JsonFile(name, tuple[MetricRow, ...])

    def remove(self, folder: str) -> None:
        """Remove the run files in a folder, if that is permitted."""
        with suppress(RunError):
            in_parallel(self.container.remove, self.container.list(self.name(f"{folder}/")))

    def profile_name(self, alias: str, partition: str, first: Slice) -> str:
        """Return the name of the blob with the profiles of a task, whose first slice is `first`."""
        return self.name(f"profiles/{alias}/{ticks.to_compact_text(first.start)}/{partition}.parquet")

    def quarantine_name(self, alias: str, partition: str, slice_: Slice) -> str:
        """Return the name of the blob with the quarantine of a partition and slice."""
        return self.name(f"quarantine/{alias}/{ticks.to_compact_text(slice_.start)}/{partition}.parquet")

    def verdicts_name(self, alias: str, partition: str, slice_: Slice) -> str:
        """Return the name of the blob with the verdicts of a partition and slice."""
        return self.name(f"verdicts/{alias}/{ticks.to_compact_text(slice_.start)}/{partition}.parquet")

    @property
    def quarantine_url(self) -> str:
        """Address of the folder of what the run quarantined."""
        return f"{self.container.url}/{self.name('quarantine')}"

    def write(self, file: JsonFile[Content], content: Content) -> Content:
        """Write a JSON run file, and return its content as `read` does."""
        document = file.encode(content)
        self.container.write(self.name(file.name), document)
        return file.stored(content, document)

    def read(self, file: JsonFile[Content]) -> Content:
        """Return what a stage wrote with `write`. Raise PermanentError also if it is damaged or has another format."""
        return self._decoded(file, self._content(self.name(file.name)))

    def find(self, file: JsonFile[Content]) -> Content | None:
        """Return what a stage wrote with `write`; None if there is no such file. Raise PermanentError as `read`."""
        document = self.container.read_current(self.name(file.name))
        return None if document is None else self._decoded(file, document)

    def exists(self, file: str) -> bool:
        """Return whether a run file exists."""
        name = self.name(file)
        return any(blob.name == name for blob in self.container.list(name))

    def manifest(self) -> Manifest:
        return manifests.from_json(self._content(self.name(MANIFEST)))

    def find_manifest(self) -> Manifest | None:
        """Return the manifest; None if there is none."""
        content = self.container.read_current(self.name(MANIFEST))
        return None if content is None else manifests.from_json(content)

    def write_manifest(self, manifest: Manifest) -> None:
        self.container.write(self.name(MANIFEST), manifest.to_json())

    def quarantined(self, alias: str, partition: str, slice_: Slice) -> pa.Table:
        """Return what the task of a partition quarantined in a slice."""
        return read_parquet(self._content(self.quarantine_name(alias, partition, slice_)))

    def verdicts(self, alias: str, partition: str, slice_: Slice) -> pa.Table:
        """Return the verdicts on the events that are not on time in a partition and slice, with VERDICTS_SCHEMA."""
        return read_parquet(self._content(self.verdicts_name(alias, partition, slice_)))

    def first_unusable(self, alias: str, partition: str, slice_: Slice) -> tuple[str, str, bytes | None] | None:
        """Return verdict, reason and body of the first event that a task quarantined in a slice."""
        content = self._content(self.quarantine_name(alias, partition, slice_))
        with pq.ParquetFile(io.BytesIO(content)) as file:
            for batch in file.iter_batches(100, columns=["verdict", "reason", "body"]):
                for row in batch.to_pylist():
                    if row["verdict"] in UNUSABLE:
                        return row["verdict"], row["reason"], row["body"]
        return None

    def _decoded(self, file: JsonFile[Content], document: bytes) -> Content:
        try:
            return file.decode(document, f"{file.name} of run {self.id}")
        except DamagedFileError:
            raise PermanentError(
                f"{file.name} of run {self.id} under {self.container.url} is damaged: restore it, or plan the range "
                "again"
            ) from None

    def _content(self, name: str) -> bytes:
        content = self.container.read_current(name)
        if content is None:
            file = name.removeprefix(self.name(""))
            raise PermanentError(
                f"run {self.id} has no {file} under {self.container.url}: start the run again from its plan"
            )
        return content
