"""Copies of the archive, in a folder, with only the events that a live job read.

A run on such a copy gives the rows of a job that restarted, that read each event once, or that read before a blob came.
"""

import io
import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import fastavro
import numpy as np
from numpy.typing import NDArray

from recapture.archive.definitions import ArrivalTime
from recapture.archive.pinning import PinnedBlob
from recapture.definition.pipeline import Pipeline
from recapture.errors import DamagedBlobError
from recapture.formats.event_hubs import CaptureInput
from recapture.formats.events import ENQUEUED, UNKNOWN
from recapture.formats.sections import Input
from recapture.run.plan import pinned
from recapture.run.slices import slice_length
from recapture.storage import open_container
from recapture.time_model import ticks
from recapture.time_model.slices import DUPLICATE_HORIZON, Slice, slices_between
from recapture.tools.diff.document import ranges_of

Masks = Mapping[tuple[str, str], NDArray[np.bool_]]
"""Which events of a blob are meant, by the alias of the input and the name of the blob."""


@dataclass(frozen=True)
class Kept:
    """Which part of the archive a copy has."""

    until: datetime | None = None
    """Latest LastModified of its blobs; None for all."""
    since: datetime | None = None
    """First arrival; None for all."""
    without: Masks = field(default_factory=dict)
    """Events that are left out."""


@dataclass
class ArchiveCopies:
    """Copies of the blobs that slices read. Each blob is downloaded once."""

    folder: Path
    _copies: dict[Hashable, Path] = field(default_factory=dict)
    _downloaded: dict[Hashable, Path] = field(default_factory=dict)

    def reading(self, pipeline: Pipeline, slices: Sequence[Slice], kept: Kept) -> Pipeline:
        """Return the pipeline with the input containers that have only `kept`; the same one if that is everything."""
        blobs = planned_blobs(pipeline, slices)
        left = {alias: _left(pipeline.section(alias), input_blobs, kept) for alias, input_blobs in blobs.items()}
        if left == blobs and kept.since is None and not kept.without:
            return pipeline
        inputs = (
            section.model_copy(update={"container": self._copied(pipeline.section(section.alias), left, kept).as_uri()})
            if section.alias in left
            else section
            for section in pipeline.all_inputs
        )
        return pipeline.with_sections(all_inputs=tuple(inputs))

    def _copied(self, section: Input, left: Mapping[str, Sequence[PinnedBlob]], kept: Kept) -> Path:
        """Return the folder with what is left of an input. Trials that read the same share it."""
        blobs = left[section.alias]
        versions = frozenset((blob.blob.name, blob.blob.etag) for blob in blobs)
        key = section.alias, section.arrival_time, versions, kept.since, frozenset(kept.without)
        if key not in self._copies:
            home = self._copies[key] = self.folder / f"copy-{len(self._copies)}"
            home.mkdir()
            for blob in blobs:
                self._copy(section, blob, home, kept)
        return self._copies[key]

    def _copy(self, section: Input, pinned_blob: PinnedBlob, home: Path, kept: Kept) -> None:
        blob, target = pinned_blob.blob, home / pinned_blob.blob.name
        target.parent.mkdir(parents=True, exist_ok=True)
        key = section.container, blob.etag + blob.name
        if key not in self._downloaded:
            downloaded = self.folder / f"blob-{len(self._downloaded)}"
            downloaded.write_bytes(open_container(section.container).read(blob))
            _date(downloaded, blob.last_modified)
            self._downloaded[key] = downloaded
        source = self._downloaded[key]
        mask = _kept_events(section, pinned_blob, source, kept)
        if mask is None or mask.all():
            os.link(source, target)
        else:
            target.write_bytes(_only(source.read_bytes(), mask))
            _date(target, blob.last_modified)


def planned_blobs(pipeline: Pipeline, slices: Sequence[Slice]) -> dict[str, list[PinnedBlob]]:
    """Return the blobs that slices read now, by the alias of the input, in the order of a manifest."""
    blobs: dict[str, dict[str, PinnedBlob]] = {}
    for range_ in ranges_of(slices):
        for planned in pinned(pipeline, range_).inputs:
            blobs.setdefault(planned.alias, {}).update({blob.blob.name: blob for blob in planned.blobs})
    return {alias: list(input_blobs.values()) for alias, input_blobs in blobs.items()}


def can_restart(section: Input) -> bool:
    """Return whether a copy can leave out what arrived before a time."""
    return not _by_enqueued_time(section) or isinstance(section, CaptureInput)


