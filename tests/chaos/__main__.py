"""`make chaos`: print what happens at every storage fault, every kill and every interleaving, as tables."""

import argparse
import sys
from collections.abc import Iterable

from tests.chaos import faults, kills, publishers
from tests.chaos.command import storage

TABLES = ("publishers", "kills", "faults")


def main(arguments: list[str] | None = None) -> int:
    """Print the chosen tables; return 1 if any row reports a wrong result."""
    chosen = parser().parse_args(arguments)
    what = TABLES if chosen.what == "all" else (chosen.what,)
    wrong = 0
    if "publishers" in what:
        wrong += _printed(publishers.table(chosen.tables))
    if {"faults", "kills"} & {*what}:
        with storage() as place:
            undisturbed = place.new_table()
            assert place.run(undisturbed).code == 0
            expected = place.held(undisturbed)
            for name, table in (("kills", kills.table), ("faults", faults.table)):
                if name in what:
                    wrong += _printed(table(place, expected))
    return 1 if wrong else 0


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("what", nargs="?", choices=("all", *TABLES), default="all", help="(default: all)")
    parser.add_argument("--tables", type=int, choices=(1, 2, 3), default=2, help="(default: 2)")
    return parser


def _printed(rows: Iterable[str]) -> int:
    """Print rows; return how many are wrong."""
    wrong = 0
    for row in rows:
        print(row, flush=True)
        wrong += any(sign in row for sign in ("DIFFERENT", "Traceback", "not met", " lines, "))
    return wrong


if __name__ == "__main__":
    sys.exit(main())
