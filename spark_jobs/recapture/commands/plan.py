"""Show what a backfill would read."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from recapture import printing
from recapture.archive.manifest import Manifest
from recapture.commands.arguments import load_pipeline
from recapture.definition.pipeline import Pipeline
from recapture.execute.engine import DEFAULT_MASTER, cores_of, engine_of
from recapture.run.estimate import estimate
from recapture.run.plan import end_of, preview_run
from recapture.run.plan_relations import plan_relations
from recapture.run.plan_summary import plan_summary
from recapture.run.progress import capture_progress, storage_time
from recapture.run.slice_state import standing_of
from recapture.run.stages import description, stages_of


def run(stderr: Console, *, file: Path, start: datetime, end: datetime, json: bool, explain: bool) -> dict[str, Any]:
    """Return what a backfill of the range would read, and with `explain`, how it computes the rows. Write nothing."""
    pipeline = load_pipeline(file, stderr)
    runs: list[dict[str, Any]] = []
    while not runs or start < end:
        manifest = preview_run(pipeline, start, end)
        runs.append(_planned(pipeline, manifest, stderr, json=json, explain=explain and not runs))
        start = end_of(manifest)
    if len(runs) == 1:
        return runs[0]
    if not json:
        printing.console().print(f"the range is too long for one run: a backfill computes it in {len(runs)} runs")
    return {"pipeline": pipeline.name, "runs": runs}


def _planned(pipeline: Pipeline, manifest: Manifest, stderr: Console, *, json: bool, explain: bool) -> dict[str, Any]:
    """Print what a run would read, unless `json`, and return it."""
    progress = capture_progress(pipeline, manifest, storage_time(pipeline, datetime.now(UTC)))
    standing = standing_of(pipeline)
    result = plan_summary(pipeline, manifest, progress, standing)
    engine = engine_of(pipeline.engine, DEFAULT_MASTER)
    stages = [{"name": stage, "description": description(stage, pipeline, engine)} for stage in stages_of()]
    cores = cores_of(DEFAULT_MASTER)
    result |= {"engine": engine, "stages": stages}
    result["estimate"] = estimate(pipeline, manifest, engine, cores, standing.entries)
    printing.print_warnings(stderr, result["warnings"])
    result["warnings"] = [*pipeline.warnings, *result["warnings"]]
    if explain:
        result["relations"] = plan_relations(pipeline.query)
    if not json:
        printing.print_plan(printing.console(), result, progress)
    return result
