"""Pin everything that a run reads in a manifest: the same manifest gives the same rows."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from recapture.archive.definitions import RunDefinition, digest_of
from recapture.archive.pinning import PlannedInput, digest_of_blobs, pin_input
from recapture.archive.references import PinnedVersion, PlannedReference, content_of, pin_reference
from recapture.errors import RunError
from recapture.process.versions import MANIFEST_FORMAT, require_format
from recapture.storage import Archive
from recapture.time_model import ticks
from recapture.time_model.slices import Arrivals, Slice

T = TypeVar("T")


class DamagedManifestError(RunError):
    """A manifest that Recapture did not write as it is."""


_DIGITS = 16
"""Length of the digests in `slice_read`."""


@dataclass(frozen=True)
class RunSlice:
    """A slice of a run."""

    slice: Slice
    digest: str
    """SHA-256 of what decides the slice's rows: its bounds, the run's definition, and the blobs that it reads."""


@dataclass(frozen=True)
class Manifest:
    """Everything that a run reads, and the digest of the definition with which it was planned."""

    run: str
    pipeline: str
    engine: str
    definition_digest: str
    """SHA-256 of what decides the rows besides the blobs: `RunDefinition.digest`."""
    slices: tuple[RunSlice, ...]
    inputs: tuple[PlannedInput, ...]
    """Inputs by alias. Each has the same slices as the run."""
    references: tuple[PlannedReference, ...] = ()
    """Reference data by alias."""
    format: int = MANIFEST_FORMAT
    definition: dict[str, Any] | None = field(default=None, compare=False, repr=False)
    """Content of `definition_digest`: `RunDefinition.digest_content`; None in manifests of earlier versions."""

    @property
    def digest(self) -> str:
        """SHA-256 of the slices' digests: equal for runs that read the same and compute the same."""
        return digest_of([run_slice.digest for run_slice in self.slices])

    @property
    def blob_count(self) -> int:
        """Number of blobs of all inputs; those of reference data do not count."""
        return sum(len(planned.blobs) for planned in self.inputs)

    @property
    def pinned_count(self) -> int:
        """Number of blobs of all inputs and of versions of reference data."""
        return self.blob_count + sum(len(reference.versions) for reference in self.references)

    @property
    def size(self) -> int:
        """Size of the blobs of all inputs, in bytes; that of reference data does not count."""
        return sum(planned.size for planned in self.inputs)

    @property
    def reads(self) -> list[str]:
        """What each slice reads: `slice_read`."""
        return [
            slice_read(
                {planned.alias: planned.slices[number].arrivals for planned in self.inputs},
                {planned.alias: planned.slices[number].digest for planned in self.inputs},
                self.references,
                run_slice.slice,
            )
            for number, run_slice in enumerate(self.slices)
        ]

    @property
    def incomplete_slices(self) -> set[str]:
        """Starts of the slices of which Capture may not have written everything, in ISO 8601."""
        planned_slices = (planned_slice for planned in self.inputs for planned_slice in planned.slices)
        return {ticks.to_text(planned.slice.start) for planned in planned_slices if planned.incomplete_partitions}

    def input(self, alias: str) -> PlannedInput:
        """Return what the run reads of one of its inputs."""
        return next(planned for planned in self.inputs if planned.alias == alias)

    def reference(self, alias: str) -> PlannedReference:
        """Return the versions of reference data that the run reads."""
        return next(reference for reference in self.references if reference.alias == alias)

    def to_json(self) -> bytes:
        """Return the manifest as JSON: the digests of the run and of the content, the definition, then the content.

        The digests do not depend on the layout of the JSON. The definition has a digest of its own in the content.
        """
        content = _content(self)
        header: dict[str, Any] = {"digest": self.digest, "content_digest": hashlib.sha256(content).hexdigest()}
        if self.definition is not None:
            header["definition"] = self.definition
        return b"".join([json.dumps(header, indent=1).encode()[:-2], b",", memoryview(content)[1:]])


@dataclass(frozen=True)
class _Seal:
    """The format and the digest that a written manifest states."""

    content_digest: str
    format: int | None = None


@cache
def _adapter(type_: type[T]) -> TypeAdapter[T]:
    """Return the adapter of a type, which takes milliseconds to make, and which no task needs."""
    return TypeAdapter(type_)


def from_json(content: bytes) -> Manifest:
    """Return the manifest of `Manifest.to_json`.

    Raise FormatError if another version wrote it, and DamagedManifestError if it does not match its digests.
    """
    try:
        seal = _adapter(_Seal).validate_json(content)
        require_format(seal.format, MANIFEST_FORMAT, "the run's manifest")
        manifest = _adapter(Manifest).validate_json(content)
    except ValidationError as error:
        raise DamagedManifestError(
            "the run's manifest cannot be read: it is damaged or was written by another version; plan again"
        ) from error
    _require_unchanged(manifest, seal.content_digest)
    return manifest


