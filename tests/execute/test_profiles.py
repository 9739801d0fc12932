"""The profile of a run: one file, whatever its tasks were, with samples where events were not on time."""

from collections.abc import Callable
from pathlib import Path

import pytest

from recapture.errors import RunError
from recapture.execute import profiles
from recapture.ordering.task import split
from recapture.run_files.files import PROFILE, RunFiles
from recapture.storage import open_container
from recapture.time_model.verdicts import Verdict
from recapture.tools.sample import world as sample_world
from recapture.tools.sample import write_world
from tests.ordering.tasks import HOUR, PLAIN, POLICIES, TEN, ordered, planned

Collected = Callable[..., RunFiles]


@pytest.fixture
def collected(tmp_path: Path) -> Collected:
    """Order two hours in tasks of some size, and collect the profile of the run."""
    archive = tmp_path / "archive"
    write_world(sample_world(TEN - HOUR, 3, partitions=2, devices=10), archive)
    plan = planned(archive, PLAIN, hours=2)

    def collect(run: str, task_bytes: int, not_on_time: dict[tuple[str, int], int] | None = None) -> RunFiles:
        not_on_time = {} if not_on_time is None else not_on_time
        files = RunFiles(open_container((tmp_path / "table").as_uri()), run)
        tasks, rows = list(split(plan.slices, plan.blobs, task_bytes)), []
        for task in tasks:
            _, counters = ordered(archive, PLAIN, POLICIES, task)
            profiles.write(files, task, counters)
            rows += [slice_counters.metrics(POLICIES) for slice_counters in counters.values()]
            for slice_, slice_counters in counters.items():
                count = int(slice_counters.verdicts.sum() - slice_counters.verdicts[Verdict.ON_TIME])
                not_on_time[task.partition, slice_.start] = count
        profiles.collect(files, tasks, sorted(rows, key=lambda row: (row.slice_start, row.partition)))
        return files

    return collect


def test_a_profile_has_the_same_bytes_whatever_the_tasks(collected: Collected) -> None:
    small, large = (collected(run, size) for run, size in (("small", 1), ("large", 1 << 40)))
    contents = [files.container.read_current(files.name(PROFILE)) for files in (small, large)]
    assert contents[0] == contents[1] is not None
    assert len(list(small.container.list(small.name("profiles/")))) == 4
    assert len(list(large.container.list(large.name("profiles/")))) == 2


def test_samples_stay_where_most_events_are_not_on_time(collected: Collected, monkeypatch: pytest.MonkeyPatch) -> None:
    every = profiles.read(collected("every", 1))
    monkeypatch.setattr(profiles, "MAX_SAMPLES", 1)
    not_on_time: dict[tuple[str, int], int] = {}
    few = profiles.read(collected("few", 1, not_on_time))
    assert every is not None
    assert few is not None
    assert few.drop(["sample"]) == every.drop(["sample"])
    sampled = [(row["partition"], row["slice_start"]) for row in few.to_pylist() if row["sample"]]
    assert sampled == [max(not_on_time, key=lambda place: not_on_time[place])]


def test_a_run_without_a_profile_has_none_and_another_format_is_refused(
    collected: Collected, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = collected("run", 1)
    assert profiles.read(RunFiles(files.container, "another")) is None
    monkeypatch.setattr(profiles, "PROFILE_FORMAT", 2)
    with pytest.raises(RunError, match=r"profile\.parquet of run run has a format older than 2"):
        profiles.read(files)
