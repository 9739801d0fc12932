"""Find the blobs of a manifest that were modified or deleted since they were pinned."""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from recapture.archive.blob_names import BlobNames
from recapture.archive.definitions import version_of
from recapture.archive.listing import CONCURRENT_LISTINGS
from recapture.archive.pinning import PlannedInput
from recapture.archive.references import PlannedReference
from recapture.errors import DefinitionError
from recapture.printable import one_line
from recapture.process.wording import of_input
from recapture.storage import Archive, Blob, in_parallel
from recapture.time_model import ticks

SHOWN = 100
_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Change:
    """A blob that was modified or deleted since it was pinned."""

    pinned: Blob
    now: Blob | None
    """Blob as it is listed now; None if it was deleted."""
    input: str | None = None
    """Alias of the blob's input or reference data; None if the run has only one input."""

    def __str__(self) -> str:
        name = f"{self.pinned.name}{of_input(self.input)}"
        if self.now is None:
            return f"{name} was deleted"
        pairs = [
            ("size", self.pinned.size, self.now.size),
            ("LastModified", ticks.text_of(self.pinned.last_modified), ticks.text_of(self.now.last_modified)),
            ("etag", self.pinned.etag, self.now.etag),
        ]
        differences = ", ".join(f"{name} {before}, now {after}" for name, before, after in pairs if before != after)
        return f"{name} was modified ({differences})"


def in_input(planned: PlannedInput, names: BlobNames, container: Archive, name_input: bool = False) -> list[Change]:
    """Return the changes of an input's blobs since they were pinned, in the manifest's order.

    If `name_input`, the changes name the input. The blobs are listed by prefix, not requested one by one. Raise
    DefinitionError if a name does not belong to the input.
    """
    prefixes = _prefixes(planned, names)
    pinned_names = {pinned.blob.name for pinned in planned.blobs}

    def list_pinned(prefix: str) -> list[Blob]:
        return [blob for blob in container.list(prefix) if blob.name in pinned_names]

    listed = itertools.chain.from_iterable(in_parallel(list_pinned, prefixes, CONCURRENT_LISTINGS))
    return _changes((pinned.blob for pinned in planned.blobs), listed, planned.alias if name_input else None)


def in_reference(reference: PlannedReference, names: BlobNames, container: Archive) -> list[Change]:
    """Return the changes of the versions of reference data since they were pinned, in the manifest's order."""
    return _changes((version.blob for version in reference.versions), container.list(names.prefix), reference.alias)


def _changes(pinned: Iterable[Blob], listed: Iterable[Blob], alias: str | None) -> list[Change]:
    """Return the pinned blobs that are not listed, or are listed in another version."""
    now = {blob.name: blob for blob in listed}
    changes = (Change(blob, now.get(blob.name), alias) for blob in pinned)
    return [change for change in changes if change.now is None or version_of(change.pinned) != version_of(change.now)]


def summary(changes: Iterable[Change]) -> str:
    """Return one line for each change; after SHOWN of them, the number of the others."""
    lines = [f"  {one_line(str(change))}" for change in changes]
    more = [f"  and {len(lines) - SHOWN:,} more"] if len(lines) > SHOWN else []
    return "\n".join([*lines[:SHOWN], *more])


def _prefixes(planned: PlannedInput, names: BlobNames) -> list[str]:
    """Return prefixes that cover the input's blobs. Raise DefinitionError if a name does not belong to the input."""
    partitions, days = set(), set()
    for pinned in planned.blobs:
        parsed = names.parse(pinned.blob.name)
        if parsed is None:
            raise DefinitionError(
                f"the run's manifest pins {pinned.blob.name}, which is not a blob name of the pipeline's input "
                f"{planned.alias}: input.path or another name in the input section has changed; plan again"
            )
        partition, name_time = parsed
        if name_time is None:
            return [names.prefix]
        partitions.add(partition)
        days.add(name_time.replace(hour=0, minute=0, second=0))
    prefixes = (names.prefixes(first, last, partitions) for first, last in _spans(sorted(days)))
    return sorted(set(itertools.chain.from_iterable(prefixes)))


def _spans(days: Iterable[datetime]) -> Iterator[tuple[datetime, datetime]]:
    """Yield the start of the first and the last hour of each run of consecutive days."""
    for _, group in itertools.groupby(enumerate(days), lambda numbered: numbered[1] - numbered[0] * _DAY):
        consecutive = [day for _, day in group]
        yield consecutive[0], consecutive[-1] + timedelta(hours=23)
