"""Records and arrays, and the values that are extracted from them as text."""

from recapture.model import AsaType
from recapture.query.analyse.values import Value
from recapture.query.plan.expressions import NULL, cast_as, string
from recapture.query.plan.expressions import call as operation
from recapture.query.plan.operations import Op
from tests.query.functions.calls import call, check, computed, json

MIXED = json('[1.50, "a\\"b", null, {"x": [1, 2]}, 12345678901234567890123, true, "", "7"]', AsaType.ARRAY)
RECORD = json('{"a": {"b": 1}, "the [key]\'?*": "odd", "n": null, "A": 2, "sensor.id": "dotted"}', AsaType.RECORD)
NO_RECORD = Value(cast_as(NULL, AsaType.STRING), AsaType.RECORD)


def test_elements_count_from_0_and_keep_their_values() -> None:
    texts = ["1.5", 'a"b', None, '{"x":[1,2]}', "12345678901234567890123", "true", "", "7", None]
    check(
        *[("GETARRAYELEMENT", (MIXED, place), text) for place, text in enumerate(texts)],
        ("GETARRAYELEMENT", (MIXED, -1), None),
        ("GETARRAYELEMENT", (MIXED, 2**40), None),
        ("GETARRAYELEMENT", (MIXED, None), None),
        ("GETARRAYELEMENT", (json('{"a": 1}', AsaType.ARRAY), 0), None),
        ("GETARRAYLENGTH", (MIXED,), 8),
        ("GETARRAYLENGTH", (json("[]", AsaType.ARRAY),), 0),
        ("GETARRAYLENGTH", (json("{}", AsaType.ARRAY),), None),
        ("GETARRAYLENGTH", (None,), None),
    )


def test_properties_are_found_by_their_exact_name() -> None:
    check(
        ("GETRECORDPROPERTYVALUE", (RECORD, "a"), '{"b":1}'),
        ("GETRECORDPROPERTYVALUE", (RECORD, "A"), "2"),
        ("GETRECORDPROPERTYVALUE", (RECORD, "the [key]'?*"), "odd"),
        ("GETRECORDPROPERTYVALUE", (RECORD, "sensor.id"), "dotted"),
        ("GETRECORDPROPERTYVALUE", (RECORD, "n"), None),
        ("GETRECORDPROPERTYVALUE", (RECORD, "*"), None),
        ("GETRECORDPROPERTYVALUE", (RECORD, "missing"), None),
        ("GETRECORDPROPERTYVALUE", (RECORD, None), None),
        ("GETRECORDPROPERTYVALUE", (json("[1]", AsaType.RECORD), "a"), None),
        ("GETRECORDPROPERTYVALUE", (NO_RECORD, "a"), None),
        ("GETRECORDPROPERTYVALUE", (json('{"a":1," a":2}', AsaType.RECORD), " a"), "2"),
    )


def test_an_extracted_value_is_an_element_whose_type_is_open() -> None:
    extracted = [call("GETARRAYELEMENT", MIXED, 0), call("GETRECORDPROPERTYVALUE", RECORD, "a")]
    assert [(value.type, value.is_json_element) for value in extracted] == [(AsaType.STRING, True)] * 2


def test_a_text_is_parsed_into_a_record_or_null() -> None:
    check(
        ("JSON_PARSE", ('{"a": 1}',), '{"a": 1}'),
        ("JSON_PARSE", ("[1]",), None),
        ("JSON_PARSE", ('{"a": ',), None),
        ("JSON_PARSE", ("a",), None),
        ("JSON_PARSE", (None,), None),
    )


def test_elements_and_properties_become_rows() -> None:
    array, record = string('["x", null, {"a": 1}]'), string('{"b": 1, "a": "x", "n": null}')
    rows = computed(
        [
            operation(Op.ARRAY_ELEMENTS, array),
            operation(Op.RECORD_PROPERTIES, record),
            operation(Op.ARRAY_ELEMENTS, string("{}")),
        ],
    )
    assert [tuple(row.values()) for row in rows[0]] == [(0, "x"), (1, None), (2, '{"a":1}')]
    assert [tuple(row.values()) for row in rows[1]] == [("b", "1"), ("a", "x"), ("n", None)]
    assert rows[2] is None
    assert rows[0][0] == {"ArrayIndex": 0, "ArrayValue": "x"}
    assert rows[1][0] == {"PropertyName": "b", "PropertyValue": "1"}
