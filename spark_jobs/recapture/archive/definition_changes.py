"""Which parts of a definition differ from those that a run was planned with, in words."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from recapture.time_model.ticks import TICKS_PER_SECOND

_SHOWN = 60
"""Number of characters that are shown of a long value."""
_BEFORE = 20
"""Number of these before the first difference."""
_SECONDS = {
    "out_of_order_tolerance": "eventsOutOfOrderMaxDelayInSeconds",
    "late_tolerance": "eventsLateArrivalMaxDelayInSeconds",
    "early_window": "early_arrival_seconds",
}
"""Keys of the pipeline file, by the policies that they decide, which are in ticks."""
_ACTIONS = {"adjust": "eventsOutOfOrderPolicy", "adjust_early": "early_policy"}
_NAMES = {"engine": "the version of Recapture", "query": "the query"}
_SECTIONS = {"functions": "function", "inputs": "input", "references": "reference data"}


def definition_changes(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return what differs between two values of `RunDefinition.digest_content`, with both values in short."""
    then, now = json.loads(json.dumps(then)), json.loads(json.dumps(now))
    changes = [_change(name, then[key], now[key]) for key, name in _NAMES.items() if then[key] != now[key]]
    for section, name in _SECTIONS.items():
        changes += _section_changes(name, _by_name(then[section]), _by_name(now[section]))
    return list(dict.fromkeys(changes))


def _by_name(section: Any) -> Mapping[str, Mapping[str, Any]]:
    return {function["name"]: function for function in section} if isinstance(section, list) else section


def _section_changes(
    section: str, then: Mapping[str, Mapping[str, Any]], now: Mapping[str, Mapping[str, Any]]
) -> Iterator[str]:
    for name in dict.fromkeys([*then, *now]):
        if name not in then or name not in now:
            yield f"{section} {name}, which is {'new' if name in now else 'gone'}"
            continue
        before, after = _settings(then[name]), _settings(now[name])
        for key in dict.fromkeys([*before, *after]):
            if before.get(key) != after.get(key):
                is_policy = key in (*_SECONDS.values(), *_ACTIONS.values())
                yield _change(key if is_policy else f"{section} {name}, {key}", before.get(key), after.get(key))


def _settings(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a part under the names that a pipeline file gives them."""
    settings: dict[str, Any] = {}
    for name, value in part.items():
        if name == "policies":
            settings |= {} if value is None else _job_settings(value)
        elif isinstance(value, Mapping):
            settings |= value
        else:
            settings[name] = value
    return settings


def _job_settings(policies: Mapping[str, Any]) -> dict[str, Any]:
    seconds = {
        key: None if policies[name] is None else policies[name] // TICKS_PER_SECOND for name, key in _SECONDS.items()
    }
    if policies["late_tolerance"] is None:
        seconds[_SECONDS["late_tolerance"]] = -1
    return seconds | {key: "Adjust" if policies[name] else "Drop" for name, key in _ACTIONS.items()}


def _change(name: str, then: Any, now: Any) -> str:
    texts = [value if isinstance(value, str) else json.dumps(value) for value in (then, now)]
    start = max(_common(*texts) - _BEFORE, 0)
    shown = [_excerpt(text, start if any(len(text) > _SHOWN for text in texts) else 0) for text in texts]
    return f"{name} (then {shown[0]}, now {shown[1]})"


def _common(left: str, right: str) -> int:
    """Return the number of characters at the start of two texts that are the same."""
    pairs = zip(left, right, strict=False)
    return next((number for number, (a, b) in enumerate(pairs) if a != b), min(len(left), len(right)))


def _excerpt(text: str, start: int) -> str:
    end = start + _SHOWN
    shown = " ".join(text[start:end].split())
    return f"{'…' * (start > 0)}{shown}{'…' * (end < len(text))}"
