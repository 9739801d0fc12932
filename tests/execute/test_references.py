"""Reference data in a run: what is pinned, what a change does, and the published rows."""

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from recapture.archive.manifest import Manifest, from_json
from recapture.definition.pipeline import Pipeline
from recapture.errors import RunError
from recapture.run.plan import changed_since, preview
from recapture.run_files.computed import METRICS, STAGED
from tests.blobs import write_blob
from tests.commands import FIRST_HOUR, Command
from tests.worlds import HOUR, TELEMETRY, TEN, World, at, backfill, body, lenient, published, staged

QUERY = (
    "CREATE TABLE telemetry (deviceId nvarchar(max), eventTime datetime, temperature float);\n"
    "SELECT System.Timestamp() AS time, t.deviceId, t.temperature - d.offset AS value, d.site INTO aggregates\n"
    "FROM telemetry t TIMESTAMP BY eventTime LEFT JOIN devices d ON t.deviceId = d.deviceId"
)
DEVICES = {"type": "Reference", "alias": "devices", "container": "reference", "format": "Csv"}
VERSIONED = DEVICES | {"path": "devices/{date}/{time}/devices.csv", "time_format": "HH-mm"}
STATIC = DEVICES | {"path": "devices.csv"}


def put(world: World, name: str, *rows: str, written: datetime = TEN) -> Path:
    """Write a version of the reference data."""
    return write_blob(world.home / "reference" / name, "\n".join(["deviceId,site,offset", *rows]).encode(), written)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Two hours with an event every ten minutes or so, and versions of nine, of half past ten and of twelve."""
    world = World(tmp_path)
    for minute in (5, 25, 35, 65, 115):
        device = "b" if minute == 35 else "a"
        world.put("0", at(minute + 1), [body(device, at(minute), 20.0)], first=minute)
    world.put("0", at(140), [], first=200)
    put(world, "devices/2024/03/01/09-00/devices.csv", "a,roof,1")
    put(world, "devices/2024/03/01/10-30/devices.csv", "a,cellar,2.5", "b,yard,3")
    put(world, "devices/2024/03/01/12-00/devices.csv", "a,nowhere,0")
    return world


def defined(world: World, section: dict[str, Any] = VERSIONED, query: str = QUERY, table: str = "table") -> Pipeline:
    return world.define(query, table, quality=lenient(world), inputs=[TELEMETRY, section])


def names(manifest: Manifest) -> list[str]:
    [reference] = manifest.references
    return [version.blob.name.split("/")[-2] for version in reference.versions]


def rows(folder: Path) -> list[tuple[datetime, float, str]]:
    return sorted((row["time"], row["value"], row["site"]) for row in published(folder))


def test_the_rows_are_those_of_the_version_in_force_hour_by_hour_and_at_once(spark: SparkSession, world: World) -> None:
    for start in (TEN + HOUR, TEN):
        backfill(spark, defined(world), start, start + HOUR)
    assert rows(world.table) == [
        (at(5), 19.0, "roof"),
        (at(25), 19.0, "roof"),
        (at(35), 17.0, "yard"),
        (at(65), 17.5, "cellar"),
        (at(115), 17.5, "cellar"),
    ]
    backfill(spark, defined(world, table="again"), TEN, TEN + 2 * HOUR)
    assert rows(world.home / "again") == rows(world.table)


def test_a_run_pins_the_versions_that_are_in_force_in_its_slices(world: World) -> None:
    pipeline = defined(world)
    assert names(preview(pipeline, TEN, TEN + HOUR)) == ["09-00", "10-30"]
    assert names(preview(pipeline, TEN + HOUR, TEN + 2 * HOUR)) == ["10-30", "12-00"]
    both = preview(pipeline, TEN, TEN + 2 * HOUR)
    assert names(both) == ["09-00", "10-30", "12-00"]
    assert from_json(both.to_json()) == both


def test_a_new_version_changes_the_slices_that_need_it_and_no_others(world: World) -> None:
    def digests() -> list[str]:
        return [run_slice.digest for run_slice in preview(defined(world), TEN, TEN + 2 * HOUR).slices]

    before = digests()
    put(world, "devices/2024/03/01/11-15/devices.csv", "a,attic,1")
    after = digests()
    assert after[0] == before[0]
    assert after[1] != before[1]


def test_a_version_that_changed_since_the_plan_is_found(world: World) -> None:
    pipeline = defined(world)
    manifest = preview(pipeline, TEN, TEN + HOUR)
    assert not changed_since(pipeline, manifest)
    put(world, "devices/2024/03/01/10-30/devices.csv", "a,other,2.5", written=at(90))
    [change] = changed_since(pipeline, manifest)
    assert str(change).startswith("devices/2024/03/01/10-30/devices.csv of input devices was modified (size 42, now 32")


def test_a_delimiter_is_part_of_the_definition_and_the_container_is_not(world: World) -> None:
    run = preview(defined(world), TEN, TEN + HOUR).run
    assert preview(defined(world, VERSIONED | {"delimiter": ";"}), TEN, TEN + HOUR).run != run
    world.home.joinpath("reference").rename(world.home / "elsewhere")
    assert preview(defined(world, VERSIONED | {"container": "elsewhere"}), TEN, TEN + HOUR).run == run


def test_a_range_before_the_oldest_version_is_refused(world: World) -> None:
    message = (
        r"reference data devices: no version is in force at 2024-03-01T08:00:00Z, which the first slice needs; "
        r"the oldest is devices/2024/03/01/09-00/devices.csv: choose a later range, or write an older version"
    )
    with pytest.raises(RunError, match=message):
        preview(defined(world), TEN - 2 * HOUR, TEN)


def test_a_path_without_a_blob_is_refused(world: World) -> None:
    with pytest.raises(RunError, match=r"no blob under .* has the name that its path gives"):
        preview(defined(world, STATIC), TEN, TEN + HOUR)


def test_a_path_without_a_date_has_one_version_for_all_time(spark: SparkSession, world: World) -> None:
    put(world, "devices.csv", "a,always,0")
    put(world, "devices.csv.old", "a,never,0")
    backfill(spark, defined(world, STATIC), TEN, TEN + HOUR)
    assert [(time, site) for time, _, site in rows(world.table) if site] == [(at(5), "always"), (at(25), "always")]


def test_versions_before_a_slice_count_as_far_as_the_query_looks_back(world: World) -> None:
    query = (
        "SELECT d.site, COUNT(*) AS n INTO aggregates FROM telemetry t TIMESTAMP BY eventTime "
        "JOIN devices d ON t.deviceId = d.deviceId GROUP BY d.site, HoppingWindow(hour, 2, 1)"
    )
    manifest = preview(defined(world, query=query), TEN + HOUR, TEN + 2 * HOUR)
    assert names(manifest) == ["09-00", "10-30", "12-00"]


def test_the_plan_shows_the_versions(command: Command, world: World) -> None:

    defined(world)
    assert "reference data devices: 2 versions, 71 bytes" in command.text("plan", world.file, *FIRST_HOUR)
    [reference] = command.json("plan", world.file, *FIRST_HOUR)["references"]
    assert [version["valid_from"] for version in reference["versions"]] == [
        "2024-03-01T09:00:00Z",
        "2024-03-01T10:30:00Z",
    ]


@pytest.mark.parametrize("row", ["", ",roof,1"])
def test_every_event_is_counted_if_no_row_of_the_reference_data_has_a_key(
    spark: SparkSession, world: World, row: str
) -> None:
    """The second query has more columns than Spark compiles to one function; it then takes another path."""
    put(world, "devices.csv", row)
    for columns in ("d.site", ", ".join(f"d.site AS s{number}" for number in range(120))):
        query = f"SELECT {columns} INTO aggregates FROM telemetry t JOIN devices d ON t.deviceId = d.deviceId"
        run = staged(spark, defined(world, STATIC, query, f"table{len(columns)}"), TEN, TEN + HOUR)
        assert [counts.count("InputEvents") for counts in run.files.read(METRICS)] == [3]
        assert [file.rows for file in run.files.read(STAGED)] == [0]
