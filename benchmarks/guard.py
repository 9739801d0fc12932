"""`python -m benchmarks.guard`: whether a stage has become slower, as a ratio to decoding and parsing, in two minutes.

The stages take turns, so a busy machine slows all of them. The exit code is 1 if a ratio is above its limit. After a
change that makes a stage faster, lower the limit.
"""

import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median

from pyspark.sql import SparkSession

from benchmarks.floor import read_blobs
from benchmarks.run import WORLDS, pipeline_file
from benchmarks.world import START, World
from recapture.definition.pipeline import load
from recapture.execute.processes import compute as local
from recapture.execute.processes.workers import Workers, workers
from recapture.execute.spark import compute as spark_job
from recapture.execute.spark.session import create_session
from recapture.ordering.order import Reading, order
from recapture.ordering.task import split
from recapture.run.plan import plan_run
from recapture.storage import open_container

WORLD = World(600_000, hours=1)
ROUNDS = 5
LIMITS = {"order": 1.1, "order and aggregate": 1.05, "planned to staged": 1.0, "planned to staged with Spark": 2.4}
"""Largest ratio of each stage to decoding and parsing in one process, a quarter above what was measured."""


def main() -> int:
    """Print the ratios; return 1 if one is above its limit."""
    ratios = measure(ROUNDS)
    for stage, ratio in ratios.items():
        print(f"{stage}: {ratio:.2f} of decoding and parsing, limit {LIMITS[stage]:.2f}")
    too_slow = slower(ratios)
    if too_slow:
        print(f"slower than before: {', '.join(too_slow)}", file=sys.stderr)
    return bool(too_slow)


def slower(ratios: Mapping[str, float]) -> list[str]:
    """Return the stages whose ratios are above their limits."""
    return [stage for stage, ratio in ratios.items() if ratio > LIMITS[stage]]


def measure(rounds: int) -> dict[str, float]:
    """Return the median ratio of each stage, after a round that warms up."""
    archive = WORLDS / "guard"
    WORLD.make(archive)
    with tempfile.TemporaryDirectory() as scratch, workers(2) as processes:
        spark = create_session("local[2]", "guard", Path(scratch))
        try:
            stages = _stages(spark, processes, Path(scratch), archive)
            _, *seconds = [{name: _seconds(stage) for name, stage in stages.items()} for _ in range(rounds + 1)]
        finally:
            spark.stop()
    return {
        stage: median(round_seconds[stage] / round_seconds["floor"] for round_seconds in seconds) for stage in LIMITS
    }


def _stages(spark: SparkSession, processes: Workers, scratch: Path, archive: Path) -> dict[str, Callable[[], object]]:
    """Return the floor and the stages. All but the last two run in this process."""
    pipeline = load(pipeline_file(scratch, archive))
    run = plan_run(pipeline, START, WORLD.end)
    compiled = pipeline.query.inputs[0]
    planned, container = run.manifest.input(compiled.alias), open_container(archive.as_uri())
    tasks = list(split(planned.slices, planned.blobs, run.manifest.size))
    blobs = sorted(archive.rglob("*.avro"))

    def run_tasks(aggregate: bool) -> None:
        for task in tasks:
            reading = Reading(compiled, pipeline.policies(compiled), pipeline.reader(compiled))
            batches, _ = order(task, container, reading, aggregate=aggregate)
            for _ in batches:
                pass

    return {
        "floor": lambda: read_blobs(blobs, pipeline.query),
        "order": lambda: run_tasks(aggregate=False),
        "order and aggregate": lambda: run_tasks(aggregate=True),
        "planned to staged": lambda: local.compute(processes, run, scratch),
        "planned to staged with Spark": lambda: spark_job.compute(spark, run),
    }


def _seconds(stage: Callable[[], object]) -> float:
    begin = time.perf_counter()
    stage()
    return time.perf_counter() - begin


if __name__ == "__main__":
    sys.exit(main())
