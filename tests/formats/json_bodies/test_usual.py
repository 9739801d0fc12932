"""Bodies of the usual form are scanned: what is read of them is what DuckDB and Python read (`usual`, `scan`)."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recapture.formats.bodies import Projection
from recapture.formats.json_bodies.decoder import JsonBodies
from recapture.formats.json_bodies.parsed import parsed
from recapture.formats.json_bodies.usual import usual_bodies
from recapture.model import AsaType, InputColumn
from recapture.tokens import MARK
from tests.draws import examples

BIGINT, FLOAT, STRING, DATETIME, BIT = AsaType.BIGINT, AsaType.FLOAT, AsaType.STRING, AsaType.DATETIME, AsaType.BIT
DEVICE = InputColumn(("deviceId",), STRING)
COUNT = InputColumn(("count",), BIGINT, declared=False)
TEMPERATURE = InputColumn(("temperature",), FLOAT, declared=False)
CODE = InputColumn(("code",), STRING, declared=False)
IS_ON = InputColumn(("isOn",), BIT)
SITE = InputColumn(("site", "id"), STRING)
SENT = InputColumn(("sent",), DATETIME)
PLACE = InputColumn(("site",), AsaType.RECORD)
FLOORS = InputColumn(("floors",), AsaType.ARRAY, declared=False)
WHOLE = InputColumn((), STRING)
COLUMNS = (DEVICE, COUNT, TEMPERATURE, CODE, IS_ON, SITE, SENT, PLACE, FLOORS, WHOLE)
BODY = (
    b'{"deviceId":"d-1","count":7,"temperature":21.5,"code":503,"isOn":true,"site":{"id":"north","floor":[1,{"a":[]}]},'
    b'"sent":"2026-03-01T00:00:04.123Z","other":"x"}'
)


def scanned(bodies: Sequence[bytes | None], columns: Sequence[InputColumn]) -> list[bool]:
    """Return which of some bodies have the usual form; after so many usual ones, they are worth a scan."""
    array = pa.array([*[BODY] * 256, *bodies], pa.binary())
    result = usual_bodies(array, Projection(columns))
    assert result is not None
    return [bool(is_usual) for is_usual in result[1][256:]]


def require_equal(
    bodies: pa.Array,
    columns: Sequence[InputColumn],
    times: Sequence[InputColumn] = (),
    declared: Sequence[InputColumn] = (),
) -> None:
    """Raise AssertionError unless the decoder reads what DuckDB does."""
    decoded = JsonBodies().decode(bodies, Projection(columns, times, declared))
    expected = parsed(bodies, Projection(columns, times, declared))
    assert decoded.malformed.equals(expected.malformed)
    for ours, theirs in ((decoded.columns, expected.columns), (decoded.strings, expected.strings)):
        assert list(ours) == list(theirs)
        for column, values in ours.items():
            assert values.type == theirs[column].type
            assert list(map(repr, values.to_pylist())) == list(map(repr, theirs[column].to_pylist())), column


@pytest.mark.parametrize(
    ("column", "written", "value"),
    [
        (DEVICE, '"a b"', "a b"),
        (DEVICE, '""', ""),
        (DEVICE, '"' + "x" * 500 + '"', "x" * 500),
        (DEVICE, "null", None),
        (COUNT, "0", 0),
        (COUNT, "-12", -12),
        (COUNT, "123456789012345678", 123456789012345678),
        (TEMPERATURE, "21.5", 21.5),
        (TEMPERATURE, "-0.1", -0.1),
        (TEMPERATURE, "-0.00", -0.0),
        (TEMPERATURE, "3", 3.0),
        (TEMPERATURE, "0.30000000000000004", 0.30000000000000004),
        (TEMPERATURE, "1.7976931348623157e+99", 1.7976931348623157e99),
        (TEMPERATURE, "5e-99", 5e-99),
        (CODE, "503", f"{MARK}503"),
        (CODE, '"503"', "503"),
        (CODE, "-1.25", f"{MARK}-1.25"),
        (CODE, "0.0001", f"{MARK}0.0001"),
        (CODE, "5.0", f"{MARK}5"),
        (CODE, "-21.50", f"{MARK}-21.5"),
        (CODE, "false", f"{MARK}false"),
        (IS_ON, "true", True),
        (IS_ON, "false", False),
        (IS_ON, "null", None),
        (PLACE, "{}", "{}"),
        (PLACE, "null", None),
        (PLACE, '{ "a b" : [ 1 , -2.50 ] , "c":{"d":"e, \'f\'" },"t":[true,null]\n}', None),
        (PLACE, '{"a":0.0,"b":-0.00,"c":0.0001,"d":22.00,"e":-7,"f":0}', None),
        (FLOORS, "[ ]", "[]"),
        (FLOORS, '[[], [{"a": 1}],\t"x y"]', '[[],[{"a":1}],"x y"]'),
    ],
)
def test_a_usual_value_is_read(column: InputColumn, written: str, value: object) -> None:
    body = f' {{"first" : [1, "]"], "{column.name}"\t:\r\n{written} , "last":-1.5e3}}'.strip().encode()
    result = usual_bodies(pa.array([body]), Projection([column]))
    assert result is not None
    bodies, is_usual = result
    assert is_usual.all()
    if value is not None:
        assert repr(bodies.columns[column][0].as_py()) == repr(value)
    require_equal(pa.array([body]), [column])


@pytest.mark.parametrize(
    ("column", "body"),
    [
        (DEVICE, None),
        (DEVICE, b""),
        (DEVICE, b"{"),
        (DEVICE, b"}"),
        (DEVICE, b"[]"),
        (DEVICE, b' {"deviceId":"a"}'),
        (DEVICE, b'{"deviceId":"a"} '),
        (DEVICE, b'{"deviceId":"a"}}'),
        (DEVICE, b'{"deviceId":"a",}'),
        (DEVICE, b'{"deviceId":"a","x":[1,]}'),
        (DEVICE, b'{"deviceId":"a" "x":1}'),
        (DEVICE, b'{"deviceId":"a","x":{"y":1}'),
        (DEVICE, b'{"deviceId":"a","x":[1}'),
        (DEVICE, b'{"deviceId":"a","x":[1}]}'),
        (DEVICE, b'{"deviceId":"a","x":nul}'),
        (DEVICE, b'{"deviceId":"a","x":t}'),
        (DEVICE, b'{"deviceId":"a","x":01}'),
        (DEVICE, b'{"deviceId":"a","x":1.}'),
        (DEVICE, b'{"deviceId":"a","x":-}'),
        (DEVICE, b'{"deviceId":"a","x":1e400}'),
        (DEVICE, b'{"deviceId":"a","x":' + b"9" * 400 + b"}"),
        (DEVICE, b'{"deviceId":"a","x":' + b"[" * 80 + b"]" * 80 + b"}"),
        (DEVICE, b'{"deviceId":"a","deviceId":"b"}'),
        (DEVICE, b'{"deviceId":"a","DEVICEID":"b"}'),
        (DEVICE, b'{"deviceId":"\\u0061"}'),
        (DEVICE, b'{"device\\u0049d":"a"}'),
        (DEVICE, '{"deviceId":"é"}'.encode()),
        (DEVICE, b'{"deviceId":"a\nb"}'),
        (DEVICE, b'{"deviceId":7}'),
        (COUNT, b'{"count":-0}'),
        (COUNT, b'{"count":7.0}'),
        (COUNT, b'{"count":"7"}'),
        (COUNT, b'{"count":1234567890123456789}'),
        (TEMPERATURE, b'{"temperature":-0}'),
        (CODE, b'{"code":-0.0}'),
        (TEMPERATURE, b'{"temperature":"1"}'),
        (TEMPERATURE, b'{"temperature":9007199254740993}'),
        (CODE, b'{"code":0.0}'),
        (CODE, b'{"code":12345.67890123}'),
        (CODE, b'{"code":0.00001}'),
        (CODE, b'{"code":1e3}'),
        (CODE, b'{"code":{}}'),
        (IS_ON, b'{"isOn":1}'),
        (SITE, b'{"site":7}'),
        (SITE, b'{"site":{"id":"a"},"site":{}}'),
        (SENT, b'{"sent":"yesterday"}'),
        (SENT, b'{"sent":7}'),
        (PLACE, b'{"site":[]}'),
        (PLACE, b'{"site":"{}"}'),
        (PLACE, b'{"site":{"a":1e3}}'),
        (PLACE, b'{"site":{"a":-0}}'),
        (PLACE, b'{"site":{"a":0.00001}}'),
        (PLACE, b'{"site":{"a":0.12345678901234}}'),
        (PLACE, b'{"site":{"a":1234567890123456789}}'),
        (PLACE, b'{"site":{"a":[1}}'),
        (FLOORS, b'{"floors":{}}'),
        (FLOORS, b'{"floors":7}'),
        (FLOORS, b'{"floors":[7}'),
        (WHOLE, b'{"x":"\\u0061"}'),
    ],
)
def test_an_unusual_body_is_left_to_duckdb(column: InputColumn, body: bytes | None) -> None:
    assert scanned([body], [column]) == [False]
    require_equal(pa.array([body, *[BODY] * 3], pa.binary()), [column])


def test_a_name_finds_its_field_in_any_case_and_in_its_record_alone() -> None:
    bodies = [
        b'{"DeviceID":"a","SITE":{"Id":"b"},"id":"c"}',
        b'{"id":"c","site":{"deviceId":"x"}}',
        b'{"site":null}',
        b"{}",
    ]
    assert scanned(bodies, [DEVICE, SITE]) == [True] * 4
    result = usual_bodies(pa.array(bodies), Projection([DEVICE, SITE]))
    assert result is not None
    assert result[0].columns[DEVICE].to_pylist() == ["a", None, None, None]
    assert result[0].columns[SITE].to_pylist() == ["b", None, None, None]
    require_equal(pa.array(bodies), [DEVICE, SITE])


def test_one_field_may_be_read_as_a_string_by_one_query_and_as_a_token_by_the_next() -> None:
    bodies = pa.array([b'{"code":503}', b'{"code":"a"}', b'{"code":"b"}'])
    for column, is_usual in ((CODE, True), (replace(CODE, declared=True), False), (CODE, True)):
        result = usual_bodies(bodies, Projection([column]))
        assert result is not None
        assert result[1][0] == is_usual
        require_equal(bodies, [column])


def test_a_field_that_is_declared_and_missing_is_left_to_duckdb() -> None:
    declared = Projection([DEVICE], (), [DEVICE])
    result = usual_bodies(pa.array([b'{"x":1}', b'{"deviceId":null}', b'{"deviceId":"a"}']), declared)
    assert result is not None
    assert result[1].tolist() == [False, True, True]


def test_a_field_that_is_declared_and_not_read_is_checked_and_its_value_is_not_copied() -> None:
    bodies = [b'{"site":{"a":1e3}}', b'{"site":null}', b'{"site":[]}', b"{}"]
    declared = Projection([COUNT], (), [PLACE])
    result = usual_bodies(pa.array(bodies), declared)
    assert result is not None
    assert list(result[0].columns) == [COUNT]
    assert result[1].tolist() == [True, True, False, False]
    require_equal(pa.array(bodies), [COUNT], declared=[PLACE])


def test_records_and_their_fields_are_read_together() -> None:
    bodies = [b'{"site":{"id":"a","in":{"id": 1}}}', b'{"site":{}}', b'{"site":null}', b'{"site":{"id":"b","x":1e3}}']
    assert scanned(bodies, [PLACE, SITE]) == [True, True, True, False]
    require_equal(pa.array(bodies), [PLACE, SITE, WHOLE])


def test_bodies_are_left_to_duckdb_if_it_may_write_the_numbers_of_most_records_in_another_way() -> None:
    bodies = pa.array([b'{"site":{"a":1e3}}'] * 3)
    assert usual_bodies(bodies, Projection([PLACE])) is None
    assert usual_bodies(bodies, Projection([SITE])) is not None


@pytest.mark.parametrize(
    "columns",
    [
        [InputColumn(("x",), STRING, is_kind=True)],
        [InputColumn(("x",), STRING), InputColumn(("X",), FLOAT)],
        [InputColumn(("x",), STRING), InputColumn(("x", "y"), FLOAT)],
        [InputColumn(("\N{KELVIN SIGN}",), STRING)],
    ],
)
def test_columns_that_a_scan_cannot_read_are_left_to_duckdb(columns: list[InputColumn]) -> None:
    assert usual_bodies(pa.array([BODY]), Projection(columns)) is None


def test_bodies_are_left_to_duckdb_if_few_are_usual_or_they_are_scattered() -> None:
    assert usual_bodies(pa.array([BODY, b"{", b"{"]), Projection([DEVICE])) is None
    assert usual_bodies(pa.array([], pa.binary()), Projection([DEVICE])) is None
    assert usual_bodies(pa.array([BODY]), Projection([], [TEMPERATURE])) is None
    two = pa.concat_arrays([pa.array([BODY]).cast(pa.binary_view()), pa.array([BODY]).cast(pa.binary_view())])
    scattered = pa.concat_arrays([two] * 400)
    assert usual_bodies(scattered, Projection([DEVICE])) is None
    require_equal(scattered, [DEVICE])


def test_a_body_that_is_cut_short_is_unusual_and_nothing_beyond_its_end_is_read() -> None:
    cuts = [BODY[:size] for size in range(len(BODY))]
    assert not any(scanned(cuts, COLUMNS))
    closed = [cut + b"}" for cut in cuts]
    assert scanned(closed, COLUMNS) == list(map(_is_json, closed))
    # Each cut body is the last one of its buffer, and what would complete it follows.
    for cut in cuts:
        buffers = [None, pa.py_buffer(np.array([0, len(cut)], np.int32)), pa.py_buffer(BODY)]
        body = pa.Array.from_buffers(pa.binary(), 1, buffers)
        assert usual_bodies(body, Projection(COLUMNS)) is None
    require_equal(pa.array([*cuts, *closed, *[BODY] * 300]), COLUMNS)


def _is_json(body: bytes) -> bool:
    try:
        json.loads(body)
    except ValueError:
        return False
    return True


NUMBERS = st.one_of(
    st.integers(-(10**20), 10**20).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.decimals(-1000, 1000, places=3).map(str),
    st.sampled_from(["0", "-0", "0.0", "1e5", "12.50", "1E400", "01", "9223372036854775808"]),
)
LETTERS = st.text(st.characters(codec="utf-8", max_codepoint=0x100), max_size=20) | st.text("ab0 -:", max_size=20)
STRINGS = LETTERS.map(json.dumps) | LETTERS.map(lambda letters: json.dumps(letters, ensure_ascii=False))
TIMES = st.datetimes().map(lambda time: f'"{time.isoformat()}Z"')
LITERALS = st.sampled_from(["true", "false", "null"])
SPACES = st.sampled_from(["", "", "", " ", "\n\t"])
NAMES = st.sampled_from(
    ["deviceId", "count", "temperature", "code", "isOn", "site", "sent", "id", "DEVICEID", "floors", "x"]
)


@st.composite
def objects(draw: st.DrawFn, values: st.SearchStrategy[str]) -> str:
    pairs = draw(st.lists(st.tuples(NAMES, values), max_size=6))
    space = draw(SPACES)
    return "{" + ",".join(f'{space}"{name}"{space}:{value}{space}' for name, value in pairs) + space + "}"


VALUES = st.recursive(
    NUMBERS | STRINGS | TIMES | LITERALS,
    lambda values: objects(values) | st.lists(values, max_size=3).map(lambda items: "[" + ", ".join(items) + "]"),
    max_leaves=8,
)
SENDERS = st.fixed_dictionaries(
    {"deviceId": STRINGS, "count": NUMBERS, "temperature": NUMBERS, "code": NUMBERS | STRINGS | LITERALS},
    optional={"isOn": LITERALS, "site": objects(VALUES), "sent": TIMES, "floors": VALUES, "x": VALUES},
).map(lambda fields: "{" + ",".join(f'"{name}":{value}' for name, value in fields.items()) + "}")


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Draw a body with a byte that is another, too many or missing."""
    body = draw(SENDERS | objects(VALUES)).encode()
    place = draw(st.integers(0, len(body) - 1))
    byte = draw(st.sampled_from([b"", *(bytes([byte]) for byte in b'{}[]",:\\0e-. \n\x00\x80tn')]))
    return body[:place] + byte + body[place + draw(st.integers(0, 1)) :]


