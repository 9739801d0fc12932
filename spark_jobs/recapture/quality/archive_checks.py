"""The built-in checks on what a run read: nothing is missing from the archive, and no published event is lost."""

from collections.abc import Sequence
from dataclasses import dataclass

from recapture.archive.hole_sentences import remedy, sentence
from recapture.archive.holes import Hole, Kind
from recapture.process.wording import counted, named_slices, of_input
from recapture.quality.audit import TITLES, Result, slice_result
from recapture.quality.suites import SEVERITIES, Severity
from recapture.time_model import ticks

_SHOWN = 3
"""Number of holes, of losses and of blobs that a sentence names."""


@dataclass(frozen=True)
class Loss:
    """A slice for which fewer events arrived than are published."""

    slice_start: str
    input: str | None
    """Alias of the input; None if only the total of the published events is known."""
    partitions: tuple[str, ...]
    """Partitions that lack events."""
    published: int
    """Number of published events of these partitions, without duplicates."""
    arrived: int
    """Number of events of these partitions that arrived now, without duplicates."""
    run: str
    """Run that the slice holds."""
    blobs: tuple[str, ...] | None
    """Names of the blobs that the published run read and this one does not; None if they are not known."""


def holes_result(
    holes: Sequence[Hole],
    severity: Severity | None,
    *,
    accepted: bool,
    can_be_judged: bool,
    name_input: bool,
    in_gaps: int = 0,
) -> Result:
    """Return whether anything is missing from the archive.

    `in_gaps` is how many sequence numbers are missing in gaps that SequenceGaps counts, which another check judges.
    `severity` is what the user sets, None for that of the worst hole; if the loss is accepted, it is at most a warning.
    `can_be_judged` says whether blobs' names or sequence numbers would show a hole. `name_input` names the inputs.
    """
    failed = sorted(
        (hole for hole in holes if hole.severity != "info"), key=lambda hole: SEVERITIES.index(hole.severity)
    )
    harmless = [hole for hole in holes if hole.severity == "info"]
    own = severity or (failed[0].severity if failed else "critical")
    severity = _severity(own, accepted)
    if failed:
        named = [sentence(hole, name_input=name_input) for hole in failed[:_SHOWN]]
        more = [f"and {counted(len(failed) - _SHOWN, 'more hole')}"] if len(failed) > _SHOWN else []
        what_next = _what_next(own, accepted)
        said = f"the archive has holes: {'; '.join([*named, *more, remedy(failed[0])])}{what_next}"
    elif not can_be_judged:
        said = (
            f"{TITLES['archive_has_no_holes']} (not judged: an interval may have no blob, and the events have no "
            "sequence numbers)"
        )
    else:
        notes = "; ".join(sentence(hole, name_input=name_input) for hole in harmless[:_SHOWN])
        others = f"; and {len(harmless) - _SHOWN:,} more" if len(harmless) > _SHOWN else ""
        known = "known to be " if any(hole.kind is Kind.QUIET for hole in harmless) else ""
        besides = f" besides {counted(in_gaps, 'sequence number')}" if in_gaps else ""
        title = f"nothing is {known}missing from the archive{besides}"
        said = f"{title} ({notes}{others})" if notes else title
    starts = [ticks.to_text(start) for start in sorted({hole.slice_start for hole in failed})]
    return slice_result("archive_has_no_holes", severity, starts, said, proved=bool(failed) or can_be_judged)


def losses_result(losses: Sequence[Loss], severity: Severity | None, *, accepted: bool, name_input: bool) -> Result:
    """Return whether a slice would lose events that are published; the arguments are as in `holes_result`."""
    own = severity or "critical"
    severity = _severity(own, accepted)
    if not losses:
        return slice_result("no_published_event_is_lost", severity, (), TITLES["no_published_event_is_lost"])
    named = "; ".join(_sentence(loss, name_input) for loss in losses[:_SHOWN])
    starts = list(dict.fromkeys(loss.slice_start for loss in losses))
    more = f"; in all {named_slices(starts)}" if len(losses) > _SHOWN else ""
    what_next = _what_next(own, accepted)
    said = f"the archive has fewer events than are published: {named}{more}; restore the blobs{what_next}"
    return slice_result("no_published_event_is_lost", severity, starts, said)


def _severity(severity: Severity, accepted: bool) -> Severity:
    return "warning" if accepted and severity == "critical" else severity


def _what_next(severity: Severity, accepted: bool) -> str:
    """Return the clause about accepting a loss; nothing if its severity does not stop the run."""
    if severity != "critical":
        return ""
    if accepted:
        return "; accepted for this run"
    return "; to publish what is left, add --accept-loss (accept_loss in Airflow's form)"


def _sentence(loss: Loss, name_input: bool) -> str:
    place = (
        f"partition{'s' * (len(loss.partitions) > 1)} {', '.join(loss.partitions)}"
        if loss.partitions
        else "all partitions"
    )
    place += of_input(loss.input if name_input else None)
    said = (
        f"in slice {loss.slice_start}, {loss.arrived:,} of the {counted(loss.published, 'event')} of {place} that run "
        f"{loss.run} published"
    )
    if not loss.blobs:
        return said if loss.blobs is None else f"{said}, although this run reads all blobs of that run"
    shown = ", ".join(loss.blobs[:_SHOWN])
    more = f" and {len(loss.blobs) - _SHOWN:,} more" if len(loss.blobs) > _SHOWN else ""
    return f"{said}; this run no longer reads {shown}{more}"
