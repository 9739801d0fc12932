"""COALESCE, NULLIF and IIF."""

from recapture.model import AsaType
from tests.query.functions.calls import call, check


def test_coalesce_is_the_first_value_that_is_not_null() -> None:
    check(
        ("COALESCE", (None, "a"), "a"),
        ("COALESCE", (None, None, 2, None), 2),
        ("COALESCE", (1, 2.5), 1.0),
        ("COALESCE", (None, True), True),
    )


def test_nullif_is_null_if_two_values_are_equal_and_otherwise_the_first_in_its_own_type() -> None:
    check(
        ("NULLIF", (4, 4), None),
        ("NULLIF", (5, 7), 5),
        ("NULLIF", (5, 7.0), 5),
        ("NULLIF", (5, 5.0), None),
        ("NULLIF", ("a", "A"), "a"),
    )


def test_iif_is_a_short_case() -> None:
    check(
        ("IIF", ("1 < 2", "yes", "no"), "yes"),
        ("IIF", ("1 > 2", 1, 2.5), 2.5),
        ("IIF", ("CAST(NULL AS bigint) = 1", 1, None), None),
    )


def test_a_choice_has_the_common_type() -> None:
    assert call("COALESCE", 1, 2.5).type is AsaType.FLOAT
    assert call("NULLIF", 1, 2.5).type is AsaType.BIGINT
    assert call("IIF", "1 = 1", None, "a").type is AsaType.STRING
