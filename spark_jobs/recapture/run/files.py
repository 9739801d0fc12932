"""What is kept of a run, in the first table's folder under `_recapture/RUN/`, from one stage to the next."""

import io
import json
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from recapture.archive import manifest
from recapture.archive.manifest import Manifest
from recapture.errors import RunError
from recapture.quality.metrics import UNUSABLE
from recapture.storage import Container
from recapture.table.files import compact
from recapture.time_model.slices import Slice

FOLDER = "_recapture"


@dataclass(frozen=True)
class StagedSlice:
    """The rows of one slice of one output, in a Parquet file that no commit names yet."""

    output: str
    """The alias."""
    slice_start: str
    path: str
    """Relative to the output's table."""
    size: int
    rows: int
    unanchored: int
    """Rows that are sessions whose beginning lies before what the slice reads."""


@dataclass(frozen=True)
class Run:
    """One run's papers."""

    table: Container
    id: str

    def name(self, paper: str) -> str:
        """The blob name of one of the run's papers."""
        return f"{FOLDER}/{self.id}/{paper}"

    def counters_name(self, partition: str, wanted: Slice) -> str:
        return self.name(f"counters/{compact(wanted.start)}/{partition}.json")

    def quarantine_name(self, partition: str, wanted: Slice) -> str:
        return self.name(f"quarantine/{compact(wanted.start)}/{partition}.parquet")

    def write(self, paper: str, value: Any) -> None:
        self.table.write(self.name(paper), json.dumps(value, indent=1, allow_nan=False).encode())

    def read(self, paper: str) -> Any:
        """A paper that an earlier stage wrote. Raises RunError where that stage has not run."""
        return json.loads(self._content(paper))

    def manifest(self) -> Manifest:
        return manifest.from_json(self._content("manifest.json"))

    def keep_manifest(self, planned: Manifest) -> None:
        self.table.write(self.name("manifest.json"), planned.to_json())

    def staged(self) -> list[StagedSlice]:
        """Of every output."""
        return [StagedSlice(**entry) for entry in self.read("staged.json")]

    def quarantined(self, partition: str, wanted: Slice) -> pa.Table:
        """What the task of a partition set aside in a slice. Raises RunError where it left nothing."""
        return pq.read_table(io.BytesIO(self._read(self.quarantine_name(partition, wanted))))

    def quarantined_first(self, partition: str, wanted: Slice) -> dict[str, Any] | None:
        """Verdict, reason and body of the first event that the task of a partition set aside in a slice."""
        content = self._read(self.quarantine_name(partition, wanted))
        with pq.ParquetFile(io.BytesIO(content)) as file:
            for batch in file.iter_batches(100, columns=["verdict", "reason", "body"]):
                for row in batch.to_pylist():
                    if row["verdict"] in UNUSABLE:
                        return dict(row)
        return None

    def _content(self, paper: str) -> bytes:
        return self._read(self.name(paper))

    def _read(self, name: str) -> bytes:
        content = self.table.read_current(name)
        if content is None:
            paper = name.removeprefix(self.name(""))
            raise RunError(f"run {self.id} has no {paper} under {self.table.url}: start the run again from its plan")
        return content
