"""Carry out an update: finish what was interrupted, then compute each range that is due as one run."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from recapture.errors import AuditError, RunError
from recapture.keep.due import DueRange, Tick
from recapture.time_model import ticks

Run = TypeVar("Run")


def carry_out(
    tick: Tick, bring_in_line: Callable[[Sequence[str]], object], compute: Callable[[DueRange], Run]
) -> Iterator[Run | AuditError | RunError]:
    """Yield the result of each range, newest first, or the error that ended its run.

    A failure does not keep the other ranges from being computed. `bring_in_line` makes the tables hold what is
    published for slices, whose starts are in ISO 8601; its error is yielded, too. Other errors are raised.
    """
    if tick.unfinished:
        try:
            bring_in_line([ticks.to_text(start) for start in tick.unfinished])
        except RunError as error:
            yield error
    for range_ in tick.ranges:
        try:
            result = compute(range_)
        except (AuditError, RunError) as error:
            yield error
        else:
            yield result
