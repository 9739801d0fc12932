"""Tables that take no commit of Recapture: append-only, with unknown features, or with columns of other names."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from recapture.errors import DefinitionError
from recapture.table import publish
from recapture.table.writable import WRITER_FEATURES, retention_of
from tests.table import strangers
from tests.table.publishing import NINE, QUARANTINE, ROWS, TEN, Place, everywhere

READER_FEATURES = ("columnMapping", "deletionVectors", "timestampNtz", "v2Checkpoint", "variantType", "typeWidening")
"""Features that readers must know too."""


@pytest.fixture
def published(tmp_path: Path) -> Place:
    place = Place(tmp_path.as_uri())
    place.publish("first")
    return place


def refused(place: Place, match: str) -> None:
    """Assert that a plan and a publication are refused, and that no table changes."""
    versions = place.versions()
    for call in (place.tables.require_publishable, lambda: place.publish("second"), lambda: place.rollback()):
        with pytest.raises(DefinitionError, match=match):
            call()
    assert place.versions() == versions
    assert place.held() == everywhere("first")


@pytest.mark.parametrize("name", [ROWS, QUARANTINE])
def test_an_append_only_table_is_refused_before_anything_is_published(published: Place, name: str) -> None:
    strangers.set_property(published.folder(name), "delta.appendOnly", "true")
    refused(published, f"table {published.table_url(name)} is append-only, .* unset its property delta.appendOnly, or")
    strangers.set_property(published.folder(name), "delta.appendOnly", "false")
    published.publish("second")
    assert published.held() == everywhere("second")


@pytest.mark.parametrize(
    "feature",
    [
        *sorted(WRITER_FEATURES),
        *("allowColumnDefaults", "clustering", "domainMetadata", "icebergCompatV1", "icebergCompatV2"),
        *("identityColumns", "inCommitTimestamp", "rowTracking", "typeWidening", "checkpointProtection"),
    ],
)
def test_a_feature_is_refused_exactly_if_delta_rs_does_not_commit_to_such_a_table(
    published: Place, feature: str
) -> None:
    reader_features = (feature,) if feature.startswith(READER_FEATURES) else ()
    strangers.commit(published.folder(), strangers.protocol(feature, reader_features=reader_features))
    if feature in WRITER_FEATURES:
        published.publish("second")
        assert published.held() == everywhere("second")
        return
    refused(published, f"/rows has features that Recapture cannot write: {feature}; drop them")
    with pytest.raises(CommitFailedError, match="Unsupported table features"):
        DeltaTable(published.folder()).delete()


def mapped(place: Place, mode: str, physical_name: str) -> dict[str, Any]:
    """Return the metadata of the rows table with a mapped column."""
    metadata = strangers.metadata(place.folder())
    schema = json.loads(metadata["schemaString"])
    for number, column in enumerate(schema["fields"], 1):
        name = physical_name if column["name"] == "run" else column["name"]
        column["metadata"] = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": name}
    configuration = {"delta.columnMapping.mode": mode, "delta.columnMapping.maxColumnId": "2"}
    return {**metadata, "schemaString": json.dumps(schema), "configuration": metadata["configuration"] | configuration}


@pytest.mark.parametrize(("mode", "physical_name"), [("name", "col-1"), ("id", "run")])
def test_a_table_whose_columns_have_other_names_in_the_files_is_refused(
    published: Place, mode: str, physical_name: str
) -> None:
    feature = strangers.protocol("columnMapping", reader_features=("columnMapping",))
    strangers.commit(published.folder(), feature, {"metaData": mapped(published, mode, physical_name)})
    refused(published, rf"maps its columns \(delta.columnMapping.mode is {mode}\), .*: publish to another table")


def test_a_table_that_maps_its_columns_to_the_same_names_is_published_to(published: Place) -> None:
    feature = strangers.protocol("columnMapping", reader_features=("columnMapping",))
    strangers.commit(published.folder(), feature, {"metaData": mapped(published, "name", "run")})
    published.publish("second", NINE, TEN)
    assert published.shown(ROWS) == {NINE: "second", TEN: "second"}


@pytest.mark.parametrize(("recorded", "hours"), [(1, 2), (2, 1), (None, 2)])
def test_slices_of_another_length_are_refused_because_they_would_overlap(
    tmp_path: Path, recorded: int | None, hours: int
) -> None:
    place = Place(tmp_path.as_uri())
    place.publish("first", slice_hours=recorded)
    length = f"slices of {recorded} h" if recorded else "shorter slices"
    with pytest.raises(DefinitionError, match=f"/publications has {length}, but slice_hours is {hours}, so rows"):
        place.tables_of(hours).require_publishable(take_over=True)
    with pytest.raises(DefinitionError, match=f"has {length}, but slice_hours is {hours}"):
        publish.rollback(place.tables_of(hours), [NINE])
    assert place.held() == everywhere("first")


def test_a_table_of_an_earlier_version_records_the_length_of_its_slices_from_the_next_publication_on(
    published: Place,
) -> None:
    published.publish("second", TEN, slice_hours=1)
    versions = published.versions()
    published.publish("second", TEN, slice_hours=1)
    assert published.versions() == versions
    with pytest.raises(DefinitionError, match="has slices of 1 h, but slice_hours is 3"):
        published.tables_of(3).require_publishable()


@pytest.mark.parametrize(
    ("value", "retention"),
    [
        (None, timedelta(days=7)),
        ("interval 168 hours", timedelta(days=7)),
        ("interval 1 week", timedelta(days=7)),
        ("INTERVAL 1 DAY 12 HOURS", timedelta(hours=36)),
        ("interval 90 minutes", timedelta(minutes=90)),
        ("for ever", timedelta()),
    ],
)
def test_the_retention_is_that_of_the_table_and_none_if_it_is_not_readable(
    value: str | None, retention: timedelta
) -> None:
    assert retention_of({} if value is None else {"delta.deletedFileRetentionDuration": value}) == retention
