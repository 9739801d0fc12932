"""Build docker/Dockerfile into folders: each stage is a folder, and RUN is a command with that folder as its root."""

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tests.compose.context import Step, is_sent, steps
from tests.paths import ROOT

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
NETWORK_VARIABLES = re.compile(r"(PIP|UV|SSL)_\w+|\w+_CA_BUNDLE|\w+_proxy", re.IGNORECASE)


@dataclass
class Image:
    """A stage of a Dockerfile, or the image that the last one is."""

    root: Path
    """Folder of the files, those of `below` excepted."""
    environment: dict[str, str] = field(default_factory=lambda: {"PATH": PATH})
    user: str = "0"
    workdir: str = "/"
    entrypoint: tuple[str, ...] = ()
    below: Path | None = None
    """Folder of the files that `root` does not have."""

    @property
    def layers(self) -> str:
        """Folders of its files, the upper one first, as an overlay names them."""
        return ":".join(str(layer) for layer in (self.root, self.below) if layer)

    @property
    def home(self) -> str:
        """Home folder of the user."""
        files = [layer / "etc" / "passwd" for layer in (self.root, self.below) if layer]
        entries = [line.split(":") for file in files if file.exists() for line in file.read_text().splitlines()]
        return next((entry[5] for entry in entries if entry[2] == self.user), "/")

    def save(self, file: Path) -> None:
        """Write what the folder does not say."""
        file.write_text(json.dumps(vars(self) | {"root": str(self.root)}))


def saved(file: Path) -> Image:
    """Return an image that was saved."""
    values = json.loads(file.read_text())
    return Image(**values | {"root": Path(values["root"]), "entrypoint": tuple(values["entrypoint"])})


def build(dockerfile: Path, base: Path, folder: Path) -> Image:
    """Run the instructions of a Dockerfile whose base image is the folder `base`, and return the last stage.

    A stage that an earlier call finished is not built again.
    """
    folder.mkdir(parents=True, exist_ok=True)
    stages: dict[str, Image] = {}
    for first, *following in _stages(steps(dockerfile.read_text())):
        origin, *alias = re.split(r"\s+AS\s+", first.arguments)
        name = alias[0] if alias else "image"
        kept = folder / f"{name}.json"
        if not kept.exists():
            below = stages[origin] if origin in stages else Image(base)
            image = Image(folder / name, dict(below.environment), below.user, below.workdir)
            shutil.rmtree(image.root, ignore_errors=True)
            subprocess.run(["cp", "--archive", "--reflink=auto", str(below.root), str(image.root)], check=True)
            for step in following:
                print(f"[{name}] {step.instruction} {step.arguments[:110]}", flush=True)
                _carry_out(step, image, stages)
            image.save(kept)
        stages[name] = saved(kept)
    return stages[name]


def _stages(instructions: Iterable[Step]) -> list[list[Step]]:
    """Return the instructions of each stage, which begin with FROM."""
    stages: list[list[Step]] = []
    for step in instructions:
        if step.instruction == "FROM":
            stages.append([])
        stages[-1].append(step)
    return stages


def _carry_out(step: Step, image: Image, stages: dict[str, Image]) -> None:
    match step.instruction:
        case "RUN":
            _run(step.arguments, image)
        case "COPY":
            _copy(step, image, stages)
        case "ENV" | "ARG":
            for word in shlex.split(step.arguments):
                name, _, value = word.partition("=")
                image.environment[name] = value.replace("$PATH", image.environment["PATH"])
        case "USER":
            image.user = step.arguments
        case "WORKDIR":
            image.workdir = step.arguments
            (image.root / step.arguments.lstrip("/")).mkdir(parents=True, exist_ok=True)
        case "ENTRYPOINT":
            image.entrypoint = tuple(json.loads(step.arguments))
        case other:
            raise ValueError(f"{other}: add this instruction to {__file__}")


def _copy(step: Step, image: Image, stages: dict[str, Image]) -> None:
    *sources, target = shlex.split(step.arguments)
    options = dict(option.removeprefix("--").split("=", 1) for option in step.options)
    place = image.root / os.path.join(image.workdir, target).lstrip("/")
    if "from" in options:
        (source,) = sources
        subprocess.run(
            ["cp", "--archive", str(stages[options["from"]].root / source.lstrip("/")), str(place)], check=True
        )
        return
    ignored = (ROOT / ".dockerignore").read_text()
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--", *sources],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(lambda name: is_sent(name, ignored), listed.stdout.splitlines()):
        for source in sources:
            if name == source:
                path = place / Path(name).name if target.endswith("/") else place
            elif name.startswith(f"{source}/"):
                path = place / name.removeprefix(f"{source}/")
            else:
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, path)
            if "chmod" in options:
                path.chmod(int(options["chmod"], 8))


def _run(command: str, image: Image) -> None:
    variables = {name: value for name, value in os.environ.items() if NETWORK_VARIABLES.fullmatch(name)}
    variables |= {"DEBIAN_FRONTEND": "noninteractive", "HOME": image.home} | image.environment
    mounts = ["set -e", f"mount --rbind /dev {image.root}/dev", f"mount -t proc proc {image.root}/proc"]
    become = f"setpriv --reuid {image.user} --regid 0 --clear-groups"
    inside = shlex.join(["env", "-i", *(f"{name}={value}" for name, value in variables.items()), "/bin/sh", "-c"])
    line = shlex.quote(f"cd {image.workdir} && {command}")
    mounts.append(f"exec chroot {image.root} {become} {inside} {line}")
    subprocess.run(["unshare", "--mount", "sh", "-c", "\n".join(mounts)], check=True)
