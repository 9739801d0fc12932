"""docs/query-language.md says of every scalar function what the code does with it."""

import re

from recapture.query.functions import FUNCTIONS, UNSUPPORTED
from recapture.query.parse.date_parts import PARTS
from tests.query.language_page import rows

OF_THE_LANGUAGE = {"CASE", "CAST", "TRY_CAST", "LIKE", "SYSTEM.TIMESTAMP", "GETMETADATAPROPERTYVALUE"}
"""Functions that the compiler itself handles."""


def stated(state: str) -> dict[str, str]:
    """Return the rules of the functions in a state, by name in capitals."""
    matching = [row for row in rows("Scalar functions") if row[1] == state]
    return {re.split(r"[( ]", row[0].strip("`"))[0].upper(): row[2] for row in matching}


def test_the_page_lists_every_supported_function() -> None:
    assert stated("supported").keys() == FUNCTIONS.keys() | OF_THE_LANGUAGE


def test_the_page_lists_refused_functions_with_their_message() -> None:
    assert stated("refused") == UNSUPPORTED


def test_a_function_is_listed_once_and_is_either_supported_or_refused() -> None:
    table = rows("Scalar functions")
    assert {row[1] for row in table} == {"supported", "refused"}
    assert len(table) == len(stated("supported")) + len(stated("refused"))


def test_the_page_lists_the_parts_of_a_date() -> None:
    listed = {
        spelling.strip("` "): row[0].strip("`")
        for row in rows("Parts of a date")
        for spelling in [row[0], *row[1].split(",")]
    }
    assert listed == PARTS
