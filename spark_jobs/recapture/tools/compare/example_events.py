"""The events behind an example: those that a run treats otherwise if it computes as the live job did."""

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recapture.process.wording import counted
from recapture.quality.sentences import value_text
from recapture.run.plan import pinned
from recapture.time_model import ticks
from recapture.time_model.slices import Slice
from recapture.tools.compare.assumptions import Trial
from recapture.tools.compare.trials import Trials
from recapture.tools.diff.tried import Tried
from recapture.tools.events.event import place
from recapture.tools.events.plans import SlicePlan
from recapture.tools.events.reading import InputToSearch, JudgedEvents, batch, judged_events

MAX_EVENTS = 3
"""Largest number of events that are named of an example."""
_NOT_READ = "not among the events that this slice reads"
_PUBLISHED = Trial(Tried())
"""Computes with the settings of the published run."""
Key = tuple[Any, ...]
"""What identifies an event: the values of the columns in _KEY."""
_KEY = ("input", "partition", "sequence_number", "place", "blob")
Events = Mapping[Key, Mapping[str, Any]]
"""Events by key, with `reading.SCHEMA`."""
Selected = Callable[[JudgedEvents], NDArray[np.bool_]]
"""Says which events of a chunk are selected."""


@dataclass(frozen=True)
class Example:
    """A row that differs."""

    slice: Slice
    end: datetime
    """End of its window."""
    keys: Mapping[str, Any]
    """Values of its key besides the end of the window."""


def events_behind(trials: Trials, examples: Sequence[tuple[Trial, Example]], reach: timedelta) -> list[list[str]]:
    """Return for each example a sentence for each event that its trial treats otherwise than the published run.

    After MAX_EVENTS of them, one sentence has the number of the others.

    The events are those whose time is in the window of the row, `reach` long, and whose bodies have no other value of a
    key. The blobs of a slice are read once for the published run, and once for each trial. They are read again to
    look up events that only one side has in the windows.
    """
    sentences: list[list[str]] = [[] for _ in examples]
    windows = [(ticks.from_datetime(row.end - reach), ticks.from_datetime(row.end)) for _, row in examples]
    by_slice: dict[Slice, dict[Trial, list[int]]] = {}
    for number, (trial, row) in enumerate(examples):
        by_slice.setdefault(row.slice, {}).setdefault(trial, []).append(number)
    for slice_, by_trial in by_slice.items():
        chosen = {trial: [windows[number] for number in numbers] for trial, numbers in by_trial.items()}
        published = _events_in(trials, _PUBLISHED, slice_, list(itertools.chain.from_iterable(chosen.values())))
        live = {trial: _events_in(trials, trial, slice_, chosen[trial]) for trial in by_trial}
        moved = {key for events in live.values() for key in events} - published.keys()
        ours = {**published, **_events_of(trials, _PUBLISHED, slice_, moved)}
        for trial, numbers in by_trial.items():
            in_window = {
                key for key, event in published.items() if any(_is_in(window, event) for window in chosen[trial])
            }
            theirs = {**live[trial], **_events_of(trials, trial, slice_, in_window - live[trial].keys())}
            for number in numbers:
                sentences[number] = _sentences(examples[number][1], windows[number], ours, theirs)
    return sentences


def _events_in(trials: Trials, trial: Trial, slice_: Slice, windows: Sequence[tuple[int, int]]) -> Events:
    """Return the events of a slice, as a trial treats them, whose times may be in one of the windows (start, end].

    Windows are in ticks.
    """

    def is_in_window(events: JudgedEvents) -> NDArray[np.bool_]:
        judged, timed = events.judged.judged, events.judged.timed
        is_in = np.zeros(len(events.chunk), bool)
        for start, end in windows:
            is_in |= judged.processed & (judged.system_timestamp > start) & (judged.system_timestamp <= end)
            if timed is not None:
                is_in |= timed.has_time & (timed.time > start) & (timed.time <= end)
        return is_in

    return dict(_selected(trials, trial, slice_, is_in_window))


def _events_of(trials: Trials, trial: Trial, slice_: Slice, keys: AbstractSet[Key]) -> Events:
    """Return the events with these keys that a slice reads, as a trial treats them."""
    if not keys:
        return {}
    numbers = np.array([place if number is None else number for _, _, number, place, _ in keys])
    read = _selected(trials, trial, slice_, lambda events: np.isin(events.chunk.number, numbers))
    return {key: event for key, event in read if key in keys}


def _selected(
    trials: Trials, trial: Trial, slice_: Slice, is_selected: Selected
) -> Iterator[tuple[Key, Mapping[str, Any]]]:
    """Yield the selected events of a slice, as a trial treats them."""
    for pipeline, _ in trials.pipelines(trial, [slice_]):
        manifest = pinned(pipeline, [slice_])
        for compiled in pipeline.query.inputs:
            source = InputToSearch.of(pipeline, compiled)
            for task in SlicePlan(slice_, manifest.input(compiled.alias), None, None).tasks:
                for events in judged_events(source, task, set()):
                    rows = np.flatnonzero(is_selected(events))
                    for event in batch(source, task, events.chunk, rows, events).to_pylist():
                        yield tuple(event[name] for name in _KEY), event


def _sentences(example: Example, window: tuple[int, int], published: Events, live: Events) -> list[str]:
    differing = []
    for key in {**published, **live}:
        ours, theirs = published.get(key), live.get(key)
        event = ours or theirs or {}
        if _treatment(ours) != _treatment(theirs) and _is_in(window, ours, theirs) and _may_be_of(example, event):
            differing.append((event["arrival"], _sentence(event, ours, theirs)))
    differing.sort()
    named = [sentence for _, sentence in differing[:MAX_EVENTS]]
    return named + (
        [f"and {counted(len(differing) - MAX_EVENTS, 'more event')}"] if len(differing) > MAX_EVENTS else []
    )


def _sentence(event: Mapping[str, Any], ours: Mapping[str, Any] | None, theirs: Mapping[str, Any] | None) -> str:
    shown = {name: value for name, value in event.items() if value is not None}
    arrived = f"arrived {ticks.to_text(event['arrival'])}"
    time = "" if event["time"] is None else f", time {ticks.to_text(event['time'])}"
    return f"{place(shown)}: {arrived}{time}; published: {_words(ours)}; live: {_words(theirs)}"


def _words(event: Mapping[str, Any] | None) -> str:
    if event is None:
        return _NOT_READ
    system = (
        "" if event["system_timestamp"] is None else f", System.Timestamp {ticks.to_text(event['system_timestamp'])}"
    )
    why = "" if event["reason"] is None else f" ({event['reason']})"
    return f"{event['verdict']}{system}{why}"


def _treatment(event: Mapping[str, Any] | None) -> tuple[Any, ...] | None:
    return None if event is None else (event["verdict"], event["system_timestamp"])


def _is_in(window: tuple[int, int], *events: Mapping[str, Any] | None) -> bool:
    """Return whether an event is in the window, as either of the two treats it."""
    times = [event["system_timestamp"] for event in events if event is not None]
    return any(time is not None and window[0] < time <= window[1] for time in times)


def _may_be_of(example: Example, event: Mapping[str, Any]) -> bool:
    """Return whether the body of an event has no other value in a field that has the name of a key."""
    try:
        body = json.loads(event["body"] or b"null")
    except ValueError:
        return True
    fields = {name.lower(): value for name, value in body.items()} if isinstance(body, dict) else {}
    return all(
        name.lower() not in fields or value_text(fields[name.lower()], 17) == value_text(value, 17)
        for name, value in example.keys.items()
    )
