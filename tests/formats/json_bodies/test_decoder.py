"""JSON bodies become typed columns; a bad body never affects another (docs/time-model.md, sections 2 and 6)."""

import json
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recapture.formats.bodies import Projection
from recapture.formats.duckdb_sql import select
from recapture.formats.json_bodies import columns as json_columns
from recapture.formats.json_bodies import spellings
from recapture.formats.json_bodies import values as json_values
from recapture.formats.json_bodies.decoder import JsonBodies
from recapture.model import TYPES, AsaType, InputColumn
from recapture.time_model.ticks import LARGEST, from_datetime, from_seconds
from tests.draws import examples

JSON = JsonBodies()
BIGINT, FLOAT, TEXT, DATETIME, BIT = AsaType.BIGINT, AsaType.FLOAT, AsaType.STRING, AsaType.DATETIME, AsaType.BIT


def read(
    bodies: list[bytes | None], columns: list[InputColumn], timestamp_by: InputColumn | None = None
) -> list[dict[str, Any]]:
    """Return each body's columns by name, with the text of its timestamp, if any; or only why it is malformed."""
    array, projection = pa.array(bodies, pa.binary()), Projection(columns, [timestamp_by] if timestamp_by else [])
    parsed = JSON.decode(array, projection)
    assert JSON.decode(array.cast(pa.binary_view()), projection) == parsed
    for column in columns:
        assert parsed.columns[column].type == TYPES[column.type].view
    rows = []
    for n, reason in enumerate(parsed.malformed.to_pylist()):
        row = {column.name: values[n].as_py() for column, values in parsed.columns.items()}
        if timestamp_by is not None:
            row["timestamp"] = parsed.strings[timestamp_by][n].as_py()
        rows.append({"malformed": reason} if reason else row)
    return rows


def value_of(body: str | bytes | None, *columns: InputColumn) -> Any:
    """Return the value of the first column in one body, or the dictionary with the reason why there is none."""
    row = read([body.encode() if isinstance(body, str) else body], list(columns))[0]
    return row if "malformed" in row else row[columns[0].name]


def column(kind: AsaType, *path: str) -> InputColumn:
    return InputColumn(path or ("x",), kind)


def malformed(reason: str) -> dict[str, str]:
    return {"malformed": reason}


NOON = from_datetime(datetime(2026, 3, 1, 12, tzinfo=UTC))


