"""The slice whose rows are evaluated."""

from dataclasses import dataclass

from recapture.model import JavaScriptFunction, ShapeComparison


@dataclass(frozen=True)
class SliceBounds:
    """Bounds of the slice whose rows are evaluated, in ticks: _slice_start and _slice_end in expressions."""

    start: int
    """Start of the slice, exclusive."""
    end: int
    """End of the slice, inclusive."""
    functions: tuple[JavaScriptFunction | ShapeComparison, ...] = ()
    """Functions in Python that the expressions may call."""
