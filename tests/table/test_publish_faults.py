"""A storage that refuses a commit, or does not acknowledge it: one true line, and the next call finishes.

`make chaos` tries every fault at every commit of the whole command.
"""

import pytest

from embedded.azurite import Azurite
from recapture.errors import RunError, UnfinishedError
from tests.storage.fault_proxy import Exchange, Fault, FaultProxy, answered, lost, reset
from tests.table.feeds import Feed
from tests.table.publishing import METRICS, NINE, QUARANTINE, ROWS, Place, everywhere, on_azurite

ORDER = ("publications", ROWS, METRICS, QUARANTINE)


@pytest.fixture
def place(azurite: Azurite, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A new container behind the proxy."""
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", proxy.connection_string)
    return Place(on_azurite(azurite).url.replace(azurite.url, proxy.url))


def log_of(place: Place, name: str) -> str:
    """Return the pattern of the commits of a table."""
    return rf"curated/{place.table_url(name).rsplit('/', 1)[1]}/_delta_log/\d+\.json$"


@pytest.mark.parametrize(
    ("fault", "name"),
    [
        (answered(403, "AuthorizationPermissionMismatch"), "publications"),
        (answered(404, "ContainerNotFound"), ROWS),
        (answered(400, "InvalidHeaderValue"), QUARANTINE),
    ],
    ids=["403", "404", "400"],
)
def test_a_refused_commit_is_one_true_line_and_the_next_call_finishes(
    place: Place, proxy: FaultProxy, fault: Fault, name: str
) -> None:
    place.publish("first")
    proxy.inject(fault, "write", log_of(place, name))
    with pytest.raises(RunError) as raised:
        place.publish("second")
    message = str(raised.value)
    assert "\n" not in message
    assert f"/curated/{name.replace(' ', '_').strip('@')}" in message
    assert isinstance(raised.value, UnfinishedError) == (name != "publications")
    assert ("is unfinished" in message) == (name != "publications")
    committed = ORDER.index(name)
    held = place.held()
    assert [held[table] for table in ORDER] == ["second"] * committed + ["first"] * (4 - committed)
    proxy.clear()
    place.publish("second")
    assert place.held() == everywhere("second")


@pytest.mark.parametrize(
    ("fault", "name"),
    [(lost, "publications"), (lost, ROWS), (reset, METRICS), (answered(409), ROWS), (answered(412), QUARANTINE)],
    ids=["lost", "lost", "reset", "409", "412"],
)
def test_a_commit_that_is_refused_once_or_not_acknowledged_is_made_once(
    place: Place, proxy: FaultProxy, fault: Fault, name: str
) -> None:
    place.publish("first")
    proxy.inject(fault, "write", log_of(place, name), times=1)
    outcome = place.publish("second")
    assert outcome.changed == {table: [NINE] for table in (ROWS, METRICS, QUARANTINE)}
    assert place.held() == everywhere("second")
    assert set(place.versions().values()) == {2}


@pytest.mark.parametrize("fault", [lost, reset, answered(409)], ids=["lost", "reset", "409"])
def test_a_table_whose_creation_is_not_acknowledged_is_created_once(
    place: Place, proxy: FaultProxy, fault: Fault
) -> None:
    proxy.inject(fault, "write", r"_delta_log/0+\.json$", times=1)
    place.publish("first")
    assert place.held() == everywhere("first")


def test_a_storage_that_cannot_be_reached_after_a_commit_leaves_open_whether_it_took_place(
    place: Place, proxy: FaultProxy, azurite: Azurite
) -> None:
    place.publish("first")

    def lost_and_closed(exchange: Exchange) -> None:
        lost(exchange)
        proxy.inject(answered(403, "AuthenticationFailed"))

    proxy.inject(lost_and_closed, "write", log_of(place, "publications"), times=1)
    with pytest.raises(UnfinishedError, match="cannot tell how far the publication of run second got"):
        place.publish("second")
    proxy.clear()
    place.publish("second")
    assert place.held() == everywhere("second")


@pytest.mark.parametrize(
    ("fault", "name"),
    [
        (lost, "_delta_log/0+2.json$"),
        (reset, "_delta_log/0+2.json$"),
        (answered(409), "_delta_log/0+2.json$"),
        (lost, "_change_data/"),
    ],
    ids=["lost commit", "reset commit", "409", "lost change file"],
)
def test_a_commit_with_change_files_is_made_once_too(
    place: Place, azurite: Azurite, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch, fault: Fault, name: str
) -> None:
    feed = Feed(place.url)
    feed.publish({NINE: [(5, "a", 1.0), (5, "b", 1.0)]})
    proxy.inject(fault, "write", f"curated/rows/{name}", times=1)
    feed.publish({NINE: [(5, "a", 2.0), (5, "b", 1.0)]})
    assert proxy.requested("write", name), "the fault was met"
    # load_cdf holds the GIL, which the proxy needs.
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", azurite.connection_string)
    feed = Feed(place.url.replace(proxy.url, azurite.url))
    assert feed.delta().version() == 2
    assert feed.changes() == [("update_preimage", NINE, 5, "a", 1.0), ("update_postimage", NINE, 5, "a", 2.0)]