def copied_events(pipeline: Pipeline, slices: Sequence[Slice]) -> Masks:
    """Return the events that the blobs of slices have again, if some arrived more than DUPLICATE_HORIZON apart.

    An event is the same if it has the partition, the sequence number and the enqueued time of one that arrived before.
    Only Capture's events that arrive at LastModified can be that far apart.
    """
    masks: dict[tuple[str, str], NDArray[np.bool_]] = {}
    for alias, blobs in planned_blobs(pipeline, slices).items():
        section = pipeline.section(alias)
        if not isinstance(section, CaptureInput) or _by_enqueued_time(section):
            continue
        usual = ticks.from_seconds(section.interval_seconds) + DUPLICATE_HORIZON
        old = [
            int(enqueued[is_old].min())
            for blob in blobs
            for _, enqueued in [_numbers(section, blob)]
            for is_old in [(enqueued != UNKNOWN) & (enqueued < blob.arrival - usual)]
            if is_old.any()
        ]
        if old:
            length = slice_length(pipeline)
            earlier = slices_between(min(old) // length * length, max(slice_.end for slice_ in slices), length)
            copies = _copies(section, planned_blobs(pipeline, list(earlier))[alias])
            masks |= {(alias, name): mask for name, mask in copies.items()}
    return masks


def _copies(section: Input, blobs: Sequence[PinnedBlob]) -> dict[str, NDArray[np.bool_]]:
    """Return which events of each blob arrived before, or nothing if all of them did within DUPLICATE_HORIZON."""
    arrived: dict[tuple[str, int, int], int] = {}
    copies: dict[str, NDArray[np.bool_]] = {}
    is_far = False
    for blob in sorted(blobs, key=lambda pinned_blob: (pinned_blob.arrival, pinned_blob.blob.name)):
        numbers, enqueued = _numbers(section, blob)
        events = [(blob.partition, *event) for event in zip(numbers.tolist(), enqueued.tolist(), strict=True)]
        mask = np.array([event in arrived for event in events], bool)
        is_far |= any(blob.arrival - arrived[event] > DUPLICATE_HORIZON for event in events if event in arrived)
        arrived = {event: blob.arrival for event in events} | arrived
        if mask.any():
            copies[blob.blob.name] = mask
    return copies if is_far else {}


def _numbers(section: Input, pinned_blob: PinnedBlob) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return sequence numbers and enqueued times of the events of a blob; none if it is damaged."""
    content = open_container(section.container).read(pinned_blob.blob)
    try:
        events = section.reader(()).read(pinned_blob, content, ())
    except DamagedBlobError:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    return events.number, events.enqueued


def _left(section: Input, blobs: Sequence[PinnedBlob], kept: Kept) -> list[PinnedBlob]:
    """Return the blobs that a copy has."""
    until, since = kept.until, None if _by_enqueued_time(section) else kept.since
    return [
        blob
        for blob in blobs
        if (until is None or blob.blob.last_modified <= until) and (since is None or blob.blob.last_modified >= since)
    ]


def _kept_events(section: Input, blob: PinnedBlob, file: Path, kept: Kept) -> NDArray[np.bool_] | None:
    """Return which events of a blob a copy has; None for all."""
    without = kept.without.get((section.alias, blob.blob.name))
    mask = None if without is None else ~without
    if kept.since is not None and _by_enqueued_time(section):
        try:
            enqueued = section.reader(()).read(blob, file.read_bytes(), (ENQUEUED,)).metadata[ENQUEUED].to_numpy()
        except DamagedBlobError:
            return None
        arrived = enqueued >= ticks.from_datetime(kept.since)
        mask = arrived if mask is None else mask & arrived
    return mask


def _only(content: bytes, mask: NDArray[np.bool_]) -> bytes:
    """Return an Avro file with the records of a mask."""
    reader = fastavro.reader(io.BytesIO(content))
    records = [record for record, is_kept in zip(reader, mask, strict=True) if is_kept]
    file = io.BytesIO()
    fastavro.writer(file, reader.writer_schema, records, codec=reader.metadata.get("avro.codec", "null"))
    return file.getvalue()


def _date(file: Path, time: datetime) -> None:
    os.utime(file, (time.timestamp(), time.timestamp()))


def _by_enqueued_time(section: Input) -> bool:
    return section.arrival_time is ArrivalTime.EVENT_ENQUEUED
