"""CSV messages: each has a header that names the fields, and one event per line after it.

ASA needs the header, and reads UTF-8 with one of five delimiters (source: "Stream data as input into Stream
Analytics"). All values are strings, which are converted to the types that the query needs, and an empty field is null.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recapture.formats.csv_rows import NOT_CLOSED, HeaderError, OpenQuotationError, fields_of_header, rows_as_json
from recapture.formats.messages import NO_EVENT, EventBodies
from recapture.formats.views import copied

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class CsvMessages:
    """CSV `Messages`."""

    delimiter: str = ","
    only_strings = True

    def unpack(self, bodies: pa.Array, unreadable: pa.Array | None) -> EventBodies:
        bodies = copied(bodies)
        reasons = pa.nulls(len(bodies), pa.string()) if unreadable is None else unreadable
        reasons = pc.coalesce(reasons, pc.if_else(pc.is_valid(bodies), pa.scalar(None, pa.string()), "no body"))
        readable = np.flatnonzero(reasons.is_null())
        line, message = _lines(bodies.take(pa.array(readable)))
        message = readable[message]
        is_header = np.append(True, message[1:] != message[:-1])[: len(message)]
        headers, rows = line.filter(pa.array(is_header)), line.filter(pa.array(~is_header))
        header_messages, row_messages = message[is_header], message[~is_header]
        found: list[tuple[NDArray[np.intp], pa.Array, pa.Array]] = []
        encoded = headers.dictionary_encode()
        kind = np.zeros(len(bodies), np.intp)
        kind[header_messages] = encoded.indices.to_numpy()
        for number, header in enumerate(encoded.dictionary.to_pylist()):
            with_header = header_messages[kind[header_messages] == number]
            chosen = np.flatnonzero(kind[row_messages] == number)
            try:
                fields = fields_of_header(header, self.delimiter)
            except HeaderError as error:
                reason = f"its header {error}"
                found.append(_unread(bodies, with_header, reason))
                continue
            found.append(_unread(bodies, np.setdiff1d(with_header, row_messages[chosen]), NO_EVENT))
            body, unread = _parsed(fields, self.delimiter, rows.take(pa.array(chosen)))
            found.append((row_messages[chosen], body, unread))
        blank = np.setdiff1d(readable, header_messages)
        found.append(_unread(bodies, blank, "it has neither a header nor an event"))
        known = np.flatnonzero(reasons.is_valid())
        found.append((known, bodies.take(pa.array(known)), reasons.take(pa.array(known))))
        return _in_order(found)

    def split(self, bodies: pa.Array, malformed: pa.Array) -> EventBodies | None:
        return None


def _lines(bodies: pa.Array) -> tuple[pa.Array, NDArray[np.intp]]:
    """Return the lines that are not blank, and the index of the body of each."""
    marked = pc.starts_with(bodies, _BYTE_ORDER_MARK)
    if pc.any(marked).as_py():
        bodies = pc.if_else(marked, pc.binary_replace_slice(bodies, 0, len(_BYTE_ORDER_MARK), b""), bodies)
    lists = pc.split_pattern(bodies, pattern=b"\n")
    line = lists.flatten()
    message = np.repeat(np.arange(len(bodies)), np.diff(lists.offsets.to_numpy()))
    filled = pc.invert(pc.match_substring_regex(line, r"^\r?$"))
    return line.filter(filled), message[filled.to_numpy(zero_copy_only=False)]


def _parsed(header: list[str], delimiter: str, rows: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return rows as JSON, and why some cannot be read. A quotation mark that is not closed is looked for by halves."""
    within = pc.match_substring_regex(rows, r"(?s)\r.")
    if pc.any(within).as_py():
        body, unreadable = _parsed(header, delimiter, rows.filter(pc.invert(within)))
        reason = "a carriage return stands within a line: lines end in \\n or \\r\\n"
        bodies = pc.replace_with_mask(rows, pc.invert(within), body)
        return bodies, pc.replace_with_mask(pa.repeat(reason, len(rows)), pc.invert(within), unreadable)
    try:
        return rows_as_json(header, delimiter, rows)
    except OpenQuotationError:
        if len(rows) == 1:
            return rows, pa.array([NOT_CLOSED])
        half = len(rows) // 2
        parts = [_parsed(header, delimiter, part) for part in (rows.slice(0, half), rows.slice(half))]
        bodies, reasons = zip(*parts, strict=True)
        return pa.concat_arrays(bodies), pa.concat_arrays(reasons)


def _unread(bodies: pa.Array, message: NDArray[np.intp], reason: str) -> tuple[NDArray[np.intp], pa.Array, pa.Array]:
    return message, bodies.take(pa.array(message)), pa.repeat(reason, len(message))


def _in_order(found: list[tuple[NDArray[np.intp], pa.Array, pa.Array]]) -> EventBodies:
    """Return all events in the order of their messages; those of one message keep their order."""
    messages, bodies, reasons = zip(*found, strict=True)
    message = np.concatenate(messages).astype(np.intp)
    order = np.argsort(message, kind="stable")
    places = pa.array(order)
    body = pa.concat_arrays([part.cast(pa.binary()) for part in bodies]).take(places)
    unreadable = pa.concat_arrays([part.cast(pa.string()) for part in reasons]).take(places)
    return EventBodies(message[order], body, unreadable)
