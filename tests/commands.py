"""The command, called in this process, and what it prints."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from recapture import cli
from recapture.process.versions import OUTPUT_FORMAT

FIRST_HOUR = ("--from", "2024-03-01T10:00:00Z", "--to", "2024-03-01T11:00:00Z")
"""Options of a command for the hour from ten."""


@dataclass(frozen=True)
class Command:
    """The command: each method takes its arguments and the exit code that it must have."""

    capture: pytest.CaptureFixture[str]

    def run(self, *arguments: object, code: int = 0) -> tuple[str, str]:
        """Return what it prints on standard output and on standard error."""
        self.capture.readouterr()
        assert cli.main([str(argument) for argument in arguments]) == code
        out, err = self.capture.readouterr()
        return out, err

    def text(self, *arguments: object, code: int = 0) -> str:
        """Return what it prints on standard output."""
        out, _ = self.run(*arguments, code=code)
        return out

    def json(self, *arguments: object, code: int = 0) -> Any:
        """Return the object that it prints with --json, without the number of its format."""
        printed = json.loads(self.text(*arguments, "--json", code=code))
        assert printed.pop("format") == OUTPUT_FORMAT
        return printed

    def printable(self, *arguments: object, code: int = 0) -> str:
        """Return what it prints on both streams, which is printable."""
        printed = "".join(self.run(*arguments, code=code))
        assert unprintable(printed) == ""
        return printed

    def error(self, *arguments: object, code: int = 2) -> str:
        """Return the only line on standard error, warnings aside; it prints nothing else."""
        out, err = self.run(*arguments, code=code)
        (line,) = (line for line in err.splitlines() if not line.startswith("warning:"))
        assert (out, line.startswith("recapture: ")) == ("", True)
        return line


def unprintable(text: str) -> str:
    """Return the characters that steer a terminal, other than ends of lines."""
    lines = text.replace("\n", "")
    return "" if lines.isprintable() else "".join(character for character in lines if not character.isprintable())