BODIES = SENDERS.map(str.encode) | objects(VALUES).map(str.encode) | damaged() | st.none()


@pytest.mark.property
@settings(max_examples=examples(200))
@given(
    bodies=st.lists(BODIES, min_size=1, max_size=12),
    columns=st.lists(st.sampled_from(COLUMNS), unique=True),
    times=st.sampled_from([[], [SENT], [DEVICE]]),
    declared=st.lists(st.sampled_from([DEVICE, IS_ON, SENT, PLACE, SITE]), unique=True),
    are_views=st.booleans(),
)
def test_what_is_read_of_any_body_is_what_duckdb_reads(
    bodies: list[bytes | None],
    columns: list[InputColumn],
    times: list[InputColumn],
    declared: list[InputColumn],
    are_views: bool,
) -> None:
    array = pa.array([*bodies, *[BODY] * (len(bodies) + 1)], pa.binary())
    require_equal(array.cast(pa.binary_view()) if are_views else array, columns, times, declared)


@pytest.mark.property
@settings(max_examples=examples(200))
@given(st.lists(BODIES, min_size=1, max_size=12))
def test_what_is_read_of_a_usual_body_is_what_python_reads(bodies: list[bytes | None]) -> None:
    array = pa.array([*bodies, *[BODY] * (len(bodies) + 1)], pa.binary())
    result = usual_bodies(array, Projection([DEVICE, COUNT, TEMPERATURE]))
    assert result is not None
    for body, row, is_usual in zip(bodies, range(len(bodies)), result[1], strict=False):
        if is_usual:
            assert body is not None
            fields: dict[str, Any] = {name.lower(): value for name, value in json.loads(body).items()}
            for column in (DEVICE, COUNT, TEMPERATURE):
                assert result[0].columns[column][row].as_py() == fields.get(column.name.lower())