@pytest.mark.parametrize(
    ("kind", "written", "value"),
    [
        (BIGINT, "7", 7),
        (BIGINT, "-0", 0),
        (BIGINT, '"12"', 12),
        (BIGINT, '"-007"', -7),
        (BIGINT, "12.0", 12),
        (BIGINT, "-12.000", -12),
        (BIGINT, "1e3", 1000),
        (BIGINT, "1.5E+1", 15),
        (BIGINT, "-0.0", 0),
        (BIGINT, "1e18", 10**18),
        (BIGINT, "9007199254740993.0", 2**53),
        (BIGINT, "9223372036854774784.0", 2**63 - 1024),
        (BIGINT, "-9223372036854775808.0", -(2**63)),
        (BIGINT, "9223372036854775807", 2**63 - 1),
        (BIGINT, "-9223372036854775808", -(2**63)),
        (BIGINT, "1000000000000000000", 10**18),
        (FLOAT, "0.1", 0.1),
        (FLOAT, "1", 1.0),
        (FLOAT, "1e300", 1e300),
        (FLOAT, '"1.5"', 1.5),
        (FLOAT, "123456789012345678901234567890", 123456789012345678901234567890.0),
        (TEXT, '"caf\u00e9 \\u00e9 \\ud83d\\ude00"', "café é 😀"),
        (TEXT, '""', ""),
        (TEXT, '"null"', "null"),
        (TEXT, "12", "12"),
        (TEXT, "true", "true"),
        (TEXT, '{"a": [1, "b"]}', '{"a":[1,"b"]}'),
        (TEXT, "[1, 2]", "[1,2]"),
        (DATETIME, '"2026-03-01T12:00:00Z"', NOON),
        (DATETIME, '"2026-03-01T13:00:00+01:00"', NOON),
        (DATETIME, '"2026-03-01T12:00:00"', NOON),
        (DATETIME, '"2026-03-01T12:00:00.1234569Z"', NOON + 1_234_569),
        (BIT, "true", True),
        (BIT, "false", False),
        (BIT, "1", True),
        (BIT, "0", False),
        (BIT, '"true"', True),
        (BIT, '"FALSE"', False),
        (BIT, '"0"', False),
        (BIT, "-0.0e5", False),
        (BIT, "0.001", True),
        (BIT, "1e400", True),
        (BIT, "-9223372036854775809", True),
        (BIT, "123456789012345678901234567890", True),
    ],
)
def test_a_value_of_the_column_s_type_is_read(kind: AsaType, written: str, value: Any) -> None:
    parsed = value_of(f'{{"x":{written}}}', column(kind))
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("kind", "written"),
    [
        (BIGINT, "1.5"),
        (BIGINT, "1e-3"),
        (BIGINT, "1.0000001e3"),
        (BIGINT, "1e19"),
        (BIGINT, "9223372036854775807.0"),
        (BIGINT, "-9223372036854775809"),
        (BIGINT, '"12.0"'),
        (BIGINT, '"1e3"'),
        (BIGINT, "true"),
        (BIGINT, '"x"'),
        (BIGINT, '""'),
        (BIGINT, "[1]"),
        (BIGINT, "9223372036854775808"),
        (BIGINT, "123456789012345678901234567890"),
        (FLOAT, '"x"'),
        (FLOAT, '""'),
        (FLOAT, "{}"),
        (FLOAT, "1e400"),
        (FLOAT, "NaN"),
        (FLOAT, "-Infinity"),
        (FLOAT, '"Infinity"'),
        (DATETIME, "20260301"),
        (DATETIME, '"yesterday"'),
        (DATETIME, "{}"),
        (BIT, '"x"'),
        (BIT, '"yes"'),
        (BIT, '"12"'),
        (BIT, '" true"'),
        (BIT, "[]"),
    ],
)
def test_a_value_of_another_type_makes_the_body_malformed(kind: AsaType, written: str) -> None:
    assert value_of(f'{{"x":{written}}}', column(kind)) == malformed(f"x is not a {kind}")


RECORD, ARRAY = AsaType.RECORD, AsaType.ARRAY


@pytest.mark.parametrize(
    ("kind", "written", "value"),
    [
        (RECORD, '{ "a" : [1, {"b":null}] }', {"a": [1, {"b": None}]}),
        (RECORD, "{}", {}),
        (RECORD, '{"n":123456789012345678901234567890,"t":"é"}', {"n": 123456789012345678901234567890, "t": "é"}),
        (ARRAY, '[1, "a", null, [] , {"b":2}]', [1, "a", None, [], {"b": 2}]),
        (ARRAY, " [ ] ", []),
    ],
)
def test_a_record_and_an_array_are_their_json(kind: AsaType, written: str, value: Any) -> None:
    assert json.loads(value_of(f'{{"x":{written}}}', column(kind))) == value
    assert json.loads(value_of(f'{{"y":{{"x":{written}}}}}', column(kind, "y", "x"))) == value


@pytest.mark.parametrize("written", ["1", '"{}"', '"[]"', "true", '""', '" {"'])
@pytest.mark.parametrize(("kind", "wrong", "name"), [(RECORD, "[{}]", "a record"), (ARRAY, "{}", "an array")])
def test_a_value_that_is_read_as_a_record_or_an_array_must_be_one(
    kind: AsaType, wrong: str, name: str, written: str
) -> None:
    for value in (written, wrong):
        assert value_of(f'{{"x":{value}}}', column(kind)) == malformed(f"x is not {name}")


def test_whole_floats_are_bigints_wherever_they_stand() -> None:
    bodies: list[bytes | None] = [
        b'{"site":{"X":1.0}}',
        b"{",
        b'{"site":{"x":1.5}}',
        b'{"site":{"x":2}}',
        b'{"site":{"x":"1.0"}}',
        b'{"site":{"x":2.0,"x":"3"}}',
        None,
        b'{"site":5.0}',
        b'{"site":{"x":4e0}}',
    ]
    x = column(BIGINT, "site", "x")
    assert [row.get("site.x", "malformed") for row in read(bodies, [x])] == [
        *(1, "malformed", "malformed", 2, "malformed", 2, "malformed", None, 4)
    ]


