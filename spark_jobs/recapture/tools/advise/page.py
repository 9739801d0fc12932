"""The page of an advice: the smallest settings, curves, and the counts of each setting."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from recapture import __version__
from recapture.pages.page import duration, render
from recapture.time_model import ticks
from recapture.tools.advise.advice import Advice
from recapture.tools.advise.choice import SHARES
from recapture.tools.advise.curves import curve
from recapture.tools.advise.input_advice import InputAdvice, percent
from recapture.tools.advise.keys import Key
from recapture.tools.advise.tolerances import Setting

if TYPE_CHECKING:
    from markupsafe import Markup

GLOSSARY = (
    *("late", "out of order", "early", "tolerance", "policy", "watermark", "duplicate", "slice", "complete"),
    *("partition", "scope", "enqueued time"),
)
"""Terms that the page explains."""
SHOWN_CLOCKS = 100


def page(advice: Advice) -> bytes:
    """Return the page of an advice as UTF-8. Raise DefinitionError unless the packages for pages are installed."""
    return render(
        "recapture.tools.advise",
        "advice.html",
        advice=advice,
        job=advice.pipeline.job,
        start=ticks.text_of(advice.start),
        end=ticks.text_of(advice.end),
        own_late=late_text(advice.own.late),
        how="adjusted" if advice.pipeline.job.policy == "Adjust" else "dropped",
        warnings=[*advice.pipeline.warnings, *advice.warnings],
        inputs=[_values(input_advice) for input_advice in advice.inputs],
        version=__version__,
        glossary_terms=GLOSSARY,
    )


def late_text(late: int | None) -> str:
    """Return a late tolerance as text."""
    return "no limit" if late is None else duration(late)


def _values(advice: InputAdvice) -> dict[str, Any]:
    """Return what the template shows of an input."""
    counts, own = advice.counts, advice.counts.keys.own
    best = {share: setting for share, setting in advice.smallest(own).items() if setting is not None}
    chosen = dict.fromkeys([advice.own, *best.values()])
    return {
        "alias": advice.alias,
        "own_clause": own.clause,
        "counts": counts,
        "total": advice.totals[own],
        "own": _row(advice, own, advice.own),
        "by_key": [
            (key.clause, key == own, [_row(advice, key, setting) for setting in advice.settings(key)])
            for key in advice.totals
        ],
        "smallest": [
            (
                str(key),
                key == own,
                [(share, setting and _row(advice, key, setting)) for share, setting in advice.smallest(key).items()],
            )
            for key in advice.totals
        ],
        "by_partition": [
            (name, [percent(advice.share(own, setting, name)) for setting in chosen]) for name in counts.partitions
        ],
        "chosen": [_row(advice, own, setting) for setting in chosen],
        "good": (advice.share(own, advice.own) or 0) >= min(SHARES),
        "early": {name: partition.by_key[own].early for name, partition in counts.partitions.items()},
        "by_enqueued_time": counts.source.definition.by_enqueued_time,
        "best": _row(advice, own, best[max(best)]) if best else None,
        "kept": max(best, default=None),
        "largest_lateness": max(counts.largest_lateness, 0) / ticks.TICKS_PER_SECOND,
        "clocks": counts.wrong_clocks[:SHOWN_CLOCKS],
        "better": _better(advice, max(best, default=0)),
        "late_curve": _late_curve(advice),
        "disorder_curve": _disorder_curve(advice),
    }


def _better(advice: InputAdvice, kept: float) -> tuple[str, float, dict[str, Any]] | None:
    """Return the candidate key that keeps the largest share, if larger than `kept`, and the smallest setting for it."""
    found = [
        (share, key, setting)
        for key in advice.counts.keys.candidates
        for share, setting in advice.smallest(key).items()
        if key.columns and setting is not None and share > kept
    ]
    if not found:
        return None
    share, key, setting = max(found, key=lambda entry: entry[0])
    return key.clause, share, _row(advice, key, setting)


def _row(advice: InputAdvice, key: Key, setting: Setting) -> dict[str, Any]:
    """Return a setting, and what becomes of the events with it."""
    return {
        "setting": setting,
        "late": late_text(setting.late),
        "complete": advice.complete_text(setting.late),
        "share": percent(advice.share(key, setting)),
        "verdicts": advice.outcome(key, setting),
        "is_own": setting == advice.own,
        "partitions": [(name, advice.outcome(key, setting, name)) for name in advice.counts.partitions],
    }


def _late_curve(advice: InputAdvice) -> "Markup | None":
    compared = advice.counts.source.tolerances
    late = advice.totals[advice.counts.keys.own].late
    # Beyond the first tolerance with which no event is late, the curves are flat.
    last = next((index for index, events in enumerate(late.tolist()) if not events), len(late))
    own = compared.late.index(advice.own.late)
    settings = [Setting(late, advice.own.out_of_order) for late in compared.late[: max(last, own) + 1]]
    fixed = f"an out-of-order tolerance of {duration(advice.own.out_of_order)}"
    return _curve(advice, "late tolerance", settings, [late_text(setting.late) for setting in settings], fixed)


def _disorder_curve(advice: InputAdvice) -> "Markup | None":
    settings = [Setting(advice.own.late, out_of_order) for out_of_order in advice.counts.source.tolerances.out_of_order]
    fixed = f"a late tolerance of {late_text(advice.own.late)}" if advice.own.late is not None else "no late limit"
    labels = [duration(setting.out_of_order) for setting in settings]
    return _curve(advice, "out-of-order tolerance", settings, labels, fixed)


def _curve(
    advice: InputAdvice, name: str, settings: Sequence[Setting], labels: Sequence[str], fixed: str
) -> "Markup | None":
    """Return the picture of the shares that stay unchanged with neighbouring settings; None if no share is known."""
    shares = {
        str(key): [share for setting in settings if (share := advice.share(key, setting)) is not None]
        for key in advice.totals
        if advice.totals[key].tolerable
    }
    if not shares:
        return None
    own = labels[list(settings).index(advice.own)]
    ends = "; ".join(
        f"OVER {key}: {percent(key_shares[0])} at {labels[0]}, {percent(key_shares[-1])} at {labels[-1]}"
        for key, key_shares in shares.items()
    )
    return curve(name, labels, own, shares).svg(f"Share of unchanged events by {name}, with {fixed}; {ends}")
