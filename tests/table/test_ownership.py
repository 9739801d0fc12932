"""A table belongs to one pipeline. Another pipeline may not write to it, unless it takes the table over."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from recapture.errors import DefinitionError, UnfinishedError
from recapture.storage import delta_storage_options, delta_table_uri
from recapture.table import publish
from recapture.table.delta import OpenTable, Table
from tests.table.publishing import METRICS, NINE, QUARANTINE, ROWS, TEN, Place, everywhere, together


@pytest.fixture
def ours(tmp_path: Path) -> Place:
    return Place(tmp_path.as_uri())


@pytest.fixture
def theirs(ours: Place) -> Place:
    """The same tables in another pipeline's file."""
    return replace(ours, pipeline="copied")


def owners(place: Place) -> dict[str, str | None]:
    """Return the pipeline that each existing table belongs to, as any reader of Delta tables sees it."""
    tables = {"publications": place.tables.publications, **place.tables.others}
    owners = {}
    for name, table in tables.items():
        if OpenTable(table).version is not None:
            opened = DeltaTable(delta_table_uri(table.url), storage_options=delta_storage_options(table.url))
            owners[name] = opened.metadata().configuration.get("recapture.pipeline")
    return owners


def with_table_of(place: Place, other: Place, name: str) -> publish.Tables:
    """Return the tables of a place, but one of another place, as a copied output has it."""
    shared = replace(other.tables.others[name], pipeline=place.pipeline)
    return replace(place.tables, others={**place.tables.others, name: shared})


def test_every_table_that_a_pipeline_creates_belongs_to_it(place: Place) -> None:
    place.publish("run")
    assert owners(place) == everywhere("telemetry")
    assert set(place.versions().values()) == {1}
    assert place.shown(ROWS) == {NINE: "run"}


@pytest.mark.parametrize("call", ["publish", "rollback", "plan"])
def test_the_tables_of_another_pipeline_are_refused_and_do_not_change(ours: Place, theirs: Place, call: str) -> None:
    ours.publish("run")
    versions = ours.versions()
    calls: dict[str, Callable[[], Any]] = {
        "publish": lambda: theirs.publish("other"),
        "rollback": theirs.rollback,
        "plan": theirs.tables.require_publishable,
    }
    with pytest.raises(DefinitionError) as raised:
        calls[call]()
    assert str(raised.value) == (
        f"table {ours.url}/publications belongs to pipeline telemetry, not to copied: publish to another table "
        "(output.table), or take the table over with recapture backfill --take-over"
    )
    assert ours.versions() == versions
    assert ours.held() == everywhere("run")


def test_a_table_that_is_taken_over_refuses_its_former_pipeline(ours: Place, theirs: Place) -> None:
    ours.publish("run", NINE, TEN)
    theirs.tables.require_publishable(take_over=True)
    assert owners(ours) == everywhere("telemetry")
    slices = {NINE: theirs.publication("other")}
    publish.publish(theirs.tables, slices, take_over=True)
    assert owners(ours) == everywhere("copied")
    assert theirs.shown(ROWS) == {NINE: "other", TEN: "run"}
    with pytest.raises(DefinitionError, match="belongs to pipeline copied, not to telemetry"):
        ours.publish("run")
    versions = theirs.versions()
    publish.publish(theirs.tables, slices, take_over=True)
    assert theirs.versions() == versions, "a table is taken over once"


def test_tables_of_no_pipeline_belong_to_the_next_one_that_publishes(ours: Place, theirs: Place) -> None:
    """Tables that were created by an earlier version have no pipeline."""
    nobodys = replace(ours, pipeline=None)
    nobodys.publish("first", NINE, TEN)
    assert owners(ours) == everywhere(None)
    theirs.tables.require_publishable()
    ours.publish("second")
    assert owners(ours) == everywhere("telemetry")
    assert ours.shown(ROWS) == {NINE: "second", TEN: "first"}
    with pytest.raises(DefinitionError, match="belongs to pipeline telemetry, not to copied"):
        theirs.tables.require_publishable()
    versions = ours.versions()
    ours.publish("second")
    assert ours.versions() == versions


