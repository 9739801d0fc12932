"""Print the script with which a shell completes the command."""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import shtab
from rich.console import Console


def run(stderr: Console, *, parser: argparse.ArgumentParser, shell: str, json: bool) -> dict[str, Any]:
    """Print the script of a shell for the command of a parser. It completes names of files where a file is expected."""
    for part in _parsers(parser):
        for action in part._actions:
            if action.type is Path:
                action.complete = shtab.FILE  # type: ignore[attr-defined]
    sys.stdout.write(shtab.complete(parser, shell))
    return {}


def _parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yield a parser and those of its commands."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                yield from _parsers(child)
