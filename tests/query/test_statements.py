"""Steps, several outputs, UNION, pass-through, APPLY and stars: what a script of several statements publishes."""

from typing import TYPE_CHECKING, Any

import pytest

from recapture.errors import DefinitionError
from recapture.model import AsaType, Branch, Chosen, FirstOf, InputColumn, Instant, Metadata, MetadataColumn, Shifted
from recapture.time_model.ticks import TICKS_PER_MILLISECOND, TICKS_PER_SECOND, UNIX_EPOCH
from tests.query.small_stream import at, compiled, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOUR = [at(1, k="a", v=1.5), at(2, k="a", v=2.5), at(3, k=None, v=None), at(11, k="b", v=4.0)]


def in_partition(number: int) -> dict[str, Any]:
    return {"@PartitionId": number}


def test_a_select_without_a_window_publishes_each_event_at_its_own_time(spark: "SparkSession") -> None:
    text = "SELECT System.Timestamp() AS t, k, v * 2 AS twice INTO out FROM telemetry TIMESTAMP BY x WHERE v < 4"
    outside = [at(0, k="before", v=1.0), at(3600, k="last", v=1.0), at(3601, k="after", v=1.0)]
    assert rows(spark, text, [*FOUR, *outside]) == [
        [
            {"t": 1, "k": "a", "twice": 3.0},
            {"t": 2, "k": "a", "twice": 5.0},
            {"t": 3600, "k": "last", "twice": 2.0},
        ]
    ]


def test_a_query_in_from_is_a_step(spark: "SparkSession") -> None:
    text = """
        SELECT s.k, SUM(twice) AS total INTO out
        FROM (SELECT * FROM (SELECT k, v * 2 AS twice FROM telemetry TIMESTAMP BY x) AS s WHERE k = 'a') AS s
        GROUP BY k, TumblingWindow(minute, 1)
        UNION
        SELECT k, v AS total FROM (SELECT k, v FROM telemetry TIMESTAMP BY x WHERE v > 3) AS telemetry
    """
    assert rows(spark, text, FOUR) == [[{"k": "a", "total": 8.0}, {"k": "b", "total": 4.0}]]


def test_a_query_in_from_reads_the_steps_before_it(spark: "SparkSession") -> None:
    text = """
        WITH tens AS (SELECT k, SUM(v) AS v FROM telemetry TIMESTAMP BY x GROUP BY k, Tumbling(second, 10)),
             s AS (SELECT MAX(v) AS v FROM (SELECT v FROM tens) AS tens GROUP BY Tumbling(minute, 1))
        SELECT v INTO out FROM (SELECT v FROM s UNION SELECT v FROM tens) AS s
    """
    assert rows(spark, text, FOUR) == [[{"v": 4.0}, {"v": 4.0}, {"v": 4.0}, {"v": None}]]


def test_a_column_of_a_star_that_later_steps_spell_in_two_ways_is_one_column(spark: "SparkSession") -> None:
    """The form of the jobs that tell which machines stopped: published by Microsoft as "Sensor Data Intelligence"."""
    text = """
        WITH minutes AS (SELECT k, COUNT(*) AS n, 2 AS thresholdMins FROM telemetry GROUP BY k, Tumbling(minute, 1)),
             machines AS (SELECT k AS machine FROM telemetry),
             joined AS (
                SELECT minutes.* FROM minutes LEFT JOIN machines
                ON minutes.k = machines.machine AND DATEDIFF(ms, minutes, machines) = 0
             ),
             known AS (SELECT * FROM joined WHERE thresholdMins > 0),
             before AS (
                SELECT *, COALESCE(LAG(n) OVER (LIMIT DURATION(hour, 1)), 0) AS last, 2 * thresholdmins AS twice
                FROM known
             ),
             states AS (
                (SELECT *, 'more' AS state FROM before WHERE n > last AND twice >= ThresholdMins)
                UNION
                (SELECT *, 'less' AS state FROM before WHERE n <= last AND twice > thresholdMINS)
             )
        SELECT k, n, twice, state, thresholdMins INTO out FROM states
    """
    events = [at(1, k="a"), at(2, k="a"), at(61, k="a"), at(121, k="a"), at(122, k="a")]
    assert rows(spark, text, events) == [
        [
            {"k": "a", "n": 1, "twice": 4, "state": "less", "thresholdMins": 2},
            {"k": "a", "n": 2, "twice": 4, "state": "more", "thresholdMins": 2},
            {"k": "a", "n": 2, "twice": 4, "state": "more", "thresholdMins": 2},
        ]
    ]


def test_parentheses_around_a_query_change_nothing(spark: "SparkSession") -> None:
    text = """
        WITH a AS ((SELECT k FROM telemetry TIMESTAMP BY x) UNION (SELECT 'c' AS k FROM telemetry TIMESTAMP BY x)),
             b AS ((SELECT k FROM a WHERE k <> 'a'))
        ((SELECT k INTO out FROM b) UNION SELECT k FROM b WHERE k = 'b');
        (SELECT k INTO other FROM b WHERE k = 'b')
    """
    bs, cs = [{"k": "b"}], [{"k": "c"}]
    assert rows(spark, text, FOUR, "out", "other") == [bs * 2 + cs * 4, bs]


