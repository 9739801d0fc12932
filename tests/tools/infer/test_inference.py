"""The command `recapture infer` on local archives: what it prints, and the pipeline file that it writes."""

import base64
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from recapture.definition.pipeline import load
from recapture.formats.json_bodies.decoder import JsonBodies
from recapture.tools.infer import sample
from tests.blobs import rewrite, write_blob
from tests.commands import FIRST_HOUR, Command
from tests.worlds import TELEMETRY, TEN, World, at, backfill, published

STAR = "SELECT * INTO aggregates FROM telemetry TIMESTAMP BY eventTime"
LEFT_OUT = (
    "CREATE TABLE telemetry leaves out site, tags, up: its comments say why; * does not include these fields, and a "
    "query that reads one of them does not compile with this CREATE TABLE"
)


def define(world: World, query: str = STAR, **sections: Any) -> str:
    """Write a pipeline file whose query does not have to compile, and return its path."""
    world.define()
    world.amend(job=world.sections()["job"] | {"query": query}, **sections)
    return str(world.file)


def put(world: World, *bodies: dict[str, Any], minute: int = 10) -> None:
    world.put("0", at(minute), [json.dumps(body).encode() for body in bodies])


def infer(command: Command, *arguments: str, code: int = 0) -> tuple[str, str]:
    """Return what the command prints on standard output, without its first line, and on standard error."""
    out, err = command.run("infer", *arguments, code=code)
    return out.partition("\n")[2], err


def declared(out: str) -> list[str]:
    """Return the fields and types of a statement without its comments."""
    return [declaration for line in out.splitlines()[1:-1] if (declaration := line.partition("--")[0].strip(" ,"))]


def read_fields(out: str) -> list[str]:
    """Return the names in a statement, those of the fields that it leaves out included."""
    return [line.replace("--", "").split()[0] for line in out.splitlines() if line.startswith("    ")]


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    put(
        world,
        {"eventTime": "2024-03-01T10:05:00Z", "id": "a", "v": 1, "site": {"x": 1}},
        {"eventTime": "2024-03-01T10:06:00Z", "ID": "b", "v": 2.5, "tags": [1], "up": True},
    )
    return world


def test_each_input_gets_its_create_table_and_its_newest_hour(command: Command, world: World) -> None:
    """A field of one input is not a field of another, and one command declares all of them."""
    alarms = b'{"raised": "2024-03-02T10:00:00Z", "level": 1.5, "sender": "a"}\nnot JSON\n'
    write_blob(world.home / "files" / "alarms.json", alarms, at(24 * 60))
    query = (
        "SELECT t.id, a.level INTO aggregates FROM telemetry t TIMESTAMP BY eventTime "
        "JOIN alarms a TIMESTAMP BY raised ON t.id = a.sender AND DATEDIFF(minute, t, a) BETWEEN 0 AND 5"
    )
    section = {"alias": "alarms", "format": "Json", "container": "files"}
    file = define(world, query, input=[TELEMETRY, section])
    _, err = infer(command, file, "--json")
    assert "1 event of the sample of input alarms cannot be read" in err
    result = command.json("infer", file)
    telemetry, inferred = result["inputs"]
    assert (telemetry["alias"], telemetry["to"]) == ("telemetry", "2024-03-01T10:10:00Z")
    assert (inferred["alias"], inferred["to"]) == ("alarms", "2024-03-02T10:00:00Z")
    assert [(entry["name"], entry["type"]) for entry in inferred["fields"]] == [
        ("raised", "datetime"),
        ("level", "float"),
        ("sender", "nvarchar(max)"),
    ]
    assert "fields" not in result
    assert infer(command, file, "--write")[1].count("is written") == 2
    assert load(world.file).job.query == result["statement"] + query


