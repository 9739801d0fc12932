"""How the definitions that computed outdated slices differ from the pipeline's present one."""

from collections import Counter
from typing import Any

from recapture.archive.definition_changes import definition_changes
from recapture.archive.manifest import Manifest
from recapture.definition.digest import run_definition
from recapture.errors import RunError
from recapture.run.slice_state import State
from recapture.run_files.files import RunFiles
from recapture.tools.reports.sources import Source

MOST = 3
"""Largest number of earlier definitions that are compared: the manifest of a run is read for each."""


def earlier_definitions(source: Source) -> list[dict[str, Any]]:
    """Return what differs between the definitions of outdated slices and the present one, most slices first.

    `changes` is None if the manifest of the run cannot be read. A definition of which only the suites or the containers
    differ has no changes.
    """
    if source.standing is None:
        return []
    currents = [
        entry.current for start, entry in source.entries.items() if source.standing.state(start) is State.OUTDATED
    ]
    published = [current for current in currents if current is not None]
    run_of = {current.definition: current.run for current in published}
    now = run_definition(source.pipeline).digest_content
    earlier = []
    for digest, slices in Counter(current.definition for current in published).most_common(MOST):
        manifest = _manifest(source, run_of[digest])
        then = None if manifest is None else manifest.definition
        changes = None if then is None else definition_changes(then, now)
        earlier.append({"run": run_of[digest], "slices": slices, "changes": changes})
    return earlier


def _manifest(source: Source, run: str) -> Manifest | None:
    """Return the manifest of a run; None if it is gone or cannot be read."""
    if run in source.runs and source.runs[run].manifest is not None:
        return source.runs[run].manifest
    container = next(iter(source.runs.values())).files.container
    try:
        return RunFiles(container, run).find_manifest()
    except RunError:
        return None