def test_count_of_the_input_counts_events(spark: "SparkSession") -> None:
    text = """
        SELECT COUNT() AS a, COUNT(i) AS b, COUNT(*) AS c, COUNT(k) AS d INTO out
        FROM telemetry AS i TIMESTAMP BY x GROUP BY Tumbling(minute, 1) HAVING COUNT(I) = 4
    """
    assert rows(spark, text, FOUR) == [[{"a": 4, "b": 4, "c": 4, "d": 3}]]


def test_an_aggregate_without_a_name_has_the_name_of_its_function(spark: "SparkSession") -> None:
    text = """
        WITH tens AS (SELECT k, AVG(v), Count(*) FROM telemetry TIMESTAMP BY x GROUP BY k, Tumbling(second, 10))
        SELECT k, Avg, [count] INTO out FROM tens
        SELECT max(v), PERCENTILE_CONT(0.5) OVER (ORDER BY v) INTO other
        FROM telemetry TIMESTAMP BY x GROUP BY Tumbling(minute, 1)
    """
    assert rows(spark, text, FOUR, "out", "other") == [
        [
            {"k": "a", "Avg": 2.0, "count": 2},
            {"k": "b", "Avg": 4.0, "count": 1},
            {"k": None, "Avg": None, "count": 1},
        ],
        [{"max": 4.0, "PERCENTILE_CONT": 2.5}],
    ]


def test_the_letter_case_of_an_aggregate_without_a_name_matters() -> None:
    text = "SELECT {} INTO out FROM telemetry GROUP BY Tumbling(minute, 1)"
    upper, lower, named = "MIN(v)", "min(v)", "min(v) AS MIN"
    assert compiled(text.format(upper)).canonical != compiled(text.format(lower)).canonical
    assert compiled(text.format(named)).canonical == compiled(text.format("MIN(v) AS MIN")).canonical


def test_the_number_of_partitions_changes_no_row(spark: "SparkSession") -> None:
    text = """
        WITH s AS (SELECT k, v FROM telemetry PARTITION BY k INTO 3 TIMESTAMP BY x)
        SELECT k, SUM(v) AS total INTO out FROM s PARTITION BY k INTO 8 GROUP BY k, Tumbling(minute, 1)
    """
    assert rows(spark, text, FOUR) == rows(spark, text.replace(" INTO 3", "").replace(" INTO 8", ""), FOUR)


def test_get_elements_is_the_old_name_of_get_array_elements(spark: "SparkSession") -> None:
    text = "SELECT e.ArrayIndex AS i, e.ArrayValue AS v INTO out FROM telemetry CROSS APPLY GetElements(list) AS e"
    assert rows(spark, text, [at(1, list=["a", "b"])]) == [[{"i": 0, "v": "a"}, {"i": 1, "v": "b"}]]


@pytest.mark.parametrize(
    "keys", ["System.Timestamp(), k, Tumbling(minute, 2)", "k, Tumbling(minute, 2), System.Timestamp"]
)
def test_the_timestamp_next_to_a_window_is_a_key(spark: "SparkSession", keys: str) -> None:
    text = f"""
        WITH intervals AS (
            SELECT k, id, COUNT(*) AS n, System.Timestamp() AS t
            FROM telemetry TIMESTAMP BY x GROUP BY k, id, Tumbling(second, 30)
        ),
        grouped AS (SELECT k, COUNT(*) AS users, SUM(n) AS total, MAX(t) AS t FROM intervals GROUP BY {keys})
        SELECT k, users, total, t, System.Timestamp() AS e INTO out FROM grouped
    """
    events = [at(1, k="a", id="u"), at(2, k="a", id="u"), at(3, k="a", id="v"), at(31, k="a", id="u"), at(121, k="a")]
    assert rows(spark, text, events) == [
        [
            {"k": "a", "users": 1, "total": 1, "t": 150, "e": 240},
            {"k": "a", "users": 1, "total": 1, "t": 60, "e": 120},
            {"k": "a", "users": 2, "total": 3, "t": 30, "e": 120},
        ]
    ]


def test_the_timestamp_is_a_key_next_to_every_window(spark: "SparkSession") -> None:
    text = "SELECT COUNT(*) AS n, MIN(v) AS v INTO out FROM telemetry TIMESTAMP BY x GROUP BY System.Timestamp(), {}"
    events = [at(1, v=1.0), at(1, v=2.0), at(2, v=3.0)]
    both = [{"n": 1, "v": 3.0}, {"n": 2, "v": 1.0}]
    assert rows(spark, text.format("SessionWindow(second, 5, 10)"), events) == [both]
    twice = [both[0], both[0], both[1], both[1]]
    assert rows(spark, text.format("HoppingWindow(second, 10, 5)"), events) == [twice]


def test_names_may_be_written_in_double_quotes(spark: "SparkSession") -> None:
    text = """
        CREATE TABLE telemetry ("my k" nvarchar(max), [a "b" c] float)
        WITH "known" AS (SELECT "my k" AS 'k', t."a ""b"" c" AS "v" FROM "telemetry" AS "t")
        SELECT "k", SUM(v) AS 'total' INTO "out" FROM "known" GROUP BY "k", Tumbling(minute, 1)
    """
    events = [{**at(1), "my k": "a", 'a "b" c': 1.5}, {**at(2), "my k": "a", 'a "b" c': 2.0}]
    assert rows(spark, text, events) == [[{"k": "a", "total": 3.5}]]
    assert [column.path for column in compiled(text).inputs[0].columns] == [("my k",), ('a "b" c',)]


