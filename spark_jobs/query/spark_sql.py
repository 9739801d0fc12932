"""The Spark SQL of a query: events to window ends, to partial aggregates, to groups, to published rows."""

from dataclasses import dataclass

from spark_jobs.query.aggregates import Aggregate
from spark_jobs.query.expressions import quoted_name
from spark_jobs.time_model.ticks import TICKS_PER_MICROSECOND, UNIX_EPOCH
from spark_jobs.time_model.windows import HoppingWindow


@dataclass(frozen=True)
class Plan:
    """What to compute. Keys are Spark SQL over an event; outputs and having are over `_k0`… and `_r0`…"""

    window: HoppingWindow
    where: str | None
    keys: list[str]
    aggregates: list[Aggregate]
    having: str | None
    outputs: list[tuple[str, str]]
    """SQL and name of each published column."""


def instant(ticks: str) -> str:
    """Ticks as a Spark timestamp."""
    return f"timestamp_micros(({ticks} - {UNIX_EPOCH}L) div {TICKS_PER_MICROSECOND}L)"


def spark_sql(plan: Plan) -> str:
    """The statement over the view `events`, as CompiledQuery describes it."""
    keys = [f"`_k{index}`" for index in range(len(plan.keys))]
    return (
        f"SELECT {', '.join(f'{sql} AS {quoted_name(name)}' for sql, name in plan.outputs)},"
        f" {instant('`_slice_start`')} AS `slice_start`\n"
        f"FROM (\n{_groups(plan, keys)}\n) AS `groups`" + (f"\nWHERE {plan.having}" if plan.having else "")
    )


def _groups(plan: Plan, keys: list[str]) -> str:
    by = ", ".join(["`_slice_start`", "`_window_end`", *keys])
    results = [f"{each.merged(f'_p{index}')} AS `_r{index}`" for index, each in enumerate(plan.aggregates)]
    return f"SELECT {', '.join([by, *results])}\nFROM (\n{_partials(plan, keys)}\n) AS `partials`\nGROUP BY {by}"


def _partials(plan: Plan, keys: list[str]) -> str:
    by = ", ".join(["`_slice_start`", "`_partition`", "`_window_end`", *keys])
    partials = [
        item for index, each in enumerate(plan.aggregates) for item in each.partials(f"`_a{index}`", f"_p{index}")
    ]
    return (
        f"SELECT {', '.join([by, *partials])}\nFROM (\n{_windowed(plan)}\n) AS `windowed`\n"
        f"WHERE `_window_end` > `_slice_start` AND `_window_end` <= `_slice_end`\nGROUP BY {by}"
    )


def _windowed(plan: Plan) -> str:
    """Each event once per window that holds it, with its keys and the arguments of the aggregates."""
    names = [f"_k{index}" for index in range(len(plan.keys))] + [f"_a{index}" for index in range(len(plan.aggregates))]
    values = [*plan.keys, *(each.prepared() for each in plan.aggregates)]
    computed = [f"{value} AS `{name}`" for value, name in zip(values, names, strict=True)]
    kept = ["`_slice_start`", "`_slice_end`", "`_partition`"]
    where = f"\nWHERE {plan.where}" if plan.where else ""
    first, last = _window_ends(plan.window)
    if last is None:
        return f"SELECT {', '.join([*kept, f'{first} AS `_window_end`', *computed])}\nFROM `events`{where}"
    ends = f"sequence(`_first_end`, `_last_end`, {plan.window.hop}L)"
    window_end = f"explode(CASE WHEN `_first_end` <= `_last_end` THEN {ends} ELSE array() END) AS `_window_end`"
    bounds = [f"{first} AS `_first_end`", f"{last} AS `_last_end`"]
    return (
        f"SELECT {', '.join([*kept, window_end, *(f'`{name}`' for name in names)])}\nFROM (\n"
        f"SELECT {', '.join([*kept, *bounds, *computed])}\nFROM `events`{where}\n) AS `bounded`"
    )


def _window_ends(window: HoppingWindow) -> tuple[str, str | None]:
    """The first and last E = offset + k * hop with t <= E < t + size, clipped to the slice where there are several.

    A tumbling window has one such end, and None for the last.
    """
    hop, offset = f"{window.hop}L", f"{window.offset % window.hop}L"
    first = f"(`_system_timestamp` + pmod({offset} - `_system_timestamp`, {hop}))"
    if window.hop == window.size:
        return first, None
    latest = f"least(`_system_timestamp` + {window.size - 1}L, `_slice_end`)"
    after_start = f"`_slice_start` + {hop} - pmod(`_slice_start` - {offset}, {hop})"
    return f"greatest({first}, {after_start})", f"({latest} - pmod({latest} - {offset}, {hop}))"