def test_infer_prints_create_table_and_changes_no_file(command: Command, world: World) -> None:
    file = define(world)
    before = world.file.read_text()
    out, err = command.run("infer", file)
    assert out == (
        "-- recapture infer, 2024-03-01T09:10:00Z to 2024-03-01T10:10:00Z: 2 events in 1 of 1 blob\n"
        "CREATE TABLE telemetry (\n"
        "    eventTime datetime,  -- in every event\n"
        "    id nvarchar(max),    -- in every event; also spelt ID\n"
        "    v float              -- in every event; 50.0% bigint, 50.0% float\n"
        "    -- site is left out: in 50.0% of the events; CREATE TABLE would drop the others\n"
        "    -- tags is left out: in 50.0% of the events; CREATE TABLE would drop the others\n"
        "    -- up is left out: in 50.0% of the events; CREATE TABLE would drop the others\n"
        ");\n"
    )
    assert err == f"warning: {LEFT_OUT}\n"
    assert world.file.read_text() == before


def test_a_star_is_refused_with_the_command_that_makes_it_compile(command: Command, world: World) -> None:
    file = define(world)
    _, err = command.run("plan", file, *FIRST_HOUR, code=2)
    assert "run recapture infer FILE --write" in err
    _, err = infer(command, file, "--write")
    assert err.endswith(f"\n{file}: CREATE TABLE telemetry is written\n")
    command.text("plan", file, *FIRST_HOUR)
    columns = [column.name for column in load(world.file).query.outputs[0].columns]
    assert columns == ["eventTime", "id", "v", "EventProcessedUtcTime", "PartitionId", "EventEnqueuedUtcTime"]


def test_a_star_is_published_with_the_inferred_types(spark: SparkSession, command: Command, world: World) -> None:
    infer(command, define(world), "--write")
    world.put("0", at(150))
    backfill(spark, load(world.file), TEN, at(60))
    first, second = published(world.table, "eventTime")
    assert (first["id"], first["v"]) == ("a", 1.0)
    assert (second["id"], second["v"], second["eventTime"]) == ("b", 2.5, at(6))


def test_the_properties_of_a_record_are_declared_where_the_query_selects_all_of_them(
    spark: SparkSession, command: Command, world: World
) -> None:
    put(
        world,
        {"eventTime": "2024-03-01T10:07:00Z", "id": "c", "v": 3, "Site": {"x": 2.5, "at": "2024-03-01", "y": {"z": 1}}},
        minute=12,
    )
    query = (
        "WITH t AS (SELECT * FROM telemetry TIMESTAMP BY eventTime), s AS (SELECT t.site.*, t.id FROM t) "
        "SELECT id, x * 2 AS twice, UPPER(at) AS at, y.z AS z INTO aggregates FROM s"
    )
    file = define(world, "WITH t AS (SELECT * FROM telemetry) SELECT t.site.* INTO aggregates FROM t")
    _, err = command.run("plan", file, *FIRST_HOUR, code=2)
    assert "such as t.site.id, or run recapture infer FILE --write" in err
    file = define(world, query)
    out, _ = infer(command, file, "--write")
    assert {"site.x float", "site.at nvarchar(max)", "site.y record"} <= set(declared(out))
    world.put("0", at(150))
    backfill(spark, load(world.file), TEN, at(60))
    rows = published(world.table, "twice")
    assert [(row["id"], row["twice"], row["at"], row["z"]) for row in rows if row["twice"]] == [
        ("a", 2.0, None, None),
        ("c", 5.0, "2024-03-01", "1"),
    ]


def test_a_create_table_is_never_overwritten(command: Command, world: World) -> None:
    file = define(world)
    infer(command, file, "--write")
    written = world.file.read_text()
    out, err = infer(command, file, "--write", code=2)
    assert (out, world.file.read_text()) == ("", written)
    assert "the query has a CREATE TABLE, which is not overwritten: remove it" in err
    out, err = infer(command, file)
    assert declared(out)[0] == "eventTime datetime"
    assert err == f"warning: {LEFT_OUT}\n"