def test_a_byte_order_mark_before_a_body_is_skipped() -> None:
    mark = b"\xef\xbb\xbf"
    bodies: list[bytes | None] = [
        mark + b'{"x":1}',
        b'{"x":2}',
        mark,
        mark + mark + b'{"x":3}',
        b'{"x":"\xef\xbb\xbf"}',
    ]
    assert read(bodies, [column(TEXT)]) == [{"x": "1"}, {"x": "2"}, *[malformed("not JSON")] * 2, {"x": "\ufeff"}]
    assert value_of('\ufeff{"x":1}', BODY) == '{"x":1}'


BODY = InputColumn((), RECORD)


def test_the_whole_body_is_its_own_text() -> None:
    """Numbers, white space and the order of keys do not change."""
    assert BODY.name == "@body"
    for body in ('{"b":1.10,"a":1e2}', ' {"x" :\n null} ', '{"x":"\\u00e9 é","x":2}', "{}"):
        assert value_of(body, BODY) == body
    assert read([b'{"x":1, "y":2}'], [column(BIGINT), BODY]) == [{"x": 1, "@body": '{"x":1, "y":2}'}]
    for broken, reason in (("[]", "not a JSON object"), ("{", "not JSON"), (None, "no body")):
        assert value_of(broken, BODY) == malformed(reason)


def test_types_may_change_from_event_to_event_in_a_column_of_text() -> None:
    bodies: list[bytes | None] = [
        b'{"x":1}',
        b'{"x":"1"}',
        b'{"x":1.50}',
        b'{"x":true}',
        b'{"x":null}',
        b"{}",
        b'{"x":[1]}',
    ]
    assert [row["x"] for row in read(bodies, [column(TEXT)])] == ["1", "1", "1.5", "true", None, None, "[1]"]


def test_types_may_change_from_event_to_event_in_a_column_of_numbers() -> None:
    bodies: list[bytes | None] = [b'{"x":1}', b'{"x":1.5}', b'{"x":"2"}', b'{"x":"x"}', b'{"x":null}', b"{}"]
    not_whole, not_float = malformed("x is not a bigint"), malformed("x is not a float")
    assert read(bodies, [column(BIGINT)]) == [{"x": 1}, not_whole, {"x": 2}, not_whole, {"x": None}, {"x": None}]
    assert read(bodies, [column(FLOAT)]) == [{"x": 1.0}, {"x": 1.5}, {"x": 2.0}, not_float, {"x": None}, {"x": None}]


@pytest.mark.parametrize("number", [2**53 - 1, 2**53 + 1, 2**63 - 1, -(2**53) - 1, -(2**63)])
def test_a_bigint_is_exact_beyond_what_a_float_can_hold(number: int) -> None:
    assert value_of(f'{{"x":{number}}}', column(BIGINT)) == number
    assert value_of(f'{{"x":{number}}}', column(TEXT)) == str(number)
    assert value_of(f'{{"x":{number}}}', column(FLOAT)) == float(number)


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**30])
def test_a_whole_number_beyond_a_bigint_is_not_a_bigint_and_is_rounded_to_a_float(number: int) -> None:
    assert value_of(f'{{"x":{number}}}', column(BIGINT)) == malformed("x is not a bigint")
    assert value_of(f'{{"x":{number}}}', column(FLOAT)) == float(number)


def test_a_datetime_keeps_its_100_nanoseconds_and_is_utc_without_a_zone() -> None:
    for written in (
        "2026-03-01T12:00:00.0000001",
        "2026-03-01T12:00:00.00000019Z",
        "2026-03-01T14:30:00.0000001+02:30",
    ):
        assert value_of(f'{{"x":"{written}"}}', column(DATETIME)) == NOON + 1
    assert value_of('{"x":"0001-01-01"}', column(DATETIME)) == 0
    assert value_of('{"x":"9999-12-31T23:59:59.9999999Z"}', column(DATETIME)) == LARGEST


