"""GetType of values whose types are known."""

from recapture.model import AsaType
from recapture.query.analyse.values import Value
from recapture.query.plan.expressions import NULL, TRUE, cast_as
from tests.query.functions.calls import check, json, time


def test_the_type_of_a_value_is_its_name_in_asa() -> None:
    nothing = Value(cast_as(NULL, AsaType.BIGINT), AsaType.BIGINT)
    check(
        ("GETTYPE", (5,), "bigint"),
        ("GETTYPE", (5.0,), "float"),
        ("GETTYPE", ("5",), "nvarchar(max)"),
        ("GETTYPE", (time("2026-03-01T10:00:00Z"),), "datetime"),
        ("GETTYPE", (Value(TRUE, AsaType.BIT),), "bit"),
        ("GETTYPE", (json('{"a": 1}', AsaType.RECORD),), "record"),
        ("GETTYPE", (json("[1]", AsaType.ARRAY),), "array"),
        ("GETTYPE", (nothing,), None),
        ("GETTYPE", (None,), None),
    )