def test_a_query_that_reads_what_every_event_has_compiles_with_its_create_table(command: Command, world: World) -> None:
    """`id` is used as a text, although all of its values are times."""
    world = World(world.home / "other")
    put(world, {"at": "2024-03-01", "code": 1}, {"at": "2024-03-02", "code": 2.5}, minute=12)
    file = define(world, "SELECT UPPER(AT) AS at, code * 2 AS twice INTO aggregates FROM telemetry")
    out, err = infer(command, file, "--write")
    assert declared(out) == ["at nvarchar(max)", "code float"]
    assert err == f"{file}: CREATE TABLE telemetry is written\n"
    load(world.file)


@pytest.mark.parametrize("name", ["site", "missing"])
def test_a_query_that_reads_what_not_every_event_has_is_left_alone(command: Command, world: World, name: str) -> None:
    """CREATE TABLE would drop the events without the field, so the user decides."""
    file = define(world, f"SELECT id, {name} INTO aggregates FROM telemetry")
    load(world.file)
    before = world.file.read_text()
    out, err = infer(command, file, "--write", code=2)
    assert f"-- {name} is left out: " in out
    assert "is unchanged, because with this CREATE TABLE the query does not compile" in err
    assert f"`{name}` is missing in CREATE TABLE" in err
    assert world.file.read_text() == before


def test_a_key_that_is_a_number_compiles_in_its_own_type(command: Command, tmp_path: Path) -> None:
    world = World(tmp_path)
    put(world, {"floor": 1}, {"floor": 2}, minute=12)
    keys = "WHERE floor > 1 GROUP BY floor, TumblingWindow(minute, 1)"
    file = define(world, f"SELECT floor, COUNT(*) AS n INTO aggregates FROM telemetry {keys}")
    assert [column.type for column in load(world.file).query.inputs[0].columns] == ["float"]
    infer(command, file, "--write")
    assert [column.type for column in load(world.file).query.inputs[0].columns] == ["bigint"]


def test_a_query_that_does_not_compile_either_way_is_not_changed(command: Command, world: World) -> None:
    file = define(world, "SELECT *, udf.f(v) AS f INTO aggregates FROM telemetry")
    before = world.file.read_text()
    out, err = infer(command, file, "--write", code=2)
    assert "id nvarchar(max)" in declared(out)
    assert "is unchanged, because with this CREATE TABLE the query does not compile" in err
    assert "udf.f is not declared" in err
    assert world.file.read_text() == before
    _, err = infer(command, file)
    assert "warning: with this CREATE TABLE the query does not compile: query, line 10, column 11" in err


def test_the_range_is_that_of_the_arrivals_or_the_newest_hour(command: Command, world: World) -> None:
    put(world, {"later": 1}, minute=75)
    put(world, {"last": 1}, minute=120)
    file = define(world)
    assert read_fields(infer(command, file)[0]) == ["later", "last", "eventTime"]
    assert read_fields(infer(command, file, *FIRST_HOUR)[0])[:2] == ["eventTime", "id"]
    quarter = ("--from", "2024-03-01T11:10Z", "--to", "2024-03-01T11:20Z")
    assert read_fields(infer(command, file, *quarter)[0]) == ["later", "eventTime"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--from", "2024-03-01T10:00Z"), 2, "give both --from and --to, or neither for the newest hour"),
        (("--from", "2024-03-01T10:00Z", "--to", "2024-03-01T10:00Z"), 2, "the range is empty"),
        (("--from", "2024-03-01T10:30Z", "--to", "2024-03-01T11:00Z"), 1, "no blob arrived from 2024-03-01T10:30:00Z"),
    ],
)
def test_a_range_without_blobs_is_one_line(
    command: Command, world: World, arguments: tuple[str, ...], code: int, message: str
) -> None:
    out, err = infer(command, define(world), *arguments, code=code)
    assert out == ""
    assert message in err