@pytest.mark.parametrize("kind", list(AsaType))
@pytest.mark.parametrize("body", ['{"x":null}', "{}", '{"x":null,"X":1}', '{"y":{"X":1}}', ' { "y" : [ "x" ] }\n'])
def test_null_and_missing_are_null_in_every_type(kind: AsaType, body: str) -> None:
    assert value_of(body, column(kind)) is None


@pytest.mark.parametrize("kind", list(AsaType))
@pytest.mark.parametrize("site", ["null", "{}", '{"x":null}', '"x"', "5", "true", "[]", '[{"x":1}]', '{"y":1}'])
def test_a_field_of_a_value_without_fields_is_null(kind: AsaType, site: str) -> None:
    assert value_of(f'{{"site":{site}}}', column(kind, "site", "x")) is None


def test_an_array_has_no_field_of_a_number() -> None:
    assert value_of('{"site":["a"]}', column(BIGINT, "site", "0")) is None
    assert value_of('{"site":{"0":4}}', column(BIGINT, "site", "0")) == 4


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (None, "no body"),
        (b"", "not JSON"),
        (b" ", "not JSON"),
        (b"device-1;12:00;20.5", "not JSON"),
        (b'{"x":1', "not JSON"),
        (b'{"x":1}x', "not JSON"),
        (b'{"x":1}{"x":2}', "not JSON"),
        (b"{'x':1}", "not JSON"),
        (b'{"x":01}', "not JSON"),
        (b'{"x":"a\nb"}', "not JSON"),
        (b'{"x":1}\0', "not JSON"),
        (b"\0", "not JSON"),
        (b'{"x":"\\ud83d"}', "not JSON"),
        (b"\xff", "not UTF-8"),
        (b'{"x":"caf\xe9"}', "not UTF-8"),
        (b'{"x":"\xed\xa0\x80"}', "not UTF-8"),
        (b"null", "not a JSON object"),
        (b"1", "not a JSON object"),
        (b'"x"', "not a JSON object"),
        (b'[{"x":1}]', "not a JSON object"),
    ],
)
def test_a_body_that_is_not_a_json_object_is_malformed_with_a_reason(body: bytes | None, reason: str) -> None:
    assert value_of(body, column(TEXT)) == malformed(reason)
    assert read([body], []) == [malformed(reason)]


@pytest.mark.parametrize("letters", range(4))
def test_a_bad_body_of_any_letters_is_malformed_and_leaves_the_others(letters: int) -> None:
    bad = '{"x":' + "a" * letters + "é" * 200
    assert read([bad.encode(), b'{"x":1}'], [column(BIGINT)]) == [malformed("not JSON"), {"x": 1}]


def test_a_deeply_nested_body_is_read_like_any_other() -> None:
    deep = b"[" * 100_000 + b"]" * 100_000
    assert read([b'{"y":' + deep + b',"x":1}', b'{"x":2}'], [column(BIGINT)]) == [{"x": 1}, {"x": 2}]


def test_the_first_of_two_equal_keys_counts() -> None:
    assert value_of('{"x":1,"x":2}', column(BIGINT)) == 1
    assert value_of('{"x":null,"x":2}', column(BIGINT)) is None
    assert value_of('{"x":"no","x":2}', column(BIGINT)) == malformed("x is not a bigint")


@pytest.mark.parametrize(
    "key", ["it's", 'a"b', "a.b", "a/b", "~", "~1", "a b", "é", "😀", "$", "$.x", "*", "#", "\\", "[0]", "select", "-"]
)
@pytest.mark.parametrize("nested", [False, True])
def test_any_key_can_be_read(key: str, nested: bool) -> None:
    path = ("site", key) if nested else (key,)
    for value, expected in ((7, 7), ("no", malformed(f"{'.'.join(path)} is not a bigint")), (None, None)):
        body = {key: value, "other": 1}
        assert value_of(json.dumps({"site": body} if nested else body), column(BIGINT, *path)) == expected


def test_a_name_finds_its_field_in_any_letter_case() -> None:
    columns = [column(TEXT, "deviceId"), column(BIGINT, "Site", "Floor")]
    bodies: list[bytes | None] = [
        b'{"DeviceID":"a","site":{"floor":7}}',
        b'{"deviceId":"b","Site":{"FLOOR":8}}',
        b'{"other":"deviceid","SITE":null}',
        b'{"\\u0044eviceId":"d","site":{"floor":"no"}}',
    ]
    assert read(bodies, columns) == [
        {"deviceId": "a", "Site.Floor": 7},
        {"deviceId": "b", "Site.Floor": 8},
        {"deviceId": None, "Site.Floor": None},
        malformed("Site.Floor is not a bigint"),
    ]