def test_having_without_group_by_filters_rows_as_where_does(spark: "SparkSession") -> None:
    one = "SELECT k, v AS v INTO out FROM telemetry TIMESTAMP BY x HAVING v > 2"
    assert rows(spark, one, FOUR) == [[{"k": "a", "v": 2.5}, {"k": "b", "v": 4.0}]]
    two = "SELECT k INTO out FROM telemetry TIMESTAMP BY x WHERE v > 2 HAVING k = 'a' OR v = 1.5"
    assert rows(spark, two, FOUR) == [[{"k": "a"}]]


def test_each_into_has_its_own_rows(spark: "SparkSession") -> None:
    text = """
        WITH known AS (SELECT * FROM telemetry TIMESTAMP BY x WHERE k IS NOT NULL)
        SELECT k, SUM(v) AS total INTO totals FROM known GROUP BY k, TumblingWindow(second, 10);
        SELECT k, v INTO high FROM known WHERE v > 2
        SELECT COUNT(*) AS n INTO counts FROM known GROUP BY TumblingWindow(minute, 1)
    """
    assert rows(spark, text, FOUR, "counts", "high", "totals") == [
        [{"k": "a", "total": 4.0}, {"k": "b", "total": 4.0}],
        [{"k": "a", "v": 2.5}, {"k": "b", "v": 4.0}],
        [{"n": 3}],
    ]


def test_a_step_of_windows_can_be_windowed_again(spark: "SparkSession") -> None:
    text = """
        WITH tens AS (SELECT k, AVG(v) AS mean FROM telemetry TIMESTAMP BY x GROUP BY k, Tumbling(second, 10)),
             named AS (SELECT k AS device, mean FROM tens WHERE k IS NOT NULL)
        SELECT System.Timestamp() AS e, COUNT(*) AS n, MAX(mean) AS largest INTO out
        FROM named GROUP BY HoppingWindow(second, 20, 10)
    """
    assert rows(spark, text, FOUR) == [
        [{"e": 10, "n": 1, "largest": 2.0}, {"e": 20, "n": 2, "largest": 4.0}, {"e": 30, "n": 1, "largest": 4.0}]
    ]


def test_a_slice_looks_back_as_far_as_all_windows_on_the_way_together() -> None:
    text = """
        WITH tens AS (SELECT k, AVG(v) AS v FROM telemetry TIMESTAMP BY x GROUP BY k, Tumbling(second, 10)),
             both AS (SELECT AVG(v) AS v FROM tens GROUP BY Sliding(minute, 1))
        SELECT MAX(v) AS v INTO out FROM both GROUP BY Tumbling(hour, 1)
        SELECT k INTO raw FROM telemetry TIMESTAMP BY x
    """
    query = compiled(text, "out", "raw")
    assert query.inputs[0].look_back == (3600 + 60 + 10) * TICKS_PER_SECOND
    assert sorted(reach.look_back for reach in query.inputs[0].reaches) == [0, query.inputs[0].look_back]


def test_union_keeps_duplicates_and_widens_types(spark: "SparkSession") -> None:
    text = """
        CREATE TABLE telemetry (k nvarchar(max), n bigint, v float)
        SELECT k, n AS x INTO out FROM telemetry UNION SELECT k, v AS x FROM telemetry
        UNION ALL SELECT k, v AS X FROM telemetry
    """
    both = [at(1, k="a", n=1, v=1.0), at(2, k="b", n=2, v=None)]
    expected = [{"k": "a", "x": 1.0}] * 3 + [{"k": "b", "x": 2.0}] + [{"k": "b", "x": None}] * 2
    [actual] = rows(spark, text, both)
    assert actual == expected
    assert compiled(text).outputs[0].columns[1].type is AsaType.FLOAT


def test_a_union_may_combine_windows(spark: "SparkSession") -> None:
    text = """
        SELECT System.Timestamp() AS e, 'ten' AS size, COUNT(*) AS n INTO out
        FROM telemetry TIMESTAMP BY x GROUP BY Tumbling(second, 10)
        UNION
        SELECT System.Timestamp() AS e, 'minute' AS size, COUNT(*) AS n
        FROM telemetry TIMESTAMP BY x GROUP BY Tumbling(minute, 1)
    """
    assert rows(spark, text, FOUR) == [
        [{"e": 10, "size": "ten", "n": 3}, {"e": 20, "size": "ten", "n": 1}, {"e": 60, "size": "minute", "n": 4}]
    ]


