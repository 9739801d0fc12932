"""Apply the policies to events one by one, in compiled code; `policies.judge` calls it."""

from recapture.compilation import compiled
from recapture.time_model.verdicts import Verdict

EARLY = int(Verdict.EARLY_ADJUSTED), int(Verdict.EARLY_DROPPED)
LATE = int(Verdict.LATE_ADJUSTED), int(Verdict.LATE_DROPPED)
OUT_OF_ORDER = int(Verdict.OUT_OF_ORDER_ADJUSTED), int(Verdict.OUT_OF_ORDER_DROPPED)


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
    largest,
    verdict,
    system_timestamp,
    early,
    late,
    out_of_order,
    largest_time,
    behind,
):
    """Judge the events of a chunk: `verdict` and what follows it are the fields of `policies.Judged`.

    They begin as those of events that are on time and reach no stage. `scopes` numbers the scope of each event; one
    with -1 is left as it is. `largest` is the largest System.Timestamp so far in each scope. Durations and times are
    ticks.
    """
    for event in range(len(time)):
        scope = scopes[event]
        if scope < 0:
            continue
        moved = time[event]
        if time[event] - arrival[event] > early_window:
            early[event] = True
            verdict[event] = EARLY[0] if adjust_early else EARLY[1]
            moved = arrival[event] + early_window
        elif arrival[event] - time[event] > late_tolerance:
            late[event] = True
            verdict[event] = LATE[0] if adjust else LATE[1]
            moved = arrival[event] - late_tolerance
        if (not early[event] or adjust_early) and (not late[event] or adjust):
            largest[scope] = max(largest[scope], moved)
            largest_time[event] = largest[scope]
            behind[event] = largest[scope] - moved
            if behind[event] > out_of_order_tolerance:
                out_of_order[event] = True
                verdict[event] = OUT_OF_ORDER[0] if adjust else OUT_OF_ORDER[1]
                moved = largest[scope] - out_of_order_tolerance
        system_timestamp[event] = moved
