"""Print the figures of a pipeline for Prometheus."""

from pathlib import Path
from typing import Any

from rich.console import Console

from recapture.commands.arguments import load_pipeline
from recapture.tools.monitoring.exposition import text_of
from recapture.tools.monitoring.figures import figures


def run(stderr: Console, *, file: Path, json: bool) -> dict[str, Any]:
    """Return the samples of all gauges."""
    samples = figures(load_pipeline(file, stderr))
    if not json:
        print(text_of(samples), end="")
    return {
        "samples": [
            {"name": sample.gauge.name, "labels": dict(sample.labels), "value": sample.value} for sample in samples
        ]
    }
