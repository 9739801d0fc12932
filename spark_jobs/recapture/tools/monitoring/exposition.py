"""Write samples in Prometheus' text format.

Source: "Exposition formats", https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Gauge:
    """A metric that can rise and fall."""

    name: str
    help: str


@dataclass(frozen=True)
class Sample:
    """A value of a gauge."""

    gauge: Gauge
    labels: Mapping[str, str]
    value: float


def text_of(samples: Iterable[Sample]) -> str:
    """Return the samples as text. Those of a gauge follow its help, in their order."""
    by_gauge: dict[Gauge, list[Sample]] = {}
    for sample in samples:
        by_gauge.setdefault(sample.gauge, []).append(sample)
    return "".join(map(_gauge, by_gauge, by_gauge.values()))


def _gauge(gauge: Gauge, samples: Iterable[Sample]) -> str:
    lines = [f"# HELP {gauge.name} {gauge.help}", f"# TYPE {gauge.name} gauge", *map(_line, samples)]
    return "".join(f"{line}\n" for line in lines)


def _line(sample: Sample) -> str:
    labels = ",".join(f'{name}="{_escaped(value)}"' for name, value in sample.labels.items())
    return f"{sample.gauge.name}{{{labels}}} {sample.value!r}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