def test_several_selects_into_one_output_publish_the_columns_of_all(spark: "SparkSession") -> None:
    text = """
        SELECT k, COUNT(*) AS n, 'tens' AS part INTO out FROM telemetry TIMESTAMP BY x GROUP BY k, Tumbling(second, 10);
        SELECT k INTO other FROM telemetry TIMESTAMP BY x WHERE k = 'b';
        SELECT N, v INTO [OUT] FROM (SELECT 2.5 AS N, v FROM telemetry TIMESTAMP BY x) AS s WHERE v > 2
        UNION SELECT 3 AS n, v FROM telemetry TIMESTAMP BY x WHERE v > 3;
        SELECT 'session' AS Part, MIN(v) AS v INTO out FROM telemetry TIMESTAMP BY x GROUP BY k, Session(s, 5, 20)
        HAVING v > 3
    """
    expected = [
        {"k": "a", "n": 2.0, "part": "tens", "v": None},
        {"k": "b", "n": 1.0, "part": "tens", "v": None},
        {"k": None, "n": 1.0, "part": "tens", "v": None},
        {"k": None, "n": 2.5, "part": None, "v": 2.5},
        {"k": None, "n": 2.5, "part": None, "v": 4.0},
        {"k": None, "n": 3.0, "part": None, "v": 4.0},
        {"k": None, "n": None, "part": "session", "v": 4.0},
    ]
    assert rows(spark, text, FOUR, "other", "out") == [sorted(expected, key=str), [{"k": "b"}]]


def test_the_columns_of_one_output_are_of_one_type() -> None:
    text = "SELECT k INTO out FROM telemetry WHERE k > 1; SELECT CAST(v AS bigint) AS K INTO out FROM telemetry"
    [output] = compiled(text).outputs
    assert [(column.name, column.type) for column in output.columns] == [("k", AsaType.FLOAT)]


def test_a_star_passes_on_what_later_steps_ask_for(spark: "SparkSession") -> None:
    text = """
        WITH all_of_it AS (SELECT * FROM telemetry TIMESTAMP BY x),
             again AS (SELECT *, v * 10 AS tenfold FROM all_of_it)
        SELECT k, site.name AS site, tenfold, PartitionId AS p INTO out FROM again WHERE site.height > 2
    """
    events = [
        at(1, k="a", v=1.0, site={"name": "roof", "height": 3.5}, **in_partition(7)),
        at(2, k="b", v=2.0, site={"name": "cellar", "height": -3.0}),
    ]
    assert rows(spark, text, events) == [[{"k": "a", "site": "roof", "tenfold": 10.0, "p": 7}]]
    query = compiled(text)
    assert {column.name for column in query.inputs[0].columns} == {"v", "k", "site.name", "site.height"}
    assert query.inputs[0].metadata == (MetadataColumn(Metadata.PARTITION_ID),)


def test_a_published_star_is_what_create_table_declares_and_what_the_input_adds(spark: "SparkSession") -> None:
    text = """
        CREATE TABLE telemetry (k nvarchar(max), site record, x datetime)
        SELECT * INTO out FROM telemetry TIMESTAMP BY x
    """
    [output] = compiled(text).outputs
    assert [column.name for column in output.columns] == [
        "k",
        "site",
        "x",
        "EventProcessedUtcTime",
        "PartitionId",
        "EventEnqueuedUtcTime",
    ]
    [[row]] = rows(spark, text, [at(1, k="a", site={"name": "roof"}, **in_partition(3))])
    assert (row["k"], row["site"], row["PartitionId"]) == ("a", {"name": "roof"}, 3)


@pytest.mark.parametrize("columns", ["*, telemetry.k, V", "*, v, k AS k", "k, *", "telemetry.*, k"])
def test_a_column_that_a_star_gives_too_is_published_once(columns: str) -> None:
    declared = f"CREATE TABLE telemetry (k nvarchar(max), v float) SELECT {columns} INTO out FROM telemetry"
    [output] = compiled(declared).outputs
    assert [column.name for column in output.columns][:2] == ["k", "v"]
    step = f"WITH a AS (SELECT {columns} FROM telemetry) SELECT k, v INTO out FROM a"
    assert [column.name for column in compiled(step).outputs[0].columns] == ["k", "v"]


def test_another_value_than_that_of_the_star_needs_another_name() -> None:
    with pytest.raises(DefinitionError, match="`v` names two columns"):
        compiled("CREATE TABLE telemetry (v float) SELECT *, v * 2 AS v INTO out FROM telemetry")


def test_the_star_of_a_record_passes_on_what_later_steps_ask_for(spark: "SparkSession") -> None:
    text = """
        WITH records AS (
            SELECT k, item.ArrayValue.* FROM telemetry CROSS APPLY GetArrayElements(items) AS item
        ), named AS (SELECT * FROM records WHERE Name <> 'y')
        SELECT k, name, size.width, CAST(price AS float) AS price INTO out FROM named
    """
    items = [{"name": "x", "price": 3, "size": {"width": 7}}, {"name": "y", "price": 1}, {"name": "z"}]
    assert rows(spark, text, [at(1, k="a", items=items)]) == [
        [
            {"k": "a", "name": "x", "width": "7", "price": 3.0},
            {"k": "a", "name": "z", "width": None, "price": None},
        ]
    ]


def test_the_star_of_a_record_of_the_input_reads_the_properties_that_later_steps_ask_for() -> None:
    text = "WITH a AS (SELECT k, t.site.* FROM telemetry t) SELECT k, id, UPPER(b.c) AS c INTO out FROM a"
    assert {column.name for column in compiled(text).inputs[0].columns} == {"k", "site.id", "site.b.c"}


