"""`recapture compare`: the output of a live job against what is published, with a reason for each difference."""

import json
import math
import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from recapture.errors import RunError
from recapture.execute.processes.workers import Workers
from recapture.model import AsaType, OutputColumn
from recapture.storage import open_container
from recapture.table import row_changes
from recapture.table.row_changes import comparisons
from recapture.tools.compare.live import LIVE_ROWS, SLICE, content_of, parse_columns
from recapture.tools.compare.page import meaning, verdict
from recapture.tools.compare.reasons import Compared, Reasons
from recapture.tools.compare.words import HOLE, SEPARATOR
from tests import stages
from tests.commands import Command
from tests.paths import VECTORS
from tests.worlds import COUNTS, TELEMETRY, TEN, World, at, backfill, body, lenient, published, staged, steady

RANGE = ("--from", "2024-03-01T10:00:00Z", "--to", "2024-03-01T12:00:00Z")
COLUMNS = pa.schema(
    [
        ("windowEnd", pa.timestamp("us", tz="UTC")),
        ("deviceId", pa.string()),
        ("events", pa.int64()),
        ("avgTemperature", pa.float64()),
    ]
)
GOLDEN = VECTORS / "golden_asa_taxi" / "run1.json"
Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, processes: Workers) -> World:
    """Two published hours of two partitions."""
    world = steady(tmp_path_factory.mktemp("world"))
    backfill(processes, world.define(), TEN, at(120))
    return world


@pytest.fixture
def rows(world: World) -> Rows:
    """The published rows, as a live job would have written them."""
    return [{name: row[name] for name in COLUMNS.names} for row in published(world.table)]


