"""Pin the versions of reference data that the slices of a run need."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from recapture.archive.blob_names import BlobNames
from recapture.archive.definitions import ReferenceDefinition, version_of
from recapture.errors import RunError
from recapture.storage import Archive, Blob
from recapture.time_model import ticks
from recapture.time_model.slices import Slice

ALWAYS = 0
"""Start of the only version if names have no time; ticks."""


@dataclass(frozen=True, slots=True)
class PinnedVersion:
    """A version of reference data, as it was listed."""

    valid_from: int
    """System.Timestamp from which it is in force, until that of the next version; ticks."""
    blob: Blob


@dataclass(frozen=True)
class PlannedReference:
    """The versions of reference data that a run reads."""

    alias: str
    container: str
    """Address of the container."""
    look_back: int
    """Time before a slice for which the query needs events, in ticks."""
    versions: tuple[PinnedVersion, ...]
    """Versions in the order of their times."""

    @property
    def size(self) -> int:
        """Size of all versions in bytes."""
        return sum(version.blob.size for version in self.versions)

    def needed(self, first: Slice, last: Slice) -> Sequence[PinnedVersion]:
        """Return the versions that may be in force for an event of the slices from `first` to `last`."""
        earliest = first.start - self.look_back + 1
        start, end = (bisect_right(self.versions, time, key=_valid_from) for time in (earliest, last.end))
        return self.versions[start - 1 : end]

    def digest_content(self, slice_: Slice) -> list[object]:
        """Return the versions that a slice needs as JSON, for the digest of the slice."""
        return content_of(self.needed(slice_, slice_))


def content_of(versions: Iterable[PinnedVersion]) -> list[object]:
    """Return what a digest covers of versions, as JSON."""
    return [[version.valid_from, *version_of(version.blob)] for version in versions]


def _valid_from(version: PinnedVersion) -> int:
    return version.valid_from


def pin_reference(
    definition: ReferenceDefinition, container: Archive, slices: Sequence[Slice], look_back: int
) -> PlannedReference:
    """Return the versions that the events of these slices need. The query looks back by `look_back` ticks.

    Raise RunError if there are no versions, or if none is in force at the earliest time that the slices need.
    """
    alias, first = definition.alias, slices[0].start - look_back
    listed = versions(alias, definition.names, container)
    if listed[0].valid_from > first + 1:
        raise RunError(
            f"reference data {alias}: no version is in force at {ticks.to_text(first)}, which the first slice needs; "
            f"the oldest is {listed[0].blob.name}: choose a later range, or write an older version"
        )
    whole = PlannedReference(alias, container.url, look_back, tuple(listed))
    return replace(whole, versions=tuple(whole.needed(slices[0], slices[-1])))


def versions(alias: str, names: BlobNames, container: Archive) -> list[PinnedVersion]:
    """Return all versions of reference data in the order of their times. Raise RunError if there are none."""
    parsed = ((names.parse(blob.name), blob) for blob in container.list(names.prefix))
    versions = [
        PinnedVersion(ALWAYS if name[1] is None else ticks.from_datetime(name[1]), blob)
        for name, blob in parsed
        if name is not None
    ]
    if not versions:
        raise RunError(
            f"reference data {alias}: no blob under {container.url} has the name that its path gives: correct the "
            "path, or write the blob"
        )
    return sorted(versions, key=lambda version: version.valid_from)
