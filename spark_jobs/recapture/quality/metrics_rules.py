"""The rules that the metrics of a run have to meet, for the built-in checks and for `expectations.run_metrics`.

Each rule judges all rows, which have the metrics of a slice and partition of an input, and says which of them fail.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from recapture.pages.page import share
from recapture.process.wording import counted
from recapture.quality.finding import SHOWN, Finding
from recapture.time_model.metrics import VERDICTS

Row = Mapping[str, Any]
Rows = Sequence[Row]
PLACE = ("slice_start", "input", "partition")
"""Columns that identify a row."""


def events_are_conserved(rows: Rows) -> Finding:
    """Judge that InputEvents is DuplicateEvents plus the sum of the verdicts (docs/time-model.md, section 5)."""

    def unaccounted(row: Row) -> int | None:
        parts = [row[name] for name in ("InputEvents", "DuplicateEvents", *VERDICTS)]
        return None if None in parts else parts[0] - sum(parts[1:])

    failed = [(row, number) for row in rows if (number := unaccounted(row)) != 0]
    failure = "events have no verdict or several, or a count is missing"
    return _finding(rows, failure, _largest_first(failed), "unaccounted_events")


def capture_is_complete(rows: Rows) -> Finding:
    """Judge that `complete` is true; a null fails."""
    failed = [(row, None) for row in rows if not row["complete"]]
    return _finding(rows, "Capture may not have written everything that arrived", failed)


def gaps_are_at_most(rows: Rows, most: float) -> Finding:
    """Judge that SequenceGaps is at most `most`; a null fails."""
    gaps = [(row, row["SequenceGaps"]) for row in rows]
    failed = [(row, number) for row, number in gaps if number is None or number > most]
    failure = "sequence numbers are missing" + (f" (at most {counted(int(most), 'gap')} expected)" if most else "")
    return _finding(rows, failure, _largest_first(failed), "gaps")


def share_is_at_most(rows: Rows, counts: Sequence[str], are: str, most: float, mostly: float) -> Finding:
    """Judge that the events of some counts are at most a share of those that arrived, in rows where any arrived.

    `are` says what the counted events are, such as "late". `most` is the largest share, and `mostly` the share of the
    rows that must meet this, for the sentence; 0 to 1.
    """

    def share_of(row: Row) -> float | None:
        parts = [row[name] for name in (*counts, "InputEvents")]
        return None if None in parts else sum(parts[:-1]) / parts[-1]

    judged = [row for row in rows if row["InputEvents"] != 0]
    failed = [(row, part) for row in judged if (part := share_of(row)) is None or part > most]
    worst = [row for row, _ in failed]
    events = share(
        sum(row[name] or 0 for row in worst for name in counts), sum(row["InputEvents"] or 0 for row in worst)
    )
    limit = f"at most {share(most, 1)} expected"
    if mostly < 1:
        limit += f" in at least {share(mostly, 1)} of the slices and partitions"
    return _finding(judged, f"{events} of the events are {are} ({limit})", _largest_first(failed), f"{are}_share")


def no_partition_is_counted_twice(rows: Rows) -> Finding:
    """Judge that no two rows are of the same slice and partition."""
    places = [tuple(row[name] for name in PLACE) for row in rows]
    counts = Counter(places)
    failed = [dict(zip(PLACE, place, strict=True)) for place in places if counts[place] > 1]
    return Finding(None, len(rows), len(failed), failed[:SHOWN], failure="partitions of slices are counted twice")


def column_is_always(rows: Rows, column: str, value: object, failure: str) -> Finding:
    """Judge that a column has one value in every row; a null passes."""
    return _finding(rows, failure, [(row, row[column]) for row in rows if row[column] not in (None, value)], column)


def _largest_first(failed: Sequence[tuple[Row, float | None]]) -> list[tuple[Row, float | None]]:
    """Return rows with their measures, those without a measure last."""
    return sorted(failed, key=lambda pair: (pair[1] is None, -abs(pair[1] or 0)))


def _finding(rows: Rows, failure: str, failed: Sequence[tuple[Row, Any]], measure: str | None = None) -> Finding:
    """Return what was found. Examples have the place of a row, with the input if there are several, and the measure."""
    several_inputs = len({row["input"] for row in rows}) > 1
    place = [name for name in PLACE if name != "input" or several_inputs]
    examples = [
        {name: row[name] for name in place} | ({} if measure is None else {measure: value})
        for row, value in failed[:SHOWN]
    ]
    return Finding(None, len(rows), len(failed), examples, failure=failure)
