"""`python -m recapture.tools.sample FOLDER --start T`: write sample blobs to a folder, without any service."""

import argparse
from pathlib import Path

from recapture.process.wording import counted
from recapture.time_model import ticks
from recapture.tools.sample import world, write_world


def main(arguments: list[str] | None = None) -> None:
    """Write sample blobs of Event Hubs Capture to a folder."""
    parser = argparse.ArgumentParser(prog="python -m recapture.tools.sample", description=main.__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--start", type=ticks.parse_utc, required=True, help="ISO 8601, UTC")
    parser.add_argument("--hours", type=int, default=6, help="hours with events (default: %(default)s)")
    chosen = parser.parse_args(arguments)
    if chosen.hours < 1:
        parser.error("--hours: at least 1")
    count = write_world(world(chosen.start, chosen.hours), chosen.folder)
    print(f"wrote {counted(count, 'blob')} to {chosen.folder.resolve().as_uri()}")


if __name__ == "__main__":
    main()
