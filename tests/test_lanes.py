"""The tests of Spark and of the services run apart, and the names of long files are those of files."""

import itertools
import random
from pathlib import Path

import pytest

from tests.conftest import FOLDERS, LONG, MARKS, Python
from tests.lanes import next_file, place
from tests.paths import ROOT


@pytest.mark.parametrize("name", [*itertools.chain.from_iterable(LONG.values()), *FOLDERS])
def test_a_name_is_that_of_a_file_or_folder(name: str) -> None:
    path = ROOT / "tests" / name
    assert path.is_dir() if name.endswith("/") else path.is_file()


def test_services_come_first_and_spark_last_with_the_longest_files_at_both_ends() -> None:
    files = [({"storage"}, 1), ({"e2e"}, 2), ({"unit"}, 1), ({"unit"}, 2), ({"spark"}, 2), ({"e2e", "spark"}, 1)]
    shuffled = random.Random(1).sample(files, len(files))
    assert sorted(shuffled, key=lambda file: place(*file)) == files


def test_the_workers_begin_at_both_ends_and_with_long_files_and_run_every_file() -> None:
    files = [f"test_{number}.py" for number in range(9)]
    long = ["test_5.py", "test_2.py"]
    assert [next_file(worker, files, long) for worker in (0, 1, 2, 3)] == [files[0], files[8], files[5], files[5]]
    assert [next_file(2, files[:5], long), next_file(2, files[6:], long)] == [files[2], files[7]]
    for worker in range(4):
        assert next_file(worker, files[:1], long) == files[0]


@pytest.mark.parametrize(("number", "lane"), list(enumerate(LONG)))
def test_a_long_file_stands_in_its_lane(request: pytest.FixtureRequest, number: int, lane: str) -> None:
    """It checks the files that were collected: all of them in `make test`."""
    marks = request.session.stash[MARKS]
    collected = [file for name in LONG[lane] if (file := ROOT / "tests" / name) in marks]
    assert [file for file in collected if place(marks[file], 0)[0] != number] == []


CONFTEST = """
from tests.lanes import LaneScheduling

def pytest_xdist_make_scheduler(config, log):
    return LaneScheduling(config, log, ())
"""
KILLED = """
import os, signal

def test_one():
    pass

def test_two():
    os.kill(os.getpid(), signal.SIGKILL)

def test_three():
    pass
"""


def test_a_killed_worker_ends_the_tests_with_a_sentence(tmp_path: Path, python: Python) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    for name in ("test_a.py", "test_c.py", "test_d.py"):
        (tmp_path / name).write_text("def test_passes():\n    pass\n")
    (tmp_path / "test_b.py").write_text(KILLED)
    options = ["--dist", "loadfile", "--no-loadscope-reorder", "--numprocesses", "1"]
    done = python("-m", "pytest", "--rootdir", tmp_path, "-c", "/dev/null", *options, tmp_path)
    assert done.returncode == 1
    assert b"the worker gw0 was killed while it ran test_b.py::test_two" in done.stdout
