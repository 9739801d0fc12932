"""Session windows in Spark SQL (docs/time-model.md, section 4.2)."""

from collections.abc import Sequence

from recapture.query.generate.panes import PaneStatement
from recapture.query.generate.select_items import UNANCHORED, SqlItem, select_list
from recapture.time_model.windows import ALTERNATING_SPANS, SessionWindow


def sessions(panes: PaneStatement, window: SessionWindow, partition_by: Sequence[int], items: list[SqlItem]) -> str:
    """Return the panes, each in the session that holds it.

    Panes are instants. A span is a stretch (k * maxDuration, (k + 1) * maxDuration], numbered by its k. Each subquery
    adds columns to the one before:

        `_before`, `_after`     the instants next to the pane's, and `_together`, its number of events
        `_opened`, `_anchor`    the first instant since the last pause, and the span whose end is the first deadline
        `_reset`                the last span, up to the pane's, at whose end there is a cut whatever came before;
                                before the first deadline, `_anchor`
        `_cut`, `_ruled`        whether there is a cut at the end of the pane's span, and whether by the rule for
                                sparse streams
        `_begun`                the span at whose end the pane's session began; NULL if it opened after a pause

    Every column follows from the events of at most `SessionWindow.look_back`, so neighbouring slices agree.
    """
    timeout, longest = f"{window.timeout}L", f"{window.max_duration}L"
    by = ", ".join(["`_slice_start`", *(f"`_k{key}`" for key in partition_by)])
    in_order = f"(PARTITION BY {by} ORDER BY `_pane`)"
    earlier = f"(PARTITION BY {by} ORDER BY `_pane` RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    neighbours = (
        f"SELECT *, {_span('`_pane`', window)} AS `_span`, max(`_pane`) OVER {earlier} AS `_before`,"
        f" lead(`_pane`) OVER {in_order} AS `_after`, sum(`_events`) OVER (PARTITION BY {by}, `_pane`) AS `_together`"
        f"\nFROM (\n{panes.sql}\n) AS `panes`"
    )
    pause = "(`_pane` - `_before`)"
    second = f"{pause} <= {timeout} + {longest} AND `_together` = 1 AND `_after` IS NOT NULL"
    deciding = f"CASE WHEN {second} THEN {_span('`_after`', window)} ELSE `_span` END"
    opens = f"coalesce({pause} > {timeout}, true)"
    opened = (
        f"SELECT *, max(CASE WHEN {opens} THEN `_pane` END) OVER {in_order} AS `_opened`,"
        f" max(CASE WHEN {opens} THEN {deciding} + 1 END) OVER {in_order} AS `_anchor`\nFROM (\n{neighbours}\n)"
    )
    counted = (
        f"SELECT *, sum(`_events`) OVER (PARTITION BY {by}, `_opened`, `_span`) AS `_in_span`\nFROM (\n{opened}\n)"
    )
    spans = f"PARTITION BY {by}, `_opened` ORDER BY `_span`"
    reset = (
        "SELECT *, greatest(`_anchor`, max(CASE WHEN `_in_span` > 1 AND `_span` > `_anchor` THEN `_span` END)"
        f" OVER ({spans})) AS `_reset`\nFROM (\n{counted}\n)"
    )
    since = "(`_span` - `_reset`)"
    cut = (
        f"SELECT *, CASE WHEN {since} < 0 THEN false WHEN {since} < {ALTERNATING_SPANS} THEN {since} % 2 = 0"
        f" ELSE `_span` % 2 <> 0 END AS `_cut`, {since} >= {ALTERNATING_SPANS} AS `_ruled`\nFROM (\n{reset}\n)"
    )
    begun = (
        "SELECT *, max(CASE WHEN `_cut` THEN `_span` END)"
        f" OVER ({spans} RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS `_begun`,"
        f" max(CASE WHEN `_ruled` THEN `_span` END) OVER ({spans}) AS `_last_ruled`\nFROM (\n{cut}\n)"
    )
    session = f"(PARTITION BY {by}, `_opened`, `_begun`)"
    deadline = f"(max(CASE WHEN `_cut` THEN `_span` END) OVER {session} + 1) * {longest}"
    window_end = SqlItem("_window_end", f"least(max(`_pane`) OVER {session} + {timeout}, {deadline})")
    ruled = f"coalesce(max(`_last_ruled`) OVER {session} >= `_begun`, false)"
    unanchored = f"`_unanchored` OR {ruled}" if panes.source_unanchored else ruled
    return f"SELECT {select_list([*items, window_end, SqlItem(UNANCHORED.name, unanchored)])}\nFROM (\n{begun}\n)"


def _span(instant: str, window: SessionWindow) -> str:
    """Return the SQL of the number of the span that holds an instant."""
    return f"(({instant} + {window.max_duration - 1}L) div {window.max_duration}L - 1)"