@pytest.mark.parametrize("name", [ROWS, METRICS, QUARANTINE])
def test_one_shared_table_of_several_is_refused_before_any_table_changes(
    ours: Place, tmp_path: Path, name: str
) -> None:
    ours.publish("run")
    second = Place((tmp_path / "second").as_uri(), pipeline="second")
    tables, publication = with_table_of(second, ours, name), second.publication("other")
    with pytest.raises(DefinitionError, match=f"table {ours.table_url(name)} belongs to pipeline telemetry"):
        publish.publish(tables, {NINE: publication})
    assert set(second.versions().values()) == {None}
    assert ours.held() == everywhere("run")


def once(monkeypatch: pytest.MonkeyPatch, method: str, url: str, first: Callable[[], object]) -> None:
    """Let something else happen right before a method of the table at this address is called for the first time."""
    original = getattr(OpenTable, method)

    def call(table: OpenTable, *arguments: Any) -> Any:
        if table.table.url == url:
            monkeypatch.undo()
            first()
        return original(table, *arguments)

    monkeypatch.setattr(OpenTable, method, call)


@pytest.mark.parametrize("method", ["create", "_set_properties"])
def test_of_two_pipelines_that_create_or_claim_the_same_tables_one_is_refused(
    ours: Place, theirs: Place, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    if method == "_set_properties":
        replace(ours, pipeline=None).publish("before")
    once(monkeypatch, method, ours.tables.publications.url, lambda: ours.publish("run"))
    with pytest.raises(DefinitionError, match="belongs to pipeline telemetry, not to copied"):
        theirs.publish("other")
    assert ours.held() == everywhere("run")
    assert owners(ours) == everywhere("telemetry")


def test_of_two_pipelines_that_create_one_shared_table_one_is_refused_before_it_publishes(
    ours: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = Place((tmp_path / "second").as_uri(), pipeline="second")
    tables, publication = with_table_of(second, ours, METRICS), second.publication("other")
    once(monkeypatch, "create", ours.table_url(METRICS), lambda: ours.publish("run"))
    with pytest.raises(DefinitionError, match=f"table {ours.table_url(METRICS)} belongs to pipeline telemetry"):
        publish.publish(tables, {NINE: publication})
    assert second.entry().run is None
    assert second.shown(ROWS) == {}
    assert ours.held() == everywhere("run")


def test_pipelines_that_start_at_the_same_moment_on_new_tables_do_not_mix(place: Place) -> None:
    names = ("one", "two", "three")
    outcomes = together(*(lambda name=name: replace(place, pipeline=name).publish(f"run {name}") for name in names))
    refused = [outcome for outcome in outcomes if not isinstance(outcome, publish.Outcome)]
    assert len(refused) == 2
    assert all(isinstance(outcome, DefinitionError) for outcome in refused), refused
    (owner,) = set(owners(place).values())
    assert place.held() == everywhere(f"run {owner}")


def test_a_publication_whose_table_is_taken_over_meanwhile_does_not_write_to_it(
    ours: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours.publish("first")
    second = Place((tmp_path / "second").as_uri(), (ROWS,), pipeline="second")
    tables = with_table_of(second, ours, ROWS)
    url = ours.table_url(ROWS)
    slices = {NINE: replace(second.publication("other"), files=ours.publication("other").files)}
    once(monkeypatch, "commit", url, lambda: publish.publish(tables, slices, take_over=True))
    with pytest.raises(UnfinishedError, match=rf"table {url} belongs to pipeline second, .* is unfinished: {url}, "):
        ours.publish("second")
    assert ours.shown(ROWS) == {NINE: "other"}
    assert OpenTable(Table(url, ours.schema)).pipeline == "second"
