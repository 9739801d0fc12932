"""Which of the compared settings to show, and which is the smallest that keeps enough events unchanged."""

import math

import numpy as np

from recapture.tools.advise.counting import ToleranceCounts
from recapture.tools.advise.tolerances import Setting, Tolerances

SHARES = (0.99, 0.999, 1.0)
"""Shares of the events to keep unchanged."""
_QUANTILES = (0.5, 0.9, *SHARES)


def smallest(counts: ToleranceCounts, tolerances: Tolerances, share: float) -> Setting | None:
    """Return the smallest setting with which this share of the events is on time; None if there is none.

    Events that no tolerance can help do not count: see `ToleranceCounts.tolerable`. The smallest late tolerance comes
    first, because it decides when a slice is complete; then the smallest out-of-order tolerance for it.
    """
    enough = np.argwhere(counts.on_time >= _needed(counts, share))
    if not len(enough):
        return None
    late, out_of_order = enough[0].tolist()
    return Setting(tolerances.late[late], tolerances.out_of_order[out_of_order])


def shown(counts: ToleranceCounts, tolerances: Tolerances, own: Setting) -> Tolerances:
    """Return the tolerances to show: quantiles of lateness and of disorder, and those of the best settings.

    Quantiles are rounded up to tolerances that were compared. `own` is the setting of the job, which is shown too.
    """
    best = [setting for share in SHARES if (setting := smallest(counts, tolerances, share)) is not None]
    late = {setting.late for setting in (own, *best)}
    out_of_order = {setting.out_of_order for setting in (own, *best)}
    for share in _QUANTILES:
        allowed = counts.tolerable - _needed(counts, share)
        late |= {tolerances.late[index] for index in np.flatnonzero(counts.late <= allowed)[:1]}
        beyond = counts.out_of_order[-1]
        out_of_order |= {tolerances.out_of_order[index] for index in np.flatnonzero(beyond <= allowed)[:1]}
    return Tolerances(
        tuple(tolerance for tolerance in tolerances.late if tolerance in late),
        tuple(tolerance for tolerance in tolerances.out_of_order if tolerance in out_of_order),
    )


def _needed(counts: ToleranceCounts, share: float) -> int:
    """Return the smallest number of events that is at least this share of those that count."""
    return math.ceil(round(share * counts.tolerable, 6))
