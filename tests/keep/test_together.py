"""Updates and backfills that begin at the same time publish what they publish one after the other."""

from pathlib import Path

import pytest

from recapture.cli import main
from tests.keep import together
from tests.keep.together import Command, backfill, updates
from tests.worlds import World

COMMANDS = [*updates(2), backfill(2, 4)]


def run(world: World, command: Command) -> None:
    assert main(together.arguments(world, command)) == 0


@pytest.mark.process
def test_updates_and_a_backfill_at_once_publish_what_they_publish_one_after_the_other(tmp_path: Path) -> None:
    world = together.make_world(tmp_path / "world", run)
    before = together.copied(world, tmp_path / "before")
    for command in COMMANDS:
        run(world, command)
    expected = together.shown(world)
    together.restore(world, before)
    ended = together.run_together(world, COMMANDS)
    assert [(command.code, "Traceback" in command.errors) for command in ended] == [(0, False)] * len(COMMANDS)
    assert together.shown(world) == expected
    assert together.replayed(world) == together.rows_of(world)
    slices = together.slices_of_updates(world, ended)
    assert len(slices) == len({*slices}), "two updates computed a slice"