def test_cross_apply_gives_a_row_for_each_element(spark: "SparkSession") -> None:
    text = """
        SELECT e.k, item.ArrayIndex AS i, item.ArrayValue.name AS name, item.ArrayValue.price * 2 AS twice INTO out
        FROM telemetry AS e CROSS APPLY GetArrayElements(e.items) AS item WHERE item.ArrayValue.price > 1
    """
    items = [{"name": "x", "price": 3}, {"name": "y", "price": 1}, {"name": "z", "price": 1.5}]
    assert rows(spark, text, [at(1, k="a", items=items), at(2, k="b", items=[]), at(3, k="c", items=None)]) == [
        [{"k": "a", "i": 0, "name": "x", "twice": 6.0}, {"k": "a", "i": 2, "name": "z", "twice": 3.0}]
    ]


def test_outer_apply_keeps_the_events_without_elements(spark: "SparkSession") -> None:
    text = """
        SELECT k, item.ArrayValue AS v INTO out FROM telemetry OUTER APPLY GetArrayElements(items) AS item
    """
    events = [at(1, k="a", items=["p", 2, None]), at(2, k="b", items=[]), at(3, k="c", items=None)]
    assert rows(spark, text, events) == [
        [
            {"k": "a", "v": "2"},
            {"k": "a", "v": "p"},
            {"k": "a", "v": None},
            {"k": "b", "v": None},
            {"k": "c", "v": None},
        ]
    ]


def test_two_steps_expand_arrays_of_arrays_and_one_expands_the_properties_of_records(spark: "SparkSession") -> None:
    text = """
        WITH lists AS (
            SELECT a.ArrayIndex AS i, a.ArrayValue AS list FROM telemetry CROSS APPLY GetArrayElements(deep) AS a
        )
        SELECT i, b.ArrayIndex AS j, b.ArrayValue AS v INTO out FROM lists CROSS APPLY GetArrayElements(lists.list) AS b
        SELECT p.PropertyName AS name, AVG(p.PropertyValue) AS mean INTO means
        FROM telemetry CROSS APPLY GetRecordProperties(readings) AS p GROUP BY p.PropertyName, Tumbling(minute, 1)
    """
    events = [at(1, deep=[[1, 2], [3]], readings={"a": 1, "b": 2}), at(2, deep=[], readings={"a": 2})]
    assert rows(spark, text, events, "out", "means") == [
        [{"i": 0, "j": 0, "v": "1"}, {"i": 0, "j": 1, "v": "2"}, {"i": 1, "j": 0, "v": "3"}],
        [{"name": "a", "mean": 1.5}, {"name": "b", "mean": 2.0}],
    ]


def test_group_by_takes_expressions_that_select_may_repeat(spark: "SparkSession") -> None:
    text = """
        SELECT CASE WHEN v > 2 THEN 'high' ELSE 'low' END AS level, COUNT(*) + 1 AS n INTO out
        FROM telemetry TIMESTAMP BY x GROUP BY CASE WHEN v > 2 THEN 'high' ELSE 'low' END, Tumbling(minute, 1)
    """
    assert rows(spark, text, FOUR) == [[{"level": "high", "n": 3}, {"level": "low", "n": 3}]]


def test_partitions_stay_apart_where_partition_id_is_a_key(spark: "SparkSession") -> None:
    text = """
        SELECT PartitionId AS p, COUNT(*) AS n INTO out FROM telemetry TIMESTAMP BY x PARTITION BY PartitionId
        GROUP BY PartitionId, Tumbling(minute, 1)
    """
    events = [at(1, "0", **{"@PartitionId": 0}), at(2, "0", **{"@PartitionId": 0}), at(3, "1", **{"@PartitionId": 1})]
    assert rows(spark, text, events) == [[{"p": 0, "n": 2}, {"p": 1, "n": 1}]]


def test_a_query_may_read_metadata_of_the_event_hub_and_the_senders_own_properties() -> None:
    text = """
        SELECT GetMetadataPropertyValue(telemetry, '[EventHub].[SequenceNumber]') AS sequence,
               GetMetadataPropertyValue(telemetry, 'EventHub.Offset') AS offset_,
               GetMetadataPropertyValue(telemetry, '[EventHub].[PartitionKey]') AS pk,
               GetMetadataPropertyValue(telemetry, '[EventHub].[Publisher]') AS publisher,
               GetMetadataPropertyValue(telemetry, '[User].[Firmware Version]') AS firmware,
               BlobName, BlobLastModifiedUtcTime, EventProcessedUtcTime, EventEnqueuedUtcTime
        INTO out FROM telemetry
    """
    query = compiled(text)
    assert [column.name for column in query.inputs[0].metadata] == [
        "@SequenceNumber",
        "@Offset",
        "@PartitionKey",
        "@Publisher",
        "@User.Firmware Version",
        "@BlobName",
        "@BlobLastModifiedUtcTime",
        "@EventProcessedUtcTime",
        "@EventEnqueuedUtcTime",
    ]
    assert [column.type for column in query.outputs[0].columns] == ["bigint", *["nvarchar(max)"] * 5, *["datetime"] * 3]


T = InputColumn(("t",), AsaType.DATETIME)


