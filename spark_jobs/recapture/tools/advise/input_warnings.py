"""Warnings about the settings, the clocks and the blobs of an input, one sentence each."""

from collections.abc import Iterable, Iterator

from recapture.archive.definitions import ArrivalTime
from recapture.pages.page import duration
from recapture.process.wording import counted, of_input
from recapture.time_model.policies import LARGEST_LATE, LARGEST_OUT_OF_ORDER
from recapture.time_model.ticks import TICKS_PER_SECOND
from recapture.tools.advise.clocks import WrongClock
from recapture.tools.advise.input_advice import InputAdvice, percent
from recapture.tools.advise.keys import Key

SHOWN = 5
"""Maximum number of names in a sentence."""


def input_warnings(advice: InputAdvice, alias: str | None) -> Iterator[str]:
    """Yield the warnings about an input; they name it by its alias, if that is not None."""
    place = of_input(alias)
    yield from _blobs(advice, place)
    yield from _clocks(advice, place)
    yield from _tolerances(advice, place)


def _blobs(advice: InputAdvice, place: str) -> Iterator[str]:
    counts, section = advice.counts, advice.counts.source.section
    if counts.incomplete:
        partitions = f"{counted(len(counts.incomplete), 'partition')}{place} ({_some(counts.incomplete)})"
        yield f"more may still arrive in this range from {partitions}: the counts may grow"
    if counts.damaged:
        blobs = counted(len(counts.damaged), "blob is damaged and was", "blobs are damaged and were")
        yield f"{blobs} left out{place}, for example {counts.damaged[0]}: their events are not counted"
    for disagreement in counts.disagreements:
        events = f"{counted(disagreement.events, 'event')} in {counted(disagreement.blobs, 'blob')}"
        subject = f"partition {disagreement.partition}{place}: {events}"
        if disagreement.seconds < 0:
            yield (
                f"{subject} were enqueued up to {duration(-disagreement.seconds)} after their blob's LastModified, "
                f"for example in {disagreement.example}: the clock of the hub or of the storage is wrong"
            )
            continue
        by_blob = section.arrival_time is ArrivalTime.BLOB_LAST_MODIFIED
        advice_on_arrival = (
            "if the blobs were copied, LastModified makes their events late: set arrival_time to EventEnqueuedUtcTime"
            if by_blob
            else "keep arrival_time at EventEnqueuedUtcTime: by LastModified these events would arrive late"
        )
        yield (
            f"{subject} were enqueued up to {duration(disagreement.seconds)} before their blob's LastModified, for "
            f"example in {disagreement.example}, but the {section.interval_name} is {section.interval_seconds} s: "
            f"{advice_on_arrival}"
        )


def _clocks(advice: InputAdvice, place: str) -> Iterator[str]:
    counts = advice.counts
    wrong = counts.wrong_clocks
    if wrong:
        devices = f"{len(wrong):,} of {counted(counts.devices, 'device')}{place}"
        clocks = f"the clock of {devices} is wrong" if len(wrong) == 1 else f"the clocks of {devices} are wrong"
        remedy = f"; a clock that is ahead puts the other devices out of order: OVER {counts.keys.devices} prevents it"
        yield f"{clocks}: {_some(map(_clock, wrong))}{remedy if _push_the_watermark(advice) else ''}"
    early = advice.totals[counts.keys.own].early
    if early:
        window = duration((counts.source.policies.early_window or 0) / TICKS_PER_SECOND)
        happened = "their times are adjusted" if counts.source.policies.adjust_early else "they are dropped"
        yield (
            f"{counted(early, 'event has', 'events have')} a time more than {window} after "
            f"arrival{place}: {happened}, and no tolerance changes that; correct the clocks"
        )


def _push_the_watermark(advice: InputAdvice) -> bool:
    """Return whether clocks that are ahead put events of other devices out of order, which OVER would prevent."""
    counts, own = advice.counts, advice.own
    if counts.keys.own.columns or counts.keys.devices not in counts.keys.all:
        return False
    ahead = any(clock.seconds > 0 and clock.dropped < clock.events for clock in counts.wrong_clocks)
    devices_on_time, query_on_time = (
        advice.outcome(key, own)["on_time"] for key in (counts.keys.devices, counts.keys.own)
    )
    return ahead and devices_on_time > query_on_time


def _clock(clock: WrongClock) -> str:
    error = f"{clock.device} is {duration(abs(clock.seconds))} {'ahead' if clock.seconds > 0 else 'behind'}"
    if not clock.dropped:
        return error
    dropped = "all its" if clock.dropped == clock.events else f"{clock.dropped:,} of its {clock.events:,}"
    return f"{error} ({dropped} events are dropped as too early)"


def _tolerances(advice: InputAdvice, place: str) -> Iterator[str]:
    counts, own = advice.counts, advice.counts.keys.own
    compared, section, total = counts.source.tolerances, counts.source.section, advice.totals[own]
    longest = compared.late[-1]
    if longest is not None and total.late[-1] and longest < LARGEST_LATE:
        largest_lateness = duration(counts.largest_lateness / TICKS_PER_SECOND)
        yield (
            f"{counted(int(total.late[-1]), 'event is', 'events are')} more than {duration(longest)} late{place}, the "
            f"longest tolerance that this range can judge; the latest is {largest_lateness} "
            "late: choose a longer range to judge longer tolerances"
        )
    by_blob = section.arrival_time is ArrivalTime.BLOB_LAST_MODIFIED
    for share, setting in advice.smallest(own).items():
        if setting is None:
            yield from _out_of_reach(advice, share, place)
            break
        if (
            by_blob
            and section.names.on_schedule
            and setting.late is not None
            and setting.late < section.interval_seconds
        ):
            yield (
                f"a late tolerance of {duration(setting.late)} keeps {_percent(share)} of the events{place} "
                f"unchanged in this range, but is less than the {section.interval_name} of {section.interval_seconds} "
                f"s: an event that waits as long for its blob would be late; take {section.interval_seconds} or more"
            )
            break


def _out_of_reach(advice: InputAdvice, share: float, place: str) -> Iterator[str]:
    own, total = advice.counts.keys.own, advice.totals[advice.counts.keys.own]
    if not total.tolerable:
        return
    best = percent(int(total.on_time.max()) / total.tolerable)
    others = [key for key in advice.counts.keys.candidates if key.columns and advice.smallest(key)[share]]
    remedy = f"; {others[0].clause}, {_setting(advice, others[0], share)} does" if others else ""
    longest = _late(advice.counts.source.tolerances.late[-1])
    yield (
        f"no setting up to {longest} and {LARGEST_OUT_OF_ORDER} s out of order keeps {_percent(share)} of the events"
        f"{place} unchanged {own.clause}, at most {best}{remedy}"
    )


def _setting(advice: InputAdvice, key: Key, share: float) -> str:
    setting = advice.smallest(key)[share]
    assert setting is not None
    return f"{_late(setting.late)} and {duration(setting.out_of_order)} out of order"


def _late(late: int | None) -> str:
    return "no late limit" if late is None else f"{duration(late)} late"


def _percent(share: float) -> str:
    return "all" if share == 1 else f"{100 * share:g}%"


def _some(names: Iterable[str]) -> str:
    shown = list(names)
    more = f" and {len(shown) - SHOWN:,} more" if len(shown) > SHOWN else ""
    return ", ".join(shown[:SHOWN]) + more
