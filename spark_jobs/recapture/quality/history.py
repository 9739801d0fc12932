"""Which published slices the expectations of a suite need to know."""

from collections.abc import Iterable

from recapture.quality.signatures import SIGNATURES, Asset
from recapture.quality.suites import Expectation
from recapture.time_model import ticks
from recapture.time_model.slices import Slice

_DAY = 86_400 * ticks.TICKS_PER_SECOND


def slices_before(expectations: Iterable[Expectation], asset: Asset, slices: list[Slice]) -> list[int]:
    """Return the starts of the slices before a run that its expectations on an asset compare it with, in ticks.

    `slices` are those of the run, all of one length, in order.
    """
    first, length = slices[0].start, slices[0].end - slices[0].start
    times_of_day = {slice_.start % _DAY for slice_ in slices}
    starts: set[int] = set()
    for expectation in expectations:
        signature = SIGNATURES.get(expectation.type)
        if signature is None or signature.history is None or expectation.asset != asset:
            continue
        days = expectation.kwargs.get("days", signature.history.days)
        starts.update(
            start
            for start in range(first - days * _DAY, first, length)
            if start % _DAY in times_of_day or not signature.history.same_time
        )
    return sorted(starts)