def as_text(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row as ASA writes it to JSON: times have seven digits."""
    return {
        name: f"{value:%Y-%m-%dT%H:%M:%S.%f}0Z" if isinstance(value, datetime) else value for name, value in row.items()
    }


def write_delta(rows: Rows, folder: Path) -> None:
    write_deltalake(str(folder), pa.Table.from_pylist(rows, COLUMNS))


def write_parquet(rows: Rows, folder: Path) -> None:
    for number in range(2):
        path = folder / f"2024/03/01/{number}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(rows[number::2], COLUMNS), path)


def write_json_lines(rows: Rows, folder: Path) -> None:
    """Write so many files that a buffer for each would not fit in the memory of DuckDB; one file has no row."""
    folder.mkdir(exist_ok=True)
    for number in range(40):
        lines = [json.dumps(as_text(row)) + "\n" for row in rows[number::39]] if number < 39 else []
        (folder / f"{number}.json").write_text("".join(lines))


def write_csv(rows: Rows, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    pyarrow.csv.write_csv(pa.Table.from_pylist([as_text(row) for row in rows]), folder / "out.csv")


WRITERS: dict[str, Callable[[Rows, Path], None]] = {
    "Delta": write_delta,
    "Parquet": write_parquet,
    "JSON lines": write_json_lines,
    "CSV": write_csv,
}


@pytest.mark.parametrize("kind", WRITERS)
def test_equal_rows_of_each_format_in_another_order_have_no_difference(
    world: World, rows: Rows, command: Command, tmp_path: Path, kind: str
) -> None:
    random.Random(0).shuffle(rows)
    outside = {**rows[0], "windowEnd": rows[0]["windowEnd"] - timedelta(days=1)}
    WRITERS[kind]([*rows, outside], tmp_path / "live")
    result = command.json("compare", world.file, *RANGE, "--live", tmp_path / "live")
    assert (result["rows"], result["equal"], result["different"]) == (len(rows), len(rows), 0)
    assert (result["reasons"], result["missing_columns"], result["key"]) == ([], [], ["windowEnd", "deviceId"])


def test_what_a_live_job_does_otherwise_has_its_reason(
    world: World, rows: Rows, processes: Workers, command: Command, tmp_path: Path
) -> None:
    other = World(tmp_path / "other").define(
        COUNTS,
        inputs=[TELEMETRY | {"container": str(world.capture)}],
        eventsLateArrivalMaxDelayInSeconds=60,
        eventsOutOfOrderPolicy="Drop",
    )
    run = staged(processes, other, TEN, at(120))
    late = [
        {name: row[name] for name in COLUMNS.names} for row in stages.staged_rows(run, other.outputs[0]).to_pylist()
    ]
    write_json_lines(late, tmp_path / "live")
    settings = ("--late", 60, "--policy", "Drop", "--master", "local[1]")
    options = ("--live", tmp_path / "live", *settings, "--out", tmp_path / "page.html")
    result = command.json("compare", world.file, *RANGE, *options)
    assert [reason["reason"] for reason in result["reasons"]] == ["a late tolerance of 60 s, the policy Drop"]
    assert result["reasons"][0]["rows"] == result["different"] == _differing(rows, late)
    page = (tmp_path / "page.html").read_text()
    assert "all differences have a reason" in page
    sentences = [sentence for example in result["examples"] for sentence in example["events"]]
    assert any("published: on_time" in sentence and "live: late_dropped" in sentence for sentence in sentences)
    assert all("more than the late tolerance of 1 min" in sentence for sentence in sentences if "dropped" in sentence)
    assert "Events that the live job treated differently" in page


def test_an_event_that_one_of_the_two_moved_out_of_the_window_of_a_row_is_shown_as_it_treated_it(
    processes: Workers, command: Command, tmp_path: Path
) -> None:
    """It arrives after eleven. The published run moves it to a time before eleven, the live job to one after eleven."""
    query = COUNTS.replace("minute, 5", "minute, 1")
    ours = World(tmp_path / "ours")
    ours.put("0", at(68), [body("a", at(42)), body("a", at(67))])
    ours.put("0", at(150))
    backfill(processes, ours.define(query), TEN, at(120))
    theirs = World(tmp_path / "theirs").define(
        query, inputs=[TELEMETRY | {"container": str(ours.capture)}], eventsLateArrivalMaxDelayInSeconds=300
    )
    live = stages.staged_rows(staged(processes, theirs, TEN, at(120)), theirs.outputs[0]).to_pylist()
    write_json_lines([{name: row[name] for name in COLUMNS.names} for row in live], tmp_path / "live")
    result = command.json("compare", ours.file, *RANGE, "--live", tmp_path / "live", "--late", 300)
    why = "(it arrived 26 min after its time, more than the late tolerance of"
    in_ours = f"published: late_adjusted, System.Timestamp 2024-03-01T10:58:00Z {why} 10 min)"
    in_live = f"live: late_adjusted, System.Timestamp 2024-03-01T11:03:00Z {why} 5 min)"
    ((in_ours_row,), (in_live_row,)) = (example["events"] for example in sorted(result["examples"], key=str))
    assert in_ours_row.endswith(f"; {in_ours}; live: not among the events that this slice reads")
    assert in_live_row.endswith(f"; {in_ours}; {in_live}")


def _differing(rows: Rows, others: Rows) -> int:
    one, other = ({(row["windowEnd"], row["deviceId"]): row for row in side} for side in (rows, others))
    return sum(one.get(key) != other.get(key) for key in {*one, *other})


def test_a_column_that_a_table_cannot_have_is_found_under_its_name_in_the_query() -> None:
    columns = [OutputColumn("the_key", AsaType.STRING, "the key"), OutputColumn("n", AsaType.BIGINT)]
    assert parse_columns(None, columns) == {"the_key": "the key"}
    assert parse_columns("key=the_key,count=N", columns) == {"the_key": "key", "n": "count"}


def test_columns_of_other_names_are_mapped(world: World, rows: Rows, command: Command, tmp_path: Path) -> None:
    renamed = [{"w": row["windowEnd"], "n": row["events"], "deviceid": row["deviceId"]} for row in rows]
    (tmp_path / "live").mkdir()
    pq.write_table(pa.Table.from_pylist(renamed), tmp_path / "live/a.parquet")
    options = ("--live", tmp_path / "live", "--columns", "w=windowEnd,n=EVENTS")
    result = command.json("compare", world.file, *RANGE, *options)
    assert (result["different"], result["missing_columns"]) == (0, ["avgTemperature"])
    assert verdict(result) == f"All {len(rows)} rows are equal; avgTemperature was not compared."


def test_a_name_may_have_other_letter_case_in_each_row(
    world: World, rows: Rows, command: Command, tmp_path: Path
) -> None:
    written = [
        {name.upper() if number % 2 else name: value for name, value in as_text(row).items()}
        for number, row in enumerate(rows)
    ]
    live = tmp_path / "live"
    live.mkdir()
    for number in range(2):
        (live / f"{number}.json").write_text("".join(json.dumps(row) + "\n" for row in written[number::3]))
    (live / "2.json").write_text(json.dumps(written[2::3]))
    result = command.json("compare", world.file, *RANGE, "--live", live)
    assert (result["live_rows"], result["rows"], result["equal"]) == (len(rows),) * 3


def test_rows_are_not_called_equal_if_only_keys_were_compared(
    world: World, rows: Rows, command: Command, tmp_path: Path
) -> None:
    write_csv([{name: row[name] for name in ("windowEnd", "deviceId")} for row in rows], tmp_path / "live")
    result = command.json("compare", world.file, *RANGE, "--live", tmp_path / "live", code=4)
    assert result["explained"] is False
    assert verdict(result) == (
        f"Only the keys of {len(rows)} rows were compared: the live job's output lacks events, avgTemperature."
    )


def test_rows_that_are_all_written_twice_are_duplicates(
    world: World, rows: Rows, command: Command, tmp_path: Path
) -> None:
    write_delta(rows * 2, tmp_path / "live")
    result = command.json("compare", world.file, *RANGE, "--live", tmp_path / "live")
    (reason,) = result["reasons"]
    assert (reason["reason"], reason["changed"], result["equal"]) == ("duplicates", len(rows), 0)
    assert verdict(result) == f"{len(rows)} of {len(rows)} rows differ (100 %), and all differences have a reason."


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("", (), "has no Delta table and no .parquet, .json, .jsonl or .csv file"),
        ("a\n1\n", (), "have no column windowEnd: name it with --columns LIVE=windowEnd"),
        (
            "windowEnd,events\n2024-03-01T10:05:00Z,x\n",
            (),
            "out.csv: column events has the value 'x', but events is big",
        ),
        ("windowEnd,events\n2024-03-01T10:05:00Z,1.5\n", (), "column events has the value '1.5'"),
        ("a\n1\n", ("--columns", "a"), "--columns a: write LIVE=OURS"),
        ("a\n1\n", ("--columns", "a=b"), "--columns a=b: the output has no column b, only windowEnd, deviceId"),
        ("a\n1\n", ("--down", "10/9"), "--down 10/9: write two ISO 8601 times as FROM/TO"),
        ("a\n1\n", ("--time", "events"), "--time events: aggregates has no such column of type datetime"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    world: World, command: Command, tmp_path: Path, content: str, options: tuple[str, ...], message: str
) -> None:
    if content:
        (tmp_path / "out.csv").write_text(content)
    assert message in command.error("compare", world.file, *RANGE, "--live", tmp_path, *options)


def test_an_output_that_is_moved_while_it_is_read_is_named(tmp_path: Path) -> None:
    write_parquet([{"windowEnd": TEN, "deviceId": "a", "events": 1, "avgTemperature": 1.0}] * 2, tmp_path / "live")
    container = open_container((tmp_path / "live").as_uri())
    first, second = container.list()
    (tmp_path / "live" / first.name).unlink()
    (tmp_path / "live" / second.name).write_bytes(b"another")
    for blob in (first, second):
        with pytest.raises(RunError, match=rf"^{blob.name} in file://.*/live was changed, moved or deleted while"):
            content_of(container, blob)


@pytest.mark.parametrize("damage", ["a file of the table is gone", "a file is not Parquet"])
def test_an_output_that_cannot_be_read_is_named(
    world: World, rows: Rows, command: Command, tmp_path: Path, damage: str
) -> None:
    live = tmp_path / "live"
    if damage == "a file is not Parquet":
        live.mkdir()
        (live / "a.parquet").write_bytes(b"no rows, and no footer")
        message = f"a.parquet in {live.as_uri()} cannot be read: "
    else:
        write_delta(rows, live)
        next(live.glob("*.parquet")).unlink()
        message = f"cannot use the table {live.as_uri()}: No such file or directory; if it was moved, replaced or"
    assert message in command.error("compare", world.file, *RANGE, "--live", live, code=1)


def test_silences_of_the_live_job_are_downtimes_and_a_whole_hour_is_one(
    world: World, rows: Rows, command: Command, tmp_path: Path
) -> None:
    kept = [row for row in rows if row["windowEnd"] <= at(30) or row["windowEnd"] == at(60)]
    write_json_lines(kept, tmp_path / "live")
    (tmp_path / "live/other.csv").write_text("windowEnd,deviceId\n,a\n,b\n")
    (tmp_path / "live/another.csv").write_text("deviceId\na\n")
    result = command.json("compare", world.file, *RANGE, "--live", tmp_path / "live", "--master", "local[1]")
    lacking = len(rows) - len(kept)
    assert [(reason["reason"], reason["only_ours"]) for reason in result["reasons"]] == [("downtime", lacking)]
    assert result["silences"] == [
        {"after": "2024-03-01T10:30:00Z", "before": "2024-03-01T11:00:00Z"},
        {"after": "2024-03-01T11:00:00Z", "before": "2024-03-01T12:00:00.000001Z"},
    ]
    [warning] = result["warnings"]
    assert warning.startswith("3 rows in ")
    assert warning.endswith(" have no windowEnd, so they are not compared")
    assert verdict(result).endswith(
        f"and all differences have a reason; {lacking} by times alone, which nothing confirms."
    )


def test_a_reason_by_times_alone_does_not_claim_that_rows_were_computed() -> None:
    assert meaning(["downtime", HOLE]) == (
        "The live job wrote no row for a while, or started within the window. The archive lacks events of the slice."
    )
    assert meaning(["a late tolerance of 60 s", "duplicates"]).startswith("Computed with all of these together")


def write_empty_delta(rows: Rows, folder: Path) -> None:
    write_delta([], folder)


def write_empty_files(rows: Rows, folder: Path) -> None:
    folder.mkdir()
    for name in ("a.csv", "b.json", "c.parquet"):
        (folder / name).touch()
    (folder / "d.json").write_text("[]")


def write_other_day(rows: Rows, folder: Path) -> None:
    write_json_lines([row | {"windowEnd": row["windowEnd"] + timedelta(days=1)} for row in rows], folder)


@pytest.mark.parametrize("write", [write_empty_delta, write_empty_files, write_other_day])
def test_a_live_job_without_rows_in_the_range_is_no_downtime_that_explains_all(
    world: World, rows: Rows, command: Command, tmp_path: Path, write: Callable[[Rows, Path], None]
) -> None:
    write(rows, tmp_path / "live")
    options = (*RANGE, "--live", tmp_path / "live", "--master", "local[1]")
    result = command.json("compare", world.file, *options, code=4)
    assert (result["live_rows"], result["explained"]) == (0, False)
    assert verdict(result) == "The live job's output has no row in this range: nothing was compared."


FAULTS = ("none", "duplicates", "last digits", "smaller tolerance", "only live", "only ours", "unexplained", HOLE)


@pytest.fixture(scope="module")
def connection() -> Iterator[Any]:
    with comparisons("compare-test") as opened:
        opened.execute("SET TimeZone = 'UTC'")
        yield opened


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("rows_of_a_part", [8_000_000, 50])
def test_every_injected_fault_is_named(
    connection: Any, monkeypatch: pytest.MonkeyPatch, seed: int, rows_of_a_part: int
) -> None:
    monkeypatch.setattr(row_changes, "ROWS_OF_A_PART", rows_of_a_part)
    drawn = random.Random(seed)
    live: Rows = []
    ours: Rows = []
    tried: Rows = []
    expected = {}
    for number in range(300):
        fault = drawn.choice(FAULTS)
        slice_ = 7 if fault == HOLE else number % 5
        row: dict[str, Any] = {
            SLICE: slice_,
            "device": drawn.choice([f"d{number}", None]) if number == 3 else f"d{number}",
        }
        row |= {"load": drawn.uniform(-1e6, 1e6), "n": drawn.randrange(9)}
        other = {**row, "n": row["n"] + 1}
        sides: dict[str, tuple[Rows, Rows, Rows]] = {
            "none": ([row], [row], [other]),
            "duplicates": ([row] * 3, [row], [other]),
            "last digits": ([{**row, "load": math.nextafter(row["load"], math.inf)}], [row], [other]),
            "smaller tolerance": ([other] * drawn.choice([1, 2]), [row], [other]),
            "only live": ([row], [], []),
            "only ours": ([], [row], [row]),
            "unexplained": ([other], [row], [{**row, "n": 100}]),
            HOLE: ([other], [row], [row]),
        }
        for side, rows in zip((live, ours, tried), sides[fault], strict=True):
            side += rows
        repeated = fault == "smaller tolerance" and live[-2:] == [other, other]
        explained = f"{fault}{SEPARATOR}duplicates" if repeated else fault
        expected[slice_, row["device"]] = "unexplained" if fault.startswith("only") else explained
    columns = [("device", AsaType.STRING), ("load", AsaType.FLOAT), ("n", AsaType.BIGINT)]
    schema = pa.schema([(SLICE, pa.int64()), ("device", pa.string()), ("load", pa.float64()), ("n", pa.int64())])
    for name, side in (("live", live), ("ours", ours), ("tried_rows", tried)):
        drawn.shuffle(side)
        connection.register(name, pa.Table.from_pylist(side, schema))
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {LIVE_ROWS} AS FROM live")
    compared = Compared(tuple(OutputColumn(*column) for column in columns), ("device",))
    reasons = Reasons(connection, compared, "SELECT * FROM ours", f"{SLICE} = 7")
    reasons.explain("smaller tolerance", "SELECT * FROM tried_rows", reasons.open_slices(), "n", None)
    reasons.explain_holes()
    found = connection.sql(f"SELECT {SLICE}, device, coalesce(reason, 'unexplained') FROM reasons").fetchall()
    assert {(slice_, device): reason for slice_, device, reason in found} == {
        key: reason for key, reason in expected.items() if reason != "none"
    }
    assert reasons.keys("SELECT * FROM ours") == len(expected)
    total = sum(sum(counts) for _, _, *counts in reasons.counts())
    assert total == len(found)


def test_the_output_of_the_asa_runtime_for_a_taxi_stream_has_no_difference(
    processes: Workers, command: Command, tmp_path: Path
) -> None:
    golden = json.loads(GOLDEN.read_text())
    world = World(tmp_path / "world")
    midnight = datetime(2019, 10, 7, tzinfo=UTC)
    bodies = [json.dumps({"pickupTime": time, "area": area}).encode() for time, area in golden["events"]]
    world.put("0", midnight + timedelta(minutes=10), bodies)
    world.put("0", midnight + timedelta(minutes=90), [], len(bodies))
    query = (
        "SELECT System.Timestamp() AS timestamps, area, COUNT(*) AS n INTO aggregates "
        "FROM telemetry TIMESTAMP BY pickupTime GROUP BY area, HoppingWindow(second, 60, 5)"
    )
    pipeline = world.define(query, quality=lenient(world), eventsOutOfOrderMaxDelayInSeconds=599)
    backfill(processes, pipeline, midnight, midnight + timedelta(hours=1))
    live = tmp_path / "live"
    live.mkdir()
    rows = [{"timestamps": end, "area": area, "count": n} for end, area, n in golden["expected"]]
    (live / "0.json").write_text(json.dumps(rows))
    options = ("--from", "2019-10-07T00:00:00Z", "--to", "2019-10-07T01:00:00Z", "--live", live)
    result = command.json("compare", world.file, *options, "--columns", "count=n")
    assert (result["rows"], result["equal"], result["missing_columns"]) == (260, 260, [])
