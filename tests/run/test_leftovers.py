"""The leftovers of a killed run are named and removed by the next run of the same slices, and by no other."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from recapture.run.leftovers import remove_leftovers, scratch_name
from recapture.storage import open_container, scratch
from recapture.storage.locks import locked
from tests.conftest import Python
from tests.worlds import World, at

RUN = "20240301T100000Z-20240301T120000Z-0123456789ab"
OTHER = "20240301T100000Z-20240301T110000Z-0123456789ab"


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A world with its own folder for temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    world = World(tmp_path)
    world.put("0", at(12))
    return world


def unfinished(folder: Path) -> Path:
    """Create a file as a killed writer leaves it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / ".recapture-0123.tmp"
    path.write_bytes(b"half")
    return path


def test_unfinished_files_of_the_same_slices_are_removed_and_named(world: World) -> None:
    pipeline = world.define()
    ours = [
        unfinished(world.table / "_recapture" / RUN / "counters" / "20240301T100000Z"),
        unfinished(world.table / "slice_start=20240301T110000Z"),
        unfinished(world.table / "_change_data" / "slice_start=20240301T110000Z"),
        unfinished(world.table / "_delta_log"),
        unfinished(world.home / "table_metrics" / "slice_start=20240301T100000Z"),
        unfinished(world.home / "table_publications" / "slice_start=20240301T100000Z"),
        unfinished(world.home / "table_quarantine" / "slice_start=20240301T100000Z"),
    ]
    unrelated = [
        unfinished(world.table / "_recapture" / OTHER),
        unfinished(world.table / "slice_start=20240301T120000Z"),
        unfinished(world.home / "elsewhere" / "slice_start=20240301T100000Z"),
    ]
    lines = remove_leftovers(pipeline, RUN.replace("0123456789ab", "another"))
    assert not any(path.exists() for path in ours)
    assert all(path.exists() for path in unrelated)
    assert lines[0] == (
        f"4 unfinished files in {world.table.as_uri()}, such as "
        f"_recapture/{RUN}/counters/20240301T100000Z/.recapture-0123.tmp"
    )
    assert len(lines) == 4
    assert remove_leftovers(pipeline, RUN) == []


def test_what_a_living_process_writes_is_left_alone(world: World) -> None:
    pipeline = world.define()
    path = unfinished(world.table / "slice_start=20240301T100000Z")
    with locked(path) as ours:
        assert ours
        assert remove_leftovers(pipeline, RUN) == []
    assert len(remove_leftovers(pipeline, RUN)) == 1


def test_a_writer_holds_the_lock_of_its_unfinished_file(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    container = open_container(world.table.as_uri())
    removed = []

    def sweep(descriptor: int) -> None:
        removed.append(container.remove_abandoned("slice_start="))

    monkeypatch.setattr("os.fsync", sweep)
    container.write("slice_start=20240301T100000Z/x", b"1")
    assert container.create("slice_start=20240301T100000Z/y", b"2")
    assert set(removed) == {()}
    assert [blob.name.rpartition("/")[2] for blob in container.list()] == ["x", "y"]


def test_a_folder_of_temporary_files_is_removed_with_its_run(world: World) -> None:
    with scratch.scratch_folder("name") as folder:
        (folder / "inside").write_bytes(b"1")
        assert scratch.remove_abandoned("name") == []
    assert not folder.exists()


def test_the_folder_of_a_killed_run_is_removed_by_the_next_run_of_the_same_slices(world: World) -> None:
    pipeline = world.define()
    name = scratch_name(pipeline, RUN)
    killed = (
        "import os, signal, sys; from recapture.storage.scratch import scratch_folder\n"
        "with scratch_folder(sys.argv[1]) as folder:\n"
        "    (folder / 'spilled').write_bytes(b'1'); print(folder, flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    environment = {"TMPDIR": str(world.home)}
    command = [sys.executable, "-c", killed, name]
    folder = Path(subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True).stdout.strip())
    assert (folder / "spilled").exists()
    assert remove_leftovers(pipeline, OTHER) == []
    another = World(world.home / "other")
    another.home.mkdir()
    assert remove_leftovers(another.define(), RUN) == []
    assert remove_leftovers(pipeline, RUN) == [f"{folder}, a folder of temporary files"]
    assert not folder.exists()


def test_what_is_not_a_folder_of_ours_is_neither_opened_nor_removed(world: World, tmp_path: Path) -> None:
    pipeline = world.define()
    prefix = world.home / f"recapture-{scratch_name(pipeline, RUN)}-"
    target = tmp_path / "target"
    target.mkdir()
    pipe, link, file = (Path(f"{prefix}{name}") for name in ("pipe", "link", "file"))
    os.mkfifo(pipe)
    link.symlink_to(target)
    file.touch()
    os.mkfifo(unfinished(world.table / "slice_start=20240301T100000Z").with_name(".recapture-1.tmp"))
    unfinished(world.table / "slice_start=20240301T100000Z").unlink()
    assert remove_leftovers(pipeline, RUN) == []
    assert pipe.is_fifo()
    assert link.is_symlink()
    assert target.is_dir()
    assert file.is_file()


def test_a_folder_that_cannot_be_removed_is_not_said_to_be(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = world.define()
    Path(world.home / f"recapture-{scratch_name(pipeline, RUN)}-x").mkdir()
    monkeypatch.setattr("shutil.rmtree", lambda *arguments, **named: None)
    assert remove_leftovers(pipeline, RUN) == []


def test_what_a_killed_run_left_of_its_workers_is_removed_by_the_next_one(python: Python) -> None:
    script = (
        "import os, signal, sys\n"
        "from recapture.execute.processes.workers import prepare\n"
        "from recapture.process.startup import stop_fork_server\n"
        "prepare()\n"
        "print(*os.listdir(os.environ['TMPDIR']), flush=True)\n"
        "if sys.argv[1] == 'killed': os.kill(os.getpid(), signal.SIGKILL)\n"
        "if sys.argv[1] == 'stopped': stop_fork_server(); os._exit(0)\n"
    )
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # its path is short enough for a socket
        left = python("-c", script, "killed", TMPDIR=folder).stdout.decode().split()
        assert os.listdir(folder) == left != []
        for end in ("stopped", "ended"):
            python("-c", script, end, TMPDIR=folder)
            assert os.listdir(folder) == []