def _content(manifest: Manifest) -> bytes:
    return _adapter(Manifest).dump_json(manifest, by_alias=True, indent=1, exclude={"definition"})


def _require_unchanged(manifest: Manifest, content_digest: str) -> None:
    """Raise RunError if the manifest does not match its digests: it would compute other rows under the run's name."""
    slices = [run_slice.slice for run_slice in manifest.slices]
    unchanged = (
        content_digest == hashlib.sha256(_content(manifest)).hexdigest()
        and all(_has_slices(planned, slices) for planned in manifest.inputs)
        and manifest.slices == _run_slices(manifest.definition_digest, slices, manifest.inputs, manifest.references)
        and manifest.run.endswith(f"-{manifest.digest[:12]}")
        and (manifest.definition is None or manifest.definition_digest == digest_of(manifest.definition))
    )
    if not unchanged:
        raise DamagedManifestError(
            f"the manifest of run {manifest.run} does not match its digests, so it was edited: use the one in the run "
            "files, or plan again"
        )


def _has_slices(planned: PlannedInput, slices: Sequence[Slice]) -> bool:
    """Return whether an input has these slices, each with the digest of its blobs."""
    blobs = planned.blobs_by_slice()
    return [planned_slice.slice for planned_slice in planned.slices] == slices and all(
        planned_slice.digest == digest_of_blobs(next(blobs)) for planned_slice in planned.slices
    )


def pin_blobs(
    definition: RunDefinition, containers: Mapping[str, Archive], slices: Iterable[Slice], now: datetime
) -> Manifest:
    """Return the manifest of these slices: list the containers, given by alias, and pin what the slices need.

    Errors are those of `pin_input` and `pin_reference`.
    """
    slices = list(slices)
    inputs = tuple(
        pin_input(input_definition, containers[input_definition.alias], slices, now)
        for input_definition in sorted(definition.inputs, key=attrgetter("alias"))
    )
    look_back = max(input_definition.look_back for input_definition in definition.inputs)
    references = tuple(
        pin_reference(reference, containers[reference.alias], slices, look_back)
        for reference in sorted(definition.references, key=attrgetter("alias"))
    )
    run_slices = _run_slices(definition.digest, slices, inputs, references)
    digest = digest_of([run_slice.digest for run_slice in run_slices])
    start, end = slices[0].start, slices[-1].end
    return Manifest(
        run=f"{ticks.to_compact_text(start)}-{ticks.to_compact_text(end)}-{digest[:12]}",
        pipeline=definition.name,
        engine=definition.engine,
        definition_digest=definition.digest,
        slices=run_slices,
        inputs=inputs,
        references=references,
        definition=definition.digest_content,
    )


def slice_read(
    arrivals: Mapping[str, Arrivals], digests: Mapping[str, str], references: Iterable[PlannedReference], slice_: Slice
) -> str:
    """Return what a slice reads, as short JSON: two slices with the same one read the same blobs.

    It has the arrivals of each input with the digest of their blobs, and a digest of each reference data's versions.
    `arrivals` and `digests` are by the alias of the input.
    """
    inputs = {alias: [range_.first, range_.last, digests[alias][:_DIGITS]] for alias, range_ in arrivals.items()}
    versions = {reference.alias: versions_read(reference.needed(slice_, slice_)) for reference in references}
    return json.dumps({"inputs": inputs, "references": versions}, sort_keys=True, separators=(",", ":"))


def versions_read(versions: Iterable[PinnedVersion]) -> str:
    """Return the digest of reference data's versions in `slice_read`."""
    return digest_of(content_of(versions))[:_DIGITS]


def arrivals_read(read: str) -> dict[str, Arrivals]:
    """Return the arrivals that a slice read, by the alias of the input; `read` is what `slice_read` returned."""
    return {alias: Arrivals(first, last) for alias, (first, last, _) in json.loads(read)["inputs"].items()}


def _run_slices(
    definition_digest: str,
    slices: Sequence[Slice],
    inputs: Sequence[PlannedInput],
    references: Sequence[PlannedReference],
) -> tuple[RunSlice, ...]:
    return tuple(
        RunSlice(
            slice_,
            digest_of(
                [
                    definition_digest,
                    slice_.start,
                    slice_.end,
                    {planned.alias: planned.slices[number].digest for planned in inputs},
                    {reference.alias: reference.digest_content(slice_) for reference in references},
                ]
            ),
        )
        for number, slice_ in enumerate(slices)
    )
