"""Approval, schedule and notifications in a pipeline file."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from recapture.definition.digest import run_definition
from recapture.definition.pipeline import load
from tests.definition.pipeline_files import EXAMPLE, complaint


def test_a_pipeline_asks_nobody_and_tells_nobody_unless_it_says_so(file: Path) -> None:
    assert (load(file).approval, load(file).notifications) == (None, ())


def test_approval_waits_a_day_unless_the_file_says_otherwise(file: Path) -> None:
    for written, hours in (("approval: {}", 24), ("approval: {wait_hours: 3}", 3)):
        file.write_text(f"{EXAMPLE}\n{written}\n")
        approval = load(file).approval
        assert approval is not None
        assert approval.wait_hours == hours


@pytest.mark.parametrize("written", ["2026-03-01T06:00:00Z", "'2026-03-01T07:00:00+01:00'", "2026-03-01T06:00Z"])
@pytest.mark.parametrize("bound", ["since", "until"])
def test_a_schedule_may_begin_and_end_at_any_slice_border(file: Path, written: str, bound: str) -> None:
    file.write_text(f"{EXAMPLE}\nschedule: {{{bound}: {written}}}\n")
    schedule = load(file).schedule
    assert schedule is not None
    assert getattr(schedule, bound) == datetime(2026, 3, 1, 6, tzinfo=UTC)


def test_the_arguments_of_a_notifier_take_variables_and_keep_templates(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHANNEL", "#hub")
    arguments = "arguments: {channel: '${CHANNEL}', text: '{{ recapture.message }}'}"
    file.write_text(f"{EXAMPLE}\nnotifications:\n  - notifier: a.b.C\n    {arguments}\n    events: [blocked]\n")
    (notification,) = load(file).notifications
    assert notification.arguments == {"channel": "#hub", "text": "{{ recapture.message }}"}
    assert notification.events == ("blocked",)


@pytest.mark.parametrize(
    ("written", "where"),
    [
        ("approval:", "approval"),
        ("approval: {wait_hours: 0}", "approval.wait_hours"),
        ("approval: {wait_hours: true}", "approval.wait_hours"),
        ("schedule:", "schedule"),
        ("schedule: {end: 2026-03-01T06:00:00Z}", "schedule.end"),
        ("schedule: {until: 2026-03-01T06:30:00Z}", "schedule.until"),
        ("schedule: {since: 2026-03-01T06:00:00Z, until: 2026-03-01T06:00:00Z}", "schedule.until"),
        ("schedule: {since: 2026-03-01T06:30:00Z}", "schedule.since"),
        ("schedule: {at_most_slices: 0}", "schedule.at_most_slices"),
        ("schedule: {at_most_bytes: true}", "schedule.at_most_bytes"),
        ("schedule: {quiet_minutes: -1}", "schedule.quiet_minutes"),
        ("schedule: {late_data: drop}", "schedule.late_data"),
        ("schedule: {outdated: yes}", "schedule.outdated"),
        ("schedule: {since: yesterday}", "schedule.since"),
        ("schedule: {since: 2026-03-01T06:00:00}", "schedule.since"),
        ("schedule: {every_minutes: 7}", "schedule.every_minutes"),
        ("notifications: [{notifier: Slack}]", "notifications.0.notifier"),
        ("notifications: [{notifier: a.B, events: [published]}]", "notifications.0.events.0"),
        ("notifications: [{notifier: a.B, text: x}]", "notifications.0.text"),
    ],
)
def test_a_mistake_in_approval_schedule_or_notifications_is_named_with_its_line(
    file: Path, written: str, where: str
) -> None:
    file.write_text(f"{EXAMPLE}\n{written}\n")
    line, message = complaint(file)
    assert line == file.read_text().splitlines().index(written) + 1
    assert message.startswith(where)


def test_approval_schedule_and_notifications_do_not_change_what_a_run_computes(file: Path) -> None:
    before = run_definition(load(file)).digest
    file.write_text(
        f"{EXAMPLE}\napproval: {{}}\nnotifications: [{{notifier: a.B}}]\nschedule: {{since: 2026-03-01T06:00:00Z}}\n"
    )
    assert run_definition(load(file)).digest == before