@pytest.mark.parametrize("first", [b'{"ID":1}', b'{"id":1}', b"{}"])
def test_of_fields_that_differ_in_letter_case_the_exact_one_counts_or_else_the_first(first: bytes) -> None:
    """Whatever the first body of the chunk looks like, whose spelling is tried first."""
    bodies: list[bytes | None] = [
        first,
        b'{"ID":1,"Id":2,"id":3}',
        b'{"ID":1,"Id":2}',
        b'{"Id":2,"ID":1}',
        b'{"ID":1,"id":null}',
        b'{"site":{"id":9},"ID":1}',
    ]
    assert [row.get("id") for row in read(bodies, [column(BIGINT, "id")])[1:]] == [3, 1, 2, None, 1]


def letter_cases(name: str, count: int) -> list[str]:
    """Return so many spellings of a name."""
    return [
        "".join(letter.upper() if number >> place & 1 else letter for place, letter in enumerate(name))
        for number in range(count)
    ]


def test_every_event_may_spell_a_name_in_another_way_at_the_cost_of_a_few_queries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    columns = [column(TEXT, "identifier"), column(BIGINT, "site", "building"), InputColumn((), TEXT)]
    outer, inner = letter_cases("identifier", 1000), letter_cases("building", 1000)
    bodies = [
        json.dumps({device: str(number), "SITE": {building: number}, "other": 1e3}).encode()
        for number, (device, building) in enumerate(zip(outer, inner, strict=True))
    ]
    queries: list[str] = []

    def recorded(columns: dict[str, pa.Array], query: str) -> pa.Table:
        queries.append(query)
        return select(columns, query)

    for module in (spellings, json_columns, json_values):
        monkeypatch.setattr(module, "select", recorded)
    parsed = JSON.decode(pa.array(bodies, pa.binary()), Projection(columns))
    assert len(queries) < 50
    assert parsed.malformed.null_count == 1000
    assert parsed.columns[columns[0]].to_pylist() == [str(number) for number in range(1000)]
    assert parsed.columns[columns[1]].to_pylist() == list(range(1000))
    assert parsed.columns[columns[2]].to_pylist() == [body.decode() for body in bodies]


def test_a_name_of_any_length_can_be_read() -> None:
    name = "x" * 3_000_000
    assert [row[name] for row in read([b"{}", json.dumps({name.upper(): 1}).encode()], [column(BIGINT, name)])] == [
        None,
        1,
    ]


def test_a_record_and_a_field_of_it_can_both_be_read() -> None:
    columns = [column(TEXT, "site"), column(TEXT, "site", "id"), column(TEXT, "site", "id", "x")]
    assert read([b'{"site":{"id":{"x":1}}}', b'{"site":5}'], columns) == [
        {"site": '{"id":{"x":1}}', "site.id": '{"x":1}', "site.id.x": "1"},
        {"site": "5", "site.id": None, "site.id.x": None},
    ]


def test_a_timestamp_that_is_not_a_time_is_left_to_the_policies() -> None:
    by = column(DATETIME, "t")
    bodies: list[bytes | None] = [b'{"t":"noon"}', b'{"t":null}', b"{}", b'{"t":5}', b'{"t":"2026-03-01"}']
    texts = ["noon", None, None, "5", "2026-03-01"]
    assert [row["timestamp"] for row in read(bodies, [], by)] == texts
    assert [row["timestamp"] for row in read(bodies, [by], by)] == texts
    assert read(bodies, [by], by)[4]["t"] == NOON - from_seconds(12 * 3600)


def test_an_amount_in_the_timestamp_is_left_to_the_policies_too() -> None:
    by = column(BIGINT, "ms")
    bodies: list[bytes | None] = [b'{"ms":"x"}', b'{"ms":1.5}', b'{"ms":7}', b"{}"]
    parsed = JSON.decode(pa.array(bodies, pa.binary()), Projection([by], [by]))
    assert parsed.malformed.null_count == 4
    assert parsed.columns[by].to_pylist() == [None, None, 7, None]
    assert parsed.strings[by].to_pylist() == ["x", "1.5", "7", None]


