"""Random events: the parts of a slice have the rows of the whole slice, for every kind of query."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recapture.formats.event_hubs import CaptureInput
from recapture.query.compile import compile_query
from recapture.query.model import CompiledQuery
from recapture.time_model.ticks import TICKS_PER_SECOND
from tests.evaluate.evaluated import evaluated, parts_of, require_same_in_parts
from tests.execute.test_division import DECLARED, KINDS

START = 63_000_000_000 * TICKS_PER_SECOND
MINUTE = 60 * TICKS_PER_SECOND
LENGTH = 60 * MINUTE
DEVICES = st.sampled_from([None, "", "a", "b", "c", "ä"])
FLOATS = st.none() | st.sampled_from([0.0, -0.0, 0.1, 0.2, 1e16, -1e16, 20.0]) | st.floats(-1e3, 1e3)
TIMES = st.one_of(st.integers(-20, 60).map(lambda minute: minute * MINUTE), st.integers(-20 * MINUTE, LENGTH))
EVENTS = st.lists(st.tuples(TIMES, st.integers(0, MINUTE), DEVICES, FLOATS, st.sampled_from("01")), max_size=25)


def compiled(text: str) -> CompiledQuery:
    return compile_query(DECLARED + text, inputs={"telemetry": CaptureInput.metadata}, output_aliases=["aggregates"])


QUERIES = {kind: compiled(text) for kind, text in KINDS.items()}


def rows(drawn: list[tuple[int, int, str | None, float | None, str]]) -> list[dict[str, Any]]:
    """Return events of one slice, and some from before it, in the order of their arrivals."""
    bounds = {"_slice_start": START, "_slice_end": START + LENGTH}
    events = [
        {
            **bounds,
            "_partition": partition,
            "_system_timestamp": START + time,
            "_arrival": START + time + delay,
            "deviceId": device,
            "eventTime": START + time,
            "temperature": temperature,
        }
        for time, delay, device, temperature, partition in drawn
    ]
    return sorted(events, key=lambda event: event["_arrival"])


@pytest.mark.parametrize("kind", QUERIES)
@given(EVENTS)
def test_parts_have_the_rows_of_the_slice(
    kind: str, drawn: list[tuple[int, int, str | None, float | None, str]]
) -> None:
    query = QUERIES[kind]
    parts = parts_of(query, {"telemetry": rows(drawn)})
    whole = [evaluated(parts, output, {}) for output in query.outputs]
    require_same_in_parts(query, parts, whole, {})
