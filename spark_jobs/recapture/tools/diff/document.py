"""The difference between what is published and other rows, in JSON types."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recapture import __version__
from recapture.definition.digest import run_definition
from recapture.definition.pipeline import Pipeline
from recapture.definition.sections import Output
from recapture.errors import DefinitionError, RunError
from recapture.process.wording import counted
from recapture.run.plan import pinned
from recapture.run.tables import tables_of
from recapture.run_files.computed import STAGED
from recapture.run_files.files import range_of_run
from recapture.run_files.planned import files_of
from recapture.table.publications import Entry, Publications
from recapture.table.snapshot import File
from recapture.time_model import ticks
from recapture.time_model.slices import Slice
from recapture.tools.diff.files import SliceFiles, StoredFile, output_difference

DIFFERENT = 4
"""Exit code of a comparison that found a difference, or could not compare a slice."""
_GOLDEN_RATIO = (5**0.5 - 1) / 2


@dataclass(frozen=True)
class Other:
    """The rows that what is published is compared with."""

    files: Mapping[tuple[str, str], StoredFile]
    """Files by the alias of the output and slice_start."""
    keys: Mapping[str, tuple[str, ...]]
    """Columns that identify a row, by the alias of the output."""


def staged_by(pipeline: Pipeline, run: str) -> Other:
    """Return the rows that a run staged. Raise RunError if it has staged none, or if its run files are gone."""
    tables = {output.alias: output.table for output in pipeline.outputs}
    return Other(
        {
            (staged.output, staged.slice_start): StoredFile(
                tables[staged.output], File(staged.path, staged.size, staged.rows)
            )
            for staged in files_of(pipeline, run).read(STAGED)
            if staged.output in tables
        },
        {output.alias: pipeline.compiled(output).group_columns for output in pipeline.outputs},
    )


def bounds_of(run: str) -> tuple[int, int]:
    """Return the start and the end of a run's range, in ticks. Raise DefinitionError if this is not the id of a run."""
    bounds = range_of_run(run)
    if bounds is None:
        raise DefinitionError(
            f"{run!r} is not the id of a run: give one such as 20260301T100000Z-20260301T110000Z-0123456789ab"
        )
    return bounds


def sampled(slices: Sequence[Slice], count: int) -> list[Slice]:
    """Return `count` of the slices, or all if there are fewer: one of each of `count` ranges of equal length.

    Their places within the ranges differ, so that a sample of days has different hours of the day. The same slices give
    the same sample.
    """
    if count >= len(slices):
        return list(slices)
    length = len(slices) / count
    return [slices[int((number + number * _GOLDEN_RATIO % 1) * length)] for number in range(count)]


def published_entries(pipeline: Pipeline, slices: Sequence[Slice]) -> dict[str, Entry]:
    """Return the entries of slices in the publications, by slice_start. Raise RunError if none is published."""
    table = tables_of(pipeline).publications
    entries = Publications(table).entries([ticks.to_text(slice_.start) for slice_ in slices])
    if all(entry.current is None for entry in entries.values()):
        first, last = ticks.to_text(slices[0].start), ticks.to_text(slices[-1].end)
        raise RunError(
            f"nothing is published from {first} to {last} in {table.url}: choose a range that recapture status shows"
        )
    return entries


def difference(pipeline: Pipeline, entries: Mapping[str, Entry], other: Other) -> list[dict[str, Any]]:
    """Return the difference of each output between what is published and other rows, in JSON types."""
    differences = (
        output_difference(output.table, output.alias, _key(pipeline, output, other), _files(output, entries, other))
        for output in pipeline.outputs
    )
    return [output_changes.document() for output_changes in differences]


def document(
    pipeline: Pipeline,
    slices: Sequence[Slice],
    of: int,
    after: Mapping[str, Any],
    outputs: Sequence[Mapping[str, Any]],
    warnings: Sequence[str],
) -> dict[str, Any]:
    """Return the document of a difference in slices, which are all or a sample `of` so many; `after` says with what."""
    is_equal = all(output["equal"] for output in outputs)
    return {
        "pipeline": pipeline.name,
        "from": ticks.to_text(slices[0].start),
        "to": ticks.to_text(slices[-1].end),
        "slices": len(slices),
        "of_slices": of,
        "after": dict(after),
        "equal": is_equal,
        "outputs": list(outputs),
        "warnings": list(warnings),
        "version": __version__,
        "exit_code": 0 if is_equal else DIFFERENT,
    }


def of_other_definition(pipeline: Pipeline, entries: Mapping[str, Entry]) -> list[str]:
    """Return the published slices that another definition or version of Recapture computed, by slice_start."""
    digest = run_definition(pipeline).digest
    return [start for start, entry in entries.items() if entry.current and entry.current.definition != digest]


def with_changed_blobs(pipeline: Pipeline, slices: Sequence[Slice], entries: Mapping[str, Entry]) -> list[str]:
    """Return the published slices that would read other blobs now than they did, by slice_start.

    Slices of another definition are left out: what they would read now says nothing. This lists the archive.
    """
    digest = run_definition(pipeline).digest
    reads = {
        ticks.to_text(run_slice.slice.start): read
        for range_ in ranges_of(slices)
        for manifest in [pinned(pipeline, range_)]
        for run_slice, read in zip(manifest.slices, manifest.reads, strict=True)
    }
    published = {start: entry.current for start, entry in entries.items() if entry.current is not None}
    return [
        start
        for start, current in published.items()
        if current.definition == digest and current.read is not None and current.read != reads[start]
    ]


def ranges_of(slices: Iterable[Slice]) -> Iterator[list[Slice]]:
    """Yield the slices in groups, in each of which a slice begins at the end of the one before it."""
    range_: list[Slice] = []
    for slice_ in slices:
        if range_ and range_[-1].end != slice_.start:
            yield range_
            range_ = []
        range_.append(slice_)
    if range_:
        yield range_


def trial_warnings(pipeline: Pipeline, slices: Sequence[Slice], entries: Mapping[str, Entry]) -> Iterator[str]:
    """Yield why published rows may differ from tried ones although nothing is tried that changes them."""
    if starts := of_other_definition(pipeline, entries):
        yield (
            f"{counted(len(starts), 'slice was', 'slices were')} published with another definition or another version "
            f"of Recapture, such as {starts[0]}: rows may differ for that reason, too"
        )
    if starts := with_changed_blobs(pipeline, slices, entries):
        yield (
            f"the blobs of {counted(len(starts), 'slice')} have changed since the slice was published, such as those "
            f"of {starts[0]}: rows may differ for that reason, too"
        )


def _key(pipeline: Pipeline, output: Output, other: Other) -> tuple[str, ...]:
    """Return the columns that identify a row on both sides."""
    return tuple(name for name in pipeline.compiled(output).group_columns if name in other.keys[output.alias])


def _files(output: Output, entries: Mapping[str, Entry], other: Other) -> Iterator[SliceFiles]:
    """Yield the files of each slice on both sides."""
    for start, entry in entries.items():
        held = entry.current and entry.current.files.get(output.alias)
        before = StoredFile(output.table, held) if held else None
        yield SliceFiles(start, before, other.files.get((output.alias, start)))
