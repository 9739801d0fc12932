"""Limits of the process and the machine are explained, and the number of open files is raised where that is allowed."""

import errno
import os
import subprocess
import sys
import tempfile

import pytest

from recapture.errors import RunError
from recapture.execute.worker_errors import one_error
from recapture.process.limits import reached_limit

COUNT = "import resource; from recapture.process import limits; limits.require_open_files(); "
COUNT += "print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])"


def limited(limit: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a shell with a limit, such as `ulimit -n 24`."""
    command = ["sh", "-c", f'{limit} && exec "$@"', "sh", sys.executable, *arguments]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=300)


def test_a_command_that_may_open_too_few_files_says_so() -> None:
    completed = limited("ulimit -n 24", "-m", "recapture.cli", "plan", "a.yaml", "--from", "2024-03-01T10:00Z")
    assert (completed.returncode, completed.stdout) == (1, "")
    assert completed.stderr == (
        "recapture: this process may open only 24 files: allow 256 or more, such as with ulimit -n 4096\n"
    )


@pytest.mark.parametrize(("limit", "files"), [(24, 256), (300, 300)])
def test_a_command_may_open_more_files_where_that_is_allowed(limit: int, files: int) -> None:
    completed = limited(f"ulimit -S -n {limit}", "-c", COUNT)
    assert (completed.stdout, completed.stderr) == (f"{files}\n", "")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(errno.EMFILE, "Too many open files"), "too many files are open: allow more"),
        (BlockingIOError(errno.EAGAIN, "fork"), "no further process or thread can be started: allow more"),
        (RuntimeError("can't start new thread"), "no further process or thread can be started: allow more"),
        (MemoryError(), "no memory is left: free some"),
        (
            OSError(errno.ENOSPC, "Error writing bytes to file"),
            f"cannot write to the folder for temporary files, {tempfile.gettempdir()}: No space left on device; free",
        ),
        (OSError(errno.EFBIG, "large", "a.html"), "cannot write to a.html: File too large; free some space"),
    ],
    ids=repr,
)
def test_a_limit_is_named_with_what_to_do(error: BaseException, reason: str) -> None:
    limit = reached_limit(error)
    assert limit is not None
    assert limit.startswith(reason)


@pytest.mark.parametrize("error", [RuntimeError("a"), OSError("a"), FileNotFoundError(errno.ENOENT, "a"), ValueError()])
def test_another_error_is_no_limit(error: Exception) -> None:
    assert reached_limit(error) is None


def test_a_worker_whose_disk_is_full_names_the_folder() -> None:
    with pytest.raises(RunError) as raised, one_error("use fewer workers"):
        raise OSError(errno.ENOSPC, "Error writing bytes to file. Detail: [errno 28]")
    assert str(raised.value).startswith("a worker failed: cannot write to the folder for temporary files, ")
