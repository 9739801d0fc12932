"""What a run took, in JSON types and as a sentence."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from rich.filesize import decimal

from recapture.definition.sections import Prices
from recapture.pages.page import duration
from recapture.process.wording import counted
from recapture.run_files.cost import Cost, read_cost
from recapture.run_files.files import RunFiles


def cost_of(files: RunFiles, prices: Prices | None) -> dict[str, Any] | None:
    """Return what a run took, in JSON types; None if that is not known."""
    cost = read_cost(files)
    if cost is None:
        return None
    quantities = quantities_of(cost)
    stages = {name: {"seconds": took.seconds, "cpu_seconds": took.cpu_seconds} for name, took in cost.stages.items()}
    return quantities | {"cores": cost.cores} | money_of(quantities, prices) | {"stages": stages}


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


def quantities_of(cost: Cost) -> dict[str, float | None]:
    """Return what a run took of everything that is measured; None for what was not."""
    total = cost.total
    use = dict.fromkeys(("reads", "writes", "lists", "read_bytes", "written_bytes"))
    return {"seconds": total.seconds, "cpu_seconds": total.cpu_seconds, **(asdict(total.use) if total.use else use)}


def money_of(quantities: Mapping[str, float | None], prices: Prices | None) -> dict[str, Any]:
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
