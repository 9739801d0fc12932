"""Events of the samples that a run's profile keeps."""

from typing import Any


def sampled(arrival: int, time: int | None, verdict: str, number: int, **more: Any) -> dict[str, Any]:
    """Return a sampled event whose time was not adjusted and is the largest so far, unless `more` says otherwise."""
    instants = {"arrival": arrival, "time": time, "system_timestamp": time, "largest_time": time}
    return {
        **instants,
        "verdict": verdict,
        "key": None,
        "blob": "blob",
        "sequence_number": number,
        "place": None,
        **more,
    }
