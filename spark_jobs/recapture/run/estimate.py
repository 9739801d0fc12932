"""What a run will take, judging by the runs before it.

What a run takes has parts: one for the run itself, one for each slice, and one for each byte or blob that it reads. The
runs before it tell the parts apart as far as they differ in length and in size.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recapture.archive.manifest import Manifest
from recapture.definition.pipeline import Pipeline
from recapture.run.cost import money_of, quantities_of
from recapture.run_files.cost import Cost, prefixes_of_slices, read_cost
from recapture.run_files.files import range_of_run
from recapture.run_files.planned import files_of
from recapture.storage import in_parallel
from recapture.table.publications import ShownEntry

MOST_RUNS = 16
"""Largest number of runs that an estimate reads."""
SAME_LENGTH = 4
"""Largest number of them with the same number of hours: runs of several lengths tell what a run costs by itself."""
OTHER_PARTS = 10
"""Weight of the squared errors if other parts are chosen than those of the run by itself and of the first unit.

With few runs, more parts always fit better, and often tell less about another run.
"""
_ROUNDS = 3
"""Number of times that is computed what each run is expected to take, from the parts that the last round found."""
_NO_ERROR = 1e-12
"""Sum of squared errors that stands for none."""
_DEPENDS_ON = {
    "seconds": ("bytes", "slices"),
    "cpu_seconds": ("bytes", "slices"),
    "read_bytes": ("bytes", "slices"),
    "written_bytes": ("bytes", "slices"),
    "reads": ("blobs", "slices"),
    "writes": ("slices",),
    "lists": ("prefixes",),
}
"""What each quantity grows with; the first is preferred if the runs do not tell them apart."""

Floats = NDArray[np.float64]


def estimate(
    pipeline: Pipeline, manifest: Manifest, engine: str, cores: int | None, entries: Mapping[str, ShownEntry]
) -> dict[str, Any] | None:
    """Return what a run of a manifest will take, in JSON types; None if no run before it was measured.

    `entries` are those of the publications' snapshot. Only runs with the same engine count. If there are any with the
    same number of `cores`, or of the same definition, only these count.
    """
    costs = in_parallel(lambda run: read_cost(files_of(pipeline, run)), runs_to_read(entries.values()))
    known = [cost for cost in costs if cost is not None and cost.engine == engine]
    if not known:
        return None
    alike = [cost for cost in known if cost.cores == cores] or [cost for cost in known if cost.cores == known[0].cores]
    same = [cost for cost in alike if cost.definition == manifest.definition_digest]
    work = {
        "bytes": manifest.size,
        "blobs": manifest.blob_count,
        "slices": len(manifest.slices),
        "prefixes": prefixes_of_slices(manifest),
    }
    quantities = predict(same or alike, work)
    basis = {"runs": len(same or alike), "same_definition": bool(same), "cores": alike[0].cores}
    return quantities | money_of(quantities, pipeline.prices) | basis


def runs_to_read(entries: Iterable[ShownEntry]) -> list[str]:
    """Return the runs that an estimate reads, the newest first, of as many lengths as there are."""
    newest = sorted((entry for entry in entries if entry.run), key=lambda entry: entry.published or "", reverse=True)
    lengths: dict[int, int] = {}
    runs = []
    for run in dict.fromkeys(entry.run for entry in newest if entry.run):
        start, end = range_of_run(run) or (0, 0)
        lengths[end - start] = lengths.get(end - start, 0) + 1
        if lengths[end - start] <= SAME_LENGTH:
            runs.append(run)
    return runs[:MOST_RUNS]


def predict(costs: Sequence[Cost], work: Mapping[str, int]) -> dict[str, float | None]:
    """Return what a run will take that has to do this `work`: the fields of `Cost` that _DEPENDS_ON names.

    A quantity is None if a run did not measure it.
    """
    measured = [quantities_of(cost) for cost in costs]
    predicted: dict[str, float | None] = {}
    for quantity, units in _DEPENDS_ON.items():
        values = [known for taken in measured if (known := taken[quantity]) is not None]
        if len(values) < len(costs):
            predicted[quantity] = None
            continue
        known_work = np.array([[getattr(cost, unit) for unit in units] for cost in costs], np.float64)
        fixed, *shares = parts(known_work, np.array(values))
        predicted[quantity] = fixed + sum(part * work[unit] for part, unit in zip(shares, units, strict=True))
    return predicted


def parts(work: Floats, taken: Floats) -> Floats:
    """Return the part of a run by itself, and the part of each unit of work; none is negative.

    `work` has a row for each run, and `taken` has what the runs took. Errors count relative to what a run is expected
    to take, not to what it took: otherwise, those that took little would count most.
    """
    columns = np.column_stack([np.ones(len(work)), work])
    mean = float(taken.mean()) or 1.0
    expected = np.full(len(taken), mean)
    for _ in range(_ROUNDS):
        closest = min(_fits(columns, taken, expected), key=lambda fit: fit.error)
        expected = np.maximum(columns @ closest.parts, mean / 100)
    return min(_fits(columns, taken, expected), key=lambda fit: fit.error * (1 if fit.is_usual else OTHER_PARTS)).parts


class _Fit(NamedTuple):
    """Parts of which none is negative."""

    error: float
    """Sum of the squared errors."""
    parts: Floats
    is_usual: bool
    """Whether only the run by itself and the first unit have a part."""


def _fits(columns: Floats, taken: Floats, expected: Floats) -> Iterator[_Fit]:
    """Yield the fit of each choice of parts that has one. Of equally good ones, the first is the best guess."""
    scale = columns.max(axis=0)
    for chosen in _choices(columns):
        weighted = columns[:, chosen] / scale[chosen] / expected[:, np.newaxis]
        solution, _, rank, _ = np.linalg.lstsq(weighted, taken / expected)
        if rank == len(chosen) and solution.min() >= 0:
            parts = np.zeros(columns.shape[1])
            parts[chosen] = solution / scale[chosen]
            errors = (columns @ parts - taken) / expected
            yield _Fit(float(errors @ errors) + _NO_ERROR, parts, max(chosen) <= 1)


def _choices(columns: Floats) -> list[list[int]]:
    """Return choices of parts: first those with a part of the run by itself, because programs take time to start.

    If all runs have the same number of the last unit, such as slices, no choice has one: twice the slices take twice as
    much. Runs without any work have only a part of the run.
    """
    runs, count = columns.shape
    units = [list(chosen) for size in range(1, count) for chosen in itertools.combinations(range(1, count), size)]
    if len(np.unique(columns[:, -1])) > 1:
        units = [*([0, *chosen] for chosen in units), *units, [0]]
    return [chosen for chosen in units if len(chosen) <= runs and columns[:, chosen].any(axis=0).all()] or [[0]]
