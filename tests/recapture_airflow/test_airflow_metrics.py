"""What tasks send to StatsD and OpenTelemetry, through Airflow's own clients."""

import atexit
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from opentelemetry import metrics as opentelemetry
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from recapture import cli
from recapture.definition.pipeline import load
from recapture.errors import DefinitionError
from recapture.tools.monitoring.exposition import Sample
from recapture.tools.monitoring.figures import GAUGES, figures
from tests.airflow_versions import needs_airflow
from tests.recapture_airflow.conftest import LoadPlugin
from tests.worlds import HOUR, TEN, World, one_event

needs_senders = needs_airflow("3.3", "what chooses the client of Airflow's metrics in these tests")


@pytest.fixture(scope="module")
def plugin(load_plugin: LoadPlugin) -> ModuleType:
    return load_plugin("airflow_metrics")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A published hour, for which blobs are still to be compared."""
    world = one_event(tmp_path_factory.mktemp("metrics"))
    world.define()
    assert cli.main(["backfill", str(world.file), "--from", TEN.isoformat(), "--to", (TEN + HOUR).isoformat()]) == 0
    assert cli.main(["check", str(world.file), "--from", TEN.isoformat(), "--to", (TEN + HOUR).isoformat()]) == 0
    return world


@pytest.fixture
def begin_task(plugin: ModuleType) -> Iterator[Callable[[], None]]:
    """Chooses the client that the configuration names, as a task's process does when it begins."""
    from airflow.sdk._shared.observability.metrics.base_stats_logger import NoStatsLogger
    from airflow.sdk.observability import stats
    from airflow.sdk.observability.metrics import stats_utils

    yield lambda: stats.initialize(factory=stats_utils.get_stats_factory(), export_legacy_names=True)
    stats.initialize(factory=NoStatsLogger, export_legacy_names=True)


@pytest.fixture
def statsd(monkeypatch: pytest.MonkeyPatch, begin_task: Callable[[], None]) -> Iterator[socket.socket]:
    """The address to which Airflow sends its StatsD metrics."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(10)
        monkeypatch.setenv("AIRFLOW__METRICS__STATSD_ON", "True")
        monkeypatch.setenv("AIRFLOW__METRICS__STATSD_HOST", "127.0.0.1")
        monkeypatch.setenv("AIRFLOW__METRICS__STATSD_PORT", str(server.getsockname()[1]))
        begin_task()
        yield server


def received(server: socket.socket, number: int) -> dict[str, float]:
    """Return this number of gauges that arrived as UDP packets, by name."""
    lines = [server.recv(1024).decode() for _ in range(number)]
    assert all(line.endswith("|g") for line in lines)
    return {name: float(value) for name, _, value in (line.removesuffix("|g").rpartition(":") for line in lines)}


def own_figures(world: World) -> list[Sample]:
    return figures(load(world.file))


@needs_senders
def test_plain_statsd_has_every_figure_under_a_name_with_its_labels(
    statsd: socket.socket, plugin: ModuleType, world: World
) -> None:
    samples = own_figures(world)
    assert {sample.gauge for sample in samples} == {*GAUGES}
    plugin.send_figures(world.file)
    values = received(statsd, len(samples))
    assert len(values) == len(samples), "no two figures share a name"
    assert sorted(values.values()) == sorted(float(sample.value) for sample in samples)
    assert values["airflow.recapture.slices.telemetry.published"] == 1
    assert values["airflow.recapture.slices.telemetry.published_with_warnings"] == 0
    assert values["airflow.recapture.newest_slice_rows.telemetry.aggregates"] == 1
    assert values["airflow.recapture.newest_slice_metric.telemetry.telemetry.InputEvents"] == 1
    assert values["airflow.recapture.newest_slice_end_timestamp_seconds.telemetry"] == (TEN + HOUR).timestamp()


@needs_senders
def test_statsd_with_tags_of_influxdb_has_labels_as_tags(
    statsd: socket.socket, monkeypatch: pytest.MonkeyPatch, plugin: ModuleType, world: World
) -> None:
    monkeypatch.setenv("AIRFLOW__METRICS__STATSD_INFLUXDB_ENABLED", "True")
    plugin.send_figures(world.file)
    values = received(statsd, len(own_figures(world)))
    assert values["airflow.recapture.slices,pipeline=telemetry,state=published_with_warnings"] == 0
    assert values["airflow.recapture.problems,pipeline=telemetry"] == 0


class Collector(HTTPServer):
    """An OpenTelemetry collector that keeps the gauges that it gets over HTTP."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Request)
        self.gauges: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}