@pytest.mark.parametrize(
    ("written", "time"),
    [
        ("t", InputColumn(("t",), AsaType.DATETIME)),
        ("telemetry.site.t", InputColumn(("site", "t"), AsaType.DATETIME)),
        ("CAST(t AS datetime)", InputColumn(("t",), AsaType.DATETIME)),
        ("EventEnqueuedUtcTime", MetadataColumn(Metadata.EVENT_ENQUEUED)),
        (
            "DATEADD(millisecond, ms, '1970-01-01T00:00:00Z')",
            Shifted(TICKS_PER_MILLISECOND, InputColumn(("ms",), AsaType.BIGINT), Instant(UNIX_EPOCH)),
        ),
        (
            "COALESCE(t, BlobLastModifiedUtcTime)",
            FirstOf((InputColumn(("t",), AsaType.DATETIME), MetadataColumn(Metadata.BLOB_LAST_MODIFIED))),
        ),
        (
            "(CASE site.kind WHEN 'A' THEN t ELSE NULL END)",
            Chosen((Branch(InputColumn(("site", "kind"), AsaType.STRING), "A", T),), None),
        ),
        (
            "CASE WHEN kind = 'A' THEN t ELSE EventEnqueuedUtcTime END",
            Chosen((Branch(InputColumn(("kind",), AsaType.STRING), "A", T),), MetadataColumn(Metadata.EVENT_ENQUEUED)),
        ),
        (
            "CASE WHEN ms IS NOT NULL THEN DATEADD(ms, ms, '1970-01-01') WHEN [t] IS NOT NULL THEN T END",
            FirstOf(
                (Shifted(TICKS_PER_MILLISECOND, InputColumn(("ms",), AsaType.BIGINT), Instant(UNIX_EPOCH)), T),
            ),
        ),
        (
            "CASE WHEN t IS NOT NULL THEN (t) ELSE EventEnqueuedUtcTime END",
            FirstOf((T, MetadataColumn(Metadata.EVENT_ENQUEUED))),
        ),
    ],
)
def test_timestamp_by_takes_a_field_a_column_or_an_expression_of_them(written: str, time: object) -> None:
    query = compiled(
        f"SELECT COUNT(*) AS n INTO out FROM telemetry TIMESTAMP BY {written} GROUP BY Tumbling(minute, 1)"
    )
    assert query.inputs[0].timestamp_by == time
    assert query.inputs[0].columns == ()


def test_every_read_of_the_input_must_use_the_same_time() -> None:
    text = "SELECT k INTO a FROM telemetry TIMESTAMP BY t; SELECT k INTO b FROM telemetry TIMESTAMP BY t OVER k"
    with pytest.raises(DefinitionError, match="different TIMESTAMP BY than above"):
        compiled(text, "a", "b")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("WITH a AS (SELECT k INTO out FROM telemetry) SELECT k INTO out FROM a", "INTO belongs to the SELECTs"),
        ("WITH a AS (SELECT k FROM telemetry), A AS (SELECT k FROM a) SELECT k INTO out FROM a", "`A` is taken"),
        ("WITH telemetry AS (SELECT k FROM telemetry) SELECT k INTO out FROM telemetry", "`telemetry` is taken"),
        (
            "WITH a AS (SELECT k FROM b), b AS (SELECT k FROM telemetry) SELECT k INTO out FROM a",
            "FROM b: the pipeline",
        ),
        ("WITH a AS (SELECT k FROM telemetry) SELECT v INTO out FROM a", "`a` has no column `v`"),
        ("WITH a AS (SELECT k FROM telemetry) SELECT k INTO out FROM a TIMESTAMP BY k", "`a` is a step"),
        ("WITH a AS (SELECT k FROM telemetry) SELECT a.k.x.y INTO out FROM a WHERE k > 1", "has no properties"),
        ("SELECT k INTO out FROM telemetry; WITH a AS (SELECT 1 AS b) SELECT b INTO out FROM a", "no FROM"),
        ("SELECT k, v INTO out FROM telemetry UNION SELECT v, k FROM telemetry", "UNION needs the same columns"),
        ("SELECT k INTO out FROM telemetry UNION SELECT k INTO out FROM telemetry", "the first SELECT of a UNION"),
        (
            "SELECT CAST(k AS bigint) AS k INTO out FROM telemetry; SELECT 'a' AS K INTO OUT FROM telemetry",
            "bigint and nvarchar(max) cannot be combined here",
        ),
        (
            "SELECT k INTO out FROM telemetry; SELECT k INTO out FROM telemetry UNION SELECT v FROM telemetry",
            "UNION needs the same columns",
        ),
        ("SELECT i.Nothing INTO out FROM telemetry CROSS APPLY GetArrayElements(a) AS i", "`i` has ArrayIndex and"),
        ("SELECT k INTO out FROM telemetry CROSS APPLY GetArrayElements(a)", "name the result of APPLY"),
    ],
)
def test_an_impossible_script_is_refused(text: str, reason: str) -> None:
    with pytest.raises(DefinitionError) as refusal:
        compiled(text)
    assert reason in str(refusal.value)


def test_every_output_must_be_written() -> None:
    with pytest.raises(DefinitionError, match="no SELECT writes INTO other"):
        compiled("SELECT k INTO out FROM telemetry", "out", "other")


@pytest.mark.parametrize(
    "items",
    [
        "AVG(v) AS a, MAX(v) AS b",
        "SUM(CASE WHEN v > 1 THEN v ELSE 0 END) AS a",
        "SUM(COALESCE(v, 0)) AS a, COUNT(COALESCE(v, 1)) AS b",
        "COUNT(GetArrayElement(v, 0)) AS a, SUM(GetArrayLength(v)) AS b",
        "MAX(DATEDIFF(second, v, v)) AS a",
        "COUNT(v.a) AS a, COUNT(v.b) AS b",
    ],
)
def test_a_field_that_a_step_passes_on_may_be_used_several_times(items: str) -> None:
    step = "WITH a AS (SELECT id, v FROM telemetry TIMESTAMP BY t) "
    assert compiled(f"{step}SELECT id, {items} INTO out FROM a GROUP BY id, Tumbling(minute, 5)").outputs


