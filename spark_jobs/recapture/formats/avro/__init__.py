"""Reads Avro files: their framing, and the records of a service as Arrow.

`framing` finds the blocks of a file, `layout` makes a table of its schema, `walk` follows the table through the records
in compiled code, and `records` makes Arrow of what `walk` notes.
"""

from recapture.formats.avro.framing import MAGIC, Framing, Record, has_block, header, read_framing
from recapture.formats.avro.records import decode, load

__all__ = ["MAGIC", "Framing", "Record", "decode", "has_block", "header", "load", "read_framing"]