class _Request(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        message = ExportMetricsServiceRequest.FromString(self.rfile.read(int(self.headers["Content-Length"])))
        for resource in message.resource_metrics:
            for metric in (metric for scope in resource.scope_metrics for metric in scope.metrics):
                for point in metric.gauge.data_points:
                    labels = frozenset((label.key, label.value.string_value) for label in point.attributes)
                    self.server.gauges[metric.name, labels] = point.as_double or point.as_int
        self.send_response(200)
        self.end_headers()

    def log_message(self, *unused: object) -> None:
        """Print nothing."""


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch, begin_task: Callable[[], None]) -> Iterator[Collector]:
    """The address to which Airflow sends its OpenTelemetry metrics."""
    from airflow.sdk._shared.observability.metrics.otel_logger import flush_otel_metrics

    with Collector() as server:
        thread = threading.Thread(target=server.serve_forever, args=[0.05])
        thread.start()
        monkeypatch.setenv("AIRFLOW__METRICS__OTEL_ON", "True")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        begin_task()
        try:
            yield server
            _provider().shutdown()
            atexit.unregister(flush_otel_metrics)
        finally:
            server.shutdown()
            thread.join()


def _provider() -> Any:
    return opentelemetry.get_meter_provider()


@needs_senders
def test_opentelemetry_has_every_figure_with_its_labels(collector: Collector, plugin: ModuleType, world: World) -> None:
    plugin.send_figures(world.file)
    _provider().force_flush()
    assert collector.gauges == {
        (
            sample.gauge.name.replace("recapture_", "airflow.recapture."),
            frozenset((label, value.replace(" ", "_")) for label, value in sample.labels.items()),
        ): sample.value
        for sample in own_figures(world)
    }


@needs_senders
def test_a_task_sends_figures_however_it_ends(statsd: socket.socket, plugin: ModuleType, world: World) -> None:
    @plugin.sends_figures
    def task(file: str, error: Exception | None = None) -> str:
        if error is not None:
            raise error
        return "done"

    number = len(own_figures(world))
    assert task(str(world.file)) == "done"
    assert received(statsd, number)
    with pytest.raises(DefinitionError, match="a mistake"):
        task(file=str(world.file), error=DefinitionError("a mistake"))
    assert received(statsd, number)


@needs_senders
@pytest.mark.usefixtures("statsd")
def test_figures_that_cannot_be_read_are_logged_and_the_task_goes_on(
    plugin: ModuleType, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    plugin.send_figures(tmp_path / "missing.yaml")
    [record] = caplog.records
    assert record.levelname == "WARNING"
    assert "missing.yaml" in record.getMessage()


def test_without_metrics_nothing_is_read(plugin: ModuleType, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    plugin.send_figures(tmp_path / "missing.yaml")
    assert caplog.records == []


@pytest.mark.parametrize(
    ("module", "name", "arguments"),
    [
        ("backfill_tasks", "publish", ("the run", {})),
        ("backfill_tasks", "rollback", ()),
        ("backfill_tasks", "check", ()),
        ("plan_tasks", "record_failure", ()),
        ("update_tasks", "due", ()),
        ("update_tasks", "record_job", ({},)),
    ],
)
def test_a_task_that_may_change_figures_sends_them(
    load_plugin: LoadPlugin,
    plugin: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    module: str,
    name: str,
    arguments: tuple[Any, ...],
) -> None:
    sent: list[Path] = []
    monkeypatch.setattr(plugin, "send_figures", sent.append)
    with suppress(Exception):  # the task fails, because its pipeline file is missing
        getattr(load_plugin(module), name).function("missing.yaml", *arguments)
    assert sent == [Path("missing.yaml")]
