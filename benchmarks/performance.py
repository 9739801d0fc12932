"""`python -m benchmarks.performance [WORLD ...]`: each program on each world, in processes of their own.

The programs take turns, so that a busy machine slows all of them. Every turn checks that the peers computed the rows of
`recapture backfill`. The medians go to docs/performance/, as tables and as pictures.
"""

import argparse
import json
import math
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import timedelta
from pathlib import Path
from statistics import median

from deltalake import DeltaTable

from benchmarks import usage
from benchmarks.run import WORLDS, Row, pipeline_file, require_same, rows_of
from benchmarks.usage import Usage
from benchmarks.world import START, World
from recapture.pages.axes import Scale, bottom_axis, left_axis, legend
from recapture.pages.svg import Chart, Mark, element, path

DOCS = Path(__file__).parents[1] / "docs" / "performance"
ALL = {
    "1 million": World(1_000_000),
    "5 million": World(5_000_000),
    "20 million": World(20_000_000),
    "100,000 devices": World(5_000_000, devices=100_000),
    "32 partitions": World(5_000_000, partitions=32),
    "deflate": World(5_000_000, codec="deflate"),
    "200 MB blobs": World(5_000_000, hours=1, interval=timedelta(minutes=15), partitions=2),
}
"""Worlds; the second is the one that the others vary."""
GROWTH = ("1 million", "5 million", "20 million")
RECAPTURE = "recapture backfill"
_MEBIBYTE = 2**20
_WIDTH, _HEIGHT = 560, 300
_COLORS = ("#4c78a8", "#f58518", "#e45756", "#72b7b2", "#54a24b", "#b279a2", "#9d755d")
_STYLE = "background: white; --ink: #000; --muted: #555; --line: #ccc"


@dataclass(frozen=True)
class Program:
    """A program that reads a world."""

    name: str
    command: tuple[str, ...]
    """Its command after that of Python; {archive}, {pipeline}, {out}, {start} and {end} are filled in."""
    writes_rows: bool = True


