"""What a task gives to later ones is read as it was written; after an upgrade, it is read or refused."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from recapture.errors import FormatError, PermanentError
from recapture.keep.job import from_json
from recapture_airflow.task_results import AuditResult, Due, Stopped

NINE, TEN = (datetime(2024, 3, 1, hour, tzinfo=UTC) for hour in (9, 10))


def test_a_value_is_read_as_it_was_written() -> None:
    due = Due(start=NINE, end=TEN, next=None, job={"update": "first"})
    written = {"from": "2024-03-01T09:00:00Z", "to": "2024-03-01T10:00:00Z", "next": None, "job": {"update": "first"}}
    assert due.to_json() == written
    assert Due.read(written) == due
    assert AuditResult.read({"verdict": "failed"}).to_json() == {"verdict": "failed"}
    assert not AuditResult.read({"verdict": "passed", "text": "all good"}).staged, "as before there were staged runs"


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"from": "2024-03-01T09:00:00Z", "to": "2024-03-01T10:00:00Z", "next": None}, "job: Field required"),
        ({"from": "nine", "to": "2024-03-01T10:00:00Z", "next": None, "job": {}}, "from: Input should be a valid date"),
        (None, "Input should be a valid dictionary"),
    ],
)
def test_a_value_of_another_version_is_refused_with_what_to_do(value: Any, problem: str) -> None:
    with pytest.raises(PermanentError) as error:
        Due.read(value)
    message = str(error.value)
    assert message.startswith(
        f"this version of Recapture cannot read what the task due of this DAG run gave: {problem}"
    )
    assert message.endswith("; clear the task due, so that it runs again")


def test_a_range_that_another_version_took_is_refused() -> None:
    with pytest.raises(FormatError, match="clear the DAG run's task due"):
        from_json({"update": "first"})


def test_an_audit_that_stopped_nothing_gives_no_second_value() -> None:
    given: dict[tuple[str, str], Any] = {}
    ti = SimpleNamespace(xcom_pull=lambda task_ids, key: given.get((task_ids, key)))
    assert Stopped.pull(ti) is None
    given["audit", "stopped"] = Stopped(asks=True).to_json()
    assert Stopped.pull(ti) == Stopped(asks=True)
