"""The advice on the tolerances of a pipeline, from what arrived in a range."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from recapture.definition.digest import run_definition
from recapture.definition.pipeline import Pipeline
from recapture.errors import DefinitionError, RunError
from recapture.query.model import CompiledInput
from recapture.run.slices import require_whole_slices, slice_length, slices_of
from recapture.time_model import ticks
from recapture.time_model.ticks import TICKS_PER_SECOND
from recapture.tools.advise.input_advice import InputAdvice
from recapture.tools.advise.input_warnings import input_warnings
from recapture.tools.advise.reading import InputToRead, read_counts
from recapture.tools.advise.tolerances import NO_LIMIT, Setting, tolerances


@dataclass(frozen=True)
class Advice:
    """The advice on a pipeline."""

    pipeline: Pipeline
    start: datetime
    """Start of the range, exclusive."""
    end: datetime
    """End of the range, inclusive."""
    inputs: tuple[InputAdvice, ...]
    """Inputs with TIMESTAMP BY from which events arrived."""
    without_events: tuple[str, ...]
    """Other inputs with TIMESTAMP BY."""

    @property
    def own(self) -> Setting:
        """Setting of the job."""
        return own_setting(self.pipeline)

    @property
    def warnings(self) -> list[str]:
        """Warnings about the settings and what arrived, one sentence each."""
        several = len(self.inputs) + len(self.without_events) > 1
        warnings = [f"no event of input {alias} arrived in this range" for alias in self.without_events]
        for advice in self.inputs:
            warnings += input_warnings(advice, advice.alias if several else None)
        return warnings

    @property
    def summary(self) -> dict[str, Any]:
        """The advice in JSON types."""
        return {
            "pipeline": self.pipeline.name,
            "from": ticks.text_of(self.start),
            "to": ticks.text_of(self.end),
            "policy": self.pipeline.job.policy,
            "late_seconds": self.pipeline.job.late_seconds,
            "out_of_order_seconds": self.pipeline.job.out_of_order_seconds,
            "inputs": [advice.summary for advice in self.inputs],
            "without_events": list(self.without_events),
            "warnings": [*self.pipeline.warnings, *self.warnings],
        }


def own_setting(pipeline: Pipeline) -> Setting:
    """Return the setting of a pipeline's job."""
    late = pipeline.job.late_seconds
    return Setting(None if late == NO_LIMIT else late, pipeline.job.out_of_order_seconds)


def advise(pipeline: Pipeline, start: datetime, end: datetime, now: datetime) -> Advice:
    """Read what arrived in a range, and return the advice on the job's tolerances.

    Raise DefinitionError for a range that is not whole slices, and for a query without TIMESTAMP BY. Raise RunError if
    no event arrived; other errors are those of `read_counts`.
    """
    require_whole_slices(pipeline, start, end)
    timed = [compiled for compiled in pipeline.query.inputs if compiled.timestamp_by is not None]
    if not timed:
        raise DefinitionError(
            f"{pipeline.file}: there is nothing to advise, because the query has no TIMESTAMP BY: every event is on "
            "time at its arrival, and no tolerance applies"
        )
    counts = {compiled.alias: read_counts(_to_read(pipeline, compiled, start, end), now) for compiled in timed}
    inputs = tuple(InputAdvice(read, own_setting(pipeline)) for read in counts.values() if read is not None)
    if not inputs:
        bounds = " to ".join(ticks.text_of(bound) for bound in (start, end))
        raise RunError(f"no event arrived from {bounds}: choose another range with --from and --to")
    return Advice(pipeline, start, end, inputs, tuple(alias for alias, read in counts.items() if read is None))


def _to_read(pipeline: Pipeline, compiled: CompiledInput, start: datetime, end: datetime) -> InputToRead:
    definition = next(
        definition for definition in run_definition(pipeline).inputs if definition.alias == compiled.alias
    )
    policies = pipeline.policies(compiled)
    assert policies is not None
    slices = slices_of(pipeline, start, end)
    # Without an early window each slice is judged separately: with a late tolerance as long as the range, every slice
    # would read the whole range again.
    longest = slice_length(pipeline) if policies.early_window is None else slices[-1].end - slices[0].start
    return InputToRead(
        compiled=compiled,
        section=pipeline.section(compiled.alias),
        definition=definition,
        policies=policies,
        reader=pipeline.reader(compiled),
        tolerances=tolerances(pipeline.job, longest // TICKS_PER_SECOND),
        slices=slices,
    )
