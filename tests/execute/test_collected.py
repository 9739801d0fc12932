"""What tasks counted, collected in the run files of their run."""

from pathlib import Path

import pytest

from recapture.errors import PermanentError, RunError
from recapture.execute.processes.compute import compute
from recapture.execute.processes.workers import Workers
from recapture.execute.stage import stage_rows
from recapture.run.plan import plan_run
from recapture.run_files.computed import METRICS, read_computed
from recapture.run_files.files import PROFILE
from recapture.run_files.planned import PlannedRun
from recapture.storage.folder import FolderContainer
from tests.worlds import TEN, at, staged, steady


@pytest.fixture
def run(tmp_path: Path, processes: Workers) -> PlannedRun:
    """Two hours of three partitions, whose rows are staged."""
    return staged(processes, steady(tmp_path, partitions=3).define(), TEN, at(120))


def names(run: PlannedRun) -> list[str]:
    return sorted(blob.name.removeprefix(run.files.name("")) for blob in run.files.container.list(run.files.name("")))


def test_a_run_has_no_files_for_each_slice_and_partition(run: PlannedRun) -> None:
    assert names(run) == ["cost.json", "manifest.json", "metrics.json", "profile.parquet", "staged.json"]


def test_counts_are_collected_while_slices_are_evaluated(tmp_path: Path, processes: Workers) -> None:
    run = plan_run(steady(tmp_path, partitions=3).define(), TEN, at(120))
    has_profile: list[bool] = []
    compute(processes, run, tmp_path, lambda done, total: has_profile.append(run.files.exists(PROFILE)))
    tasks, slices = 3, 2
    assert has_profile == [False] * tasks + [True] * slices


def test_a_run_that_another_process_has_collected_is_the_same(run: PlannedRun) -> None:
    before = read_computed(run.files)
    again = stage_rows(run, 1, lambda inputs: before.staged)
    assert again == before == read_computed(run.files)


def test_counts_that_were_lost_stop_a_run(run: PlannedRun) -> None:
    before = read_computed(run.files)
    (metrics,) = run.files.container.list(run.files.name(METRICS.name))
    run.files.container.remove(metrics)
    with pytest.raises(PermanentError, match=r"has no counters/telemetry/.*: start the run again from its plan"):
        stage_rows(run, 1, lambda inputs: before.staged)


def test_a_run_that_may_not_remove_files_keeps_them(
    tmp_path: Path, processes: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*arguments: object) -> bool:
        raise RunError("the service refuses to remove a blob")

    monkeypatch.setattr(FolderContainer, "remove", refused)
    pipeline = steady(tmp_path, partitions=1).define()
    run = staged(processes, pipeline, TEN, at(120))
    assert "counters/telemetry/20240301T100000Z/0.json" in names(run)
    assert plan_run(pipeline, TEN, at(120)).id == run.id
