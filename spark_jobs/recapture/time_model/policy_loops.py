"""The policies, applied to events one by one in compiled code; called by `policies.judge`."""

from recapture.process.compilation import compiled
from recapture.time_model.verdicts import Verdict

EARLY_ADJUSTED, EARLY_DROPPED = int(Verdict.EARLY_ADJUSTED), int(Verdict.EARLY_DROPPED)
LATE_ADJUSTED, LATE_DROPPED = int(Verdict.LATE_ADJUSTED), int(Verdict.LATE_DROPPED)
OUT_OF_ORDER_ADJUSTED, OUT_OF_ORDER_DROPPED = int(Verdict.OUT_OF_ORDER_ADJUSTED), int(Verdict.OUT_OF_ORDER_DROPPED)


@compiled
def apply_policies(  # type: ignore[no-untyped-def]
    scopes,
    time,
    arrival,
    early_window,
    late_tolerance,
    out_of_order_tolerance,
    adjust_early,
    adjust,
    largest_by_scope,
    verdict,
    system_timestamp,
    early,
    late,
    out_of_order,
    largest_time,
    behind,
):
    """Judge the events of a chunk. Durations and times are ticks.

    `scopes` numbers the scope of each event; events with -1 are skipped. `largest_by_scope` is the largest
    System.Timestamp so far in each scope, and is updated. `verdict` to `behind` are the arrays of `policies.Judged`;
    they are filled in place, and begin as those of events that are on time.
    """
    for event in range(len(time)):
        scope = scopes[event]
        if scope < 0:
            continue
        system = time[event]
        if time[event] - arrival[event] > early_window:
            early[event] = True
            verdict[event] = EARLY_ADJUSTED if adjust_early else EARLY_DROPPED
            system = arrival[event] + early_window
        elif arrival[event] - time[event] > late_tolerance:
            late[event] = True
            verdict[event] = LATE_ADJUSTED if adjust else LATE_DROPPED
            system = arrival[event] - late_tolerance
        reaches_disorder_stage = (not early[event] or adjust_early) and (not late[event] or adjust)
        if reaches_disorder_stage:
            largest = max(largest_by_scope[scope], system)
            largest_by_scope[scope] = largest_time[event] = largest
            behind[event] = largest - system
            if behind[event] > out_of_order_tolerance:
                out_of_order[event] = True
                verdict[event] = OUT_OF_ORDER_ADJUSTED if adjust else OUT_OF_ORDER_DROPPED
                system = largest - out_of_order_tolerance
        system_timestamp[event] = system
