"""The command, called in this process, and what it prints."""

import json
from typing import Any

import pytest

from recapture import cli

FIRST_HOUR = ("--from", "2024-03-01T10:00:00Z", "--to", "2024-03-01T11:00:00Z")
"""Options of a command for the hour from ten."""


def run_command(capture: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> tuple[str, str]:
    """Return what a command that exits with this code prints on standard output and on standard error."""
    capture.readouterr()
    assert cli.main([str(argument) for argument in arguments]) == code
    out, err = capture.readouterr()
    return out, err


def output_of(capture: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> str:
    """Return what a command prints on standard output."""
    out, _ = run_command(capture, *arguments, code=code)
    return out


def json_of(capture: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> Any:
    """Return the object that a command prints with --json."""
    return json.loads(output_of(capture, *arguments, "--json", code=code))


def unprintable(text: str) -> str:
    """Return the characters that steer a terminal, other than ends of lines."""
    return "".join(character for character in text if not character.isprintable() and character != "\n")


def printable_output(capture: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> str:
    """Return what a command prints on both streams, which is printable."""
    printed = "".join(run_command(capture, *arguments, code=code))
    assert unprintable(printed) == ""
    return printed


def error_of(capture: pytest.CaptureFixture[str], *arguments: object, code: int = 2) -> str:
    """Return the only line on standard error, warnings aside, of a command that fails and prints nothing else."""
    out, err = run_command(capture, *arguments, code=code)
    (line,) = (line for line in err.splitlines() if not line.startswith("warning:"))
    assert (out, line.startswith("recapture: ")) == ("", True)
    return line