def test_the_first_reason_is_reported() -> None:
    columns = [column(BIGINT, "a"), column(FLOAT, "b")]
    assert read([b'{"b":"x","a":"x"}'], columns) == [malformed("a is not a bigint")]


def test_no_bodies_give_empty_columns() -> None:
    assert read([], [column(kind, kind.name) for kind in AsaType], column(DATETIME, "t")) == []


@pytest.mark.parametrize("bad", [b"\xff\xfe", b"{", b"[]", b'{"n":"x"}', b"", None])
def test_one_bad_body_among_a_thousand_affects_only_its_own_row(bad: bytes | None) -> None:
    columns = [column(BIGINT, "n"), column(TEXT, "site", "id")]
    bodies: list[bytes | None] = [json.dumps({"n": n, "site": {"id": f"s{n}"}}).encode() for n in range(1000)]
    rows = read([*bodies[:500], bad, *bodies[500:]], columns)
    assert "malformed" in rows.pop(500)
    assert rows == [{"n": n, "site.id": f"s{n}"} for n in range(1000)]


def test_a_slice_of_a_longer_array_is_read_by_itself() -> None:
    bodies = pa.array([b"{", b'{"x":1}', b'{"x":"a"}', None], pa.binary())
    parsed = JSON.decode(bodies.slice(1, 2), Projection([column(BIGINT)]))
    assert parsed.columns[column(BIGINT)].to_pylist() == [1, None]
    assert parsed.malformed.to_pylist() == [None, "x is not a bigint"]


COLUMNS = [
    column(BIGINT, "n"),
    column(FLOAT, "f"),
    column(TEXT, "t"),
    column(BIT, "b"),
    column(DATETIME, "d"),
    column(TEXT, "N"),
    column(BIGINT, "site", "n"),
    column(TEXT, "site"),
    column(FLOAT, "a.b/c", "~'\""),
]
KEYS = st.sampled_from(["n", "f", "t", "b", "d", "N", "T", "D", "site", "SITE", "a.b/c", "A.b/c", "~'\"", "other", ""])
TEXTS = st.one_of(
    st.sampled_from(
        ["", "12", "-9223372036854775809", "x", "1.5", "true", "2026-03-01T12:00:00.5Z", "2026-03-01", "é😀"]
    ),
    st.text('xq é😀"\\/\n\0{', max_size=4),
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**64), 2**64),
    st.integers(-3, 3),
    st.floats(allow_nan=False, allow_infinity=False),
    TEXTS,
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=4
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=6)
BAD = st.sampled_from([None, b"", b"{", b"[]", b"\xff", b'{"n":1}x', b'{"n":"\xff"}', b"7", b'"n"'])


class UnreadableError(Exception):
    """The value is not of the column's type."""