def test_words_in_quotes_and_brackets_do_not_end_a_statement() -> None:
    query = compiled("SELECT [select], x AS [with] INTO out FROM telemetry WHERE kind = 'create' AND y = '{'")
    assert [column.name for column in query.outputs[0].columns] == ["select", "with"]


def test_the_name_that_a_step_gives_its_input_ends_with_the_step(spark: "SparkSession") -> None:
    text = "WITH a AS (SELECT * FROM telemetry AS r) SELECT r.a AS q, r.x AS z INTO out FROM a"
    assert rows(spark, text, [at(1, x="top", r={"a": "1"})]) == [[{"q": "1", "z": None}]]


def test_a_star_may_stand_on_both_sides_of_a_union(spark: "SparkSession") -> None:
    text = "WITH a AS (SELECT k FROM telemetry) SELECT * INTO out FROM a UNION SELECT * FROM a"
    assert rows(spark, text, [at(1, k="a")]) == [[{"k": "a"}, {"k": "a"}]]


def test_a_star_with_known_columns_may_stand_in_a_union_of_a_step(spark: "SparkSession") -> None:
    text = """
        CREATE TABLE telemetry (k nvarchar(max), v float, x datetime)
        WITH twice AS (SELECT *, v * 2 AS twice FROM telemetry TIMESTAMP BY x),
             a AS (SELECT * FROM twice WHERE v < 2 UNION ALL SELECT t.* FROM twice AS t WHERE k = 'b')
        SELECT k, twice INTO out FROM a
    """
    assert rows(spark, text, FOUR) == [[{"k": "a", "twice": 3.0}, {"k": "b", "twice": 8.0}]]


def test_a_use_in_one_part_of_a_union_decides_the_type_in_all_parts(spark: "SparkSession") -> None:
    text = """
        WITH a AS (SELECT k, v FROM telemetry UNION SELECT k, v FROM telemetry WHERE v > 3)
        SELECT * INTO out FROM a WHERE k = 'b'
    """
    assert rows(spark, text, FOUR) == [[{"k": "b", "v": 4.0}, {"k": "b", "v": 4.0}]]


def test_the_star_of_a_record_gives_the_properties_that_create_table_declares(spark: "SparkSession") -> None:
    text = """
        CREATE TABLE telemetry (k nvarchar(max), site.name nvarchar(max), site.floor.x float, x datetime)
        SELECT k, i.Site.*, site.floor.* INTO out FROM telemetry AS i TIMESTAMP BY x
    """
    events = [at(1, k="a", site={"name": "roof", "floor": {"x": 1.5}}), at(2, k="b")]
    assert rows(spark, text, events) == [[{"k": "a", "name": "roof", "x": 1.5}, {"k": "b", "name": None, "x": None}]]


def test_a_column_used_in_two_spellings_is_one_column(spark: "SparkSession") -> None:
    text = """
        WITH a AS (SELECT k AS x FROM telemetry), b AS (SELECT * FROM a) SELECT x, X AS y INTO out FROM b WHERE x = 'a'
    """
    assert rows(spark, text, [at(1, k="a")]) == [[{"x": "a", "y": "a"}]]


def test_an_element_alone_is_a_record(spark: "SparkSession") -> None:
    text = "SELECT e INTO out FROM telemetry CROSS APPLY GetArrayElements(list) AS e"
    assert rows(spark, text, [at(1, list=["x"])]) == [[{"e": {"ArrayIndex": 0, "ArrayValue": "x"}}]]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("SELECT site.Floor AS f INTO out FROM a", "SELECT site.floor AS f INTO out FROM a"),
        ("SELECT GetArrayElement(l, 0).T AS f INTO out FROM a", "SELECT GetArrayElement(l, 0).t AS f INTO out FROM a"),
    ],
)
def test_queries_that_differ_in_a_property_name_differ_in_their_canonical_text(first: str, second: str) -> None:
    step = "WITH a AS (SELECT site, l FROM telemetry) "
    assert compiled(step + first).canonical != compiled(step + second).canonical


@pytest.mark.parametrize(
    ("named", "qualified"),
    [
        ("SELECT T, t AS u INTO out FROM telemetry t", "SELECT t.T, t.t AS u INTO out FROM telemetry t"),
        (
            "WITH v AS (SELECT k, v + 1 AS V FROM telemetry) SELECT v + 1 AS n INTO out FROM v WHERE v > 1",
            "WITH v AS (SELECT k, v + 1 AS V FROM telemetry) SELECT v.v + 1 AS n INTO out FROM v WHERE v.v > 1",
        ),
        (
            "WITH v AS (SELECT * FROM telemetry) SELECT SUM(v) AS n INTO out FROM v GROUP BY t, Tumbling(s, 1)",
            "WITH v AS (SELECT * FROM telemetry) SELECT SUM(v.v) AS n INTO out FROM v GROUP BY v.t, Tumbling(s, 1)",
        ),
        (
            "SELECT k INTO out FROM telemetry t TIMESTAMP BY t",
            "SELECT k INTO out FROM telemetry t TIMESTAMP BY t.t",
        ),
    ],
)
def test_a_name_in_from_is_a_column_if_the_relation_lists_it(named: str, qualified: str) -> None:
    create = "CREATE TABLE telemetry (t datetime, v float, k bigint)\n"
    one, other = compiled(create + named), compiled(create + qualified)
    assert (one.outputs, one.inputs) == (other.outputs, other.inputs)


