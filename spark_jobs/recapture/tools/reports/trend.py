"""The trend of published slices: metrics by day and by hour of the day, and what each check said over time."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from recapture import __version__
from recapture.process.wording import counted
from recapture.quality.audit import Result
from recapture.time_model import ticks
from recapture.time_model.metrics import WATERMARK_DELAY, total
from recapture.tools.reports.ledger import LATE, LOST, counts, judged
from recapture.tools.reports.trend_source import Trend, TrendSlice

TREND_FORMAT = 1
MOST_SLICES = 72
"""Largest number of slices that are shown one by one; of more, days are shown."""
LEVELS = ("bad", "warning", "note", "good", "unjudged")
"""What a check may say, the worst first: it failed with the severity critical, warning or info; it passed; or it had
nothing to judge."""
_FAILED = {"critical": "bad", "warning": "warning", "info": "note"}
"""Level of a check that failed, by its severity."""


def trend_document(trend: Trend) -> dict[str, Any]:
    """Return the document of a trend: everything that its page shows, in JSON types."""
    slices, pipeline = trend.slices, trend.pipeline
    by_slice = len(slices) <= MOST_SLICES
    periods = _grouped(
        slices, (lambda slice_start: slice_start) if by_slice else (lambda slice_start: slice_start[:10])
    )
    hours = _grouped(slices, lambda slice_start: slice_start[11:13])
    checks = list(_checks(trend, periods))
    end = datetime.fromisoformat(slices[-1].slice_start) + timedelta(hours=pipeline.slice_hours)
    return {
        "format": TREND_FORMAT,
        "pipeline": pipeline.name,
        "from": slices[0].slice_start,
        "to": ticks.text_of(end),
        "slice_hours": pipeline.slice_hours,
        "written": ticks.whole_seconds(datetime.now(UTC)),
        "version": __version__,
        "slices": len(slices),
        "published": sum(slice_.run is not None for slice_ in slices),
        "unit": "slice" if by_slice else "day",
        "periods": [{"name": name, **_values(trend, group)} for name, group in periods.items()],
        "hours": [{"name": hour, **_per_slice(_values(trend, hours[hour]))} for hour in sorted(hours)],
        "checks": sorted(checks, key=lambda check: (_worst(check["levels"]), check["title"])),
        "unknown_audits": sum(results is None for results in trend.audits.values()),
        "verdict": _verdict(list(periods), "slice" if by_slice else "day", checks, _unseen(trend)),
    }


def _grouped(slices: Iterable[TrendSlice], name: Callable[[str], str]) -> dict[str, list[TrendSlice]]:
    """Return the slices by the name of their slice_start, in order of first appearance."""
    groups: dict[str, list[TrendSlice]] = {}
    for slice_ in slices:
        groups.setdefault(name(slice_.slice_start), []).append(slice_)
    return groups


def _values(trend: Trend, slices: Sequence[TrendSlice]) -> dict[str, Any]:
    """Return what is shown of some slices. What cannot be known, as nothing is published, is None."""
    published = [slice_ for slice_ in slices if slice_.run is not None]
    counted_values = counts([slice_.values or {} for slice_ in published])
    verdicts = judged(counted_values) if published else None
    return {
        "slices": len(slices),
        "published": len(published),
        "events": counted_values["InputEvents"] if published else None,
        "late": _share(counted_values[LATE], verdicts),
        "lost": _share(total(counted_values[name] for name in LOST), verdicts),
        "delay": counted_values[WATERMARK_DELAY],
        "rows": total(slice_.rows for slice_ in published) if published else None,
        "failed": _failed(trend, slices),
    }


def _per_slice(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values of some slices with the mean number of events and rows of a published slice."""
    number = values["published"]
    means = {name: None if values[name] is None else round(values[name] / number, 1) for name in ("events", "rows")}
    return values | means


def _share(part: int | None, whole: int | None) -> float | None:
    return None if part is None or not whole else part / whole


