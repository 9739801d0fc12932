"""Judge the events of one input partition, chunk by chunk in arrival order.

`LargestTimes` carries what is needed from one chunk to the next.
"""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recapture.process.compilation import frozen
from recapture.time_model.key_codes import KeyCodes, has_key
from recapture.time_model.policies import BEFORE_EVERYTHING, EventTimes, Judged, Policies, apply_policies
from recapture.time_model.verdicts import Verdict


class LargestTimes:
    """The largest System.Timestamp so far in each scope of one partition.

    Minus the out-of-order tolerance, it is the scope's watermark.
    """

    def __init__(self) -> None:
        self._keys = KeyCodes()
        self.by_scope = np.empty(0, np.int64)
        """Largest time of each scope in ticks, by number; `judge` updates it."""

    def observe(self, time: int) -> None:
        """Take a time into account that reached the disorder rule, in ticks; there is only one scope."""
        before = self.by_scope.max(initial=BEFORE_EVERYTHING)
        self.by_scope = np.array([max(before, time)], np.int64)

    def scopes(self, valid: NDArray[np.bool_], scope: pa.Array | None) -> NDArray[np.int64]:
        """Return the number of each event's scope, from 0; -1 if the event is not valid or has no key."""
        if scope is None:
            scopes = np.where(valid, 0, -1)
        else:
            valid = valid & has_key(scope)
            scopes = np.full(len(valid), -1)
            scopes[valid] = self._keys.encode(scope if valid.all() else scope.filter(pa.array(valid)))
        unseen = scopes.max(initial=-1) + 1 - len(self.by_scope)
        if unseen > 0:
            self.by_scope = np.concatenate([self.by_scope, np.full(unseen, BEFORE_EVERYTHING)])
        return scopes


def judge(
    policies: Policies,
    largest_times: LargestTimes,
    time: NDArray[np.int64],
    valid: NDArray[np.bool_],
    arrival: NDArray[np.int64],
    scope: pa.Array | None,
) -> Judged:
    """Judge one chunk of one partition, and update the largest times of its scopes.

    `time` and `arrival` are ticks, one entry per event, in arrival order; `valid` is False where TIMESTAMP BY gives no
    time. `scope` holds each event's OVER key, a struct if there are several columns. An event whose key is NULL or
    contains NULL gets the verdict INVALID_TIMESTAMP.
    """
    count, scopes = len(time), largest_times.scopes(valid, scope)
    judged = Judged(
        verdict=np.where(scopes < 0, Verdict.INVALID_TIMESTAMP, Verdict.ON_TIME).astype(np.int8),
        system_timestamp=time.copy(),
        early=np.zeros(count, bool),
        late=np.zeros(count, bool),
        out_of_order=np.zeros(count, bool),
        largest_time=np.full(count, BEFORE_EVERYTHING),
        behind=np.zeros(count, np.int64),
        scope=frozen(scopes),
    )
    events = EventTimes(judged.scope, frozen(time), frozen(arrival))
    apply_policies(policies.without_none(), events, largest_times.by_scope, judged)
    return judged
