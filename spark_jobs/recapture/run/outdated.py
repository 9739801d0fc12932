"""Find the published slices that another definition than the pipeline's computed, or another suite judged."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from recapture.archive.definitions import digest_of
from recapture.definition.digest import run_definition
from recapture.definition.pipeline import Pipeline
from recapture.run.suites import load_suites
from recapture.table.publications import Publications

PARTS = ("engine", "query", "functions", "policies", "inputs", "suite")
"""What a slice depends on besides its blobs.

The engine's version, the query and its JavaScript functions, the policies, how inputs and reference data are read, and
the suites that judge the rows.
"""
UNKNOWN = "unknown"
"""What differs, if an older version published the slice and did not say."""


def parts_of(pipeline: Pipeline) -> dict[str, str]:
    """Return the parts of a pipeline's definition, by their names in PARTS: the engine's version, and digests."""
    suites: dict[str, list[Any]] = {}
    for alias, suite in load_suites(pipeline).items():
        expectations = [asdict(expectation) | {"where": None} for expectation in suite.expectations]
        suites[alias] = [expectations, sorted(suite.severities.items()), sorted(suite.parameters.items())]
    return run_definition(pipeline).parts | {"suite": digest_of(suites)}


def outdated_slices(pipeline: Pipeline, publications: Publications) -> dict[str, tuple[str, ...]]:
    """Return the published slices whose parts differ from the pipeline's, by slice_start, with the names of the parts.

    One entry is read for each definition that the table holds.
    """
    present = parts_of(pipeline)
    digest = digest_of(present)
    others: dict[str, list[str]] = {}
    for start, entry in publications.table.slices().items():
        if entry["run"] is not None and entry.get("parts") != digest:
            others.setdefault(entry.get("parts") or "", []).append(start)
    return {
        start: differing(_parts(publications, starts[0]), present) for starts in others.values() for start in starts
    }


def differing(parts: Mapping[str, str] | None, present: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the parts that differ, in the order of PARTS."""
    if parts is None:
        return (UNKNOWN,)
    return tuple(name for name in PARTS if parts.get(name) != present.get(name))


def _parts(publications: Publications, start: str) -> Mapping[str, Any] | None:
    current = publications.entries([start])[start].current
    return None if current is None else current.parts
