"""The application time of events: what TIMESTAMP BY makes of an event (docs/time-model.md, section 2)."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recapture.formats.bodies import Bodies
from recapture.model import AsaType, Chosen, FirstOf, InputColumn, Instant, MetadataColumn, Shifted, TimeExpression
from recapture.time_model import timestamps
from recapture.time_model.ticks import LARGEST

_NO_REASON = pa.scalar(None, pa.string())


@dataclass(frozen=True)
class Times:
    """The times of some events; every array has one entry per event."""

    ticks: NDArray[np.int64]
    """Application time in ticks; 0 if there is none."""
    missing: NDArray[np.bool_]
    """Whether a field of the time is missing or null. In a COALESCE, the next time is taken then."""
    reason: pa.Array
    """Reason why there is no time (string); NULL if there is one."""

    @property
    def valid(self) -> NDArray[np.bool_]:
        """Whether there is a time."""
        valid: NDArray[np.bool_] = pc.is_null(self.reason).to_numpy(zero_copy_only=False)
        return valid


def metadata_of(time: TimeExpression | None) -> tuple[MetadataColumn, ...]:
    """Return the metadata that a TIMESTAMP BY names."""
    match time:
        case MetadataColumn():
            return (time,)
        case Shifted():
            return metadata_of(time.base)
        case FirstOf():
            return tuple(column for candidate in time.candidates for column in metadata_of(candidate))
        case Chosen():
            return tuple(column for chosen in time.times for column in metadata_of(chosen))
    return ()


def times_of(time: TimeExpression, bodies: Bodies, metadata: Callable[[MetadataColumn], pa.Array]) -> Times:
    """Return the times of some events, from their parsed bodies and the values of metadata columns.

    COALESCE takes the first time that is not missing or null, even if its text is not a time. If the number of a
    DATEADD is missing, so is its time. If no WHEN of a CASE without ELSE holds, the time is missing.
    """
    match time:
        case InputColumn():
            return _from_text(bodies.strings[time], time.name)
        case MetadataColumn() if time.type is AsaType.STRING:
            return _from_text(metadata(time), time.name)
        case MetadataColumn():
            return _known(metadata(time).to_numpy())
        case Instant():
            return _known(np.full(len(bodies.malformed), time.ticks))
        case Shifted():
            base = times_of(time.base, bodies, metadata)
            return _shifted(base, time, bodies.strings[time.amount], bodies.columns[time.amount])
        case FirstOf():
            return _first_of([times_of(candidate, bodies, metadata) for candidate in time.candidates])
        case Chosen():
            other = times_of(time.other, bodies, metadata) if time.other else _null(len(bodies.malformed))
            for branch in reversed(time.branches):
                holds = pc.fill_null(pc.equal(bodies.strings[branch.field], branch.text), False)
                other = _where(holds, times_of(branch.time, bodies, metadata), other)
            return other


def _from_text(text: pa.Array, name: str) -> Times:
    ticks, valid = timestamps.parse(text)
    missing = pc.is_null(text).to_numpy(zero_copy_only=False)
    return Times(ticks, missing, _why(missing, ~valid, name, "a time"))


def _known(ticks: NDArray[np.int64]) -> Times:
    return Times(ticks, np.zeros(len(ticks), bool), pa.nulls(len(ticks), pa.string()))


def _null(count: int) -> Times:
    reason = pa.repeat("no WHEN of TIMESTAMP BY holds", count)
    return Times(np.zeros(count, np.int64), np.ones(count, bool), reason)


def _where(mask: pa.Array, times: Times, other: Times) -> Times:
    """Return `times` where the mask is true, else `other`."""
    chosen = mask.to_numpy(zero_copy_only=False)
    return Times(
        np.where(chosen, times.ticks, other.ticks),
        np.where(chosen, times.missing, other.missing),
        pc.if_else(mask, times.reason, other.reason),
    )


def _shifted(base: Times, by: Shifted, text: pa.Array, amount: pa.Array) -> Times:
    name = by.amount.name
    missing = pc.is_null(text).to_numpy(zero_copy_only=False)
    whole = pc.is_valid(amount).to_numpy(zero_copy_only=False)
    units = amount.fill_null(0).to_numpy(zero_copy_only=False)
    within = (units >= -(LARGEST // by.unit)) & (units <= LARGEST // by.unit)
    ticks = base.ticks + np.where(within, units, 0) * by.unit
    outside = whole & ~(within & (ticks >= 0) & (ticks <= LARGEST))
    reason = pc.coalesce(_why(missing, ~whole, name, "a bigint"), base.reason)
    too_far = pc.if_else(pa.array(outside), f"{name} gives a time outside the years 1 to 9999", _NO_REASON)
    reason = pc.coalesce(reason, too_far)
    valid = pc.is_null(reason).to_numpy(zero_copy_only=False)
    return Times(np.where(valid, ticks, 0), missing | base.missing, reason)


def _first_of(candidates: list[Times]) -> Times:
    ticks, missing, reason = candidates[0].ticks, candidates[0].missing, candidates[0].reason
    for later in candidates[1:]:
        ticks = np.where(missing, later.ticks, ticks)
        both = pc.binary_join_element_wise(reason, later.reason, ", ")
        later_reason = pc.if_else(pa.array(later.missing), both, later.reason)
        reason = pc.if_else(pa.array(missing), later_reason, reason)
        missing = missing & later.missing
    return Times(ticks, missing, reason)


def _why(missing: NDArray[np.bool_], wrong: NDArray[np.bool_], name: str, kind: str) -> pa.Array:
    """Return why there is no time if a value is `wrong`, else NULL; a `missing` value is wrong too."""
    if not wrong.any():
        return pa.nulls(len(wrong), pa.string())
    why = pc.if_else(pa.array(missing), f"{name} is missing or null", f"{name} is not {kind}")
    return pc.if_else(pa.array(wrong), why, _NO_REASON)
