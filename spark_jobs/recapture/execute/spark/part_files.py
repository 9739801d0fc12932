"""What the tasks computed of a part, in temporary files of a Python worker: its memory holds only what it computes."""

import itertools
import os
import socket
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from recapture.errors import RunError
from recapture.execute.references import read_reference
from recapture.execute.spark.failures import MORE_SPACE
from recapture.execute.spark.parts import Source
from recapture.execute.task_batches import event_schema
from recapture.process.limits import NO_SPACE
from recapture.query.model import CompiledInput


@contextmanager
def local_folder() -> Iterator[Path]:
    """Yield a temporary folder where Spark keeps its own temporary files, and remove it in the end.

    Raise RunError if its disk is full.
    """
    folder = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]  # Spark sets it for its Python workers
    try:
        with tempfile.TemporaryDirectory(prefix="recapture-", dir=folder or None) as path:
            yield Path(path)
    except OSError as error:
        if error.errno not in NO_SPACE:
            raise
        place = folder or tempfile.gettempdir()
        raise RunError(f"the disk with {place} is full on {socket.gethostname()}: {MORE_SPACE}") from None


@dataclass(frozen=True)
class PartRows:
    """The rows of one part, from which the rows of the outputs are computed."""

    files: Mapping[Source, Path]
    references: Mapping[str, str]
    """Names of the files of reference data that Spark gives to all executors, by the name of the view."""

    def panes(self, view: str, number: int) -> list[pa.RecordBatch]:
        """Return the panes of an aggregation of an input."""
        return self._batches((view, number))

    def events(self, compiled: CompiledInput) -> pa.Table:
        """Return the ordered events of an input, one partition after another."""
        return pa.Table.from_batches(self._batches((compiled.view, None)), event_schema(compiled))

    def reference(self, view: str) -> pa.Table:
        """Return the rows of reference data."""
        from pyspark import SparkFiles

        return read_reference(Path(SparkFiles.get(self.references[view])))

    def _batches(self, source: Source) -> list[pa.RecordBatch]:
        if source not in self.files:
            return []
        reader = pa.ipc.open_file(pa.memory_map(str(self.files[source])))
        return [reader.get_batch(place) for place in range(reader.num_record_batches)]


def write_part(
    batches: Iterable[tuple[int, pa.RecordBatch]],
    sources: Sequence[Source],
    references: Mapping[str, str],
    folder: Path,
) -> PartRows:
    """Write the batches of a part, which come sorted by the number of their source."""
    files = {}
    for source, group in itertools.groupby(batches, key=lambda batch: batch[0]):
        path = files[sources[source]] = folder / f"source-{source}.arrow"
        write_batches((batch for _, batch in group), path)
    return PartRows(files, references)


def write_batches(batches: Iterator[pa.RecordBatch], path: Path) -> int:
    """Write batches with the same columns, at least one, to a file, and return the number of their rows."""
    first = next(batches)
    rows = 0
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, first.schema) as writer:
        for batch in itertools.chain([first], batches):
            writer.write_batch(batch)
            rows += batch.num_rows
    return rows
