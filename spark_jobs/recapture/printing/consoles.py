"""What all commands print: the consoles, errors and warnings."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from recapture.printable import message, one_line, printable
from recapture.process import streams

PIPE_WIDTH = 160
"""Width in characters of what goes to a file or a pipe."""


class _PrintableConsole(Console):
    """A console that escapes control characters in all strings: names of devices and blobs may contain them."""

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, soft_wrap=True, emoji=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(printable(text), **options)


class _ErrorConsole(_PrintableConsole):
    """The console of standard error. If nobody reads it any more, the command goes on without it."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        streams.drop_errors()


def console() -> Console:
    """Return the console of standard output. Lines to a file or a pipe are not wrapped."""
    return _PrintableConsole(width=None if sys.stdout.isatty() else PIPE_WIDTH)


def error_console() -> Console:
    """Return the console of standard error."""
    return _ErrorConsole(stderr=True)


def print_error(stderr: Console, error: str) -> None:
    """Print why the command fails."""
    stderr.print(f"[red]recapture:[/] {escape(message(error))}")


def print_warnings(out: Console, warnings: Iterable[str]) -> None:
    for warning in warnings:
        out.print(f"[yellow]warning:[/] {escape(message(warning))}")


def shown(value: object) -> str:
    """Return a value as one line of markup."""
    return escape(one_line(str(value)))
