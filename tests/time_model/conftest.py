"""Each test that asks for `implementation` runs twice: against the oracle and against the fast path."""

from collections.abc import Sequence

import pytest

from tests.oracle import Event, Implementation, Policy, process
from tests.time_model.fast_path import fast_path


def oracle(events: Sequence[Event], policy: Policy) -> list[tuple[str, int | None]]:
    return [(outcome.verdict, outcome.system_timestamp) for outcome in process(events, policy)]


@pytest.fixture(params=[oracle, fast_path], ids=["oracle", "fast path"], scope="session")
def implementation(request: pytest.FixtureRequest) -> Implementation:
    chosen: Implementation = request.param
    return chosen
