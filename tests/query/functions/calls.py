"""Calls of scalar functions on given values, without a query around them; many are computed in one Spark job."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from unittest.mock import patch

import pyarrow as pa
from pyspark.sql import Row, SparkSession

from recapture.errors import DefinitionError
from recapture.model import AsaType
from recapture.query.functions import FUNCTIONS
from recapture.query.generate.values import Value, quoted_text
from recapture.time_model import timestamps

BIGINT, FLOAT, TEXT, DATETIME, BIT = AsaType.BIGINT, AsaType.FLOAT, AsaType.TEXT, AsaType.DATETIME, AsaType.BIT
SPARK_TYPES = {BIGINT: "BIGINT", FLOAT: "DOUBLE", TEXT: "STRING", DATETIME: "BIGINT", BIT: "BOOLEAN"}

Given = Value | str | int | float | bool | None
"""An argument: a value, or a Python value that stands for its literal; a bare word is its text."""


def ticks(text: str) -> int:
    """A time's ticks."""
    found, valid = timestamps.parse(pa.array([text]))
    assert valid[0], text
    return int(found[0])


def time(text: str) -> Value:
    """A datetime."""
    return Value(f"{ticks(text)}L", DATETIME)


def json(text: str, kind: AsaType) -> Value:
    """A record or an array."""
    return Value(quoted_text(text), kind)


def literal(given: Given) -> Value:
    """The literal of a Python value."""
    match given:
        case Value():
            return given
        case None:
            return Value("NULL", None)
        case bool():
            return Value(str(given).lower(), BIT)
        case int():
            return Value(f"{given}L", BIGINT, str(given)) if given >= 0 else Value(f"(- {-given}L)", BIGINT)
        case float():
            return Value(f"{given!r}D", FLOAT)
    return Value(quoted_text(given), TEXT, given)


@dataclass(frozen=True)
class FakeCall:
    """A Call whose arguments are given; it checks what the compiler would."""

    name: str
    given: tuple[Given, ...]

    @property
    def count(self) -> int:
        return len(self.given)

    def value(self, place: int) -> Value:
        return literal(self.given[place])

    def of(self, place: int, *types: AsaType) -> Value:
        value = self.value(place)
        if value.type is None:
            return Value("NULL", types[0])
        if value.type in types:
            return value
        if value.type is BIGINT and types == (FLOAT,):
            return Value(f"CAST({value.sql} AS DOUBLE)", FLOAT)
        if value.text is not None and DATETIME in types:
            return time(value.text)
        raise self.refuse(place, f"{self.name} takes {' or '.join(types)} here, and this is {value.type}")

    def unify(self, *places: int) -> tuple[list[Value], AsaType]:
        values = [self.value(place) for place in places]
        kinds = {value.type for value in values if value.type}
        if kinds == {BIGINT, FLOAT}:
            return [replace(value, sql=f"CAST({value.sql} AS DOUBLE)", type=FLOAT) for value in values], FLOAT
        (kind,) = kinds
        return values, kind

    def condition(self, place: int) -> str:
        return str(self.given[place])

    def equal(self, place: int, other: int) -> str:
        return f"({self.value(place).sql} = {self.value(other).sql})"

    def word(self, place: int) -> str:
        return str(self.given[place]).lower()

    def literal(self, place: int) -> str:
        text = self.value(place).text
        if text is None or self.value(place).type is not TEXT:
            raise self.refuse(place, f"{self.name} takes a text in quotes here")
        return text

    def number(self, place: int) -> int:
        given = self.given[place]
        assert isinstance(given, int)
        return given

    def refuse(self, place: int | None, message: str) -> DefinitionError:
        return DefinitionError(f"argument {place}: {message}")


def call(name: str, *given: Given) -> Value:
    """What a function makes of its arguments."""
    return FUNCTIONS[name](FakeCall(name, given))


Case = tuple[str, tuple[Given, ...], object]
"""A function, its arguments, and what it gives."""

_WRITTEN_OUT = {"ROUND": (1,), "PATINDEX": (0,), "REGEXMATCH": (1,), "IIF": (0,)}
"""The arguments that must be literals, besides the part of a date."""


def computed(spark: SparkSession, values: Sequence[str]) -> Row:
    """One row of Spark SQL expressions over no table."""
    return spark.sql(f"SELECT {', '.join(f'{sql} AS c{place}' for place, sql in enumerate(values))}").first() or Row()


def computed_over_columns(spark: SparkSession, cases: Sequence[Case]) -> list[object]:
    """What the calls give when each argument is a column, which Spark cannot compute beforehand."""
    columns: list[str] = []
    sqls = []
    for place, (name, given, _) in enumerate(cases):
        fixed = _WRITTEN_OUT.get(name, (0,) if name.startswith("DATE") and isinstance(given[0], str) else ())
        arguments: list[Given] = []
        for number, each in enumerate(given):
            value = literal(each)
            if number in fixed or value.type is None:
                arguments.append(each)
                continue
            column = f"c{place}_{number}"
            columns.append(f"CAST({value.sql} AS {SPARK_TYPES.get(value.type, 'STRING')}) AS {column}")
            arguments.append(Value(column, value.type))
        sqls.append(call(name, *arguments).sql)
    row_of_arguments = spark.sql(f"SELECT {', '.join(columns)}")
    row_of_arguments.rdd.toDF(row_of_arguments.schema).createOrReplaceTempView("arguments")
    row = spark.sql(
        f"SELECT {', '.join(f'{sql} AS r{place}' for place, sql in enumerate(sqls))} FROM arguments"
    ).first()
    assert row is not None
    return list(row)


def check(spark: SparkSession, cases: Sequence[Case]) -> None:
    """Each case holds over literals, over columns, and where arguments are so long that they are bound to a name."""
    wanted = _told(cases, [expected for *_, expected in cases])
    assert _told(cases, computed(spark, [call(name, *given).sql for name, given, _ in cases])) == wanted
    assert _told(cases, computed_over_columns(spark, cases)) == wanted
    with patch("recapture.query.generate.let._SHORT", 0):
        assert _told(cases, computed(spark, [call(name, *given).sql for name, given, _ in cases])) == wanted


def _told(cases: Sequence[Case], values: Sequence[object]) -> dict[str, str]:
    """By call, and with the type, so that 1, 1.0 and True differ."""
    names = (f"{place}: {name}{given}" for place, (name, given, _) in enumerate(cases))
    return dict(zip(names, map(repr, values), strict=True))
