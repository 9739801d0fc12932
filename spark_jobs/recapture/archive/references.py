"""Pin the versions of reference data that the slices of a run need."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from recapture.archive.blob_names import BlobNames
from recapture.errors import RunError
from recapture.storage import Blob, Container
from recapture.time_model import ticks

ALWAYS = 0
"""Start of the only version if names have no time; ticks."""


@dataclass(frozen=True, slots=True)
class PinnedVersion:
    """A version of reference data, as it was listed."""

    valid_from: int
    """System.Timestamp from which it is in force, until that of the next version; ticks."""
    blob: Blob


@dataclass(frozen=True)
class PinnedReference:
    """The versions of reference data that a run reads."""

    alias: str
    container: str
    """Address of the container."""
    versions: tuple[PinnedVersion, ...]
    """Versions in the order of their times."""

    def needed(self, first: int, last: int) -> Sequence[PinnedVersion]:
        """Return the versions that are in force at a time in (first, last]; ticks."""
        starts = [version.valid_from for version in self.versions]
        return self.versions[bisect_right(starts, first + 1) - 1 : bisect_right(starts, last)]

    def evidence(self, first: int, last: int) -> list[object]:
        """Return what a digest covers of the versions that are in force at a time in (first, last], as JSON."""
        blobs = ((version.valid_from, version.blob) for version in self.needed(first, last))
        versions = [[start, blob.name, blob.etag, blob.size, blob.last_modified.isoformat()] for start, blob in blobs]
        return [self.alias, versions]


def pin_reference(alias: str, names: BlobNames, container: Container, first: int, last: int) -> PinnedReference:
    """Return the versions that are in force at a time in (first, last], in ticks.

    Raise RunError if none is in force at the first of these times.
    """
    parsed = ((names.parse(blob.name), blob) for blob in container.list(names.prefix))
    listed = sorted(
        (
            PinnedVersion(ALWAYS if name[1] is None else ticks.from_datetime(name[1]), blob)
            for name, blob in parsed
            if name is not None
        ),
        key=lambda version: version.valid_from,
    )
    if not listed:
        raise RunError(
            f"reference data {alias}: {container.url} has no blob with the name that the path of {alias} gives: "
            "correct its path, or write the blob"
        )
    if listed[0].valid_from > first + 1:
        raise RunError(
            f"reference data {alias}: no version is in force at {ticks.to_text(first)}, which the first slice needs; "
            f"the oldest is {listed[0].blob.name}: choose a later range, or write an older version"
        )
    whole = PinnedReference(alias, container.url, tuple(listed))
    return PinnedReference(alias, container.url, tuple(whole.needed(first, last)))
