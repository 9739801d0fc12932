"""The fields that a query reads, with the types that their use decides; it may select * without CREATE TABLE."""

import pytest

from recapture.errors import DefinitionError
from recapture.formats.event_hubs import CaptureInput
from recapture.model import AsaType
from recapture.query.compile import fields_used, has_create_table

BIGINT, FLOAT, TEXT, DATETIME, BIT, RECORD, ARRAY = AsaType


def used(
    text: str, properties: dict[str, AsaType | None] | None = None, /, **types: AsaType | None
) -> dict[str, AsaType | None]:
    """Return the fields that a query reads, by their dotted paths. `properties` and `types` are given."""
    inputs = {"telemetry": CaptureInput.metadata}
    given = {tuple(path.split(".")): kind for path, kind in (types | (properties or {})).items()}
    fields = fields_used(text, {"telemetry": given}, inputs=inputs, output_aliases=["out"])["telemetry"]
    return {".".join(path): kind for path, kind in fields.items()}


def test_a_field_has_the_type_that_its_use_decides() -> None:
    text = """
        SELECT *, a * 2 AS twice, UPPER(b) AS upper, c, GetArrayLength(d) AS length INTO out
        FROM telemetry TIMESTAMP BY t OVER k WHERE e = 'x' AND PartitionId = 0
    """
    assert used(text) == {"a": FLOAT, "b": TEXT, "c": None, "d": ARRAY, "e": TEXT, "t": DATETIME, "k": None}


def test_a_field_with_properties_is_a_record() -> None:
    assert used("SELECT site.id, x.y.z AS z, site INTO out FROM telemetry") == {"site": RECORD, "x": RECORD}


def test_a_property_has_the_type_of_its_use_if_it_is_given() -> None:
    text = """
        WITH s AS (SELECT SITE.*, Site.away.far FROM telemetry)
        SELECT x * 2 AS twice, far INTO out FROM s WHERE y LIKE 'a%'
    """
    given: dict[str, AsaType | None] = {"site": None, "site.x": None, "site.y": None, "site.z": BIT}
    assert used(text, given) == {"site": RECORD, "site.x": FLOAT, "site.y": TEXT, "site.z": BIT}


def test_the_amount_of_dateadd_is_a_bigint() -> None:
    text = "SELECT * INTO out FROM telemetry TIMESTAMP BY DATEADD(second, s, '1970-01-01')"
    assert used(text) == {"s": BIGINT}


def test_a_star_has_the_given_fields_whose_types_stay_open_or_are_those_given() -> None:
    text = "SELECT * INTO out FROM telemetry WHERE X > 1 AND z LIKE 'a%'"
    assert used(text, x=None, y=BIT, z=None) == {"x": FLOAT, "y": BIT, "z": TEXT}
    with pytest.raises(DefinitionError, match="bit is compared with"):
        used(text, x=BIT)


def test_a_star_of_a_step_and_of_a_union_passes_uses_on() -> None:
    text = """
        WITH a AS (SELECT * FROM telemetry), b AS (SELECT * FROM a UNION SELECT * FROM a WHERE v > 1)
        SELECT v, w INTO out FROM b WHERE w = 'x'
    """
    assert used(text, v=None, w=None) == {"v": FLOAT, "w": TEXT}


def test_a_key_that_is_compared_with_a_number_is_one() -> None:
    text = "SELECT k, COUNT(*) AS n INTO out FROM telemetry WHERE k > 3 GROUP BY k, Tumbling(minute, 1)"
    assert used(text, k=None) == {"k": FLOAT}
    assert used(text, k=BIGINT) == {"k": BIGINT}


def test_a_create_table_does_not_count() -> None:
    text = "CREATE TABLE telemetry (y bigint) SELECT x, x + 1 AS next INTO out FROM telemetry"
    assert used(text) == {"x": FLOAT}
    assert has_create_table(text)
    assert not has_create_table("SELECT 'CREATE TABLE' AS x INTO out FROM telemetry -- CREATE TABLE")
