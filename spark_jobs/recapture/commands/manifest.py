"""The manifest of a run that is repeated, given as a file or as a run."""

from recapture.archive import changes
from recapture.archive.manifest import Manifest
from recapture.definition.pipeline import Pipeline
from recapture.errors import RunError
from recapture.run.plan import changed_since, load_manifest, preview, require_publishable
from recapture.time_model import ticks


def repeated(pipeline: Pipeline, name: str, *, replan: bool, take_over: bool) -> tuple[Manifest, list[str]]:
    """Return the manifest in a file or of a run, and warnings; write nothing.

    If its blobs have changed, return a new manifest of the same range if `replan`, and otherwise raise RunError.
    """
    manifest = load_manifest(pipeline, name)
    changed = changed_since(pipeline, manifest)
    if not changed:
        require_publishable(pipeline, take_over=take_over)
        return manifest, []
    count = f"{len(changed):,} of the {manifest.pinned_count:,} blobs"
    difference = f"{count} of run {manifest.run} have changed since it was planned:\n{changes.summary(changed)}"
    if not replan:
        raise RunError(
            f"{difference}\nrestore them, or add --changed replan to plan the range again from the current blobs"
        )
    bounds = manifest.slices[0].slice.start, manifest.slices[-1].slice.end
    start, end = map(ticks.to_datetime, bounds)
    manifest = preview(pipeline, start, end, take_over=take_over)
    return manifest, [f"{difference}\nplanned again as run {manifest.run}"]