def naive(body: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of one body, read one value at a time."""
    row = {}
    for column in COLUMNS:
        value: Any = body
        for step in column.path:
            value = in_any_case(value, step) if isinstance(value, dict) else None
        try:
            row[column.name] = None if value is None else naive_value(value, column.type)
        except UnreadableError:
            return malformed(f"{column.name} is not a {column.type}")
    return row


def in_any_case(record: dict[str, Any], name: str) -> Any:
    """Return the value of the key of this name, or else of the first that differs in letter case alone."""
    return (
        record[name] if name in record else next((record[key] for key in record if key.lower() == name.lower()), None)
    )


def naive_value(value: Any, kind: AsaType) -> Any:
    match kind, value:
        case AsaType.STRING, str():
            return value
        case AsaType.STRING, _:
            return json.loads(json.dumps(value))
        case AsaType.BIGINT, int() if not isinstance(value, bool):
            number = value
        case AsaType.BIGINT, float() if value.is_integer():
            number = int(value)
        case AsaType.BIGINT, str() if value.removeprefix("-").isascii() and value.removeprefix("-").isdigit():
            number = int(value)
        case AsaType.FLOAT, int() | float():
            return float(value)
        case AsaType.FLOAT, str():
            return naive_float(value)
        case AsaType.BIT, bool() | int() | float():
            return bool(value)
        case AsaType.BIT, "true":
            return True
        case AsaType.DATETIME, "2026-03-01T12:00:00.5Z":
            return NOON + from_seconds(1) // 2
        case AsaType.DATETIME, "2026-03-01":
            return NOON - from_seconds(12 * 3600)
        case _:
            raise UnreadableError
    if not -(2**63) <= number < 2**63:
        raise UnreadableError
    return number


def naive_float(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise UnreadableError from None
    return number


def as_json(rows: list[dict[str, Any]], bodies: list[dict[str, Any] | None]) -> list[dict[str, Any]]:
    """Return the rows, with a text parsed as JSON if its value in the body is not a text."""
    for row, body in zip(rows, bodies, strict=True):
        for name in ("t", "N", "site"):
            if body is not None and row.get(name) is not None and not isinstance(in_any_case(body, name), str):
                row[name] = json.loads(row[name])
    return rows


@settings(max_examples=examples(40))
@given(bodies=st.lists(OBJECTS, max_size=5), most_spellings=st.integers(0, 2))
def test_the_columns_are_what_a_naive_reader_gives(bodies: list[dict[str, Any]], most_spellings: int) -> None:
    """However many of the spellings of a chunk are read by themselves."""
    written: list[bytes | None] = [json.dumps(body).encode() for body in bodies]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spellings, "MAX_SPELLINGS", most_spellings)
        rows = read(written, COLUMNS)
    assert as_json(rows, [*bodies]) == [naive(body) for body in bodies]


@settings(max_examples=examples(40))
@given(bodies=st.lists(st.one_of(OBJECTS, BAD), max_size=4), ascii_only=st.booleans(), most_spellings=st.integers(0, 2))
def test_a_bad_neighbour_never_changes_a_good_row(bodies: list[Any], ascii_only: bool, most_spellings: int) -> None:
    written = [
        json.dumps(body, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass") if isinstance(body, dict) else body
        for body in bodies
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spellings, "MAX_SPELLINGS", most_spellings)
        together = read(written, COLUMNS, column(DATETIME, "d"))
    assert together == [read([body], COLUMNS, column(DATETIME, "d"))[0] for body in written]
    assert all("malformed" in row for row, body in zip(together, bodies, strict=True) if not isinstance(body, dict))


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("5", "bigint"),
        ("-5", "bigint"),
        ("5.0", "float"),
        ("1e3", "float"),
        ('"5"', "nvarchar(max)"),
        ("true", "bit"),
        ("{}", "record"),
        ("[]", "array"),
        ("null", None),
    ],
)
def test_the_type_of_a_single_value_can_be_read(written: str, kind: str | None) -> None:
    kind_column = InputColumn(("a", "x"), TEXT, is_kind=True)
    assert (
        read([b'{"a":{"X":%s}}' % written.encode()], [column(TEXT, "a", "x"), kind_column])[0][kind_column.name] == kind
    )


@pytest.mark.parametrize(
    ("kind", "written", "reason"),
    [
        (TEXT, "9223372036854775807", None),
        (TEXT, "9223372036854775808", "x does not fit a bigint"),
        (TEXT, "-99999999999999999999", "x does not fit a bigint"),
        (TEXT, '"99999999999999999999"', None),
        (FLOAT, "99999999999999999999", "x does not fit a bigint"),
        (FLOAT, "9007199254740992", None),
        (FLOAT, "9007199254740993", "x is a bigint that no float equals"),
        (FLOAT, "-9007199254740993", "x is a bigint that no float equals"),
        (FLOAT, "9007199254740993.5", None),
        (FLOAT, "1e300", None),
    ],
)
def test_a_whole_number_without_a_declared_type_is_exact_or_the_event_is_malformed(
    kind: AsaType, written: str, reason: str | None
) -> None:
    undeclared = InputColumn(("x",), kind, declared=False)
    [before, row, after] = read([b'{"x":1}', b'{"x":%s}' % written.encode(), b'{"x":2}'], [undeclared])
    assert "malformed" not in {**before, **after}
    assert row.get("malformed", "").partition(";")[0] == (reason or "")