def _failed(trend: Trend, slices: Sequence[TrendSlice]) -> int | None:
    """Return the number of expectations that failed or warned in the runs of some slices; None if none is known."""
    audits = [results for results in _audits(trend, slices) if results is not None]
    if not audits:
        return None
    return sum(_level(result) in ("bad", "warning") for results in audits for result in results)


def _audits(trend: Trend, slices: Iterable[TrendSlice]) -> Iterator[Sequence[Result] | None]:
    """Yield the results of each run that judged some slices."""
    for run in dict.fromkeys(slice_.judged_run for slice_ in slices):
        if run is not None:
            yield trend.audits[run]


def _level(result: Result) -> str:
    """Return which of LEVELS a result is."""
    if not result.success:
        return _FAILED[result.severity]
    return "good" if result.proved else "unjudged"


def _checks(trend: Trend, periods: Mapping[str, Sequence[TrendSlice]]) -> Iterator[dict[str, Any]]:
    """Yield each check with its worst level in each period, None where no run has it."""
    levels: dict[tuple[str, str, str], dict[str, str]] = {}
    for name, slices in periods.items():
        for results in _audits(trend, slices):
            for result in results or ():
                check, level = (result.suite, result.judged, _title(result)), _level(result)
                worst = levels.setdefault(check, {})
                worst[name] = min(worst.get(name, level), level, key=LEVELS.index)
    for (suite, judged_, title), by_period in levels.items():
        numbers = Counter(by_period.values())
        last = next((name for name in reversed(list(periods)) if by_period.get(name) in ("bad", "warning")), None)
        yield {
            "suite": suite,
            "judged": judged_,
            "title": title,
            "levels": [by_period.get(name) for name in periods],
            "counts": {level: numbers[level] for level in LEVELS if numbers[level]},
            "last_failed": last,
        }


def _title(result: Result) -> str:
    """Return what is expected. In an audit of an earlier version, the sentence begins with it."""
    return result.title or result.sentence.partition(" (")[0]


def _unseen(trend: Trend) -> str:
    """Return what no check could see, as words; empty if there is nothing."""
    unpublished = sum(slice_.run is None for slice_ in trend.slices)
    unknown = sum(results is None for results in trend.audits.values())
    parts = []
    if unpublished:
        parts.append(
            f"{counted(unpublished, 'slice')} of the range {'is' if unpublished == 1 else 'are'} not published"
        )
    if unknown:
        parts.append(f"{counted(unknown, 'audit')} cannot be read")
    return " and ".join(parts)


def _verdict(periods: Sequence[str], unit: str, checks: Sequence[Mapping[str, Any]], unseen: str) -> dict[str, str]:
    """Return what the checks say of the newest period that has any, and how often they failed before.

    It is only good if a check passed there and no check failed, and if nothing of the range is `unseen`.
    """
    judged_periods = [number for number in range(len(periods)) if any(check["levels"][number] for check in checks)]
    if not judged_periods:
        return {"level": "", "sentence": "No audit of these slices can be read."}
    newest = judged_periods[-1]
    now = Counter(check["levels"][newest] for check in checks if check["levels"][newest] is not None)
    before = sum(not {"bad", "warning"}.isdisjoint(check["levels"][:newest]) for check in checks)
    words = (("bad", "failed"), ("warning", "warned"))
    failed = " and ".join(f"{counted(now[level], 'check')} {word}" for level, word in words if now[level])
    sentence = f"In the newest {unit}, {periods[newest]}, {failed or 'no check failed'}."
    earlier = f" {counted(before, 'check')} failed or warned before." if before else " None failed or warned before."
    if now["bad"] or now["warning"]:
        return {"level": "bad" if now["bad"] else "warning", "sentence": sentence + earlier}
    missing = unseen or ("" if now["good"] else "its checks had nothing to judge")
    return {
        "level": "warning" if missing else "good",
        "sentence": f"{sentence}{earlier}{missing and f' But {missing}.'}",
    }


def _worst(levels: Iterable[str | None]) -> int:
    return min((LEVELS.index(level) for level in levels if level is not None), default=len(LEVELS))
