"""The quarantine of a report by reason, with examples."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from recapture.printable import printable
from recapture.quality.metrics import QUARANTINED
from recapture.run.tables import QUARANTINE
from recapture.storage import open_container
from recapture.table.files import read_slice_table
from recapture.time_model import ticks
from recapture.time_model.metrics import total
from recapture.tools.reports.sources import Source

MAX_REASONS = 20
"""Largest number of reasons that are shown, the most frequent first."""
MAX_EXAMPLES = 3
"""Largest number of examples of a reason."""
MAX_FILES = 200
"""Largest number of files that are read; reasons and examples come from these."""
_BODY_BYTES = 300


def quarantined(source: Source) -> dict[str, Any]:
    """Return the exact number of quarantined events and blobs, None if not counted, and their reasons with examples."""
    reasons: dict[tuple[str, str], dict[str, Any]] = {}
    files = 0
    for start, table in _tables(source):
        files += 1
        counted = table.group_by(["verdict", "reason"]).aggregate([([], "count_all")])
        for group in counted.to_pylist():
            key = group["verdict"], group["reason"]
            reason = reasons.setdefault(key, {"verdict": key[0], "reason": key[1], "rows": 0, "examples": []})
            reason["rows"] += group["count_all"]
            missing = MAX_EXAMPLES - len(reason["examples"])
            if missing:
                matches = pc.and_(pc.equal(table["verdict"], key[0]), pc.equal(table["reason"], key[1]))
                rows = table.filter(matches).slice(0, missing).to_pylist()
                reason["examples"] += [_example(start, row) for row in rows]
    ordered = sorted(reasons.values(), key=lambda reason: (-reason["rows"], reason["verdict"], reason["reason"]))
    return {
        "table": source.pipeline.outputs[0].quarantine_table,
        "rows": total(row.find_count(name) for row in source.metrics for name in QUARANTINED),
        "reasons": ordered[:MAX_REASONS],
        "partial": files == MAX_FILES,
    }


def _tables(source: Source) -> Iterator[tuple[str, pa.Table]]:
    """Yield up to MAX_FILES files of the quarantine, each with the start of its slice."""
    if source.single is not None:
        rows = [row for row in source.metrics if any(row.values[name] for name in QUARANTINED)]
        slices = {ticks.to_text(slice_.start): slice_ for slice_ in source.slices}
        for row in rows[:MAX_FILES]:
            start = row.slice_start
            yield start, source.single.files.quarantined(row.input, row.partition, slices[start])
        return
    container = open_container(source.pipeline.outputs[0].quarantine_table)
    currents = {start: entry.current for start, entry in source.entries.items() if entry.current is not None}
    files = [(start, file) for start, current in currents.items() if (file := current.files.get(QUARANTINE))]
    for start, file in files[:MAX_FILES]:
        table = read_slice_table(container, file.path)
        if table is not None:
            yield start, table


def _example(start: str, row: dict[str, Any]) -> dict[str, Any]:
    body = row["body"]
    return {
        "slice_start": start,
        "partition": row["partition"],
        "blob": row["blob"],
        "number": row["sequence_number"] if row["sequence_number"] is not None else row["place"],
        "body": None if body is None else text_of(body[:_BODY_BYTES]) + ("…" if len(body) > _BODY_BYTES else ""),
    }


def text_of(body: bytes) -> str:
    """Return the start of a body as a printable string; bytes that are not UTF-8 are escaped."""
    return printable(body.decode("utf-8", "backslashreplace"))
