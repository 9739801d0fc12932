"""Session windows in Spark SQL."""

from collections.abc import Sequence

from recapture.query.generate.grouping import UNANCHORED
from recapture.query.generate.panes import Panes
from recapture.query.generate.select_items import SelectItem, select_list
from recapture.query.generate.trees import template
from recapture.time_model.windows import SessionWindow


def sessions(panes: Panes, window: SessionWindow, partition_by: Sequence[int], items: list[SelectItem]) -> str:
    """Return the panes, each in the session that holds it.

    Panes are instants. A gap longer than the timeout opens a session. Within a stretch without such a gap, sessions are
    cut at the first multiple of maxDuration that is at least one maxDuration after the opening, then at every second
    multiple.

    What opens within a timeout of where reading began may have begun earlier. It is cut at even multiples, so that
    neighbouring slices agree, and marked `_unanchored`.
    """
    max_duration = window.max_duration
    timeout, longest, twice = f"{window.timeout}L", f"{max_duration}L", f"{2 * max_duration}L"
    by = ", ".join(["`_slice_start`", *(f"`_k{key}`" for key in partition_by)])
    over = f"(PARTITION BY {by} ORDER BY `_pane`)"
    opens = f"coalesce(`_pane` - lag(`_pane`) OVER {over} > {timeout}, true)"
    gaps = f"SELECT *, {opens} AS `_opens`\nFROM (\n{panes.sql}\n) AS `panes`"
    opened = f"SELECT *, max(CASE WHEN `_opens` THEN `_pane` END) OVER {over} AS `_opened`\nFROM (\n{gaps}\n)"
    read_from = f"(`_slice_start` - {panes.extra_look_back + window.look_back}L)"
    known = f"`_opened` > {read_from} + {timeout}"
    first = (
        f"SELECT *, NOT ({known}) AS `_unknown`, CASE WHEN {known}"
        f" THEN (`_opened` + {2 * max_duration - 1}L) div {longest} * {longest}"
        f" ELSE (`_opened` + {2 * max_duration - 1}L) div {twice} * {twice} END AS `_first`\nFROM (\n{opened}\n)"
    )
    cut = (
        f"SELECT *, `_first` + greatest(0L, (`_pane` - `_first` + {2 * max_duration - 1}L) div {twice}) * {twice}"
        f" AS `_cut`\nFROM (\n{first}\n)"
    )
    last = f"max(`_pane`) OVER (PARTITION BY {by}, `_opened`, `_cut`)"
    window_end = SelectItem("_window_end", template(f"least({last} + {timeout}, `_cut`)"))
    unknown = template("`_unanchored` OR `_unknown`" if panes.source_unanchored else "`_unknown`")
    return f"SELECT {select_list([*items, window_end, SelectItem(UNANCHORED.name, unknown)])}\nFROM (\n{cut}\n)"