def test_an_archive_without_blobs_or_without_fields_is_one_line(command: Command, tmp_path: Path) -> None:
    world = World(tmp_path)
    file = define(world)
    world.capture.mkdir()
    assert "no blob of this input under" in infer(command, file, code=1)[1]
    world.put("0", at(10), [b"no JSON", b"{}"])
    assert "none of the 2 events in 1 blob" in infer(command, file, code=1)[1]
    world.put("0", at(10), [b'{"@x": 1}'])
    file = define(world, "SELECT * INTO aggregates FROM telemetry")
    assert "does not compile" in infer(command, file, "--write", code=2)[1]


def test_what_cannot_be_read_is_left_out_with_a_warning(command: Command, world: World) -> None:
    world.put("0", at(12), [b"no JSON", b"[1]"])
    damaged = world.put("1", at(13), [b"{}"])
    rewrite(damaged, damaged.read_bytes()[:-20])
    out, err = infer(command, define(world))
    assert "in 50.0% of the events" in out
    assert "warning: 1 blob is damaged and was left out, for example contoso/telemetry/1/" in err
    assert "warning: 2 events of the sample cannot be read: a run quarantines such events" in err


def test_a_time_and_a_key_of_over_are_declared_even_if_some_events_lack_them(command: Command, world: World) -> None:
    """Such events are dropped in any case, and without the declaration the query would not compile."""
    put(world, {"v": 3}, {"v": 4, "id": "c"}, minute=12)
    file = define(world, "SELECT * INTO aggregates FROM telemetry TIMESTAMP BY EventTime OVER id")
    out, _ = infer(command, file, "--write")
    assert declared(out) == ["eventTime datetime", "id nvarchar(max)", "v float"]
    assert "-- in 50.0% of the events; the others have no time or no key of OVER, and are dropped in any case" in out


def test_an_event_of_too_many_fields_is_left_out_with_a_warning(command: Command, world: World) -> None:
    many = {f"k{number}": number for number in range(10_000)}
    put(world, many, {"site": {"x": 1}, "id": "b"}, minute=12)
    put(world, {"site": many, "id": "c"}, minute=13)
    query = "SELECT site.* INTO aggregates FROM telemetry TIMESTAMP BY eventTime"
    out, err = infer(command, define(world, query))
    assert "warning: 2 events with more than 2,000 fields were left out" in err
    assert "k1" not in out
    assert "site.x bigint " in out


def test_an_archive_of_events_of_too_many_fields_is_one_line(command: Command, tmp_path: Path) -> None:
    world = World(tmp_path)
    put(world, {f"k{number}": number for number in range(10_000)})
    message = "1 event with more than 2,000 fields was left out, and no other has fields: choose another range"
    assert message in infer(command, define(world), code=1)[1]


def test_only_the_most_frequent_fields_are_declared(
    command: Command, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sample, "MAX_FIELDS", 5)
    put(world, *({"id": "d", "tags": [number], f"rare{number}": number} for number in range(20)), minute=12)
    out, err = infer(command, define(world))
    assert declared(out) == ["eventTime datetime", "id nvarchar(max)"]
    assert "most frequent fields are declared: others, such as" in err


def test_events_are_counted_up_to_a_limit_of_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample, "MAX_VALUES", 70)
    content = sample.Sample(JsonBodies())
    content.bodies = [pa.array([b'{"a": 1, "b": 2}', b"[]"] * 50)]
    content.events = 100
    content.count_pending()
    assert (content.values, content.objects, content.is_full) == (70, 35, True)
    assert content.events == 70


def test_json_prints_one_object(command: Command, world: World) -> None:
    result = command.json("infer", define(world))
    assert result["statement"].splitlines()[1] == "CREATE TABLE telemetry ("
    assert (result["from"], result["to"]) == ("2024-03-01T09:10:00Z", "2024-03-01T10:10:00Z")
    assert (result["blobs"], result["events"], result["written"], result["warnings"]) == (1, 2, False, [LEFT_OUT])
    assert result["fields"][2] == {
        "name": "v",
        "type": "float",
        "left_out": None,
        "events": 2,
        "values": {"bigint": 1, "float": 1},
        "spellings": {"v": 2},
    }


