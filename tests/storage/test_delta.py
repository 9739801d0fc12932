"""A Delta table at the same url, with the same credentials."""

from io import BytesIO
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import CommitProperties, DeltaTable, QueryBuilder, Schema, write_deltalake
from deltalake.transaction import AddAction

from recapture.errors import DefinitionError
from recapture.storage import Container, delta_storage_options, delta_table_uri, open_container

ROWS = pa.table({"deviceId": ["device-1"], "events": pa.array([3], pa.int64())})


def _count(table: DeltaTable) -> list[int]:
    rows = QueryBuilder().register("t", table).execute("select events from t order by events").read_all()
    return [row.as_py() for row in pa.table(rows)["events"]]


def test_a_table_is_written_and_read_at_the_url_of_a_container(place: Any) -> None:
    url = f"{place.url}/curated/my%20telemetry"
    write_deltalake(delta_table_uri(url), ROWS, storage_options=delta_storage_options(url))
    table = DeltaTable(delta_table_uri(url), storage_options=delta_storage_options(url))
    assert _count(table) == [3]
    assert any(blob.name.startswith("_delta_log/") for blob in open_container(url).list())


def test_files_written_through_the_container_are_published_by_one_commit(place: Any) -> None:
    url = f"{place.url}/curated/telemetry"
    uri, options = delta_table_uri(url), delta_storage_options(url)
    container = open_container(url)
    schema = Schema.from_arrow(ROWS.schema.append(pa.field("slice_start", pa.timestamp("us", "UTC"))))
    DeltaTable.create(uri, schema, partition_by=["slice_start"], storage_options=options)
    for run, mode in (("one", "append"), ("two", "overwrite"), ("three", "overwrite")):
        table = DeltaTable(uri, storage_options=options)
        table.create_write_transaction(
            [_staged(container, run)],
            mode,
            table.schema(),
            ["slice_start"],
            partition_filters=[("slice_start", "=", "2026-03-01 10:00:00")] if mode == "overwrite" else None,
            commit_properties=CommitProperties(custom_metadata={"recapture.run": run}),
        )
    table = DeltaTable(uri, storage_options=options)
    assert table.version() == 3
    assert table.history(1)[0]["recapture.run"] == "three"
    assert _count(table) == [3]


def _staged(container: Container, run: str) -> AddAction:
    content = BytesIO()
    pq.write_table(ROWS, content)
    blob = container.write(f"slice_start=2026-03-01T10%3A00%3A00Z/{run}.parquet", content.getvalue())
    return AddAction(blob.name, blob.size, {"slice_start": "2026-03-01 10:00:00"}, 0, True, '{"numRecords":1}')


def test_an_account_is_named_by_its_endpoint_and_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", "AccountName=account;AccountKey=a2V5")
    url = "https://account.blob.core.windows.net/curated/a%20b"
    assert delta_table_uri(url) == "az://curated/a%20b"
    assert delta_storage_options(url) == {
        "azure_storage_account_name": "account",
        "azure_storage_account_key": "a2V5",
        "azure_storage_endpoint": "https://account.blob.core.windows.net",
    }


def test_a_key_that_would_take_precedence_over_a_signature_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """delta-rs reads the variable itself, and would write the table with more rights than were given."""
    url = "https://account.blob.core.windows.net/curated/t"
    signed = "BlobEndpoint=https://account.blob.core.windows.net;SharedAccessSignature=sv=1&sig=a"
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", signed)
    assert delta_storage_options(url)["azure_storage_sas_token"] == "sv=1&sig=a"
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "a2V5")
    with pytest.raises(
        DefinitionError, match=r"would open .* with AZURE_STORAGE_ACCOUNT_KEY, not the signature: unset"
    ) as raised:
        delta_storage_options(url)
    assert "a2V5" not in str(raised.value)


def test_a_folder_needs_no_options(folder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AZURE_STORAGE_CONNECTION_STRING", raising=False)
    assert delta_storage_options(folder.url) == {}
    assert delta_table_uri(folder.url) == str(folder.folder)
