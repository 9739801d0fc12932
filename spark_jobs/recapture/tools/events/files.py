"""Write events that were found into a file: JSON lines, Parquet, or Event Hubs Capture's Avro."""

import hashlib
import io
import json
from pathlib import Path
from typing import Any

import fastavro
import pyarrow.compute as pc

from recapture.definition.pipeline import Pipeline
from recapture.errors import DefinitionError
from recapture.formats.avro import decode
from recapture.formats.event_hubs import EVENT_DATA, CaptureInput
from recapture.formats.sections import Input
from recapture.storage import Archive, open_container
from recapture.table.files import parquet
from recapture.tools.events.event import json_types, published
from recapture.tools.events.find import SearchResult
from recapture.tools.events.reading import EventsRead
from recapture.tools.sample.capture_file import capture_schema

FORMATS = (".jsonl", ".parquet", ".avro")
"""Endings of the files that can be written."""
_FIELDS = ("Offset", "EnqueuedTimeUtc", "SystemProperties", "Properties")
"""Fields of a record of Capture besides its number and its body."""


def require_writable(pipeline: Pipeline, alias: str | None, out: Path) -> None:
    """Raise DefinitionError unless events of an input, or of all if `alias` is None, can be written into a file."""
    if out.suffix not in FORMATS:
        raise DefinitionError(f"--out {out}: end the name of the file with {', '.join(FORMATS[:-1])} or {FORMATS[-1]}")
    if not out.parent.is_dir():
        raise DefinitionError(f"--out {out}: there is no folder {out.parent}: choose another file")
    if out.suffix == ".avro":
        inputs = [read.alias for read in pipeline.query.inputs if alias is None or read.alias.lower() == alias.lower()]
        if len(inputs) > 1:
            raise DefinitionError(f"--out {out}: an Avro file has the events of one input: name it with --input")
        if any(not isinstance(pipeline.section(name), CaptureInput) for name in inputs):
            raise DefinitionError(
                f"--out {out}: only events of Event Hubs Capture can be written as its Avro: choose .jsonl or .parquet"
            )


def write(result: SearchResult, out: Path) -> None:
    """Write events into a file, whose name `require_writable` accepts. Raise DefinitionError if it cannot be written.

    An Avro file has the records as Capture wrote them, in the order of the events: a message with several events is one
    record. Raise RunError if a blob changed since it was read.
    """
    match out.suffix:
        case ".jsonl":
            content = "".join(f"{json.dumps(event)}\n" for event in json_types(result.events)).encode()
        case ".parquet":
            content = parquet(published(result.events))
        case _:
            content = _avro(result)
    try:
        out.write_bytes(content)
    except OSError as error:
        raise DefinitionError(f"--out {out} cannot be written ({error.strerror}): choose another file") from error


def _avro(result: SearchResult) -> bytes:
    ((alias, read),) = result.inputs.items()
    section = result.pipeline.section(alias)
    records = _records(read, section, open_container(section.container))
    file = io.BytesIO()
    ordered = []
    for name, number, body in zip(
        *(read.events[column].to_pylist() for column in ("blob", "sequence_number", "body")), strict=True
    ):
        left = records[name, number]
        same = next((place for place, record in enumerate(left) if record["Body"] == body), 0)
        ordered += left[same : same + 1]  # nothing is left of a message whose events are found one after another
        del left[same : same + 1]
    marker = hashlib.md5(repr(ordered).encode(), usedforsecurity=False).digest()
    schema = fastavro.parse_schema(json.loads(capture_schema()))
    fastavro.writer(file, schema, ordered, codec="deflate", sync_marker=marker)
    return file.getvalue()


def _records(read: EventsRead, section: Input, container: Archive) -> dict[tuple[str, int], list[dict[str, Any]]]:
    """Return the records of the events that were found, by blob and sequence number."""
    records: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for name in pc.unique(read.events["blob"]).to_pylist():
        numbers = read.events.filter(pc.equal(read.events["blob"], name))["sequence_number"]
        table = decode(name, container.read(read.blobs[name]), EVENT_DATA, _FIELDS, section.limits)
        rows = pc.indices_nonzero(pc.is_in(table["SequenceNumber"], value_set=numbers))
        for row in rows.to_pylist():  # Arrow cannot take rows of views and unions
            (record,) = table.slice(row, 1).to_pylist()
            record |= {field: dict(record[field]) for field in ("SystemProperties", "Properties")}
            records.setdefault((name, record["SequenceNumber"]), []).append(record)
    return records
