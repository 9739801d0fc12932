"""Find the published slices that another definition than the pipeline's computed, or another suite judged."""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cache
from typing import Any

from recapture.archive.definitions import digest_of
from recapture.definition.digest import run_definition
from recapture.definition.pipeline import Pipeline
from recapture.errors import DefinitionError
from recapture.run.suites import load_suites
from recapture.storage import addresses
from recapture.table.publications import ShownEntry

PARTS = ("engine", "query", "functions", "policies", "inputs", "containers", "suite")
"""What a slice depends on besides its blobs.

The version of Recapture, the query and its JavaScript functions, the policies, how inputs and reference data are read,
the containers and the names of their blobs, and the suites that judge the rows.
"""
UNKNOWN = "unknown"
"""What differs, if an older version published the slice and did not say."""
_SAMPLE = datetime(2000, 1, 1, tzinfo=UTC)
_DIGITS = 12
"""Length of the digests."""


def parts_of(pipeline: Pipeline) -> dict[str, str]:
    """Return the parts in PARTS: the version of Recapture, and short digests. A refused suite differs from all."""
    parts = run_definition(pipeline).parts
    parts |= {"containers": digest_of(_places(pipeline)), "suite": _suite_digest(pipeline)}
    return {name: value if name == "engine" else value[:_DIGITS] for name, value in parts.items()}


def _places(pipeline: Pipeline) -> dict[str, list[str]]:
    """Return the container of each input, and the name that a blob has in it, by alias."""
    return {
        section.alias: [
            *(address.rstrip("/") for address in addresses(section.container)),
            section.names.name("0", _SAMPLE),
        ]
        for section in pipeline.all_inputs
    }


def _suite_digest(pipeline: Pipeline) -> str:
    suites: dict[str, list[Any]] = {}
    try:
        for alias, suite in load_suites(pipeline).items():
            expectations = [asdict(expectation) | {"where": None} for expectation in suite.expectations]
            suites[alias] = [expectations, sorted(suite.severities.items()), sorted(suite.parameters.items())]
    except DefinitionError as error:
        return f"refused: {error}"
    return digest_of(suites)


def outdated_slices(present: Mapping[str, str], entries: Mapping[str, ShownEntry]) -> dict[str, tuple[str, ...]]:
    """Return the names of the parts that differ from the present ones, by slice_start; `entries` are the snapshot's."""
    differing = cache(lambda written: _differing(written, present))
    differences = {start: differing(entry.parts) for start, entry in entries.items() if entry.run is not None}
    return {start: names for start, names in differences.items() if names}


def is_outdated(differing: Collection[str]) -> bool:
    """Return whether rows may differ because of these parts; another version of Recapture alone is only mentioned."""
    return any(name != "engine" for name in differing)


def in_words(differing: Iterable[Collection[str]]) -> str:
    """Return what differs from the pipeline's present definition in any of several slices; empty if nothing does.

    [("engine", "query"), ("suite",)] => other query, suite, version of Recapture
    """
    names = {name for parts in differing for name in parts}
    known = [name for name in PARTS if name in names and name != "engine"]
    known += ["version of Recapture"] if "engine" in names else []
    other = [f"other {', '.join(known)}"] if known else []
    return "; ".join([*other, *(["definition not recorded"] if UNKNOWN in names else [])])


def _differing(written: str | None, present: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the parts that differ, in the order of PARTS; `written` is JSON."""
    if written is None:
        return (UNKNOWN,)
    parts = json.loads(written)
    parts.setdefault("containers", present.get("containers"))  # versions before 0.2 did not record them
    return tuple(name for name in PARTS if parts.get(name) != present.get(name))
