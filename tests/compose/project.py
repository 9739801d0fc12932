"""The services of a compose file, as values."""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

COMPLETED, HEALTHY, STARTED = "service_completed_successfully", "service_healthy", "service_started"


@dataclass(frozen=True)
class Mount:
    """A folder or file that a container sees at `target`."""

    source: str
    """Name of a volume, or a path relative to the compose file, which begins with a dot."""
    target: str
    read_only: bool

    @property
    def is_volume(self) -> bool:
        return not self.source.startswith(".")


@dataclass(frozen=True)
class Service:
    """What the compose file says about a service."""

    name: str
    image: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    user: str | None
    workdir: str | None
    mounts: tuple[Mount, ...]
    health: tuple[str, ...]
    """Command that ends with 0 if the service is healthy; empty without a health check."""
    interval: float
    """Seconds between health checks until the service is healthy."""
    patience: float
    """Seconds until a service that has not become healthy is unhealthy."""
    conditions: Mapping[str, str]
    """The condition that another service must meet before this one starts."""
    added_capabilities: tuple[str, ...]
    keeps_capabilities: bool
    shares_network: bool


def services(file: Path, variables: Mapping[str, str]) -> list[Service]:
    """Return the services of a compose file with its variables replaced."""
    document = yaml.safe_load(_replaced(file.read_text(), variables))
    return [_service(name, values) for name, values in document["services"].items()]


def _replaced(text: str, variables: Mapping[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        return "$" if match[0] == "$$" else variables.get(match[1], match[2])

    return re.sub(r"\$\$|\$\{(\w+):-([^}]*)\}", value, text)


def _service(name: str, values: Mapping[str, Any]) -> Service:
    command = values.get("command", ())
    check = values.get("healthcheck", {})
    kind, *test = check.get("test", ["CMD"])
    assert kind == "CMD", "a health check without a shell"
    conditions = {other: condition["condition"] for other, condition in values.get("depends_on", {}).items()}
    network = values.get("network_mode", "")
    if network.startswith("service:"):
        conditions.setdefault(network.removeprefix("service:"), STARTED)
    return Service(
        name,
        values["image"],
        tuple(shlex.split(command) if isinstance(command, str) else command),
        values.get("environment", {}),
        values.get("user"),
        values.get("working_dir"),
        tuple(map(_mount, values.get("volumes", ()))),
        tuple(test),
        _seconds(check.get("start_interval", "0s")),
        _seconds(check.get("start_period", "0s"))
        + check.get("retries", 0) * (_seconds(check.get("interval", "0s")) + _seconds(check.get("timeout", "0s"))),
        conditions,
        tuple(values.get("cap_add", ())),
        "ALL" not in values.get("cap_drop", ()),
        network != "none",
    )


def _mount(text: str) -> Mount:
    source, target, *mode = text.split(":")
    return Mount(source, target, mode == ["ro"])


def _seconds(text: str) -> float:
    return float(text.removesuffix("s"))