def test_what_was_read_is_logged(command: Command, caplog: pytest.LogCaptureFixture, world: World) -> None:
    with caplog.at_level("INFO", "recapture"):
        infer(command, define(world))
    assert "infer telemetry, input telemetry: read 1 blob (" in caplog.text


IOT_HUB = [
    {
        "EnqueuedTimeUtc": "2024-03-01T10:05:00.000Z",
        "Properties": {},
        "SystemProperties": {},
        "Body": base64.b64encode(b'{"id": 7}').decode(),
    }
]
BUS = [{"SequenceNumber": 1, "EnqueuedTimeUtc": "2024-03-01T10:05:00.000Z", "Body": {"id": 7}}]


@pytest.mark.parametrize(
    ("section", "name", "lines", "fields"),
    [
        ({"format": "Json"}, "a.json", ['{"id": 7, "t": "7"}'], ["id bigint", "t nvarchar(max)"]),
        (
            {"format": "Csv", "path": "{date}", "date_format": "YYYY/MM/DD"},
            "2024/03/01/a.csv",
            ["id,code,up,at,none", "7,007,true,2024-03-01,", "8,8,false,2024-03-02,"],
            ["id bigint", "code nvarchar(max)", "up bit", "at datetime", "none nvarchar(max)"],
        ),
        (
            {"format": "IotHub", "iot_hub": "contoso"},
            "contoso/0/2024/03/01/10/05.json",
            map(json.dumps, IOT_HUB),
            ["id bigint"],
        ),
        ({"format": "ServiceBus", "path": "bus"}, "bus/a.json", map(json.dumps, BUS), ["id bigint"]),
    ],
    ids=lambda value: value["format"] if isinstance(value, dict) else "",
)
def test_every_input_format_is_sampled(
    command: Command,
    tmp_path: Path,
    section: dict[str, Any],
    name: str,
    lines: Iterable[str],
    fields: list[str],
) -> None:
    world = World(tmp_path)
    write_blob(world.capture / name, "".join(f"{line}\n" for line in lines).encode(), at(10))
    file = define(
        world,
        "SELECT * INTO aggregates FROM telemetry",
        input={"alias": "telemetry", "container": "capture", **section},
    )
    out, _ = infer(command, file, "--write")
    assert declared(out) == fields
    load(world.file)


def test_reference_data_gets_the_create_table_of_its_newest_version(command: Command, world: World) -> None:
    for day, rows in (("02", "id,site\na,roof"), ("03", "id,site,limit\na,roof,2.5\nb,yard,")):
        write_blob(world.home / f"reference/devices/2024-03-{day}.csv", rows.encode(), at(0))
    devices = {"type": "Reference", "alias": "devices", "format": "Csv", "container": "reference"}
    devices |= {"path": "devices/{date}.csv", "date_format": "YYYY-MM-DD"}
    query = (
        "SELECT t.v, d.*, t.v - d.limit AS over INTO aggregates FROM telemetry t TIMESTAMP BY eventTime "
        "JOIN devices d ON t.id = d.id"
    )
    file = define(world, query, input=[TELEMETRY, devices])
    out, _ = infer(command, file, *FIRST_HOUR, "--write")
    assert "-- recapture infer, newest version: 2 rows\nCREATE TABLE devices (" in out
    assert "    site nvarchar(max),  -- in every row\n" in out
    fields = declared(out[out.index("CREATE TABLE devices") :])
    assert fields == ["id nvarchar(max)", "site nvarchar(max)", "limit float"]
    assert [column.name for column in load(world.file).query.outputs[0].columns] == ["v", "id", "site", "limit", "over"]
