"""What the executors run on."""

import platform
import re
import sys
from dataclasses import dataclass
from enum import StrEnum

from recapture.errors import DefinitionError

OLDEST = (3, 11)
"""Oldest minor version of Python that runs Recapture."""
RUNNING = "{}.{}".format(*sys.version_info[:2])
"""Minor version of the Python that runs this command."""


class Machine(StrEnum):
    """A processor, as Linux names it."""

    X86_64 = "x86_64"
    AARCH64 = "aarch64"


@dataclass(frozen=True)
class Target:
    """The Python and the processor of the executors, which run Linux."""

    python: str = RUNNING
    """Minor version, such as 3.11."""
    machine: Machine = Machine.X86_64

    def __post_init__(self) -> None:
        """Raise DefinitionError if Recapture does not run on this Python."""
        version = re.fullmatch(r"(\d+)\.(\d+)", self.python)
        if version is None or (int(version[1]), int(version[2])) < OLDEST:
            oldest = "{}.{}".format(*OLDEST)
            raise DefinitionError(f"--python {self.python}: give a minor version, {oldest} or newer")

    def __str__(self) -> str:
        return f"Python {self.python} on Linux {self.machine}"


def here() -> Target | None:
    """Return the target that has this Python and this processor; None if this is not Linux, or another processor."""
    machine = platform.machine()
    return Target(machine=Machine(machine)) if sys.platform == "linux" and machine in [*Machine] else None
