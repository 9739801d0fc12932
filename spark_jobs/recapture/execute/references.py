"""The rows of the reference data that a query joins, which are written to an Arrow file once for all slices."""

import logging
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from recapture.archive.pinning import PinnedBlob
from recapture.archive.references import PinnedVersion, PlannedReference
from recapture.errors import DamagedBlobError, RunError
from recapture.formats.bodies import Projection
from recapture.formats.duckdb_sql import one_array
from recapture.formats.events import Reader
from recapture.model import TYPES
from recapture.ordering.decoding import blaming
from recapture.process.wording import counted
from recapture.query.model import CompiledReference
from recapture.query.plan.joins import VALIDITY
from recapture.storage import Address, Archive, open_container

_LOG = logging.getLogger(__name__)
FOREVER = 2**63 - 1
"""End of the last version, in ticks."""


@dataclass(frozen=True)
class JoinedReference:
    """Reference data that a run reads, and how."""

    planned: PlannedReference
    compiled: CompiledReference
    reader: Reader
    container_url: Address


def write_reference(reference: JoinedReference, path: Path) -> None:
    """Write the rows of reference data to a file. Errors are those of `rows`."""
    container = open_container(reference.container_url)
    table = rows(reference.planned, reference.compiled, reference.reader, container)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    versions, count = counted(len(reference.planned.versions), "version"), counted(len(table), "row")
    _LOG.info("reference data %s: %s, %s, %s bytes", reference.planned.alias, versions, count, f"{table.nbytes:,}")


def read_reference(path: Path) -> pa.Table:
    """Return the rows of a file. They stay in the file, of which this machine's processes share one copy in memory."""
    return pa.ipc.open_file(pa.memory_map(str(path))).read_all()


def rows(reference: PlannedReference, compiled: CompiledReference, reader: Reader, container: Archive) -> pa.Table:
    """Return the rows of all versions, each with the times between which it is in force.

    Raise RunError for a blob that changed since it was planned, for a blob that cannot be read, and for a row that is
    malformed: without it, events would silently find no match.
    """
    ends = [version.valid_from for version in reference.versions[1:]] + [FOREVER]
    return pa.concat_tables(
        _version(reference.alias, version, end, compiled, reader, container)
        for version, end in zip(reference.versions, ends, strict=True)
    )


def _version(
    alias: str, version: PinnedVersion, end: int, compiled: CompiledReference, reader: Reader, container: Archive
) -> pa.Table:
    name = version.blob.name
    try:
        content = container.read(version.blob)
        with blaming(name):
            events = reader.read(PinnedBlob(alias, "", version.blob), content, ())
    except DamagedBlobError as error:
        raise RunError(
            f"reference data {alias}: {name} cannot be read: {error.reason}; restore it from a backup"
        ) from error
    projection = Projection(compiled.columns, declared=compiled.columns_to_check)
    parsed = reader.decoder.decode(one_array(events.body), projection, events.unreadable)
    malformed = parsed.malformed
    bad = pc.indices_nonzero(pc.is_valid(malformed))
    if len(bad):
        index = bad[0].as_py()
        raise RunError(
            f"reference data {alias}: {counted(len(bad), 'row')} of {name} cannot be used; the first is "
            f"row {index + 1:,}: {malformed[index].as_py()}; correct the blob, or CREATE TABLE {alias}"
        )
    count = len(malformed)
    validity = [pa.repeat(pa.scalar(time, pa.int64()), count) for time in (version.valid_from, end)]
    fields = [(column.name, TYPES[column.type].view) for column in compiled.columns]
    schema = pa.schema([*((name, pa.int64()) for name in VALIDITY), *fields])
    return pa.table([*validity, *(parsed.columns[column] for column in compiled.columns)], schema=schema)