APPLY = "FROM telemetry CROSS APPLY GetArrayElements(a) AS"
TUMBLING = "FROM telemetry GROUP BY Tumbling(s, 1)"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"SELECT i INTO out {APPLY} i(x, y)", "is not supported here"),
        (f"SELECT 1 AS a INTO out {APPLY} i CROSS APPLY GetArrayElements(b) AS I", "`I` is taken"),
        ("WITH a AS (SELECT k FROM telemetry) SELECT * EXCEPT (k) INTO out FROM a", "is not supported here"),
        (
            "WITH a AS (SELECT *, UPPER(k) AS k FROM telemetry) SELECT k INTO out FROM a",
            "the * before it already has a column `k`",
        ),
        ("CREATE TABLE telemetry (site record) SELECT site.* INTO out FROM telemetry", "name them, such as site.id"),
        ("SELECT site.telemetry.* INTO out FROM telemetry", "`site.telemetry` is not the name of FROM"),
        ("WITH a AS (SELECT s FROM telemetry) SELECT s.* INTO out FROM a", "name them, such as s.id"),
        ("WITH a AS (SELECT s.*, * FROM telemetry) SELECT x INTO out FROM a", "a step takes one *"),
        (
            "WITH a AS (SELECT s.* FROM telemetry) SELECT Collect() AS c INTO out FROM a GROUP BY Tumbling(s, 1)",
            "the properties that s.* stands for are not known: name them",
        ),
        (f"SELECT e.ArrayValue.* INTO out {APPLY} e", "name them, such as e.ArrayValue.id"),
        (
            "CREATE TABLE telemetry (id bigint, site.id bigint) SELECT id, site.* INTO out FROM telemetry",
            "`id` names two columns",
        ),
        ("WITH a AS (SELECT k FROM a) SELECT k INTO out FROM a", "a step can read only the steps before it"),
        ("SELECT k INTO out FROM telemetry TIMESTAMP BY WHERE k > 1", "syntax error near `WHERE`"),
        ("SELECT k INTO out FROM telemetry TIMESTAMP BY", "ends too early"),
        ("SELECT k INTO out FROM telemetry TIMESTAMP BY t OVER WHERE k > 1", "syntax error near `WHERE`"),
        ("SELECT k INTO out FROM telemetry PARTITION BY WHERE k > 1", "syntax error near `WHERE`"),
        ("SELECT k INTO out FROM telemetry PARTITION BY k INTO n", "syntax error near `n`"),
        ("SELECT k INTO out FROM telemetry TIMESTAMP BY COALESCE()", "TIMESTAMP BY takes a field"),
        ("SELECT k FROM telemetry INTO out", "INTO goes after the columns and before FROM"),
        ("SELECT t INTO out FROM telemetry t", "`t` is a name in FROM, not a column: write t.t"),
        ("WITH t AS (SELECT * FROM telemetry) SELECT t INTO out FROM t", "`t` is a name in FROM, not a column"),
        (
            "CREATE TABLE telemetry (t float) SELECT COUNT(T) AS n INTO out FROM telemetry t GROUP BY Tumbling(s, 1)",
            "`T` is a name in FROM and a column: write t.T for the column",
        ),
        ("SELECT k INTO out FROM telemetry UNION (SELECT k FROM telemetry) AS q", "is not supported here"),
        ("SELECT telemetry.null AS k INTO out FROM telemetry", "write [null], in brackets"),
        ("SELECT k INTO cold-temps FROM telemetry", "a name with - in it goes in brackets, such as [in-orders]"),
        ("SELECT k INTO out FROM in-orders TIMESTAMP BY t", "a name with - in it goes in brackets"),
        ("SELECT k INTO out FROM telemetry WHERE k = “a“", "typographic quotation marks"),
        (
            "SELECT CAST(k AS nvarchar(3)) AS k INTO out FROM telemetry",
            "this size is not supported: write nvarchar(max)",
        ),
        ("SELECT 4 & 2 + 2 AS k INTO out FROM telemetry", "put parentheses around the arithmetic"),
        (f"SELECT TopOne() OVER (ORDER BY k NULLS LAST) AS k INTO out {TUMBLING}", "NULL is the smallest"),
        (f"SELECT SUM(COUNT(*)) AS k INTO out {TUMBLING}", "cannot be inside another one"),
        (f"SELECT CollectTop(3000000000, k) OVER (ORDER BY k) AS k INTO out {TUMBLING}", "at most"),
        (f"SELECT PERCENTILE_CONT(0.12345678901) OVER (ORDER BY k) AS k INTO out {TUMBLING}", "9 decimals at most"),
    ],
)
def test_nothing_is_silently_ignored(text: str, reason: str) -> None:
    with pytest.raises(DefinitionError) as refusal:
        compiled(text)
    assert reason in str(refusal.value)