PROGRAMS = (
    Program(RECAPTURE, ("-m", "recapture.cli", "backfill", "{pipeline}", "--from", "{start}", "--to", "{end}")),
    Program("plain Spark", ("-m", "benchmarks.plain_spark", "{archive}", "{out}")),
    Program("polars", ("-m", "benchmarks.polars_program", "{archive}", "{out}", "{start}", "{end}")),
    Program("DuckDB", ("-m", "benchmarks.duckdb_program", "{archive}", "{out}", "{start}", "{end}")),
    Program("decode and parse", ("-m", "benchmarks.floor", "{archive}", "{pipeline}"), False),
    Program("decode", ("-m", "benchmarks.floor", "{archive}", "{pipeline}", "--until", "decode"), False),
    Program("inflate", ("-m", "benchmarks.floor", "{archive}", "{pipeline}", "--until", "inflate"), False),
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.performance", description=__doc__)
    parser.add_argument("worlds", nargs="*", metavar="WORLD", help=f"default: all of {', '.join(map(repr, ALL))}")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of each world (default: %(default)s)")
    chosen = parser.parse_args()
    results = DOCS / "results.json"
    measured = json.loads(results.read_text()) if results.exists() else {}
    for name in chosen.worlds or ALL:
        measured[name] = medians(compare(ALL[name], WORLDS / name.replace(" ", "-"), chosen.rounds))
        DOCS.mkdir(exist_ok=True)
        results.write_text(json.dumps(measured, indent=1) + "\n")
        print(f"{name}\n{table(measured[name])}", flush=True)
    write(measured)


def compare(world: World, archive: Path, rounds: int) -> Iterator[dict[str, Usage]]:
    """Yield what each program uses in each round. Raise AssertionError if the rows of a peer differ."""
    world.make(archive)
    for _ in range(rounds):
        used = {}
        rows: dict[str, list[Row]] = {}
        for program in PROGRAMS:
            with tempfile.TemporaryDirectory() as scratch:
                out = Path(scratch, "out.parquet")
                values = {
                    "archive": archive,
                    "pipeline": pipeline_file(Path(scratch), archive),
                    "out": out,
                    "start": f"{START:%Y-%m-%dT%H:%M:%SZ}",
                    "end": f"{world.end:%Y-%m-%dT%H:%M:%SZ}",
                }
                command = [part.format(**values) for part in program.command]
                used[program.name] = usage.run([sys.executable, *command], Path(scratch))
                if program.name == RECAPTURE:
                    rows[program.name] = rows_of(DeltaTable(Path(scratch, "table")).file_uris(), world.end)
                elif program.writes_rows:
                    rows[program.name] = rows_of(out, world.end)
        for peer in rows.keys() - {RECAPTURE}:
            require_same(rows[RECAPTURE], rows[peer])
        yield used


def medians(rounds: Iterator[Mapping[str, Usage]]) -> dict[str, dict[str, float]]:
    """Return the median of each quantity for each program."""
    used = list(rounds)
    return {
        program: {
            quantity.name: median(getattr(usages[program], quantity.name) for usages in used)
            for quantity in fields(Usage)
        }
        for program in used[0]
    }


def table(measured: Mapping[str, Mapping[str, float]]) -> str:
    """Return what the programs used as a table in Markdown; times are ratios to recapture's."""
    ours = measured[RECAPTURE]
    lines = [
        "| program | time | CPU | memory, MiB | a Python worker, MiB | shuffled, MiB | spilled, MiB |",
        "|---|---|---|---|---|---|---|",
    ]
    for program, used in measured.items():
        ratios = (f"{used[name] / ours[name]:.2f}" for name in ("seconds", "cpu_seconds"))
        sizes = ("peak_bytes", "worker_bytes", "shuffled_bytes", "spilled_bytes")
        cells = [program, *ratios, *(f"{used[name] / _MEBIBYTE:,.0f}" for name in sizes)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def write(measured: Mapping[str, Mapping[str, Mapping[str, float]]]) -> None:
    """Write the tables of all worlds, and the pictures."""
    tables = "\n".join(f"## {name}\n{table(measured[name])}\n" for name in ALL if name in measured)
    (DOCS / "results.md").write_text(f"# Performance by world\n[How to read the tables](../performance.md)\n\n{tables}")
    draw(measured)


def draw(measured: Mapping[str, Mapping[str, Mapping[str, float]]]) -> None:
    """Write the pictures of how time and memory grow with the events."""
    for quantity, title, divisor in (("seconds", "seconds", 1), ("peak_bytes", "memory, MiB", _MEBIBYTE)):
        growth: dict[str, dict[float, float]] = {}
        for world in GROWTH:
            for program, used in measured.get(world, {}).items():
                growth.setdefault(program, {})[ALL[world].events / 1e6] = used[quantity] / divisor
        if not growth:
            continue
        label = f"{title.capitalize()} of each program by number of events; both scales are logarithmic"
        svg = str(growth_chart(growth, title).svg(label))
        (DOCS / f"{quantity}.svg").write_text(svg.replace("<svg ", f'<svg style="{_STYLE}" ', 1))


def growth_chart(growth: Mapping[str, Mapping[float, float]], title: str) -> Chart:
    """Return the chart of a quantity: for each program, its values by millions of events."""
    millions = sorted({events for measured in growth.values() for events in measured})
    values = [value for measured in growth.values() for value in measured.values()]
    x = Scale(millions[0] / 1.1, millions[-1] * 1.1, 0, _WIDTH, math.log)
    y = Scale(min(values) / 1.1, max(values) * 1.1, _HEIGHT, 0, math.log)
    ticks = [factor * 10**power for power in range(6) for factor in (1, 2, 5)]
    ticks = [tick for tick in ticks if y.first <= tick <= y.last]
    marks: list[Mark] = [
        *bottom_axis({x(value): f"{value:g}" for value in millions}, "million events", _WIDTH, _HEIGHT, grid=True),
        *left_axis({y(tick): f"{tick:,}" for tick in ticks}, title, _WIDTH, _HEIGHT, grid=True),
    ]
    symbols = []
    for number, (program, measured) in enumerate(growth.items()):
        color = _COLORS[number % len(_COLORS)]
        places = [(x(events), y(value)) for events, value in measured.items()]
        marks.append(element("path", d=path(places), fill="none", stroke=color, stroke_width=2))
        marks += [element("circle", cx=place[0], cy=place[1], r=3, fill=color) for place in places]
        symbols.append((element("path", d="M-5,0h10", stroke=color, stroke_width=2), program))
    return Chart(_WIDTH, _HEIGHT, [*marks, *legend(symbols, _WIDTH)])


if __name__ == "__main__":
    main()
