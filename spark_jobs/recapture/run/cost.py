"""What a run took, and what another one will take, judging by the runs before it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.filesize import decimal

from recapture.archive.manifest import Manifest
from recapture.definition.pipeline import Pipeline
from recapture.definition.sections import Prices
from recapture.pages.page import duration
from recapture.process.wording import counted
from recapture.run_files.cost import Cost, read_cost
from recapture.run_files.files import RunFiles, range_of_run
from recapture.run_files.planned import files_of
from recapture.storage import in_parallel
from recapture.table.publications import ShownEntry

MOST_RUNS = 16
"""Largest number of runs that an estimate reads."""
SAME_LENGTH = 4
"""Largest number of them with the same number of hours: runs of several lengths tell what a run costs by itself."""
_DEPENDS_ON = {
    "seconds": "bytes",
    "cpu_seconds": "bytes",
    "read_bytes": "bytes",
    "written_bytes": "bytes",
    "reads": "blobs",
    "writes": "slices",
    "lists": "slices",
}
"""What each quantity grows with."""


def cost_of(files: RunFiles, prices: Prices | None) -> dict[str, Any] | None:
    """Return what a run took, in JSON types; None if that is not known."""
    cost = read_cost(files)
    if cost is None:
        return None
    quantities = _quantities(cost)
    stages = {name: {"seconds": took.seconds, "cpu_seconds": took.cpu_seconds} for name, took in cost.stages.items()}
    return quantities | {"cores": cost.cores} | _money(quantities, prices) | {"stages": stages}


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
    work = {"bytes": manifest.size, "blobs": manifest.blob_count, "slices": len(manifest.slices)}
    quantities = predict(same or alike, work)
    basis = {"runs": len(same or alike), "same_definition": bool(same), "cores": alike[0].cores}
    return quantities | _money(quantities, pipeline.prices) | basis


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
    """Return what a run will take that has to do this `work`: `bytes`, `blobs` and `slices`.

    A quantity is None if a run did not measure it.
    """
    predicted: dict[str, float | None] = {}
    measured = [(cost, _quantities(cost)) for cost in costs]
    for quantity, unit in _DEPENDS_ON.items():
        points = [(getattr(cost, unit), value) for cost, values in measured if (value := values[quantity]) is not None]
        fixed, each = line(points)
        predicted[quantity] = fixed + each * work[unit] if len(points) == len(measured) else None
    return predicted


def line(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the line through points, as its value at 0 and its slope, with the smallest relative errors.

    Neither is negative. If all points have the same place, the line begins at 0: a run of another length is as much
    more expensive as it is longer.
    """
    inverse = [(1 / y, x / y) for x, y in points if y > 0]
    one, other = sum(u for u, _ in inverse), sum(v for _, v in inverse)
    both = sum(u * v for u, v in inverse)
    squares, other_squares = sum(u * u for u, _ in inverse), sum(v * v for _, v in inverse)
    determinant = squares * other_squares - both * both
    if len({x for x, _ in points}) > 1 and determinant > 0:
        fixed = (one * other_squares - other * both) / determinant
        slope = (other * squares - one * both) / determinant
        if min(fixed, slope) >= 0:
            return fixed, slope
        if slope < 0:
            return one / squares, 0.0
    if other_squares:
        return 0.0, other / other_squares
    return (one / squares if squares else 0.0), 0.0


def sentence(cost: Mapping[str, Any]) -> str:
    """Return what a run took, or will take, for a person; `cost` is what `cost_of` or `estimate` returned."""
    parts = [f"{duration(cost['seconds'])} on {counted(cost['cores'], 'core')}"]
    if cost["cpu_seconds"] is not None:
        parts.append(f"{duration(cost['cpu_seconds'])} of CPU")
    if cost["reads"] is not None:
        requests = sum(round(cost[name]) for name in ("reads", "writes", "lists"))
        parts.append(f"{decimal(round(cost['read_bytes']))} read and {decimal(round(cost['written_bytes']))} written")
        parts.append(f"{requests:,} requests")
    if cost["money"] is not None:
        parts.append(f"{cost['money']:.2g} {cost['currency']}")
    return ", ".join(parts)


def _quantities(cost: Cost) -> dict[str, float | None]:
    total = cost.total
    use = dict.fromkeys(("reads", "writes", "lists", "read_bytes", "written_bytes"))
    return {"seconds": total.seconds, "cpu_seconds": total.cpu_seconds, **(asdict(total.use) if total.use else use)}


def _money(quantities: Mapping[str, float | None], prices: Prices | None) -> dict[str, Any]:
    """Return the price of these quantities; None without a price list, or if a quantity that has a price is unknown."""
    if prices is None:
        return {"money": None, "currency": None}
    factors = {
        "seconds": prices.machine_hour / 3600,
        "reads": prices.read_10000 / 10_000,
        "writes": prices.write_10000 / 10_000,
        "lists": prices.list_10000 / 10_000,
        "read_bytes": prices.read_gb / 1e9,
    }
    priced = [(factor, quantities[name]) for name, factor in factors.items() if factor]
    known = [factor * value for factor, value in priced if value is not None]
    return {"money": sum(known) if len(known) == len(priced) else None, "currency": prices.currency}
