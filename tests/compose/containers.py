"""Services as processes: each has its own root folder, an overlay of its image, and only the mounts of the service.

This needs root, and a namespace of processes and one of the network, which `python -m tests.compose` makes.
"""

import shlex
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.compose.image import Image
from tests.compose.project import COMPLETED, HEALTHY, Mount, Service
from tests.paths import ROOT

LOOK_EVERY = 0.5
"""Seconds between two looks at the services."""
PATIENCE = 5
"""Factor for the time that the compose file gives a service to become healthy: this machine may do other work, too."""


@dataclass
class Container:
    """A service that was started."""

    service: Service
    image: Image
    root: Path
    process: subprocess.Popen[bytes]
    log: Path
    began: float = field(default_factory=time.monotonic)
    checked: float = 0.0
    is_healthy: bool = False

    def meets(self, condition: str) -> bool:
        """Return whether the service is healthy or has completed, if that is the condition."""
        if condition == COMPLETED:
            return self.process.poll() == 0
        return condition != HEALTHY or self.is_healthy

    def look(self) -> None:
        """Check its health if that is due. Raise RuntimeError if it has ended, or is not healthy in time."""
        code = self.process.poll()
        if code is not None and (code != 0 or self.service.health):
            raise RuntimeError(f"{self.service.name} ended with {code}:\n{self.tail()}")
        now = time.monotonic()
        if not self.service.health or self.is_healthy or now - self.checked < self.service.interval:
            return
        self.checked = now
        enter = ["nsenter", f"--mount=/proc/{self.process.pid}/ns/mnt", "sh", "-c"]
        done = subprocess.run(
            [*enter, _inside(self.service, self.image, self.service.health, self.root)], capture_output=True
        )
        if done.returncode == 0:
            self.is_healthy = True
            print(f"  {self.service.name:<16} healthy after {now - self.began:5.1f} s", flush=True)
        elif now - self.began > PATIENCE * self.service.patience:
            raise RuntimeError(f"{self.service.name} is not healthy: {done.stderr.decode()}\n{self.tail()}")

    def tail(self) -> str:
        """Return the end of its output."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-30:])


class Project:
    """The containers of a compose project, whose volumes are folders in `scratch`."""

    def __init__(self, services: Sequence[Service], images: Mapping[str, Image], scratch: Path) -> None:
        self.services, self.images, self.scratch = services, images, scratch
        self.containers: dict[str, Container] = {}

    def up(self) -> None:
        """Start every service when its conditions are met, and return when all are healthy or have completed."""
        waiting = list(self.services)
        while waiting or any(self._is_expected(container) for container in self.containers.values()):
            for service in list(waiting):
                others = service.conditions.items()
                if all(other in self.containers and self.containers[other].meets(what) for other, what in others):
                    self.containers[service.name] = self._start(service)
                    waiting.remove(service)
            for container in self.containers.values():
                container.look()
            time.sleep(LOOK_EVERY)

    def _is_expected(self, container: Container) -> bool:
        """Return whether a service has not yet become healthy, or has not yet completed if others need that."""
        needed = {service.conditions.get(container.service.name) for service in self.services}
        if container.service.health:
            return not container.is_healthy
        return COMPLETED in needed and container.process.poll() is None

    def down(self) -> None:
        """Stop the services, those that others depend on last."""
        for container in reversed(self.containers.values()):
            container.process.terminate()
        for container in self.containers.values():
            try:
                container.process.wait(20)
            except subprocess.TimeoutExpired:
                container.process.kill()
                container.process.wait()
        self.containers.clear()

    def volume(self, name: str) -> Path:
        """Return the folder of a volume."""
        return self.scratch / "volumes" / name

    def _start(self, service: Service) -> Container:
        image = self.images[service.image.split("@")[0]]
        layer = self.scratch / "containers" / service.name
        shutil.rmtree(layer, ignore_errors=True)
        for name in ("upper", "work", "root"):
            (layer / name).mkdir(parents=True)
        root, log = layer / "root", self.scratch / f"{service.name}.log"
        lines = [
            "set -e",
            f"mount -t overlay overlay -o lowerdir={image.layers},upperdir={layer}/upper,workdir={layer}/work {root}",
            f"mount --rbind /dev {root}/dev",
            f"mount -t proc proc {root}/proc",
        ]
        for mount in service.mounts:
            lines += self._mounted(mount, image, root)
        command = [*image.entrypoint, *service.command]
        lines.append(_inside(service, image, command, root))
        alone = [] if service.shares_network else ["--net"]
        print(f"  {service.name:<16} starts: {shlex.join(service.command)[:90]}", flush=True)
        with log.open("ab") as output:
            process = subprocess.Popen(
                ["unshare", "--mount", *alone, "sh", "-c", "\n".join(lines)], stdout=output, stderr=output
            )
        return Container(service, image, root, process, log)

    def _mounted(self, mount: Mount, image: Image, root: Path) -> list[str]:
        """Return the commands that mount a volume, or a part of the checkout; a new volume is like the image there."""
        source = self.volume(mount.source) if mount.is_volume else (ROOT / "docker" / mount.source).resolve()
        target, origin = f"{root}{mount.target}", image.root / mount.target.lstrip("/")
        if mount.is_volume and not source.exists():
            source.mkdir(parents=True)
            if origin.is_dir():
                subprocess.run(["cp", "--archive", "--no-target-directory", str(origin), str(source)], check=True)
        made = f"mkdir -p {target}" if source.is_dir() else f"mkdir -p $(dirname {target}) && touch {target}"
        read_only = [f"mount -o remount,bind,ro {target}"] if mount.read_only else []
        return [made, f"mount --bind {source} {target}", *read_only]


def _inside(service: Service, image: Image, command: Sequence[str], root: Path) -> str:
    """Return the line of a shell that runs a command in the root folder of a service, as its user and environment."""
    user = service.user or image.user
    environment = {"HOME": image.home} | image.environment | dict(service.environment)
    kept = "".join(f",+{name.lower()}" for name in service.added_capabilities)
    limits = [] if service.keeps_capabilities else ["--inh-caps=-all", f"--bounding-set=-all{kept}", "--no-new-privs"]
    become = ["setpriv", "--reuid", user, "--regid", "0", "--clear-groups", *limits]
    variables = ["env", "-i", *(f"{name}={value}" for name, value in environment.items())]
    workdir = ["sh", "-c", 'cd "$0" && exec "$@"', service.workdir or image.workdir]
    return "exec " + shlex.join(["chroot", str(root), *become, *variables, *workdir, *command])
