"""Send the figures of a pipeline through Airflow's own metrics, so that its StatsD or OpenTelemetry has them."""

import logging
import re
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import ParamSpec, TypeVar

from airflow.configuration import conf

from recapture.definition.pipeline import load
from recapture_airflow.airflow_versions import metrics_client

P = ParamSpec("P")
R = TypeVar("R")
_LOG = logging.getLogger(__name__)


def sends_figures(function: Callable[P, R]) -> Callable[P, R]:
    """Let a task send the figures of its pipeline when it has ended, however it has ended.

    The first argument of the task's function is the pipeline file.
    """

    @wraps(function)
    def with_figures(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        finally:
            send_figures(Path(str(args[0] if args else kwargs["file"])))

    return with_figures


def send_figures(file: Path) -> None:
    """Send the figures of a pipeline, if this Airflow sends metrics. An error is logged; the task goes on."""
    if not any(_is_on(name) for name in ("statsd_datadog_enabled", "statsd_on", "otel_on")):
        return
    from recapture.tools.monitoring.figures import figures

    try:
        gauge = metrics_client().gauge
        for sample in figures(load(file)):
            name = sample.gauge.name.replace("_", ".", 1)
            labels = {label: re.sub(r"[^A-Za-z0-9_-]", "_", value) for label, value in sample.labels.items()}
            if _has_tags():
                gauge(name, sample.value, tags=labels)
            else:
                gauge(".".join([name, *labels.values()]), sample.value)
    except Exception as error:
        _LOG.warning("the figures of the pipeline could not be sent to Airflow's metrics: %s", error)


def _has_tags() -> bool:
    """Return whether metrics have tags. Plain StatsD has none, so there a name ends with the values of its labels."""
    if _is_on("statsd_datadog_enabled"):
        return bool(conf.getboolean("metrics", "statsd_datadog_metrics_tags", fallback=True))
    return not _is_on("statsd_on") or _is_on("statsd_influxdb_enabled")


def _is_on(name: str) -> bool:
    return bool(conf.getboolean("metrics", name, fallback=False))
