"""The compressed content of a blob, inflated in pieces and never beyond a limit."""

import gzip
import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from isal import isal_zlib

from recapture.errors import DamagedBlobError

MIB = 1 << 20
_PIECE = MIB


@dataclass(frozen=True)
class Limits:
    """How large the unpacked content of a blob may be; MiB."""

    block: int = 256
    """Largest inflated size of one block of an Avro file."""
    blob: int = 2048
    """Largest inflated size of all blocks of an Avro file, or of a gzip file."""


DEFAULT = Limits()


def inflated(name: str, blocks: list[memoryview], limits: Limits) -> Iterator[bytearray]:
    """Yield what raw deflate streams inflate to; bytes after the end of a stream are ignored.

    Raise DamagedBlobError for a stream that cannot be inflated, and at the limits.
    """
    blob_size = 0
    for block in blocks:
        plain = bytearray()
        for piece in _pieces(name, block):
            plain += piece
            _require_below(name, "one of its blocks inflates", len(plain), limits.block, "max_block_mib")
            _require_below(name, "it inflates", blob_size + len(plain), limits.blob, "max_blob_mib")
        blob_size += len(plain)
        yield plain


def unzipped(name: str, content: bytes, limits: Limits) -> bytes:
    """Return the content of a gzip file. Raise DamagedBlobError if it cannot be unpacked whole, and at the limit."""
    plain = io.BytesIO()
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
            while piece := file.read(_PIECE):
                _require_below(name, "it inflates", plain.tell() + len(piece), limits.blob, "max_blob_mib")
                plain.write(piece)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DamagedBlobError(name, f"its gzip cannot be unpacked whole ({error})") from error
    return plain.getvalue()


def _pieces(name: str, block: memoryview) -> Iterator[bytes]:
    inflater = isal_zlib.decompressobj(wbits=-zlib.MAX_WBITS)
    try:
        for start in range(0, len(block), _PIECE):
            if inflater.eof:
                return
            rest: memoryview | bytes = block[start : start + _PIECE]
            while piece := inflater.decompress(rest, _PIECE):
                yield piece
                rest = inflater.unconsumed_tail
    except isal_zlib.error as error:  # type: ignore[misc]  # its stub has no class
        raise DamagedBlobError(name, f"a block cannot be inflated ({error})") from error


def _require_below(name: str, what: str, size: int, limit: int, key: str) -> None:
    if size > limit * MIB:
        raise DamagedBlobError(name, f"{what} to more than {limit:,} MiB (raise input.{key} if that is legitimate)")
