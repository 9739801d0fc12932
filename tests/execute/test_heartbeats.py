"""A worker that is stopped for good is named and killed; one that is slow, or was stopped with all others, is not."""

import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from recapture.errors import RunError
from recapture.execute.processes import heartbeats
from recapture.execute.processes.compute import compute
from recapture.execute.processes.heartbeats import Silence
from recapture.execute.processes.workers import workers
from recapture.run.plan import plan_run
from tests.paths import ROOT
from tests.worlds import TEN, at, steady

ABSENT = 2**30
"""Number of a process that cannot exist."""


def test_a_process_is_silent_since_its_last_sign() -> None:
    silence = Silence(0.0)
    assert silence.look(2.0, {ABSENT}) == {ABSENT: 0.0}
    assert silence.look(4.0, set()) == {ABSENT: 2.0}
    assert silence.look(6.0, set()) == {ABSENT: 4.0}
    assert silence.look(8.0, {ABSENT}) == {ABSENT: 0.0}


def test_silence_counts_anew_after_the_main_process_was_stopped() -> None:
    silence = Silence(0.0)
    silence.look(2.0, {ABSENT})
    assert silence.look(1000.0, set()) == {ABSENT: 0.0}
    assert silence.look(1002.0, set()) == {ABSENT: 2.0}


def test_cpu_time_is_a_sign_of_life() -> None:
    silence = Silence(0.0)
    silence.look(2.0, {os.getpid()})
    began = time.process_time()
    while time.process_time() - began < 0.1:
        pass
    assert silence.look(4.0, set()) == {os.getpid(): 0.0}


def test_a_worker_that_is_stopped_is_named_and_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(heartbeats, "NAMED_AFTER", 1.0)
    monkeypatch.setattr(heartbeats, "ENDED_AFTER", 6.0)
    caplog.set_level(logging.WARNING, "recapture")
    run = plan_run(steady(tmp_path, hours=1, partitions=2).define(), TEN, at(60))
    with workers(1) as started:
        pid = started.pool.submit(os.getpid).result()

        def stop(done: int, total: int) -> None:
            os.kill(pid, signal.SIGSTOP)

        with pytest.raises(RunError) as error:
            compute(started, run, tmp_path, stop)
    assert str(error.value) == (
        f"a worker (process {pid}) gave no sign of life for 6 seconds and was killed, because it was stopped or hung: "
        "run the same command again"
    )
    named = [record.getMessage() for record in caplog.records if "no sign of life" in record.getMessage()]
    assert len(named) == 1
    assert named[0].startswith(f"a worker (process {pid}) has given no sign of life for ")


def test_a_worker_with_a_long_task_and_one_that_has_nothing_to_do_are_not_killed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(heartbeats, "NAMED_AFTER", 4.0)
    monkeypatch.setattr(heartbeats, "ENDED_AFTER", 4.0)
    with workers(2) as started:
        pids = {started.pool.submit(os.getpid).result()}
        assert started.pool.submit(time.sleep, 12).result() is None
        pids.add(started.pool.submit(os.getpid).result())
        assert not [record for record in caplog.records if "no sign of life" in record.getMessage()]


SUSPENDED = """
import time
from recapture.execute.processes import heartbeats
from recapture.execute.processes.workers import workers

if __name__ == "__main__":
    heartbeats.NAMED_AFTER = heartbeats.ENDED_AFTER = 8.0
    with workers(1) as started:
        started.pool.submit(abs, 1).result()
        print("started", flush=True)
        started.pool.submit(time.sleep, 15).result()
"""


def test_a_run_that_was_suspended_as_a_whole_goes_on(tmp_path: Path) -> None:
    script = tmp_path / "suspended.py"
    script.write_text(SUSPENDED)
    running = subprocess.Popen(
        [sys.executable, script],
        env=os.environ | {"PYTHONPATH": str(ROOT / "spark_jobs")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert running.stdout is not None
    assert running.stdout.readline() == "started\n"
    os.killpg(running.pid, signal.SIGSTOP)
    time.sleep(12)
    os.killpg(running.pid, signal.SIGCONT)
    assert running.communicate(timeout=60) == ("", "")
    assert running.returncode == 0
