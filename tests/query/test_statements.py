"""Steps, several outputs, UNION, pass-through, APPLY and stars: what a script of several statements publishes."""

import pytest

from recapture.errors import DefinitionError
from recapture.model import AsaType, Branch, Chosen, FirstOf, InputColumn, Instant, Metadata, MetadataColumn, Shifted
from recapture.time_model.ticks import TICKS_PER_MILLISECOND, TICKS_PER_SECOND, UNIX_EPOCH
from tests.query.small_stream import at, compiled, rows


def test_a_select_without_a_window_publishes_each_event_at_its_own_time() -> None:
    text = "SELECT System.Timestamp() AS t, k, v * 2 AS twice INTO out FROM telemetry TIMESTAMP BY x WHERE v < 4"
    events = [at(1, k="a", v=1.5), at(2, k="a", v=2.5), at(3, k=None, v=None), at(11, k="b", v=4.0)]
    outside = [at(0, k="before", v=1.0), at(3600, k="last", v=1.0), at(3601, k="after", v=1.0)]
    assert rows(text, [*events, *outside]) == [
        [{"t": 1, "k": "a", "twice": 3.0}, {"t": 2, "k": "a", "twice": 5.0}, {"t": 3600, "k": "last", "twice": 2.0}]
    ]


def test_the_letter_case_of_an_aggregate_without_a_name_matters() -> None:
    text = "SELECT {} INTO out FROM telemetry GROUP BY Tumbling(minute, 1)"
    upper, lower, named = "MIN(v)", "min(v)", "min(v) AS MIN"
    assert compiled(text.format(upper)).canonical != compiled(text.format(lower)).canonical
    assert compiled(text.format(named)).canonical == compiled(text.format("MIN(v) AS MIN")).canonical


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


def test_the_columns_of_one_output_are_of_one_type() -> None:
    text = "SELECT k INTO out FROM telemetry WHERE k > 1; SELECT CAST(v AS bigint) AS K INTO out FROM telemetry"
    [output] = compiled(text).outputs
    assert [(column.name, column.type) for column in output.columns] == [("k", AsaType.FLOAT)]


@pytest.mark.parametrize("columns", ["*, telemetry.k, V", "*, v, k AS k", "k, *", "telemetry.*, k"])
def test_a_column_that_a_star_gives_too_is_published_once(columns: str) -> None:
    declared = f"CREATE TABLE telemetry (k nvarchar(max), v float) SELECT {columns} INTO out FROM telemetry"
    [output] = compiled(declared).outputs
    assert [column.name for column in output.columns][:2] == ["k", "v"]
    step = f"WITH a AS (SELECT {columns} FROM telemetry) SELECT k, v INTO out FROM a"
    assert [column.name for column in compiled(step).outputs[0].columns] == ["k", "v"]


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        (
            "WITH a AS (SELECT * FROM telemetry), b AS (SELECT *, v * 10 AS tenfold FROM a)"
            " SELECT k, site.name AS site, tenfold, PartitionId AS p INTO out FROM b WHERE site.height > 2",
            {"v", "k", "site.name", "site.height", "@PartitionId"},
        ),
        (
            "WITH a AS (SELECT k, t.site.* FROM telemetry t) SELECT k, id, UPPER(b.c) AS c INTO out FROM a",
            {"k", "site.id", "site.b.c"},
        ),
    ],
)
def test_the_star_of_the_input_or_of_a_record_reads_what_later_steps_ask_for(text: str, columns: set[str]) -> None:
    [read] = compiled(text).inputs
    assert {column.name for column in read.columns} | {column.name for column in read.metadata} == columns


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
            FirstOf((Shifted(TICKS_PER_MILLISECOND, InputColumn(("ms",), AsaType.BIGINT), Instant(UNIX_EPOCH)), T)),
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


def test_queries_that_differ_in_the_case_of_a_declared_name_differ_in_their_canonical_text() -> None:
    text = "CREATE TABLE telemetry ({} nvarchar(max)) SELECT * INTO out FROM telemetry"
    first, second, same = (compiled(text.format(name)) for name in ("Device", "device", "[Device]"))
    assert [query.outputs[0].columns[0].name for query in (first, second)] == ["Device", "device"]
    assert first.canonical != second.canonical
    assert first.canonical == same.canonical == compiled(first.canonical).canonical


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
        ("SELECT k INTO out FROM telemetry t TIMESTAMP BY t", "SELECT k INTO out FROM telemetry t TIMESTAMP BY t.t"),
    ],
)
def test_a_name_in_from_is_a_column_if_the_relation_lists_it(named: str, qualified: str) -> None:
    create = "CREATE TABLE telemetry (t datetime, v float, k bigint)\n"
    one, other = compiled(create + named), compiled(create + qualified)
    assert (one.outputs, one.inputs) == (other.outputs, other.inputs)
