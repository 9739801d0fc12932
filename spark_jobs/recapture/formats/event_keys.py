"""What an event may be looked for by: a field of its body, or its metadata."""

from dataclasses import dataclass

from recapture.model import InputColumn, MetadataColumn

EventKey = InputColumn | MetadataColumn


@dataclass(frozen=True)
class Index:
    """The index of an input."""

    keys: tuple[EventKey, ...]
    digest: str
    """SHA-256 of what decides the notes besides the blobs. Notes of another digest say nothing."""
