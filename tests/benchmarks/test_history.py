"""The cost of one hour does not depend on the number of hours before it."""

from pathlib import Path

import pytest

from benchmarks.history import measure
from embedded.azurite import Azurite
from tests.storage.fault_proxy import FaultProxy


def test_the_hour_after_twenty_two_takes_as_many_requests_as_the_hour_after_twelve(
    azurite: Azurite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", azurite.connection_string)
    with FaultProxy(azurite) as proxy:
        measured = [measure(tmp_path, hours, azurite, proxy, held) for held, hours in ((0, 12), (12, 22))]
    first, second = ([cost.requests for cost in costs] for costs in measured)
    assert first == second
    assert max(first) < 300  # of the call that writes the tables' checkpoints
