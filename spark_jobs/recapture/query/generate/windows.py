"""The windows of a GROUP BY in Spark SQL: from the partial aggregates of panes to the windows that hold them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from recapture.query.generate.aggregates import Aggregate
from recapture.query.generate.values import quoted_text
from recapture.time_model.windows import SessionWindow, Window

SLICE = ("`_slice_start`", "`_slice_end`")
UNANCHORED = "`_unanchored`"


@dataclass(frozen=True)
class GroupedWindow:
    """One window of a GROUP BY; `partition_by` are the keys, by number, that have sessions of their own."""

    window: Window
    id: str | None
    partition_by: tuple[int, ...] = ()


@dataclass(frozen=True)
class Grouping:
    """A GROUP BY: keys and aggregates are over a row, `having` over `_k0`… and `_r0`…"""

    windows: tuple[GroupedWindow, ...]
    keys: tuple[str, ...]
    aggregates: tuple[Aggregate, ...]
    having: str | None

    @property
    def unanchored(self) -> bool:
        return any(isinstance(each.window, SessionWindow) for each in self.windows)


def ends(size: int, hop: int, offset: int, pane: int, ahead: int) -> str:
    """Every E = offset + k * hop with pane <= E <= pane - its length + size, clipped to what is wanted."""
    first = f"greatest(`_pane` + pmod({offset}L - `_pane`, {hop}L), `_slice_start` - {ahead}L + {hop}L"
    first += f" - pmod(`_slice_start` - {ahead}L - {offset}L, {hop}L))"
    latest = f"least(`_pane` + {size - pane}L, `_slice_end`)"
    last = f"({latest} - pmod({latest} - {offset}L, {hop}L))"
    return f"explode(CASE WHEN {first} <= {last} THEN sequence({first}, {last}, {hop}L) ELSE array() END)"


def sliding(
    panes: str, grouping: Grouping, size: int, ahead: int, kept: list[str], flag: list[str], unanchored: bool
) -> str:
    """Panes are instants. Where a group's content changes, at an instant or a size after it, a window ends.

    Time goes by stretches of one size. A window that ends in one holds its panes up to the end, and the panes of the
    stretch before from the window's start on.
    """
    if all(each.runs for each in grouping.aggregates):
        return _sliding_by_halves(panes, grouping, size, kept, flag, unanchored)
    same = " AND ".join(
        f"`panes`.{column} <=> `ends`.{column}" for column in ("`_slice_start`", *keys(grouping), "`_stretch`")
    )
    stretch = f"explode(array(`_pane` div {size}L, `_pane` div {size}L + 1L)) AS `_stretch`"
    ends = (
        f"SELECT DISTINCT {', '.join(['`_slice_start`', *keys(grouping), '`_window_end`'])},"
        f" `_window_end` div {size}L AS `_stretch`\n"
        f"FROM (SELECT *, explode(array(`_pane`, `_pane` + {size}L)) AS `_window_end` FROM (\n{panes}\n) AS `panes`)\n"
        f"WHERE `_window_end` > `_slice_start` - {ahead}L AND `_window_end` <= `_slice_end`"
    )
    columns = [f"`panes`.{column}" if " AS " not in column else column for column in [*kept, *flag]]
    return (
        f"SELECT {', '.join([*columns[: len(kept)], '`ends`.`_window_end`', *columns[len(kept) :]])}\n"
        f"FROM (SELECT *, {stretch} FROM (\n{panes}\n) AS `panes`) AS `panes`\n"
        f"JOIN (\n{ends}\n) AS `ends`\n"
        f"ON {same} AND `_pane` <= `_window_end` AND `_pane` > `_window_end` - {size}L"
    )


def _sliding_by_halves(
    panes: str, grouping: Grouping, size: int, kept: list[str], flag: list[str], unanchored: bool
) -> str:
    """The two halves of each window from running partials, so that no window looks at all its panes.

    Half 1 runs up to the window's end in its stretch, half 0 down to its start in the stretch before; each end stands
    in both timelines, and takes what ran last before it.
    """
    by = [*SLICE, *keys(grouping)]
    together = [item for place, each in enumerate(grouping.aggregates) for item in each.together(f"_p{place}")]
    told = [f"bool_or({UNANCHORED}) AS {UNANCHORED}"] if unanchored else []
    instants = (
        f"SELECT {', '.join([*by, '`_pane`', *together, *told])}\nFROM (\n{panes}\n) AS `panes`\n"
        f"GROUP BY {', '.join([*by, '`_pane`'])}"
    )
    stretch = f"`_pane` div {size}L"
    within = f"PARTITION BY {', '.join([*by, stretch])} ORDER BY `_pane`"
    up = _running(grouping, f"({within} ROWS UNBOUNDED PRECEDING)", unanchored)
    down = _running(grouping, f"({within} DESC ROWS UNBOUNDED PRECEDING)", unanchored)
    running = f"SELECT *, {stretch} AS `_at_stretch`, {up} AS `_up`, {down} AS `_down`\nFROM (\n{instants}\n)"
    nothing, end, later = "CAST(NULL AS BIGINT)", "`_pane`", f"`_pane` + {size}L"
    places = [
        ("1", "`_at_stretch`", "`_pane`", "0", nothing, "`_up`"),
        ("1", "`_at_stretch`", end, "1", end, "NULL"),
        ("1", "`_at_stretch` + 1L", later, "1", later, "NULL"),
        ("0", "`_at_stretch`", "- `_pane`", "1", nothing, "`_down`"),
        ("0", "`_at_stretch` - 1L", f"{size}L - `_pane`", "0", end, "NULL"),
        ("0", "`_at_stretch`", "- `_pane`", "0", later, "NULL"),
    ]
    names = ("_half", "_stretch", "_at", "_turn", "_window_end", "_run")
    structs = ", ".join(_struct(zip(names, place, strict=True)) for place in places)
    placed = f"SELECT {', '.join(by)}, inline(array({structs}))\nFROM (\n{running}\n)"
    timeline = f"PARTITION BY {', '.join([*by, '`_half`', '`_stretch`'])} ORDER BY `_at`, `_turn`"
    held = (
        f"SELECT *, last(`_run`, true) OVER ({timeline} ROWS UNBOUNDED PRECEDING) AS `_held`,"
        f" lag(`_window_end`) OVER ({timeline}) AS `_before`\nFROM (\n{placed}\n)"
    )
    partials = partial_names(grouping)
    columns = {"`_partition`": "'' AS `_partition`", "`_pane`": "CAST(`_half` AS BIGINT) AS `_pane`"}
    columns |= {name: f"`_held`.{name} AS {name}" for name in [*partials, UNANCHORED]}
    selected = [columns.get(column, column) for column in [*kept, "`_window_end`", *flag]]
    return (
        f"SELECT {', '.join(selected)}\nFROM (\n{held}\n)\n"
        "WHERE `_window_end` IS NOT NULL AND `_held` IS NOT NULL AND NOT (`_window_end` <=> `_before`)"
    )


def _running(grouping: Grouping, window: str, unanchored: bool) -> str:
    """A struct of all partials as they run."""
    over = f"OVER {window}"
    fields = [part for place, each in enumerate(grouping.aggregates) for part in each.running(f"_p{place}", over)]
    fields += [("_unanchored", f"bool_or({UNANCHORED}) {over}")] if unanchored else []
    return _struct([("_here", "true"), *fields])


def _struct(fields: Iterable[tuple[str, str]]) -> str:
    return f"named_struct({', '.join(f'{quoted_text(name)}, {sql}' for name, sql in fields)})"


def sessions(
    panes: str, window: SessionWindow, partition_by: tuple[int, ...], ahead: int, kept: list[str], unanchored: bool
) -> str:
    """Panes are instants. A gap longer than the timeout opens a session; in a stretch without such a gap sessions are
    cut at the first multiple of maxDuration that is at least one maxDuration behind the opening, then at every second.

    What opens within a timeout of where reading began may have begun earlier: it is cut at even multiples, so that
    neighbouring slices agree, and marked.
    """
    timeout, longest, twice = f"{window.timeout}L", f"{window.longest}L", f"{2 * window.longest}L"
    by = ", ".join(["`_slice_start`", *(f"`_k{place}`" for place in partition_by)])
    over = f"(PARTITION BY {by} ORDER BY `_pane`)"
    opens = f"coalesce(`_pane` - lag(`_pane`) OVER {over} > {timeout}, true)"
    gaps = f"SELECT *, {opens} AS `_opens`\nFROM (\n{panes}\n) AS `panes`"
    opened = f"SELECT *, max(CASE WHEN `_opens` THEN `_pane` END) OVER {over} AS `_opened`\nFROM (\n{gaps}\n)"
    read_from = f"(`_slice_start` - {ahead + window.look_back}L)"
    known = f"`_opened` > {read_from} + {timeout}"
    first = (
        f"SELECT *, NOT ({known}) AS `_unknown`, CASE WHEN {known}"
        f" THEN (`_opened` + {2 * window.longest - 1}L) div {longest} * {longest}"
        f" ELSE (`_opened` + {2 * window.longest - 1}L) div {twice} * {twice} END AS `_first`\nFROM (\n{opened}\n)"
    )
    cut = (
        f"SELECT *, `_first` + greatest(0L, (`_pane` - `_first` + {2 * window.longest - 1}L) div {twice}) * {twice}"
        f" AS `_cut`\nFROM (\n{first}\n)"
    )
    last = f"max(`_pane`) OVER (PARTITION BY {by}, `_opened`, `_cut`)"
    flag = f"{UNANCHORED} OR `_unknown`" if unanchored else "`_unknown`"
    ends = f"least({last} + {timeout}, `_cut`) AS `_window_end`"
    return f"SELECT {', '.join([*kept, ends, f'{flag} AS {UNANCHORED}'])}\nFROM (\n{cut}\n)"


def keys(grouping: Grouping) -> list[str]:
    return [f"`_k{place}`" for place in range(len(grouping.keys))]


def partial_names(grouping: Grouping) -> Iterator[str]:
    for place, each in enumerate(grouping.aggregates):
        for item in each.partials(f"`_a{place}`", f"_p{place}"):
            yield item.rsplit(" AS ", 1)[1]
