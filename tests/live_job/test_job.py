"""The simulated job does what docs/time-model.md says, one event after another."""

import json
from datetime import UTC, datetime, timedelta

from tests.live_job.case import receive
from tests.live_job.job import Job, Policy
from tests.live_job.query import Hopping, Query, Session
from tests.live_job.windows import Row
from tests.live_job.world import MINUTE, SECOND, Event
from tests.paths import VECTORS

TEN = datetime(2024, 3, 1, 10, tzinfo=UTC)
NEVER = TEN + timedelta(days=1)
TUMBLING = Query(Hopping(5 * MINUTE, 5 * MINUTE))
ADJUST = Policy(late=10 * MINUTE, out_of_order=timedelta(), adjusts=True)


def at(minutes: float) -> datetime:
    """Return the instant so many minutes after ten."""
    return TEN + minutes * MINUTE


def event(time: datetime, sequence: int = 0, partition: str = "0", device: str | None = "a") -> Event:
    return Event(partition, sequence, time, time, device, temperature=20.0)


def rows(job: Job) -> list[tuple[datetime, str | None, int]]:
    """Return the rows that a job has emitted, with the numbers of their events."""
    return [(row.end, row.device, row.events) for row in job.emitted]


def test_events_get_the_times_of_the_example_on_the_page() -> None:
    """The example at the top of docs/time-model.md, with events A to E."""
    job = Job(TUMBLING, ADJUST, ["0"])
    arrivals_and_times = [(4, 0), (4, 3), (9, 2), (14, -10), (14, 20)]
    results = [job.system_timestamp(event(at(time)), at(arrival)) for arrival, time in arrivals_and_times]
    assert results == [at(0), at(3), at(3), at(4), None]


def test_with_drop_a_late_and_an_out_of_order_event_have_no_time() -> None:
    job = Job(TUMBLING, Policy(10 * MINUTE, MINUTE, adjusts=False), ["0"])
    arrivals_and_times = [(4, 3), (9, 2), (9, 1.9), (14, 3.9)]
    results = [job.system_timestamp(event(at(time)), at(arrival)) for arrival, time in arrivals_and_times]
    assert results == [at(3), at(2), None, None]


def test_with_over_each_device_has_its_own_watermark_and_an_event_without_a_device_is_dropped() -> None:
    job = Job(Query(TUMBLING.window, over=True), ADJUST, ["0"])
    results = [
        job.system_timestamp(event(at(time), device=device), at(5)) for time, device in [(4, "a"), (1, "b"), (4, None)]
    ]
    assert results == [at(4), at(1), None]


def test_a_window_is_emitted_when_the_watermark_passes_its_end() -> None:
    job = Job(TUMBLING, ADJUST, ["0"])
    receive(job, [(at(4), event(at(4))), (at(5), event(at(5), 1))], until=at(5))
    assert rows(job) == []
    receive(job, [(at(6), event(at(5) + SECOND, 2))], until=at(6))
    assert rows(job) == [(at(5), "a", 2)]


def test_a_silent_partition_delays_a_window_by_the_late_tolerance() -> None:
    job = Job(TUMBLING, ADJUST, ["0", "1"])
    receive(job, [(at(4), event(at(4))), (at(6), event(at(6), 1))], until=at(15))
    assert rows(job) == []
    receive(job, [], until=at(15) + SECOND)
    assert rows(job) == [(at(5), "a", 1)]


def test_an_event_is_in_every_hopping_window_that_holds_it() -> None:
    job = Job(Query(Hopping(10 * MINUTE, 5 * MINUTE)), ADJUST, ["0"])
    receive(job, [(at(5), event(at(5))), (at(6), event(at(6), 1))], until=NEVER)
    assert rows(job) == [(at(5), "a", 1), (at(10), "a", 2), (at(15), "a", 1)]


def test_values_that_are_null_count_as_events_alone() -> None:
    job = Job(TUMBLING, ADJUST, ["0"])
    receive(job, [(at(1), Event("0", 0, at(1), at(1), None, temperature=None))], until=NEVER)
    assert job.emitted == [Row(at(5), None, 1, None, None, None)]


def test_a_pause_as_long_as_the_timeout_extends_a_session() -> None:
    job = Job(Query(Session(2 * MINUTE, 60 * MINUTE)), ADJUST, ["0"])
    receive(job, [(at(time), event(at(time), number)) for number, time in enumerate([0, 2, 4.1])], until=NEVER)
    assert rows(job) == [(at(4), "a", 2), (at(6.1), "a", 1)]


def test_sessions_are_those_that_a_job_of_the_service_wrote() -> None:
    run = json.loads((VECTORS / "windows" / "session_real_output.json").read_bytes())
    times = [datetime.fromtimestamp(milliseconds / 1000, UTC) for milliseconds in run["event_times_ms"]]
    job = Job(Query(Session(3 * MINUTE, 15 * MINUTE)), Policy(10 * MINUTE, timedelta(), adjusts=True), ["0"])
    receive(
        job, [(time, event(time, number)) for number, time in enumerate(times)], until=times[-1] + timedelta(days=1)
    )
    expected = []
    for session in run["expected"]:
        first, end = (
            datetime.fromisoformat(f"2018-04-12T{session[column]}+00:00") for column in ("first_event", "window_end")
        )
        expected.append((end, "a", sum(first <= time <= end for time in times)))
    assert rows(job) == expected
